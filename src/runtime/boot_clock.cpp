#include "runtime/boot_clock.hpp"

#include <time.h>

#include <cstdint>

namespace proxypool::runtime {
namespace {

std::int64_t read_ns(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);  // cannot fail for these clocks
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

TimePoint boot_now() noexcept {
  return TimePoint{nanoseconds{read_ns(CLOCK_BOOTTIME)}};
}

WallTime wall_now() noexcept {
  return WallTime{milliseconds{read_ns(CLOCK_REALTIME) / 1'000'000}};
}

}  // namespace proxypool::runtime
