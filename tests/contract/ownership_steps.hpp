// What tests of ownership ask of an ActivityPool beyond its steps.
#pragma once

#include "contract/pool_steps.hpp"

namespace proxypool::contract {

template <class Fixture>
class OwnershipSteps : public PoolSteps<Fixture> {
 protected:
  bool owned_by(ProxyId id, const ports::LeaseHolder& by) {
    const auto row = this->find(id);
    return row && row->leased.holder == by;
  }
  std::uint32_t open_claims(const ports::LeaseHolder& by) {
    return *this->pool().open_claims(by, Deadline{});
  }
  bool exclusive() {
    const auto generation = *this->pool().generation(Deadline{});
    return generation.now >= generation.exclusive_from;
  }
};

}  // namespace proxypool::contract
