// The one place that reads the clocks of the machine.
//
// Thread rule: any thread.
#pragma once

#include "proxypool/base/time.hpp"

namespace proxypool::runtime {

// CLOCK_BOOTTIME: steady, and counts the time that the machine was suspended.
[[nodiscard]] TimePoint boot_now() noexcept;

// UTC; may step.
[[nodiscard]] WallTime wall_now() noexcept;

}  // namespace proxypool::runtime
