// The two clocks of a process. Only runtime/ and net/ call these; everybody else takes `now`.
//
// Thread rule: any thread.
#pragma once

#include "proxypool/base/time.hpp"

namespace proxypool::runtime {

// CLOCK_BOOTTIME: steady, goes on while the machine is suspended. About 30 ns.
TimePoint boot_now() noexcept;
// CLOCK_REALTIME in milliseconds; may step.
WallTime wall_now() noexcept;

}  // namespace proxypool::runtime
