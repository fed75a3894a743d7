#include "adapters/provider_template/extract.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "proxypool/base/host.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::provider_template {

namespace {

using nlohmann::json;

Error bad(std::string message) {
  return {ErrorCode::Corrupt, Origin::Provider, std::move(message)};
}

// A record: a JSON value, or a line of text that stands for itself.
struct Record {
  const json* value = nullptr;
  std::string_view line;
};

// The value of an expression as text; nothing when the record has no such member.
std::optional<std::string> evaluate(const config::MapValue& expression, const Record& record) {
  using Kind = config::MapValue::Kind;
  if (expression.kind == Kind::Constant) return expression.text;
  if (expression.kind == Kind::Secret) return std::string(expression.secret.reveal());
  if (!record.value) {
    if (!expression.path.empty()) return std::nullopt;
    return std::string(record.line);
  }
  const json* at = record.value;
  for (const std::string& member : expression.path) {
    if (!at->is_object()) return std::nullopt;
    const auto found = at->find(member);
    if (found == at->end()) return std::nullopt;
    at = &*found;
  }
  if (at->is_string()) return at->get<std::string>();
  if (at->is_number_unsigned()) return std::to_string(at->get<std::uint64_t>());
  if (at->is_number_integer()) return std::to_string(at->get<std::int64_t>());
  if (at->is_number_float()) return at->dump();
  if (at->is_boolean()) return at->get<bool>() ? "true" : "false";
  return std::nullopt;
}

std::string text_of(const std::optional<config::MapValue>& expression, const Record& record) {
  if (!expression) return {};
  return evaluate(*expression, record).value_or(std::string{});
}

std::optional<domain::Scheme> scheme_of(std::string_view text) {
  if (equal_ignoring_case(text, "http")) return domain::Scheme::Http;
  if (equal_ignoring_case(text, "https")) return domain::Scheme::Https;
  return std::nullopt;  // SOCKS is refused until it is built
}

// The number of units as milliseconds; nothing for what is no number, negative or absurdly large.
std::optional<milliseconds> duration_of(std::string_view text, milliseconds unit) {
  const std::string copy(trim(text));
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size() || !std::isfinite(number)) {
    return std::nullopt;
  }
  const double ms = number * static_cast<double>(unit.count());
  constexpr double kMax = 4e15;  // beyond the year 100,000
  if (ms < 0 || ms > kMax) return std::nullopt;
  return milliseconds{static_cast<std::int64_t>(ms)};
}

// Fills in when the candidate ends. A missing member leaves it open; a bad one fails the record.
bool set_expiry(const config::ExpirySpec& spec, const Record& record, WallTime now,
                domain::Candidate& candidate) {
  const bool after = spec.after.has_value();
  const auto text = evaluate(after ? *spec.after : *spec.epoch, record);
  if (!text || trim(*text).empty()) return true;
  const auto duration = duration_of(*text, spec.unit_length());
  if (!duration) return false;
  candidate.expires_at = after ? now + *duration : WallTime{*duration};
  return true;
}

bool set_endpoint(const config::MapConfig& map, const Record& record,
                  domain::Candidate& candidate) {
  if (map.as || (!map.host && !record.value)) {
    const auto text = map.as ? evaluate(map.as->source, record) : std::string(record.line);
    if (!text) return false;
    auto parsed = config::parse_proxy(trim(*text), map.as ? map.as->form : config::ProxyForm::Line);
    if (!parsed) return false;
    candidate = *std::move(parsed);
  }
  if (map.host) {
    auto host = canonical_host(trim(text_of(map.host, record)));
    if (!host) return false;
    candidate.endpoint.host = *std::move(host);
  }
  if (map.port) {
    const auto port = parse_number<std::uint16_t>(trim(text_of(map.port, record)));
    if (!port || *port == 0) return false;
    candidate.endpoint.port = *port;
  }
  if (map.scheme) {
    const auto scheme = scheme_of(trim(text_of(map.scheme, record)));
    if (!scheme) return false;
    candidate.endpoint.scheme = *scheme;
  }
  return !candidate.endpoint.host.empty() && candidate.endpoint.port != 0;
}

