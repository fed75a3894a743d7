// Chooses a member and takes a place at it, by whichever balancer a routing names.
//
// Thread rule: any thread, without a lock, without allocation.
#pragma once

#include <cstdint>

#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/balance/candidates.hpp"
#include "proxypool/domain/balance/consistent_hash.hpp"
#include "proxypool/domain/balance/least_conn.hpp"
#include "proxypool/domain/balance/least_time.hpp"
#include "proxypool/domain/balance/members.hpp"
#include "proxypool/domain/balance/random_choice.hpp"
#include "proxypool/domain/balance/round_robin.hpp"
#include "proxypool/domain/balance/two_random_choices.hpp"
#include "proxypool/domain/routing/policy.hpp"

namespace proxypool::domain {

// admit(member) → whether the request may have this member at all. SUSPECT members are few and a
// last resort: for them every balancer takes the least loaded one. `key`: what consistent_hash goes
// by; 0: none. Members::kNone: nobody is free.
template <class Admit>
std::uint32_t reserve_by(Balancer balancer, Tier tier, Members& members, const Candidates& from,
                         TimePoint now, Random& random, Admit&& admit,
                         std::uint64_t key = 0) noexcept {
  members.wake_benched(now);
  if (tier == Tier::Suspect) return members.reserve_least(tier, from.mask, now, random, admit);
  switch (balancer) {
    case Balancer::RoundRobin:
      return ReserveRoundRobin{}(members, from, now, random, admit);
    case Balancer::Random:
      return ReserveRandom{}(members, from, now, random, admit);
    case Balancer::TwoRandomChoices:
      return ReserveTwoRandomChoices{}(members, from, now, random, admit);
    case Balancer::LeastTime:
      return ReserveLeastTime{}(members, from, now, random, admit);
    case Balancer::ConsistentHash:
      return ReserveConsistentHash{key}(members, from, now, random, admit);
    case Balancer::LeastConn:
      break;
  }
  return ReserveLeastConn{}(members, from, now, random, admit);
}

}  // namespace proxypool::domain
