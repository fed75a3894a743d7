// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein 2012, and their reference code of
// 2013): a keyed digest for short texts. Who does not know the key can neither find two texts with
// one tag nor, but by one chance in 2^128, a text with a given tag.
//
// For tables that are asked on each request, where a SHA-256 through a library costs ten times as
// much. Not for what leaves the process.
//
// Thread rule: pure functions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "proxypool/base/assert.hpp"

namespace proxypool {

using SipTag = std::array<std::uint8_t, 16>;

class SipHash {
 public:
  static constexpr std::size_t kKeyBytes = 16;

  // REQUIRES: key.size() == kKeyBytes.
  explicit SipHash(std::string_view key) {
    PP_ASSERT(key.size() == kKeyBytes);
    low_ = word(key.data());
    high_ = word(key.data() + 8);
  }

  [[nodiscard]] SipTag operator()(std::string_view text) const noexcept {
    State s{0x736f6d6570736575U ^ low_, 0x646f72616e646f6dU ^ high_ ^ 0xee,
            0x6c7967656e657261U ^ low_, 0x7465646279746573U ^ high_};
    const char* at = text.data();
    for (std::size_t left = text.size() / 8; left != 0; --left, at += 8) s.take(word(at));
    // The rest, and in the last byte how long the text is.
    std::uint64_t last = std::uint64_t{text.size()} << 56U;
    for (std::size_t i = 0; i < text.size() % 8; ++i) {
      last |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
    }
    s.take(last);
    s.c ^= 0xee;
    const std::uint64_t first = s.finish();
    s.b ^= 0xdd;
    const std::uint64_t second = s.finish();
    SipTag out;
    for (std::size_t i = 0; i < 8; ++i) {
      out[i] = static_cast<std::uint8_t>(first >> (8 * i));
      out[8 + i] = static_cast<std::uint8_t>(second >> (8 * i));
    }
    return out;
  }

 private:
  struct State {
    std::uint64_t a, b, c, d;

    void round() noexcept {
      a += b;
      b = std::rotl(b, 13) ^ a;
      a = std::rotl(a, 32);
      c += d;
      d = std::rotl(d, 16) ^ c;
      a += d;
      d = std::rotl(d, 21) ^ a;
      c += b;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
    void take(std::uint64_t word) noexcept {
      d ^= word;
      round();
      round();
      a ^= word;
    }
    std::uint64_t finish() noexcept {
      for (int i = 0; i < 4; ++i) round();
      return a ^ b ^ c ^ d;
    }
  };

  static std::uint64_t word(const char* from) noexcept {
    std::uint64_t out = 0;
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(&out, from, sizeof out);
    } else {
      for (unsigned i = 0; i < 8; ++i) {
        out |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
      }
    }
    return out;
  }

  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

}  // namespace proxypool
