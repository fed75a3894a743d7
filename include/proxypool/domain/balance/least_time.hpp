// least_time: of two random members the one whose answer will come sooner: how long its answers
// take × (requests in flight + 1). (RS-6)
//
// Two, not all: a scan for the least sends every request to one member until that has slowed down,
// and whoever fails fast draws nearly all of them; of two random ones no member can get more than
// twice its share. In steps of 9 %; in the same step the one with fewer in flight, then either.
//
// Thread rule: any thread, without a lock, without allocation.
#pragma once

#include <cstdint>
#include <utility>

#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/balance/candidates.hpp"
#include "proxypool/domain/balance/members.hpp"

namespace proxypool::domain {

struct ReserveLeastTime {
  static constexpr int kTries = 4;

  template <class Admit>
  std::uint32_t operator()(Members& members, const Candidates& from, TimePoint now, Random& random,
                           Admit&& admit) const noexcept {
    const auto load = [&](std::uint32_t member) {
      const std::uint32_t in_flight = members.load_of(member);
      if (in_flight == Members::kFull) return std::pair{UINT32_MAX, in_flight};
      return std::pair{load_step(members.cost(member, now), in_flight), in_flight};
    };
    for (int i = 0; i < kTries && !from.available.empty(); ++i) {
      auto [first, second] = from.draw_two(random);
      if (load(second) < load(first)) std::swap(first, second);
      if (admit(first) && members.try_reserve(first, Tier::Available, now)) return first;
      if (admit(second) && members.try_reserve(second, Tier::Available, now)) return second;
    }
    return members.reserve_least(Tier::Available, from.mask, now, random, admit);
  }
};

}  // namespace proxypool::domain
