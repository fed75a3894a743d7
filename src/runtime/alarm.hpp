// A thread's bed and alarm clock: sleep until a moment on the boot clock, or until woken.
//
// The moment counts the time that the machine is suspended, which condition variables do not.
//
// Thread rule: wait_until: one thread (the sleeper); wake: any thread, also before the sleep.
#pragma once

#include "proxypool/base/time.hpp"
#include "runtime/unique_fd.hpp"

namespace proxypool::runtime {

class Alarm {
 public:
  Alarm();

  // Returns at `at`, or earlier when wake() was called since the last return. kNever: only then.
  void wait_until(TimePoint at);
  void wake() noexcept;

 private:
  UniqueFd timer_;
  UniqueFd wakes_;
};

}  // namespace proxypool::runtime
