// Which bytes may stand where in an HTTP/1.x message (RFC 9110 §5.6, RFC 9112), as tables, and the
// search for the end of a name, a value or a target sixteen bytes at a time.
//
// Thread rule: pure functions.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace proxypool::net {

using ByteTable = std::array<bool, 256>;

constexpr ByteTable make_table(std::string_view extra, bool alphanumeric) {
  ByteTable table{};
  for (const char c : extra) table[static_cast<unsigned char>(c)] = true;
  for (unsigned c = 0; alphanumeric && c < 128; ++c) {
    table[c] =
        table[c] || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  }
  return table;
}
// 0x21 to 0x7e without "<># : what a client may send in a request target.
constexpr ByteTable make_target_table() {
  ByteTable table{};
  for (unsigned c = 0x21; c < 0x7f; ++c) table[c] = c != '"' && c != '<' && c != '>' && c != '#';
  return table;
}
// Visible, blank, tab, and obs-text: what a field value and a reason phrase may hold.
constexpr ByteTable make_value_table() {
  ByteTable table{};
  for (unsigned c = 0; c < 256; ++c) table[c] = (c >= 0x20 && c != 0x7f) || c == '\t';
  return table;
}

inline constexpr ByteTable kTokenByte = make_table("!#$%&'*+-.^_`|~", true);
inline constexpr ByteTable kTargetByte = make_target_table();
inline constexpr ByteTable kValueByte = make_value_table();
inline constexpr ByteTable kHostByte = make_table("-._~", true);

constexpr bool in(const ByteTable& table, char c) noexcept {
  return table[static_cast<unsigned char>(c)];
}
constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t';
}

constexpr bool is_token(std::string_view text) noexcept {
  for (const char c : text) {
    if (!in(kTokenByte, c)) return false;
  }
  return !text.empty();
}
constexpr std::string_view trim_blanks(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

namespace detail {

// Sixteen bytes as one value. GCC and Clang turn it into whatever the machine has.
using Block = unsigned char __attribute__((vector_size(16)));
using Hits = signed char __attribute__((vector_size(16)));  // -1 where a byte is hit, else 0
inline constexpr int kBlock = 16;

// One bit for each byte, the first byte lowest.
inline unsigned bits_of(Hits hits) noexcept {
#ifdef __SSE2__
  return static_cast<unsigned>(_mm_movemask_epi8(std::bit_cast<__m128i>(hits)));
#else
  unsigned bits = 0;
  for (unsigned i = 0; i < kBlock; ++i) bits |= hits[i] != 0 ? 1U << i : 0U;
  return bits;
#endif
}

// The first byte in [p, end) that stops the scan. `hits(block)` answers, byte by byte, which ones
// may stop it; `stops(c)` decides.
template <class HitsOf, class Stops>
const char* scan(const char* p, const char* end, HitsOf hits, Stops stops) noexcept {
  while (end - p >= kBlock) {
    Block block;
    std::memcpy(&block, p, sizeof block);
    const unsigned bits = bits_of(hits(block));
    if (bits == 0) {
      p += kBlock;  // not by way of `bits`: the next block must not wait for this one
      continue;
    }
    p += std::countr_zero(bits);
    if (stops(*p)) return p;
    ++p;
  }
  while (p < end && !stops(*p)) ++p;
  return p;
}

}  // namespace detail

// The first byte in [p, end) that may not stand in a field value or a reason phrase: a control
// other than tab, or DEL; `end` when there is none. Bytes from 0x80 on may (obs-text).
inline const char* find_value_end(const char* p, const char* end) noexcept {
  return detail::scan(
      p, end,
      [](detail::Block b) -> detail::Hits { return ((b < 0x20) & (b != '\t')) | (b == 0x7f); },
      [](char c) { return !in(kValueByte, c); });
}

// The first byte in [p, end) that is no token byte. Nearly all names are of letters and '-'.
inline const char* find_token_end(const char* p, const char* end) noexcept {
  return detail::scan(
      p, end,
      [](detail::Block b) -> detail::Hits {
        const detail::Block letter = (b | 0x20) - 'a';
        return (letter > 'z' - 'a') & (b != '-');
      },
      [](char c) { return !in(kTokenByte, c); });
}

// The first byte in [p, end) that may not stand in a request target.
inline const char* find_target_end(const char* p, const char* end) noexcept {
  return detail::scan(
      p, end,
      [](detail::Block b) -> detail::Hits {
        return (b < 0x21) | (b > 0x7e) | (b == '"') | (b == '<') | (b == '>') | (b == '#');
      },
      [](char c) { return !in(kTargetByte, c); });
}

// Whether the token at p, as long as `wanted`, is that name in any case. `wanted` is of lower-case
// letters and '-'; of the token bytes, setting the bit 0x20 maps only their own capitals onto them.
inline bool is_name(const char* p, std::string_view wanted) noexcept {
  constexpr std::uint64_t kBits = 0x2020202020202020U;
  const char* const w = wanted.data();
  std::uint64_t difference = 0;
  const auto compare = [&](std::size_t at) {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, p + at, 8);
    std::memcpy(&b, w + at, 8);
    difference |= (a | kBits) ^ b;
  };
  if (wanted.size() >= 8) {
    for (std::size_t at = 0; at + 8 < wanted.size(); at += 8) compare(at);
    compare(wanted.size() - 8);
    return difference == 0;
  }
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    difference |= static_cast<unsigned char>((p[at] | 0x20) ^ w[at]);
  }
  return difference == 0;
}

// Calls element(text) for each element of a comma-separated list, blanks cut, empty ones left out.
// A quoted string is no element of the lists read here. Ends early when element() answers false.
template <class F>
constexpr bool for_each_element(std::string_view list, F&& element) {
  for (;;) {
    const auto comma = list.find(',');
    const auto text = trim_blanks(list.substr(0, comma));
    if (!text.empty() && !element(text)) return false;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace proxypool::net
