// Points in time and deadlines. No function here reads a clock: a rule takes `now`.
//
// TimePoint is steady and counts suspend (CLOCK_BOOTTIME); it never leaves the process. WallTime is
// UTC and may step; only it leaves the process. StoreTime is what the activity pool's own clock
// says (the Redis server, or this process in embedded mode), in the units of WallTime.
//
// Thread rule: immutable values.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace proxypool {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A name for the boot clock; deliberately without now(): see runtime::Clock.
struct BootClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = nanoseconds;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
};

using TimePoint = BootClock::time_point;
using WallTime = std::chrono::sys_time<milliseconds>;
using StoreTime = WallTime;

constexpr TimePoint kNever = TimePoint::max();

// The latest moment at which an operation may still be going on. Default: none.
class Deadline {
 public:
  constexpr Deadline() = default;
  constexpr explicit Deadline(TimePoint at) : at_(at) {}
  // `budget` from `now` on; saturates instead of overflowing.
  static constexpr Deadline after(TimePoint now, nanoseconds budget) noexcept {
    if (budget >= TimePoint::max() - now) return Deadline{};
    return Deadline{now + budget};
  }

  [[nodiscard]] constexpr TimePoint at() const noexcept { return at_; }
  [[nodiscard]] constexpr bool reachable() const noexcept { return at_ != kNever; }
  [[nodiscard]] constexpr bool passed(TimePoint now) const noexcept { return now >= at_; }
  // What is left, never negative.
  [[nodiscard]] constexpr nanoseconds left(TimePoint now) const noexcept {
    return passed(now) ? nanoseconds{0} : at_ - now;
  }
  friend constexpr auto operator<=>(const Deadline&, const Deadline&) = default;

 private:
  TimePoint at_ = kNever;
};

// The clocks of a process. Implemented once in runtime/ and by ManualClock in the tests; services
// ask once per step and pass `now` down.
//
// Thread rule: any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
  [[nodiscard]] virtual WallTime wall_now() const noexcept = 0;
};

}  // namespace proxypool
