// The ownership operations of the embedded pool: claims, leases, revocation, reports.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "adapters/memory/activity_pool.hpp"

namespace proxypool::memory {

using domain::free_at;
using domain::Handover;
using domain::Ownership;
using domain::ProxyState;

void MemoryPool::own(State& state, Row& row, const ports::LeaseHolder& holder, Epoch epoch,
                     StoreTime until) {
  state.table.change(row, [&](Row& r) {
    r.proxy.ownership = Ownership::Owned;
    r.holder = holder;
    r.lease_epoch = epoch;
    r.lease_until = until;
    r.owned_change = state.change + 1;
    r.active = 0;
    r.reserved = 0;
    r.counted_at.reset();
    std::erase_if(r.orphans, [&](const auto& orphans) { return left_by(holder, orphans); });
  });
  visible_change(state);
}

void MemoryPool::free_lease(State& state, Row& row, std::optional<std::uint32_t> running) {
  state.table.change(row, [&](Row& r) {
    if (running) r.orphans.push_back(orphans_of(r.holder, *running, r.lease_until));
    r.proxy.ownership = Ownership::Unowned;
    r.holder = {};
    r.active = 0;
    r.reserved = 0;
    r.counted_at.reset();
  });
  visible_change(state);
}

void MemoryPool::forget_orphans(State& state, Row& row, const OrphansTest& over) {
  if (std::none_of(row.orphans.begin(), row.orphans.end(), over)) return;
  state.table.change(row, [&](Row& r) { std::erase_if(r.orphans, over); });
  visible_change(state);  // its owner may use more of it, or somebody may have it
}

void MemoryPool::free_ended_leases(State& state, StoreTime now, std::uint32_t count_max,
                                   ports::SweepResult& result) {
  for (const ports::LeaseHolder& holder : state.table.holders()) {
    const auto over = [&](StoreTime until) {
      return now >= free_at(until, Handover::ToWorker, options_.lease_times);
    };
    if (!over(state.table.earliest_end(holder))) continue;
    std::vector<ProxyId> ended;
    StoreTime earliest = StoreTime::max();
    for (const ProxyId id : state.table.of_holder(holder)) {
      const StoreTime until = state.table.find(id)->lease_until;
      const bool ends_now = over(until) && result.freed + ended.size() < count_max;
      if (ends_now) ended.push_back(id);
      if (!ends_now) earliest = std::min(earliest, until);
    }
    for (const ProxyId id : ended) {
      Row& row = *state.table.find(id);
      // Its owner went without a word: what it last said counts, or the worst.
      const bool known = row.counted_at.has_value();
      free_lease(state, row, known ? row.active + row.reserved : row.proxy.max_concurrency);
      ++result.freed;
      settle(state, id, now, result);
    }
    state.table.set_earliest_end(holder, earliest);
  }
}

domain::Orphans MemoryPool::orphans_of(const ports::LeaseHolder& holder, std::uint32_t slots,
                                       StoreTime lease_until) const {
  return {holder.worker, holder.instance, slots,
          free_at(lease_until, Handover::ToExtraction, options_.lease_times)};
}

Result<std::vector<ports::LeasedProxy>> MemoryPool::ownable(const UpstreamId& upstream, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](const State& state) -> Result<std::vector<ports::LeasedProxy>> {
    std::vector<ports::LeasedProxy> proxies;
    for (const ProxyId id : state.table.of_upstream(upstream)) {
      const Row& row = *state.table.find(id);
      if (row.handing_out || !domain::usable(row.proxy, now)) continue;
      proxies.push_back(leased(row));
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
      if (!domain::usable(row->proxy, now) || slots_for(holder, *row) == 0) continue;
      own(state, *row, holder, epoch, now + lease);
      given.push_back(id);
    }
    return given;
  });
}

