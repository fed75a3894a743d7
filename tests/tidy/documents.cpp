#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {
namespace {

bool is_document(std::string_view path) {
  return path.ends_with(".md");
}

// The lines of a document with those of code blocks emptied.
std::vector<std::string_view> prose(std::string_view text) {
  auto lines = lines_of(text);
  bool in_code = false;
  for (auto& line : lines) {
    const bool fence = line.starts_with("```");
    if (fence) in_code = !in_code;
    if (fence || in_code) line = {};
  }
  return lines;
}

// The targets of [text](target) in a line.
std::vector<std::string> links(std::string_view line) {
  std::vector<std::string> out;
  for (auto at = line.find("]("); at != std::string_view::npos; at = line.find("](", at + 1)) {
    const auto end = line.find_first_of(") ", at + 2);
    out.emplace_back(line.substr(at + 2, end - at - 2));
  }
  return out;
}

bool exists(const Tree& tree, const std::string& path) {
  if (tree.contains(path)) return true;
  const std::string folder = path.ends_with('/') ? path : path + "/";
  const auto inside = tree.lower_bound(folder);
  return inside != tree.end() && inside->first.starts_with(folder);
}

void check_links(const Tree& tree, const std::string& path, std::string_view line,
                 std::size_t number, Problems& problems) {
  for (const std::string& link : links(line)) {
    const std::string target = link.substr(0, link.find('#'));
    if (target.empty() || target.find("://") != std::string::npos ||
        target.starts_with("mailto:")) {
      continue;
    }
    const auto folder = std::filesystem::path(path).parent_path();
    const auto resolved = (folder / target).lexically_normal().generic_string();
    if (!exists(tree, resolved)) {
      problems.push_back({path, number, "link", "nothing is at " + link});
    }
  }
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "GW-31" and the like: two capitals, a dash, a number, and no letter around them.
std::vector<std::string> requirement_ids(std::string_view text) {
  std::vector<std::string> ids;
  for (std::size_t at = 0; at + 3 < text.size(); ++at) {
    if (!is_upper(text[at]) || !is_upper(text[at + 1]) || text[at + 2] != '-' ||
        !is_digit(text[at + 3]) || (at > 0 && (is_upper(text[at - 1]) || text[at - 1] == '-'))) {
      continue;
    }
    std::size_t end = at + 3;
    while (end < text.size() && is_digit(text[end])) ++end;
    ids.emplace_back(text.substr(at, end - at));
  }
  return ids;
}

// "Suite.Name" for each TEST, TEST_F, TEST_P and TYPED_TEST_P of a file.
void add_tests(std::string_view text, std::set<std::string>& tests) {
  for (const std::string_view macro :
       {"TEST(", "TEST_F(", "TEST_P(", "TYPED_TEST(", "TYPED_TEST_P("}) {
    for (auto at = text.find(macro); at != std::string_view::npos; at = text.find(macro, at + 1)) {
      const auto open = at + macro.size();
      const auto comma = text.find(',', open);
      const auto close = text.find(')', open);
      if (comma == std::string_view::npos || close < comma) continue;
      auto name = text.substr(comma + 1, close - comma - 1);
      name.remove_prefix(std::min(name.find_first_not_of(" \n"), name.size()));
      tests.insert(std::string(text.substr(open, comma - open)) + "." + std::string(name));
    }
  }
}

// What stands between backquotes in a line.
std::vector<std::string> quoted(std::string_view line) {
  std::vector<std::string> out;
  for (auto open = line.find('`'); open != std::string_view::npos;
       open = line.find('`', open + 1)) {
    const auto close = line.find('`', open + 1);
    if (close == std::string_view::npos) break;
    out.emplace_back(line.substr(open + 1, close - open - 1));
    open = close;
  }
  return out;
}

}  // namespace

Problems check_documents(const Tree& tree) {
  Problems problems;
  for (const auto& [path, text] : tree) {
    if (!is_document(path)) continue;
    std::size_t titles = 0;
    std::size_t number = 0;
    for (const std::string_view line : prose(text)) {
      ++number;
      if (line.starts_with("# ")) ++titles;
      check_links(tree, path, line, number, problems);
    }
    if (titles != 1) {
      problems.push_back(
          {path, 0, "title", "a document has one title (# …), not " + std::to_string(titles)});
    }
  }
  return problems;
}

Problems check_machine_paths(const Tree& tree) {
  // In two pieces, so that this file is not one of those that it finds.
  static const std::array<std::string, 5> paths{
      std::string("/wo") + "rk/", std::string("/ho") + "me/", std::string("/Use") + "rs/",
      std::string("/ro") + "ot/", std::string("/tmp/") + "w"};
  Problems problems;
  for (const auto& [path, text] : tree) {
    if (path.starts_with("tests/fixtures/")) continue;
    std::size_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      for (const std::string& found : paths) {
        const auto at = line.find(found);
        if (at == std::string_view::npos) continue;
        // After a letter it is a part of some relative path.
        if (at > 0 && (std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0)) continue;
        problems.push_back({path, number, "machine-path", found + " is a path of one machine"});
      }
    }
  }
  return problems;
}

Problems check_leftovers(const Tree& tree) {
  static const std::array<std::string, 4> words{std::string("TO") + "DO", std::string("FIX") + "ME",
                                                std::string("<<<<") + "<<<",
                                                std::string(">>>>") + ">>>"};
  Problems problems;
  for (const auto& [path, text] : tree) {
    if (path.starts_with("tests/fixtures/")) continue;
    std::size_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      for (const std::string& word : words) {
        if (line.find(word) == std::string_view::npos) continue;
        problems.push_back({path, number, "leftover", "`" + word + "`: finish it or file it"});
      }
    }
  }
  return problems;
}

Problems check_requirements(const Tree& tree) {
  const std::string table = "docs/requirements.md";
  const auto document = tree.find(table);
  if (document == tree.end()) return {{table, 0, "requirement", "the table is missing"}};
  std::set<std::string> tests;
  for (const auto& [path, text] : tree) {
    if (path.starts_with("tests/") && path.ends_with("pp")) add_tests(text, tests);
  }
  Problems problems;
  std::set<std::string> known;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(document->second)) {
    ++number;
    const auto ids = line.starts_with("| ") ? requirement_ids(line.substr(0, line.find('|', 1)))
                                            : std::vector<std::string>{};
    for (const std::string& id : ids) {
      if (!known.insert(id).second) {
        problems.push_back({table, number, "requirement", id + " is named twice"});
      }
    }
    if (ids.empty()) continue;
    for (const std::string& name : quoted(line)) {
      if (name.find('.') != std::string::npos && !tests.contains(name)) {
        problems.push_back({table, number, "requirement", "there is no test " + name});
      }
    }
  }
  for (const auto& [path, text] : tree) {
    if (!path.starts_with("tests/") || path.starts_with("tests/tidy/") || !is_cpp(path)) continue;
    static const std::set<std::string, std::less<>> families{"GW", "CT", "CP", "EX", "AD",
                                                             "CF", "OP", "RS", "ST", "QA"};
    for (const std::string& id : requirement_ids(text)) {
      if (families.contains(id.substr(0, 2)) && !known.contains(id)) {
        problems.push_back({path, 0, "requirement", id + " is not in " + table});
      }
    }
  }
  return problems;
}

}  // namespace proxypool::tidy
