// Small functions on ASCII text, numbers, durations, sizes, hexadecimal and base64.
//
// Thread rule: pure functions.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "proxypool/base/time.hpp"

namespace proxypool {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}
inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}
constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}
constexpr std::string_view trim(std::string_view text) noexcept {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const auto end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

// Decimal digits only: no sign, no blank, no leading plus; nothing on overflow.
template <class Integer>
std::optional<Integer> parse_number(std::string_view text) noexcept {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "250ms", "10s", "5m", "2h", "0": one number and one unit. Nothing above 100 years.
inline std::optional<nanoseconds> parse_duration(std::string_view text) noexcept {
  const auto digits = text.substr(0, text.find_first_not_of("0123456789"));
  const auto number = parse_number<std::int64_t>(digits);
  if (!number) return std::nullopt;
  const auto unit = text.substr(digits.size());
  std::int64_t scale = 0;
  if (unit == "ms") scale = 1'000'000;
  if (unit == "s") scale = 1'000'000'000;
  if (unit == "m") scale = 60'000'000'000;
  if (unit == "h") scale = 3'600'000'000'000;
  if (unit.empty() && *number == 0) return nanoseconds{0};
  constexpr std::int64_t kMax = 100LL * 366 * 24 * 3600 * 1'000'000'000LL;
  if (scale == 0 || *number > kMax / scale) return std::nullopt;
  return nanoseconds{*number * scale};
}
// The shortest exact spelling that parse_duration reads back; sub-millisecond parts are cut.
inline std::string format_duration(nanoseconds duration) {
  const auto ms = duration.count() / 1'000'000;
  if (ms == 0) return "0s";
  if (ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
  if (ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";
  if (ms % 1'000 == 0) return std::to_string(ms / 1'000) + "s";
  return std::to_string(ms) + "ms";
}

// "64KiB", "16MiB", "2GiB", "512B" or a bare number of bytes.
inline std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
  const auto digits = text.substr(0, text.find_first_not_of("0123456789"));
  const auto number = parse_number<std::uint64_t>(digits);
  if (!number) return std::nullopt;
  const auto unit = text.substr(digits.size());
  unsigned shift = 64;
  if (unit.empty() || unit == "B") shift = 0;
  if (unit == "KiB") shift = 10;
  if (unit == "MiB") shift = 20;
  if (unit == "GiB") shift = 30;
  if (shift == 64 || *number > (UINT64_MAX >> shift)) return std::nullopt;
  return *number << shift;
}
inline std::string format_bytes(std::uint64_t bytes) {
  if (bytes != 0 && bytes % (1U << 30U) == 0) return std::to_string(bytes >> 30U) + "GiB";
  if (bytes != 0 && bytes % (1U << 20U) == 0) return std::to_string(bytes >> 20U) + "MiB";
  if (bytes != 0 && bytes % (1U << 10U) == 0) return std::to_string(bytes >> 10U) + "KiB";
  return std::to_string(bytes) + "B";
}

inline std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

// RFC 4648 §4 (standard, padded) and §5 (URL-safe, not padded).
inline std::string base64_encode(std::string_view bytes, bool url_safe = false) {
  constexpr std::string_view kStandard =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::string_view kUrlSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const std::string_view table = url_safe ? kUrlSafe : kStandard;
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = (group << 8U) | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k <= n; ++k) out += table[(group >> (18U - 6U * k)) & 63U];
    if (!url_safe) out.append(3 - n, '=');
  }
  return out;
}
// Accepts the standard alphabet with or without padding; nothing on any other byte, on a wrong
// length, or on bits left over (RFC 4648 §3.5: one value has one spelling).
inline std::optional<std::string> base64_decode(std::string_view text) {
  while (!text.empty() && text.back() == '=' && text.size() % 4 == 0) {
    text.remove_suffix(1);
    if (!text.empty() && text.back() == '=') text.remove_suffix(1);
    break;
  }
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text) {
    std::uint32_t value = 0;
    if (c >= 'A' && c <= 'Z')
      value = static_cast<std::uint32_t>(c - 'A');
    else if (c >= 'a' && c <= 'z')
      value = static_cast<std::uint32_t>(c - 'a' + 26);
    else if (c >= '0' && c <= '9')
      value = static_cast<std::uint32_t>(c - '0' + 52);
    else if (c == '+')
      value = 62;
    else if (c == '/')
      value = 63;
    else
      return std::nullopt;
    bits = (bits << 6U) | value;
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>((bits >> held) & 255U);
    }
  }
  if ((bits & ((1U << held) - 1U)) != 0) return std::nullopt;
  return out;
}

// RFC 3339 in UTC with milliseconds: 2026-11-30T03:07:25.123Z.
inline std::string format_time(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto ms = (time - day).count();
  const auto digits = [](std::int64_t value, std::size_t width) {
    std::string text = std::to_string(value);
    return text.size() < width ? std::string(width - text.size(), '0') + text : text;
  };
  return digits(static_cast<int>(date.year()), 4) + "-" +
         digits(static_cast<unsigned>(date.month()), 2) + "-" +
         digits(static_cast<unsigned>(date.day()), 2) + "T" + digits(ms / 3'600'000, 2) + ":" +
         digits(ms / 60'000 % 60, 2) + ":" + digits(ms / 1'000 % 60, 2) + "." +
         digits(ms % 1'000, 3) + "Z";
}

}  // namespace proxypool