// How many bytes the UTF-8 character at the start takes; 0: it is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80                      ? 1
                             : byte(0) >= 0xc2 && byte(0) < 0xe0 ? 2
                             : byte(0) >= 0xe0 && byte(0) < 0xf0 ? 3
                             : byte(0) >= 0xf0 && byte(0) < 0xf5 ? 4
                                                                 : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xed && byte(1) >= 0xa0;
  const bool beyond = byte(0) == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

// The longest start of at most `bytes_max` that is whole characters: texts of records go into
// messages and documents that must be UTF-8.
std::size_t utf8_prefix(std::string_view text, std::size_t bytes_max) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0 || at + length > bytes_max) break;
    at += length;
  }
  return at;
}

std::string cut_label(std::string text) {
  constexpr std::size_t kBytesMax = 64;
  text.resize(utf8_prefix(text, kBytesMax));
  return text;
}

bool is_utf8(std::string_view text) {
  return utf8_prefix(text, text.size()) == text.size();
}

bool has_control(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

bool set_credential(const config::MapConfig& map, const Record& record,
                    domain::Candidate& candidate) {
  if (map.username) candidate.credential.username = text_of(map.username, record);
  if (map.password) candidate.credential.password = SecretString(text_of(map.password, record));
  const domain::Credential& credential = candidate.credential;
  const auto good = [](std::string_view text) { return !has_control(text) && is_utf8(text); };
  return credential.username.find(':') == std::string::npos && good(credential.username) &&
         good(credential.password.reveal());
}

void set_labels(const config::MapConfig& map, const Record& record, domain::Candidate& candidate) {
  const auto label = [&](const std::optional<config::MapValue>& expression) {
    return cut_label(lower(trim(text_of(expression, record))));
  };
  candidate.attributes.country = label(map.country);
  for (char& c : candidate.attributes.country) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  candidate.attributes.region = label(map.region);
  candidate.attributes.city = label(map.city);
  candidate.attributes.carrier = label(map.carrier);
  for (const auto& [key, expression] : map.tags) {
    auto value = evaluate(expression, record);
    if (value && !value->empty()) {
      candidate.tags.insert_or_assign(key, cut_label(*std::move(value)));
    }
  }
}

std::optional<domain::Candidate> candidate_of(const config::MapConfig& map, const Record& record,
                                              WallTime now) {
  domain::Candidate candidate;
  if (!set_endpoint(map, record, candidate)) return std::nullopt;
  if (!set_credential(map, record, candidate)) return std::nullopt;
  if (map.expires && !set_expiry(*map.expires, record, now, candidate)) return std::nullopt;
  set_labels(map, record, candidate);
  return candidate;
}

// `place` is the number of the line or record, from 1.
Status take(Extracted& out, const config::MapConfig& map, const Record& record, std::size_t place,
            WallTime now) {
  if (++out.records > limits::kVendorRecordsMax) {
    return bad("more than " + std::to_string(limits::kVendorRecordsMax) + " records");
  }
  auto candidate = candidate_of(map, record, now);
  if (candidate) out.candidates.push_back(*std::move(candidate));
  if (!candidate && out.invalid++ == 0) {
    out.first_invalid = (record.value == nullptr ? "line " : "record ") + std::to_string(place);
  }
  return ok();
}

// Refuses nesting before the parser recurses into it.
bool too_deep(std::string_view text) {
  constexpr int kDepthMax = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDepthMax) return true;
  }
  return false;
}

}  // namespace

Result<Extracted> extract_lines(std::string_view text, const config::MapConfig& map, WallTime now) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  Extracted out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    PP_TRY(const Unit taken, take(out, map, {nullptr, line}, number, now));
    static_cast<void>(taken);
  }
  return out;
}

Result<Extracted> extract_json(std::string_view text, const config::RecordsConfig& records,
                               const config::MapConfig& map, WallTime now) {
  if (too_deep(text)) return bad("JSON nested deeper than 64 levels");
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) return bad("the answer is not JSON");
  const json* at = &document;
  for (const std::string& member : records.from) {
    if (!at->is_object() || !at->contains(member)) {
      return bad("the answer has no member '" + member + "'");
    }
    at = &(*at)[member];
  }
  Extracted out;
  if (at->is_null()) return out;
  if (!at->is_array() && !at->is_object()) return bad("the records are neither list nor object");
  for (const json& record : *at) {
    PP_TRY(const Unit taken, take(out, map, {&record, {}}, out.records + 1, now));
    static_cast<void>(taken);
  }
  return out;
}

}  // namespace proxypool::provider_template