Result<std::uint32_t> MemoryPool::adopt(const ports::LeaseHolder& holder,
                                        const ports::Holdings& holdings, Epoch epoch,
                                        milliseconds lease, Deadline) {
  const StoreTime now = clock_.now();
  const std::vector<ProxyId>& ids = holdings.held;
  return state_.with([&](State& state) -> Result<std::uint32_t> {
    // A reconnect of the same process takes its own leases along.
    for (const ports::LeaseHolder& old : state.table.holders()) {
      if (old.worker != holder.worker || old.instance != holder.instance || old == holder) continue;
      const std::set<ProxyId> held = state.table.of_holder(old);
      for (const ProxyId id : held) {
        state.table.change(*state.table.find(id), [&](Row& r) { r.holder = holder; });
      }
    }
    take_claims_along(state, holder, ids);
    const bool has_something = !ids.empty() || !holdings.running.empty();
    if (young(state, now) && has_something) {
      PP_TRY(const Unit covered,
             state.leases.cover(holder.worker, holder.instance, now + lease, lease));
      static_cast<void>(covered);
      leave_running(state, holder, holdings.running, now + lease);
      claim(state, holder, ids, epoch, now + lease);
    }
    state.leases.came_back(holder.worker, holder.instance);
    return count_open_claims(state, holder);
  });
}

void MemoryPool::claim(State& state, const ports::LeaseHolder& holder,
                       const std::vector<ProxyId>& ids, Epoch epoch, StoreTime until) {
  for (const ProxyId id : ids) {
    Row* row = state.table.find(id);
    if (!row) {
      // What another instance claims is its own until its claim ends (C17).
      const Claim claim{holder, epoch, until};
      const auto kept = state.claims.emplace(id, claim).first;
      if (kept->second.holder == holder) kept->second = claim;
      continue;
    }
    if (row->proxy.ownership != Ownership::Unowned || row->handing_out) continue;
    if (domain::managed(row->proxy.state) && slots_for(holder, *row) != 0) {
      own(state, *row, holder, epoch, until);
    }
  }
}

// The process works on them without a claim: what it began ends with the grace after a lease that
// is no longer than one that it could get now.
void MemoryPool::leave_running(State& state, const ports::LeaseHolder& holder,
                               const std::vector<domain::RunningOn>& running, StoreTime until) {
  // The process says all of it each time.
  const auto earlier = [&](const domain::Orphans& orphans) { return left_by(holder, orphans); };
  std::erase_if(state.left, [&](const auto& left) { return earlier(left.second); });
  for (const domain::RunningOn& entry : running) {
    const domain::Orphans orphans = orphans_of(holder, entry.slots, until);
    Row* row = state.table.find(entry.id);
    if (!row) {
      state.left.emplace(entry.id, orphans);
    } else if (row->holder != holder && !row->handing_out) {
      state.table.change(*row, [&](Row& r) {
        std::erase_if(r.orphans, earlier);
        r.orphans.push_back(orphans);
      });
    }
  }
}

// A reconnect of the same process keeps the claims that it names again, also when the generation is
// young no more; the rest it does not hold any longer.
void MemoryPool::take_claims_along(State& state, const ports::LeaseHolder& holder,
                                   const std::vector<ProxyId>& ids) {
  const std::set<ProxyId> named(ids.begin(), ids.end());
  for (auto it = state.claims.begin(); it != state.claims.end();) {
    ports::LeaseHolder& claimed_by = it->second.holder;
    const bool same_process =
        claimed_by.worker == holder.worker && claimed_by.instance == holder.instance;
    if (same_process && !named.contains(it->first)) {
      it = state.claims.erase(it);
      continue;
    }
    if (same_process) claimed_by = holder;
    ++it;
  }
}

