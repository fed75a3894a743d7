// Who is calling: the authenticated client of one realm.
//
// The realms of Gateway, Distribution and Admin are independent: a principal of one means nothing
// in another (GW-10).
//
// Thread rule: immutable values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/id.hpp"

namespace proxypool::domain {

enum class Realm : std::uint8_t { Gateway, Distribution, Admin };

struct Principal {
  Realm realm = Realm::Gateway;
  ClientName name;  // empty: nobody in particular (auth.mode none)
  std::vector<std::string> groups;

  [[nodiscard]] bool anonymous() const noexcept { return name.empty(); }
  // Whether `who` is the client's own name or one of its groups, as routings and limits name it.
  [[nodiscard]] bool is(std::string_view who) const noexcept {
    if (!anonymous() && name.str() == who) return true;
    return std::find(groups.begin(), groups.end(), who) != groups.end();
  }
};

}  // namespace proxypool::domain
