// consistent_hash: a key goes to the same member as long as that is there and has a free place.
//
// Members' positions are the places of consistent.hpp. They stay over snapshots, and a proxy that
// leaves makes room for the next new one: that takes over the keys of the one, and nobody else's.
// A member that is full, benched or not admitted is passed over: its keys go on to the next in the
// sequence of each, and come back with it. Who has no key goes anywhere.
//
// Thread rule: any thread, without a lock, without allocation.
// Limits:      a sequence of kTries positions; then the members that follow the last of them, then
//              the least loaded one. With half of all positions taken a key meets the end of the
//              sequence once in 2^kTries.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/balance/candidates.hpp"
#include "proxypool/domain/balance/consistent.hpp"
#include "proxypool/domain/balance/members.hpp"
#include "proxypool/domain/balance/random_choice.hpp"

namespace proxypool::domain {

struct ReserveConsistentHash {
  static constexpr std::uint32_t kTries = 64;
  static constexpr std::size_t kWordsMax = 64;  // of the mask, looked at after the sequence

  std::uint64_t key = 0;  // 0: none

  template <class Admit>
  std::uint32_t operator()(Members& members, const Candidates& from, TimePoint now, Random& random,
                           Admit&& admit) const noexcept {
    if (key == 0) return ReserveRandom{}(members, from, now, random, admit);
    const auto size =
        static_cast<std::uint32_t>(std::min<std::size_t>(members.size(), from.mask.size() * 64));
    const auto take = [&](std::uint32_t member) {
      return admit(member) && members.try_reserve(member, Tier::Available, now);
    };
    std::uint32_t at = 0;
    for (std::uint32_t n = 0; n < kTries && size != 0 && !from.available.empty(); ++n) {
      at = place_of(nth_key(key, n), size);
      if (from.has(at) && take(at)) return at;
    }
    for (std::size_t k = 0; k < std::min(kWordsMax, from.mask.size()); ++k) {
      const std::size_t word = (at / 64 + k) % from.mask.size();
      for (std::uint64_t bits = from.mask[word]; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<std::uint32_t>(std::countr_zero(bits));
        const auto member = static_cast<std::uint32_t>(word * 64) + bit;
        if (take(member)) return member;
      }
    }
    return members.reserve_least(Tier::Available, from.mask, now, random, admit);
  }
};

}  // namespace proxypool::domain
