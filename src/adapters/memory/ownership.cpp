// The ownership operations of the embedded pool: claims, leases, revocation, reports.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "adapters/memory/activity_pool.hpp"

namespace proxypool::memory {

using domain::Ownership;
using domain::ProxyState;

Result<std::vector<ports::LeasedProxy>> MemoryPool::ownable(const UpstreamId& upstream, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](const State& state) -> Result<std::vector<ports::LeasedProxy>> {
    std::vector<ports::LeasedProxy> proxies;
    for (const ProxyId id : state.table.of_upstream(upstream)) {
      const Row& row = *state.table.find(id);
      if (row.handing_out || !domain::usable(row.proxy, now)) continue;
      proxies.push_back({row.proxy, row.holder, row.lease_epoch, row.lease_until});
    }
    return proxies;
  });
}

Result<std::vector<ProxyId>> MemoryPool::assign(const ports::LeaseHolder& holder,
                                                const std::vector<ProxyId>& ids, Epoch epoch,
                                                milliseconds lease, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::vector<ProxyId>> {
    std::vector<ProxyId> given;
    if (young(state, now) || ids.empty()) return given;
    // On the disk before anybody can use it: a crash right after must not forget this holder.
    PP_TRY(const Unit covered,
           state.leases.cover(holder.worker, holder.instance, now + lease, lease));
    static_cast<void>(covered);
    for (const ProxyId id : ids) {
      Row* row = state.table.find(id);
      if (!row || row->handing_out || row->proxy.ownership != Ownership::Unowned) continue;
      if (!domain::usable(row->proxy, now)) continue;
      own(state, *row, holder, epoch, now + lease);
      given.push_back(id);
    }
    return given;
  });
}

Result<std::uint32_t> MemoryPool::adopt(const ports::LeaseHolder& holder,
                                        const std::vector<ProxyId>& ids, Epoch epoch,
                                        milliseconds lease, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::uint32_t> {
    // A reconnect of the same process takes its own leases along.
    for (const ports::LeaseHolder& old : state.table.holders()) {
      if (old.worker != holder.worker || old.instance != holder.instance || old == holder) continue;
      const std::set<ProxyId> held = state.table.of_holder(old);
      for (const ProxyId id : held) {
        state.table.change(*state.table.find(id), [&](Row& r) { r.holder = holder; });
      }
    }
    std::erase_if(state.claims,
                  [&](const auto& claim) { return claim.second.holder.worker == holder.worker; });
    const bool was_young = young(state, now);
    const milliseconds wait = options_.margin + options_.orphan_grace;
    if (was_young && !ids.empty()) {
      PP_TRY(const Unit covered,
             state.leases.cover(holder.worker, holder.instance, now + lease, lease));
      static_cast<void>(covered);
      for (const ProxyId id : ids) {
        Row* row = state.table.find(id);
        if (!row) state.claims[id] = {holder, epoch, now + lease + wait};
        if (row && row->proxy.ownership == Ownership::Unowned && !row->handing_out &&
            domain::managed(row->proxy.state)) {
          own(state, *row, holder, epoch, now + lease);
        }
      }
    }
    state.leases.came_back(holder.worker, holder.instance);
    return static_cast<std::uint32_t>(was_young ? ids.size() : 0);
  });
}

Result<std::uint32_t> MemoryPool::open_claims(const ports::LeaseHolder& holder, Deadline) {
  return state_.with([&](const State& state) -> Result<std::uint32_t> {
    std::uint32_t open = 0;
    for (const auto& [id, claim] : state.claims) open += claim.holder == holder ? 1 : 0;
    for (const ProxyId id : state.table.of_holder(holder)) {
      const ProxyState at = state.table.find(id)->proxy.state;
      open += at == ProxyState::Fetched || at == ProxyState::Checking ? 1 : 0;
    }
    return open;
  });
}

Result<std::uint32_t> MemoryPool::renew(const ports::LeaseHolder& holder, milliseconds lease,
                                        Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::uint32_t> {
    const std::set<ProxyId>& held = state.table.of_holder(holder);
    if (held.empty()) return 0U;
    PP_TRY(const Unit covered,
           state.leases.cover(holder.worker, holder.instance, now + lease, lease));
    static_cast<void>(covered);
    std::uint32_t renewed = 0;
    for (const ProxyId id : held) {
      Row& row = *state.table.find(id);
      if (row.proxy.ownership != Ownership::Owned) continue;
      row.lease_until = now + lease;  // in no index
      ++renewed;
    }
    return renewed;
  });
}

Result<std::uint32_t> MemoryPool::revoke(const std::vector<ProxyId>& ids, Deadline) {
  return state_.with([&](State& state) -> Result<std::uint32_t> {
    std::uint32_t revoked = 0;
    for (const ProxyId id : ids) {
      Row* row = state.table.find(id);
      if (!row || row->proxy.ownership != Ownership::Owned) continue;
      visible_change(state);
      state.table.change(*row, [&](Row& r) {
        r.proxy.ownership = Ownership::Revoking;
        r.revoked_change = state.change;
      });
      ++revoked;
    }
    return revoked;
  });
}

Result<std::vector<ProxyId>> MemoryPool::apply_runtime(
    const ports::LeaseHolder& holder, const std::vector<ports::RuntimeCount>& counts,
    std::uint64_t acknowledged_change, bool final_report, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::vector<ProxyId>> {
    std::unordered_map<ProxyId, const ports::RuntimeCount*> by_id;
    by_id.reserve(counts.size());
    for (const ports::RuntimeCount& count : counts) by_id[count.id] = &count;
    std::vector<ProxyId> freed;
    for (const ProxyId id : state.table.of_holder(holder)) {
      Row& row = *state.table.find(id);
      const auto found = by_id.find(id);
      const bool ours = found != by_id.end() && found->second->lease_epoch == row.lease_epoch;
      row.active = ours ? found->second->active : 0;  // in no index
      row.reserved = ours ? found->second->reserved : 0;
      row.counted_at = now;
      const bool gone =
          row.proxy.ownership == Ownership::Revoking && row.revoked_change <= acknowledged_change;
      if (final_report || (gone && row.active + row.reserved == 0)) freed.push_back(id);
    }
    ports::SweepResult ignored;
    for (const ProxyId id : freed) {
      free_lease(state, *state.table.find(id));
      settle(state, id, now, ignored);
    }
    if (final_report) {
      PP_TRY(const Unit forgotten, state.leases.forget(holder.worker, holder.instance));
      static_cast<void>(forgotten);
    }
    return freed;
  });
}

Result<std::vector<ports::HeldProxy>> MemoryPool::held_by(const ports::LeaseHolder& holder,
                                                          Deadline) {
  return state_.with([&](const State& state) -> Result<std::vector<ports::HeldProxy>> {
    std::vector<ports::HeldProxy> held;
    for (const ProxyId id : state.table.of_holder(holder)) {
      const Row& row = *state.table.find(id);
      held.push_back({row.proxy, row.credential, row.lease_epoch, row.lease_until});
    }
    return held;
  });
}

}  // namespace proxypool::memory
