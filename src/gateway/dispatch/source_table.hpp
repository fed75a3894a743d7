// Which client an address belongs to: of the ranges that hold it the narrowest.
//
// One table for each length of prefix that occurs, longest first; so a lookup costs as many hash
// lookups as there are different lengths (two or three; 161 at most), whatever the number of
// ranges.
//
// Thread rule: immutable once filled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "proxypool/base/ip.hpp"

namespace proxypool::gateway {

template <class Owner>
class SourceTable {
 public:
  // The first owner of a range keeps it.
  void add(const Cidr& range, const Owner* owner) {
    const Length wanted{range.base().is_v4(), range.bits(), {}};
    auto place = std::lower_bound(lengths_.begin(), lengths_.end(), wanted, longer);
    if (place == lengths_.end() || longer(wanted, *place)) place = lengths_.insert(place, wanted);
    place->owners.emplace(range.base(), owner);
  }
  // Null: nobody's.
  [[nodiscard]] const Owner* find(const IpAddress& address) const {
    for (const Length& length : lengths_) {
      if (length.v4 != address.is_v4()) continue;
      const auto found = length.owners.find(Cidr::around(address, length.bits).base());
      if (found != length.owners.end()) return found->second;
    }
    return nullptr;
  }

 private:
  struct Length {
    bool v4;
    unsigned bits;
    std::unordered_map<IpAddress, const Owner*> owners;
  };
  static bool longer(const Length& a, const Length& b) noexcept {
    return a.bits != b.bits ? a.bits > b.bits : a.v4 && !b.v4;
  }

  std::vector<Length> lengths_;
};

}  // namespace proxypool::gateway
