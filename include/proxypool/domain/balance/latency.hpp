// Latency: how long a target's answers take, as an average that forgets. (RS-6)
//
// A sample above the average replaces it at once; one below pulls it down by as much as time has
// passed since the last. So what it says does not depend on how many samples come, as with an
// average by sample, and a target that turns slow is known by its first slow answer. What is not
// renewed drifts towards the median of the pool and after kMemory counts for nothing: a target that
// was not used for a while looks like any other and is tried again; it is neither starved for what
// it once was, nor does everybody rush to it, as to one whose time is unknown and said to be short.
// A failure never makes a target look better, however fast it came.
//
// MedianLatency is what the pool takes. Each target writes its average into one of 64 cells, and
// once a second one writer sorts these: in a pool of up to 64 it is the median of all, in a larger
// one of 64 that were heard of last.
//
// Thread rule: any thread, without a lock, without allocation. Reading changes nothing; a record is
//              one compare-and-set.
// Limits:      moments are kept in steps of 1 ms, modulo 52 days: a target that was not used for so
//              long may for a minute look as it last did.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "proxypool/base/time.hpp"

namespace proxypool::domain {

class Latency {
 public:
  static constexpr nanoseconds kMemory = std::chrono::seconds(10);

  // What a request to this target will take, in microseconds. Without a sample: the median.
  [[nodiscard]] float cost(TimePoint now, float median) const noexcept {
    return at(bits_.load(std::memory_order_relaxed), tick_of(now), median);
  }

  // Each answers what the cost is from now on.
  float succeeded(TimePoint now, nanoseconds took, float median) noexcept {
    const float sample = in_microseconds(took);
    return change(now, [&](std::uint64_t seen, std::uint32_t tick) {
      if (sample > at(seen, tick, median)) return sample;
      return sample + (value(seen) - sample) * weight(seen, tick);
    });
  }
  float failed(TimePoint now, nanoseconds penalty, float median) noexcept {
    return change(now, [&](std::uint64_t seen, std::uint32_t tick) {
      return std::max(in_microseconds(penalty), at(seen, tick, median));
    });
  }
  // An attempt was given up: an answer takes at least so long.
  float lasted(TimePoint now, nanoseconds so_long, float median) noexcept {
    const float least = in_microseconds(so_long);
    const float known = cost(now, median);
    return least > known ? succeeded(now, so_long, median) : known;
  }
  // The target's place is another's now.
  void forget() noexcept { bits_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr unsigned kTickLog = 20;  // nanoseconds in a tick: about 1 ms
  static constexpr auto kMemoryTicks = static_cast<std::uint32_t>(kMemory.count() >> kTickLog);
  static constexpr std::int32_t kClockSlip = 60'000;  // threads' clocks differ by less

  // The word: the average as a float above, the tick of its last sample below. 0: no sample.
  static float value(std::uint64_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32U));
  }
  static std::uint32_t tick_of(TimePoint now) noexcept {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(now.time_since_epoch().count()) >>
                                      kTickLog);
  }
  static float in_microseconds(nanoseconds time) noexcept {
    return std::max(static_cast<float>(time.count()) * 1e-3F, 1.0F);
  }
  // What the last sample still counts: e^(−passed/kMemory), and nothing after kMemory. The sum is
  // the exponential's to 0.2 % there, and costs 2 ns.
  static float weight(std::uint64_t bits, std::uint32_t tick) noexcept {
    const std::uint32_t passed = tick - static_cast<std::uint32_t>(bits);
    if (bits == 0) return 0;
    if (static_cast<std::int32_t>(passed) < 0) {
      return static_cast<std::int32_t>(passed) > -kClockSlip ? 1.0F : 0.0F;
    }
    if (passed >= kMemoryTicks) return 0;
    const float x = static_cast<float>(passed) * (1.0F / static_cast<float>(kMemoryTicks));
    return 1 - x * (1 - x * (1.0F / 2 - x * (1.0F / 6 - x * (1.0F / 24 - x * (1.0F / 120)))));
  }
  static float at(std::uint64_t bits, std::uint32_t tick, float median) noexcept {
    return median + (value(bits) - median) * weight(bits, tick);
  }

  template <class Next>
  float change(TimePoint now, Next&& next) noexcept {
    const std::uint32_t tick = tick_of(now);
    std::uint64_t seen = bits_.load(std::memory_order_relaxed);
    for (;;) {
      const float cost = next(seen, tick);
      const std::uint64_t wanted =
          static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(cost)) << 32U | tick;
      if (bits_.compare_exchange_weak(seen, wanted, std::memory_order_relaxed)) return cost;
    }
  }

  std::atomic<std::uint64_t> bits_{0};
};

class MedianLatency {
 public:
  static constexpr nanoseconds kRenewed = std::chrono::seconds(1);

  // 0: nothing is known yet.
  [[nodiscard]] float value() const noexcept { return median_.load(std::memory_order_relaxed); }

  // A target has this cost now.
  void learn(std::uint32_t target, float cost, TimePoint now) noexcept {
    cells_[target % kCells].store(cost, std::memory_order_relaxed);
    const std::int64_t moment = now.time_since_epoch().count();
    std::int64_t due = due_.load(std::memory_order_relaxed);
    if (moment < due) return;
    if (due_.compare_exchange_strong(due, moment + kRenewed.count(), std::memory_order_relaxed)) {
      renew();
    }
  }

 private:
  static constexpr std::size_t kCells = 64;

  void renew() noexcept {
    std::array<float, kCells> known{};
    std::size_t count = 0;
    for (const auto& cell : cells_) {
      known[count] = cell.load(std::memory_order_relaxed);
      if (known[count] > 0) ++count;
    }
    if (count == 0) return;
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>((count - 1) / 2);
    std::nth_element(known.begin(), middle, known.begin() + static_cast<std::ptrdiff_t>(count));
    median_.store(*middle, std::memory_order_relaxed);
  }

  alignas(64) std::atomic<float> median_{0};
  std::atomic<std::int64_t> due_{INT64_MIN};
  alignas(64) std::array<std::atomic<float>, kCells> cells_{};
};

// What a choice compares: cost × (in flight + 1) / weight, in steps of an eighth of a doubling, so
// that equal targets stay equal and no choice chases noise. That requests in flight count before
// they are answered is what keeps everybody from going to the same fastest target at once.
inline std::uint32_t load_step(float cost, std::uint32_t in_flight,
                               std::uint32_t weight = 1) noexcept {
  const float load = cost * static_cast<float>(in_flight + 1) / static_cast<float>(weight);
  return std::bit_cast<std::uint32_t>(load) >> 20U;
}

}  // namespace proxypool::domain
