// What only the system can give: its clock as a Clock, chance for this thread, descriptors, a
// thread's name.
//
// Thread rule: any thread; a generator belongs to the thread that asked for it.
#pragma once

#include <string>

#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::runtime {

const Clock& system_clock() noexcept;

// This thread's generator, seeded from the kernel at the first use. Not for secrets.
Random& thread_random();

// Lets this process open as many descriptors as it may: shells leave it a thousand.
void raise_descriptor_limit() noexcept;

// What `top` and debuggers show; cut to 15 bytes.
void name_this_thread(const std::string& name) noexcept;

}  // namespace proxypool::runtime
