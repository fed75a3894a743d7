// Two different random members out of one draw.
//
// Thread rule: pure function.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "proxypool/base/random.hpp"

namespace proxypool::domain {

// Each as likely as the other (the bias is below 2^-13 at 262,144 members). The same one twice if
// there is only one. REQUIRES: members is not empty.
inline std::pair<std::uint32_t, std::uint32_t> draw_pair(std::span<const std::uint32_t> members,
                                                         Random& random) noexcept {
  const std::uint64_t size = members.size();
  if (size == 1) return {members[0], members[0]};
  const std::uint64_t draw = random.next();
  const std::uint64_t first = ((draw >> 32U) * size) >> 32U;
  std::uint64_t second = ((draw & 0xffffffffU) * (size - 1)) >> 32U;
  second += second >= first ? 1 : 0;
  return {members[first], members[second]};
}

}  // namespace proxypool::domain
