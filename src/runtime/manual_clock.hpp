// A clock that stands still until a test moves it.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "proxypool/base/time.hpp"

namespace proxypool::runtime {

class ManualClock final : public Clock {
 public:
  // Starts an hour after boot, so that a test can look back.
  explicit ManualClock(TimePoint now = TimePoint{std::chrono::hours{1}},
                       WallTime wall = WallTime{seconds{1'700'000'000}}) noexcept
      : now_ns_(now.time_since_epoch().count()),
        wall_ahead_ns_(nanoseconds(wall.time_since_epoch()).count() - now_ns_.load()) {}

  [[nodiscard]] TimePoint now() const noexcept override {
    return TimePoint{nanoseconds{now_ns_.load()}};
  }
  [[nodiscard]] WallTime wall_now() const noexcept override {
    return WallTime{
        std::chrono::floor<milliseconds>(nanoseconds{now_ns_.load() + wall_ahead_ns_.load()})};
  }

  // Both clocks go on.
  void advance(nanoseconds duration) noexcept { now_ns_.fetch_add(duration.count()); }
  void set(TimePoint now) noexcept { advance(now - this->now()); }
  // The wall clock alone is set forward or, with a negative duration, back.
  void step_wall(nanoseconds duration) noexcept { wall_ahead_ns_.fetch_add(duration.count()); }

 private:
  std::atomic<std::int64_t> now_ns_;
  std::atomic<std::int64_t> wall_ahead_ns_;
};

}  // namespace proxypool::runtime
