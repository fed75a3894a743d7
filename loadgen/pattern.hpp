// The known bytes of the origin's bodies: byte i of a body is i modulo 251. The length is prime, so
// that a piece lost or doubled at any power of two shows.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace proxypool::loadgen {

inline constexpr std::uint64_t kPatternPeriod = 251;

// Up to `length` bytes of the pattern from `offset` on, as many as stand in one piece.
inline std::string_view pattern_piece(std::uint64_t offset, std::uint64_t length) {
  static const auto kTable = [] {
    std::array<char, kPatternPeriod * 257> table{};
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<char>(i % kPatternPeriod);
    return table;
  }();
  const auto begin = static_cast<std::size_t>(offset % kPatternPeriod);
  const auto size = std::min<std::uint64_t>(length, kTable.size() - begin);
  return {kTable.data() + begin, static_cast<std::size_t>(size)};
}

// Whether `bytes` are what stands at `offset`.
inline bool matches_pattern(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto piece = pattern_piece(offset, bytes.size());
    if (bytes.substr(0, piece.size()) != piece) return false;
    offset += piece.size();
    bytes.remove_prefix(piece.size());
  }
  return true;
}

}  // namespace proxypool::loadgen
