// Fast, stable, unkeyed hashes: for spreading and placing, never where somebody could gain by a
// collision.
//
// The results are part of behaviour (which worker wins a proxy, when a proxy is probed) and must be
// the same in every process of a cluster, so std::hash will not do.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace proxypool {

// A bijection on 64 bits in which every input bit moves half of the output (SplitMix64's finish).
constexpr std::uint64_t mix64(std::uint64_t z) noexcept {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

// FNV-1a, finished by mix64.
constexpr std::uint64_t hash64(std::string_view text) noexcept {
  std::uint64_t h = 0xCBF29CE484222325U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return mix64(h);
}

}  // namespace proxypool
