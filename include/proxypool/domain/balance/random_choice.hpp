// random: any member, each as likely as the other. After a few that are full or not admitted, the
// least loaded one, which exists if any member has a free place.
//
// Thread rule: any thread, without a lock, without allocation.
#pragma once

#include <cstdint>

#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/balance/candidates.hpp"
#include "proxypool/domain/balance/members.hpp"

namespace proxypool::domain {

struct ReserveRandom {
  static constexpr int kTries = 8;

  template <class Admit>
  std::uint32_t operator()(Members& members, const Candidates& from, TimePoint now, Random& random,
                           Admit&& admit) const noexcept {
    for (int i = 0; i < kTries && !from.available.empty(); ++i) {
      const std::uint32_t member = from.draw(random);
      if (admit(member) && members.try_reserve(member, Tier::Available, now)) return member;
    }
    return members.reserve_least(Tier::Available, from.mask, now, random, admit);
  }
};

}  // namespace proxypool::domain
