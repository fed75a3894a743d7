// Randomness as an argument: a rule that needs chance takes a Random&.
//
// Thread rule: one thread at a time; each thread has its own generator.
#pragma once

#include <cstdint>

namespace proxypool {

class Random {
 public:
  virtual ~Random() = default;
  [[nodiscard]] virtual std::uint64_t next() noexcept = 0;

  // Uniform in [0, bound). REQUIRES: bound > 0. (Lemire's multiply-shift; the bias is below 2^-32
  // for every bound under 2^32.)
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64U);
  }
  // Uniform in [0, 1).
  [[nodiscard]] double unit() noexcept { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
};

// SplitMix64 (Steele, Lea, Flood 2014): 8 bytes of state, passes BigCrush. Not for secrets.
class SplitMix64 final : public Random {
 public:
  explicit SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}
  [[nodiscard]] std::uint64_t next() noexcept override {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t state_;
};

}  // namespace proxypool
