// two_random_choices: the less loaded of two different random members. The approximation of
// least_conn that needs no index: its largest load stays within a small step of the mean.
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

struct ReserveTwoRandomChoices {
  static constexpr int kTries = 4;

  template <class Admit>
  std::uint32_t operator()(Members& members, const Candidates& from, TimePoint now, Random& random,
                           Admit&& admit) const noexcept {
    for (int i = 0; i < kTries && !from.available.empty(); ++i) {
      auto [first, second] = from.draw_two(random);
      if (members.load_of(second) < members.load_of(first)) std::swap(first, second);
      if (admit(first) && members.try_reserve(first, Tier::Available, now)) return first;
      if (admit(second) && members.try_reserve(second, Tier::Available, now)) return second;
    }
    return members.reserve_least(Tier::Available, from.mask, now, random, admit);
  }
};

}  // namespace proxypool::domain
