// Builds one worker's snapshot from the shared section and what the worker holds. Pure.
//
// Thread rule: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "controller/shared_section.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/ports/activity_pool.hpp"

namespace proxypool::controller {

struct SnapshotHead {
  domain::SnapshotVersion version;
  Epoch epoch;
  StoreTime now;                  // the store's; proxies past their margin at it are left out
  bool intentional_loss = false;  // CP-6
  std::uint32_t workers = 1;      // live ones, this one among them: they share clients' limits (R7)
};

// Owned, usable proxies only; credentials are stored once each and referenced. `held` is consumed.
domain::WorkerSnapshot build_snapshot(const SharedSection& shared,
                                      std::vector<ports::HeldProxy> held, const SnapshotHead& head);

}  // namespace proxypool::controller
