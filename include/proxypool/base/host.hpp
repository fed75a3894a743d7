// Host names and host:port texts in their one canonical spelling.
//
// Two programs that read one text as two hosts is how policies are passed by; so every host that
// is compared, matched, keyed or dialled went through canonical_host first. Names must be in
// A-label form; nothing here decodes percent signs or maps Unicode.
//
// Thread rule: pure functions.
// Limits: a name of at most 253 bytes, a label of at most 63; over: no host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/ip.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool {

// Whether a resolver of the old school (inet_aton) might take the text for an IPv4 address: its
// last label is a decimal, octal or hexadecimal number. No public name ends so.
constexpr bool ends_in_number(std::string_view host) noexcept {
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  const auto dot = host.rfind('.');
  std::string_view label = dot == std::string_view::npos ? host : host.substr(dot + 1);
  const bool hexadecimal = label.size() >= 2 && label[0] == '0' && lower(label[1]) == 'x';
  if (hexadecimal) label.remove_prefix(2);
  for (const char c : label) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(hexadecimal && lower(c) >= 'a' && lower(c) <= 'f')) return false;
  }
  return hexadecimal || !label.empty();
}

// A name of letters, digits, hyphens and underscores in labels; `name` is lower-case already and
// has no final dot.
constexpr bool is_host_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 253 || ends_in_number(name)) return false;
  std::size_t label_size = 0;
  char before = '.';
  for (const char c : name) {
    if (c == '.') {
      if (label_size == 0 || before == '-') return false;
      label_size = 0;
    } else {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      if (!plain && (c != '-' || label_size == 0)) return false;
      if (++label_size > 63) return false;
    }
    before = c;
  }
  return label_size > 0 && before != '-';
}

// An address in its shortest spelling without brackets, or a lower-case name without a final dot.
// Takes "192.0.2.1", "[2001:db8::1]", "2001:db8::1" and names; nothing for anything else, IPv4 in
// any spelling but four plain decimal parts included.
inline std::optional<std::string> canonical_host(std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    const auto address = IpAddress::parse(text.substr(1, text.size() - 2));
    if (!address || address->is_v4()) return std::nullopt;
    return address->str();
  }
  if (const auto address = IpAddress::parse(text)) return address->str();
  if (!text.empty() && text.back() == '.') text.remove_suffix(1);
  std::string name = lower(text);
  if (!is_host_name(name)) return std::nullopt;
  return name;
}

// 1 to 65535, without leading zeros.
inline std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
  const auto port = parse_number<std::uint16_t>(text);
  if (!port || text.front() == '0') return std::nullopt;
  return port;
}

// How a canonical host stands in a URL: IPv6 in brackets.
inline std::string bracketed(std::string_view canonical) {
  if (canonical.find(':') == std::string_view::npos) return std::string(canonical);
  return "[" + std::string(canonical) + "]";
}

// Whether a canonical host falls under a pattern: the same name, or "*.suffix" at any depth below.
constexpr bool host_matches(std::string_view host, std::string_view pattern) noexcept {
  if (pattern.substr(0, 2) != "*.") return host == pattern;
  const auto suffix = pattern.substr(1);  // with its dot
  return host.size() > suffix.size() && host.substr(host.size() - suffix.size()) == suffix;
}

}  // namespace proxypool
