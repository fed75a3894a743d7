#include "runtime/boot_clock.hpp"

#include <time.h>

namespace proxypool::runtime {
namespace {

// Cannot fail: both clocks exist since Linux 2.6.39 and the pointer is valid.
nanoseconds read(clockid_t clock) noexcept {
  timespec at{};
  ::clock_gettime(clock, &at);
  return seconds{at.tv_sec} + nanoseconds{at.tv_nsec};
}

}  // namespace

TimePoint boot_now() noexcept {
  return TimePoint{read(CLOCK_BOOTTIME)};
}

WallTime wall_now() noexcept {
  return WallTime{std::chrono::floor<milliseconds>(read(CLOCK_REALTIME))};
}

}  // namespace proxypool::runtime
