#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "config/node.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::config {
namespace {

constexpr std::size_t kTextBytesMax = std::size_t{4} << 20U;
constexpr int kNodesMax = 100'000;
constexpr int kDepthMax = 32;

Mark to_mark(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// YAML 1.2 §10.3.2: decimal, octal and hexadecimal integers, decimal fractions, exponents.
bool looks_like_number(std::string_view text) {
  if (text.starts_with("0x")) {
    return text.size() > 2 &&
           text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
  }
  if (text.starts_with("0o")) {
    return text.size() > 2 && text.find_first_not_of("01234567", 2) == std::string_view::npos;
  }
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == ".inf" || text == ".Inf" || text == ".INF") return true;
  const auto exponent = text.find_first_of("eE");
  auto mantissa = text.substr(0, exponent);
  if (exponent != std::string_view::npos) {
    auto digits = text.substr(exponent + 1);
    if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
    if (!all_digits(digits)) return false;
  }
  const auto dot = mantissa.find('.');
  if (dot == std::string_view::npos) return all_digits(mantissa);
  const auto whole = mantissa.substr(0, dot);
  const auto fraction = mantissa.substr(dot + 1);
  return (whole.empty() || all_digits(whole)) && (fraction.empty() || all_digits(fraction)) &&
         !(whole.empty() && fraction.empty());
}

NodeKind plain_kind(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return NodeKind::Null;
  }
  if (text == "true" || text == "True" || text == "TRUE" || text == "false" || text == "False" ||
      text == "FALSE") {
    return NodeKind::Bool;
  }
  if (looks_like_number(text) || text == ".nan" || text == ".NaN" || text == ".NAN") {
    return NodeKind::Number;
  }
  return NodeKind::Text;
}

// Where the first byte that is not UTF-8 stands, or npos. Overlong forms and surrogates count.
std::size_t find_bad_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t size = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
    if (size == 0 || i + size > text.size()) return i;
    for (std::size_t k = 1; k < size; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0U) != 0x80U) return i;
    }
    const auto second = size > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) {
      return i;
    }
    i += size;
  }
  return std::string_view::npos;
}

Mark mark_of_offset(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset);
  const auto line_start = before.rfind('\n');
  const auto column = line_start == std::string_view::npos ? offset : offset - line_start - 1;
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(column) + 1};
}

// Copies what yaml-cpp read into own values; gives up once the document is too large.
class Importer {
 public:
  explicit Importer(std::vector<Problem>& problems) : problems_(problems) {}

  Node import(const YAML::Node& from, const std::string& path, int depth) {
    Node to;
    to.mark = to_mark(from.Mark());
    if (too_large_) return to;
    if (--budget_ < 0 || depth > kDepthMax) {
      too_large_ = true;
      problems_.push_back({to.mark, path, "the document is too large or too deep",
                           "at most 100,000 values, aliases expanded, and 32 levels"});
      return to;
    }
    if (from.IsMap()) {
      to.kind = NodeKind::Map;
      import_members(from, to, path, depth);
    } else if (from.IsSequence()) {
      to.kind = NodeKind::List;
      for (const auto& item : from) {
        to.items.push_back(
            import(item, path + "[" + std::to_string(to.items.size()) + "]", depth + 1));
      }
    } else if (from.IsScalar()) {
      to.text = from.Scalar();
      to.kind = from.Tag() == "?" ? plain_kind(to.text) : NodeKind::Text;
      if (from.Tag() != "?" && from.Tag() != "!" && !from.Tag().empty()) {
        problems_.push_back({to.mark, path, "tags such as !name are not supported", ""});
      }
    }
    return to;
  }
  [[nodiscard]] bool too_large() const noexcept { return too_large_; }

 private:
  void import_members(const YAML::Node& from, Node& to, const std::string& path, int depth) {
    std::set<std::string> seen;
    for (const auto& member : from) {
      const Mark mark = to_mark(member.first.Mark());
      if (!member.first.IsScalar()) {
        problems_.push_back({mark, path, "a key must be a text", ""});
        continue;
      }
      const std::string& key = member.first.Scalar();
      const std::string member_path = path.empty() ? key : path + "." + key;
      if (key == "<<") {
        problems_.push_back({mark, member_path, "merge keys are not supported",
                             "write the keys out, or use an alias for the whole value"});
        continue;
      }
      if (!seen.insert(key).second) {
        problems_.push_back({mark, member_path, "this key stands here twice", ""});
        continue;
      }
      to.members.push_back({key, import(member.second, member_path, depth + 1), mark});
      if (too_large_) return;
    }
  }

  std::vector<Problem>& problems_;
  int budget_ = kNodesMax;
  bool too_large_ = false;
};

}  // namespace

std::optional<Node> parse_yaml(std::string_view text, std::vector<Problem>& problems) {
  if (text.size() > kTextBytesMax) {
    problems.push_back({{},
                        "",
                        "the file is larger than 4 MiB",
                        "put long proxy lists into a file of their own (provider type file)"});
    return std::nullopt;
  }
  if (const auto bad = find_bad_utf8(text); bad != std::string_view::npos) {
    problems.push_back({mark_of_offset(text, bad), "", "the text is not UTF-8", ""});
    return std::nullopt;
  }
  // A quote that is never closed is an error to yaml-cpp only when the text ends inside a line.
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  try {
    const auto documents = YAML::LoadAll(std::string(text));
    if (documents.empty()) return Node::map();
    if (documents.size() > 1) {
      problems.push_back({to_mark(documents[1].Mark()), "", "a second document begins here",
                          "one file holds one configuration"});
      return std::nullopt;
    }
    Importer importer(problems);
    Node root = importer.import(documents[0], "", 0);
    if (importer.too_large()) return std::nullopt;
    if (root.kind == NodeKind::Null) return Node::map();
    return root;
  } catch (const YAML::Exception& e) {
    problems.push_back({to_mark(e.mark), "", "not YAML: " + e.msg, ""});
  } catch (const std::exception&) {
    problems.push_back({{}, "", "not YAML that can be read", ""});
  }
  return std::nullopt;
}

}  // namespace proxypool::config
