// The store's own clock in embedded mode: wall time at the start, steady from then on, so that a
// step of the wall clock moves no expiry.
//
// Thread rule: any thread.
#pragma once

#include "proxypool/base/time.hpp"

namespace proxypool::memory {

class StoreClock {
 public:
  explicit StoreClock(const Clock& clock)
      : clock_(clock), wall_at_start_(clock.wall_now()), start_(clock.now()) {}
  [[nodiscard]] StoreTime now() const noexcept {
    return wall_at_start_ + std::chrono::duration_cast<milliseconds>(clock_.now() - start_);
  }
  [[nodiscard]] StoreTime started_at() const noexcept { return wall_at_start_; }

 private:
  const Clock& clock_;
  WallTime wall_at_start_;
  TimePoint start_;
};

}  // namespace proxypool::memory
