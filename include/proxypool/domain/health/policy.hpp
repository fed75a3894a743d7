// How often proxies are probed and how much they are forgiven (rulings, "Health defaults").
//
// Thread rule: immutable values, pure functions.
#pragma once

#include <cstdint>

#include "proxypool/base/hash.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::domain {

struct HealthPolicy {
  milliseconds interval{30'000};         // between BASIC probes of a proxy in order
  milliseconds recheck_interval{5'000};  // of one in doubt
  std::uint32_t jitter_percent = 20;
  std::uint32_t failure_threshold = 3;  // in a row
  std::uint32_t success_threshold = 1;
  milliseconds task_lease{15'000};  // an answer that is later than this is not waited for
  // Failures of real traffic count once in this time: requests that fail together are one fact.
  milliseconds traffic_spacing{1'000};
};

// `interval` with its jitter, the same for the same (proxy, turn): proxies that came together drift
// apart, and no dice are needed.
constexpr milliseconds jittered(milliseconds interval, std::uint32_t percent, ProxyId proxy,
                                std::uint64_t turn) noexcept {
  const std::int64_t reach = interval.count() * static_cast<std::int64_t>(percent) / 100;
  if (reach <= 0) return interval;
  const std::uint64_t spread = mix64(proxy.value() ^ mix64(turn));
  const auto offset = static_cast<std::int64_t>(spread % static_cast<std::uint64_t>(2 * reach + 1));
  return interval + milliseconds(offset - reach);
}

}  // namespace proxypool::domain
