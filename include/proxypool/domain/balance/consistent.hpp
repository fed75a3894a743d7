// Where a key belongs among numbered places, so that a place that comes or goes moves its own keys
// and no others. (RS-5)
//
// place_of() is for places 0 … size − 1: every place is as likely, and one more place takes an
// equal share from all others. The levels are the powers of two; a level holds the places of its
// upper half. From the top level down a key draws a place of both halves: one in the lower half
// means that the key belongs further down, one in the upper half that it belongs there, if there is
// such a place; if not it draws again. A further place only changes a draw that was in vain.
//
// Places may be empty: a key has a sequence of places, all independent, and belongs to the first
// that is taken. One that leaves gives its keys to the next in the sequence of each; so the shares
// of those that stay grow alike. Nothing is stored and nothing is built, at any size.
//
// For comparison: a ring needs some 400 points a member for shares that differ by less than 1.3 at
// 100 members, forty million at 100,000; a table of one entry a share is built anew with each
// change; rendezvous hashing asks every member.
//
// Thread rule: pure functions.
#pragma once

#include <bit>
#include <cstdint>

#include "proxypool/base/hash.hpp"

namespace proxypool::domain {

// REQUIRES: size > 0. About four hashes.
constexpr std::uint32_t place_of(std::uint64_t key, std::uint32_t size) noexcept {
  for (auto level = static_cast<unsigned>(std::bit_width(size - 1)); level > 0; --level) {
    const std::uint32_t half = std::uint32_t{1} << (level - 1);
    std::uint64_t hash = mix64(key + level);
    for (;; hash = mix64(hash)) {
      const auto draw = static_cast<std::uint32_t>(hash) & (2 * half - 1);
      if (draw < half) break;
      if (draw < size) return draw;
    }
    size = half;
  }
  return 0;
}

// The key for the n-th place of a key's sequence.
constexpr std::uint64_t nth_key(std::uint64_t key, std::uint32_t n) noexcept {
  return mix64(key ^ (std::uint64_t{n} << 32U));
}

}  // namespace proxypool::domain
