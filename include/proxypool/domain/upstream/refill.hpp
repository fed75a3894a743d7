// When a pool buys more, and how much: two water marks with hysteresis (CT-11).
//
// Buying begins when the available slots fall under `minimum` and ends when they reach `target`.
// What calls in flight are expected to bring counts as there already. Slots of which nothing is
// known count as free here, and only here: a break of the control plane must not start a buying
// spree (C14), while what is known to be short is still bought.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "proxypool/domain/activitypool/inventory.hpp"

namespace proxypool::domain {

struct RefillPolicy {
  std::uint64_t minimum = 0;            // slots
  std::uint64_t target = 0;             // slots; at least minimum
  std::uint64_t size_max = 0;           // proxies: pool.maxSize over Managed
  std::uint32_t expected_per_call = 1;  // proxies: fetch.estimatedIPsPerCall
  std::uint32_t slots_per_proxy = 1;    // pool.maxConcurrency
  std::uint32_t in_flight_max = 1;      // fetch.maxInFlight
};

struct RefillInput {
  std::uint64_t managed = 0;
  SlotCount slots;
  std::uint64_t pending = 0;                // proxies expected from calls in flight
  std::uint32_t in_flight = 0;              // calls
  std::optional<std::uint64_t> total_left;  // of fetch.maxTotal; none: no limit
};

enum class RefillStop : std::uint8_t { None, Enough, PoolFull, TotalUsed, InFlight };

struct RefillDecision {
  bool filling = false;                // to be handed in again next time
  std::uint32_t calls = 0;             // to be started now
  std::uint64_t proxies = 0;           // what they should bring together
  RefillStop stop = RefillStop::None;  // why there are no calls
};

inline RefillDecision decide_refill(const RefillPolicy& policy, const RefillInput& input,
                                    bool filling) noexcept {
  RefillDecision decision;
  const std::uint64_t slots_each = std::max<std::uint64_t>(policy.slots_per_proxy, 1);
  const std::uint64_t slots =
      input.slots.available + input.slots.unknown + input.pending * slots_each;
  const std::uint64_t target = std::max(policy.target, policy.minimum);
  decision.filling = filling ? slots < target : slots < policy.minimum;
  const auto stop = [&](RefillStop reason) {
    decision.stop = reason;
    return decision;
  };
  if (!decision.filling) return stop(RefillStop::Enough);
  if (input.in_flight >= policy.in_flight_max) return stop(RefillStop::InFlight);
  const std::uint64_t held = input.managed + input.pending;
  if (held >= policy.size_max) return stop(RefillStop::PoolFull);
  if (input.total_left && *input.total_left == 0) return stop(RefillStop::TotalUsed);

  std::uint64_t wanted = (target - slots + slots_each - 1) / slots_each;
  wanted = std::min(wanted, policy.size_max - held);
  if (input.total_left) wanted = std::min(wanted, *input.total_left);
  const std::uint64_t each = std::max<std::uint32_t>(policy.expected_per_call, 1);
  const std::uint64_t calls =
      std::min<std::uint64_t>((wanted + each - 1) / each, policy.in_flight_max - input.in_flight);
  decision.calls = static_cast<std::uint32_t>(calls);
  decision.proxies = std::min(wanted, calls * each);
  return decision;
}

}  // namespace proxypool::domain
