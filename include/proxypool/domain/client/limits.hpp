// How much a client may ask for: requests in a second, and requests at once. (GW-12, ruling R7)
//
// The configuration gives totals for the cluster; each worker keeps an equal share of them, made
// when its snapshot is built. A share is at least 1, so that nobody is shut out by many workers.
//
// The rate is a token bucket kept as one moment: when the bucket will be full again. Taking a token
// moves it on by the time that a token takes to come; it must not lie further ahead than a whole
// bucket takes to fill. So there is nothing to refill, and one compare-and-set does it.
//
// Thread rule: any thread, without a lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "proxypool/base/time.hpp"

namespace proxypool::domain {

// Of one among `workers`; 0 stays 0: no limit.
constexpr std::uint32_t share_of(std::uint32_t total, std::uint32_t workers) noexcept {
  if (total == 0) return 0;
  return std::max<std::uint32_t>(1, total / std::max<std::uint32_t>(1, workers));
}

class RateBucket {
 public:
  // Takes a token from a bucket that holds `burst` and gets `per_second`. Nothing: it was there;
  // else how long until one is. REQUIRES: per_second > 0.
  [[nodiscard]] std::optional<nanoseconds> take(std::uint32_t per_second, std::uint32_t burst,
                                                TimePoint now) noexcept {
    const std::int64_t every = 1'000'000'000 / per_second;
    const std::int64_t whole = every * std::max<std::int64_t>(1, burst);
    const std::int64_t moment = now.time_since_epoch().count();
    std::int64_t full_at = full_at_.load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t after = std::max(full_at, moment) + every;
      if (after - moment > whole) return nanoseconds(after - moment - whole);
      if (full_at_.compare_exchange_weak(full_at, after, std::memory_order_relaxed)) {
        return std::nullopt;
      }
    }
  }

 private:
  std::atomic<std::int64_t> full_at_{INT64_MIN / 2};
};

// What one client uses of its limits on this worker.
struct alignas(64) ClientUse {
  RateBucket rate;
  std::atomic<std::uint32_t> in_flight{0};
  std::uint32_t number = 0;  // of the client, the same in every view; set once
  // Until when its quota for the day is used up, as the controller says. (GW-14)
  std::atomic<TimePoint> over_until{TimePoint::min()};

  [[nodiscard]] bool over_quota(TimePoint now) const noexcept {
    return now < over_until.load(std::memory_order_relaxed);
  }

  // One more at once, or false: there are `most` already.
  [[nodiscard]] bool enter(std::uint32_t most) noexcept {
    std::uint32_t seen = in_flight.load(std::memory_order_relaxed);
    do {
      if (seen >= most) return false;
    } while (!in_flight.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
    return true;
  }
  void leave() noexcept { in_flight.fetch_sub(1, std::memory_order_relaxed); }
};

}  // namespace proxypool::domain