void MemoryPool::forget_orphans_of(State& state, const ports::LeaseHolder& holder) {
  std::erase_if(state.left, [&](const auto& left) { return left_by(holder, left.second); });
  ports::SweepResult ignored;
  for (const ProxyId id : state.table.orphaned_by(holder)) {
    forget_orphans(state, *state.table.find(id),
                   [&](const domain::Orphans& orphans) { return left_by(holder, orphans); });
    settle(state, id, clock_.now(), ignored);
  }
}

std::uint32_t MemoryPool::count_open_claims(const State& state, const ports::LeaseHolder& holder) {
  std::uint32_t open = 0;
  for (const auto& [id, claim] : state.claims) open += claim.holder == holder ? 1 : 0;
  for (const ProxyId id : state.table.of_holder(holder)) {
    const ProxyState at = state.table.find(id)->proxy.state;
    open += at == ProxyState::Fetched || at == ProxyState::Checking ? 1 : 0;
  }
  return open;
}

Result<std::uint32_t> MemoryPool::open_claims(const ports::LeaseHolder& holder, Deadline) {
  return state_.with([&](const State& state) -> Result<std::uint32_t> {
    return count_open_claims(state, holder);
  });
}

Result<std::uint32_t> MemoryPool::renew(const ports::LeaseHolder& holder, milliseconds lease,
                                        Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::uint32_t> {
    const std::set<ProxyId>& held = state.table.of_holder(holder);
    if (held.empty()) return 0U;
    StoreTime earliest = now + lease;
    PP_TRY(const Unit covered,
           state.leases.cover(holder.worker, holder.instance, now + lease, lease));
    static_cast<void>(covered);
    std::uint32_t renewed = 0;
    for (const ProxyId id : held) {
      Row& row = *state.table.find(id);
      if (row.proxy.ownership != Ownership::Owned) {
        earliest = std::min(earliest, row.lease_until);
        continue;
      }
      row.lease_until = now + lease;  // in no index but the earliest of all
      ++renewed;
    }
    state.table.set_earliest_end(holder, earliest);
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

// Whether the process holds leases under another session than this one.
bool MemoryPool::holds_more(const State& state, const ports::LeaseHolder& holder) {
  const auto same = [&](const ports::LeaseHolder& other) {
    return other.worker == holder.worker && other.instance == holder.instance && other != holder;
  };
  const auto holders = state.table.holders();
  return std::any_of(holders.begin(), holders.end(), same);
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
      const bool reported = found != by_id.end();
      if (final_report) {
        freed.push_back(id);
        continue;
      }
      // A count for another lease says nothing about this one, not even that it is idle; nor does
      // the silence of a process that has not learned of the lease (C12).
      if (reported && found->second->lease_epoch != row.lease_epoch) continue;
      if (!reported && acknowledged_change < row.owned_change) continue;
      row.active = reported ? found->second->active : 0;  // in no index
      row.reserved = reported ? found->second->reserved : 0;
      row.counted_at = now;
      const bool gone =
          row.proxy.ownership == Ownership::Revoking && row.revoked_change <= acknowledged_change;
      if (gone && row.active == 0 && row.reserved == 0) freed.push_back(id);
    }
    if (final_report) forget_orphans_of(state, holder);
    ports::SweepResult ignored;
    for (const ProxyId id : freed) {
      const auto found = by_id.find(id);
      // Only in a final report: work that nobody waited for.
      const std::uint32_t running =
          found == by_id.end() ? 0 : found->second->active + found->second->reserved;
      free_lease(state, *state.table.find(id),
                 running == 0 ? std::nullopt : std::optional(running));
      settle(state, id, now, ignored);
    }
    if (final_report) {
      std::erase_if(state.claims, [&](const auto& claim) { return claim.second.holder == holder; });
      // If this is not saved, the note covers the instance until its time has passed: no harm.
      if (!holds_more(state, holder)) {
        static_cast<void>(state.leases.forget(holder.worker, holder.instance));
      }
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
      held.back().proxy.max_concurrency = slots_for(holder, row);
    }
    return held;
  });
}

}  // namespace proxypool::memory
