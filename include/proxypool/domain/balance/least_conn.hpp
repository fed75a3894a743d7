// least_conn: a member with the fewest requests in flight, exactly; ties are random.
//
// Thread rule: any thread, without a lock, without allocation.
#pragma once

#include <cstdint>

#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/balance/candidates.hpp"
#include "proxypool/domain/balance/members.hpp"

namespace proxypool::domain {

// Each balancer has this one function: takes a place at one of the candidates that admit(member)
// accepts, or answers Members::kNone when none of them has a free place.
struct ReserveLeastConn {
  template <class Admit>
  std::uint32_t operator()(Members& members, const Candidates& from, TimePoint now, Random& random,
                           Admit&& admit) const noexcept {
    return members.reserve_least(Tier::Available, from.mask, now, random, admit);
  }
};

}  // namespace proxypool::domain
