// What makes a text an API key: at least 128 random bits, so that a fast hash keeps it safe.
// (GW-10)
//
// Whether a text was made by chance cannot be seen; how much chance it has room for can: its
// letters say which alphabet it was drawn from, and too few different ones say that it was not.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace proxypool::domain {

inline constexpr std::size_t kApiKeyBytesMin = 22;   // 128 bits in base64
inline constexpr std::size_t kApiKeyBytesMax = 256;  // longer texts are no keys
inline constexpr const char* kApiKeyRemedy = "make one with `openssl rand -hex 32`";

// What no API key can be, whatever was configured: nothing needs to be looked up for it.
constexpr bool may_be_api_key(std::string_view text) noexcept {
  return text.size() >= kApiKeyBytesMin && text.size() <= kApiKeyBytesMax;
}

namespace api_key_detail {

// Bits in a hundred characters drawn from the smallest usual alphabet that has all of these.
constexpr std::size_t bits_of_100(std::string_view text) noexcept {
  bool decimal = true;
  bool lower_hex = true;
  bool upper_hex = true;
  bool one_case = true;
  bool upper = false;
  bool lower = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    const bool small = c >= 'a' && c <= 'z';
    const bool capital = c >= 'A' && c <= 'Z';
    decimal = decimal && digit;
    lower_hex = lower_hex && (digit || (c >= 'a' && c <= 'f'));
    upper_hex = upper_hex && (digit || (c >= 'A' && c <= 'F'));
    one_case = one_case && (digit || small || capital || c == '-');
    upper = upper || capital;
    lower = lower || small;
  }
  if (decimal) return 332;
  if (lower_hex || upper_hex) return 400;
  if (one_case && !(upper && lower)) return 517;
  return 595;  // letters and digits
}

}  // namespace api_key_detail

// Printable ASCII without spaces, with room for 128 random bits.
constexpr bool is_api_key(std::string_view text) noexcept {
  constexpr std::size_t kDifferentMin = 8;
  if (!may_be_api_key(text)) return false;
  std::array<bool, 128> seen{};
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == ':') return false;  // a colon ends a user name
    seen[byte] = true;
  }
  const auto different = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
  return different >= kDifferentMin &&
         text.size() * api_key_detail::bits_of_100(text) >= std::size_t{128} * 100;
}

}  // namespace proxypool::domain
