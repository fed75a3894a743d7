#include "adapters/memory/activity_pool.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "proxypool/base/assert.hpp"

namespace proxypool::memory {

namespace {

using domain::free_at;
using domain::Handover;
using domain::Ownership;
using domain::ProxyEvent;
using domain::ProxyState;

// States in which an owner may keep a proxy: it serves it, or its claim waits for the first check.
constexpr bool ownable_in(ProxyState state) noexcept {
  return state == ProxyState::Fetched || state == ProxyState::Checking ||
         state == ProxyState::Available || state == ProxyState::Suspect;
}

// States in which a plan gives a proxy away.
constexpr bool serves_in(ProxyState state) noexcept {
  return state == ProxyState::Available || state == ProxyState::Suspect;
}

std::uint64_t random_number(ports::Crypto& crypto) {
  const std::string bytes = crypto.random_bytes(8);
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

bool same_proxy(const domain::Proxy& proxy, const ports::Admission& admission) {
  return proxy.endpoint == admission.candidate.endpoint &&
         proxy.username == admission.candidate.credential.username &&
         proxy.credential_version == admission.credential_version;
}

Row new_row(const ports::AdmitBatch& batch, const ports::Admission& admission,
            const domain::Life& life, StoreTime now) {
  Row row;
  domain::Proxy& proxy = row.proxy;
  proxy.id = admission.id;
  proxy.endpoint = admission.candidate.endpoint;
  proxy.username = admission.candidate.credential.username;
  proxy.credential_version = admission.credential_version;
  proxy.upstream = batch.upstream;
  proxy.created_at = now;
  proxy.expires_at = life.expires_at;
  proxy.usable_until = life.usable_until;
  proxy.vendor_expiry = life.vendor_expiry;
  proxy.max_concurrency = batch.concurrency_max;
  proxy.attributes = admission.candidate.attributes;
  proxy.tags = admission.candidate.tags;
  proxy.tags.insert(batch.tags.begin(), batch.tags.end());
  row.credential = admission.candidate.credential;
  row.health = domain::fresh_record(now);
  return row;
}

}  // namespace

MemoryPool::MemoryPool(PoolOptions options, LeaseNote note, ports::DurableLog* handouts,
                       const Clock& clock, ports::Crypto& crypto)
    : options_(std::move(options)),
      clock_(clock),
      generation_(random_number(crypto)),
      handouts_(handouts, options_.seal_key, crypto),
      random_(SplitMix64(random_number(crypto))),
      state_(State(std::move(note))) {}

Result<std::unique_ptr<ports::ActivityPool>> make_activity_pool(const PoolOptions& options,
                                                                const PoolDurability& durability,
                                                                const Clock& clock,
                                                                ports::Crypto& crypto) {
  PP_TRY(LeaseNote note, LeaseNote::load(durability.notes));
  auto pool =
      std::make_unique<MemoryPool>(options, std::move(note), durability.handouts, clock, crypto);
  PP_TRY(const Unit loaded, pool->load_handouts());
  static_cast<void>(loaded);
  return std::unique_ptr<ports::ActivityPool>(std::move(pool));
}

ports::LeasedProxy leased(const Row& row) {
  ports::LeasedProxy out{row.proxy, row.holder, row.lease_epoch, row.lease_until};
  out.orphaned_slots = orphaned_slots(row);
  for (const domain::Orphans& orphans : row.orphans) {
    out.orphaned_until = std::max(out.orphaned_until.value_or(orphans.until), orphans.until);
  }
  return out;
}

// Generation -------------------------------------------------------------------------------------

StoreTime MemoryPool::exclusive_from(const State& state) const {
  return domain::settled_at(clock_.started_at(), state.leases.missing_until(),
                            options_.lease_times);
}

bool MemoryPool::young(const State& state, StoreTime now) const {
  return now < exclusive_from(state);
}

Result<ports::Generation> MemoryPool::generation(Deadline) {
  return state_.with([&](const State& state) -> Result<ports::Generation> {
    return ports::Generation{generation_, clock_.started_at(), clock_.now(), exclusive_from(state)};
  });
}

Result<std::uint64_t> MemoryPool::change_counter(Deadline) {
  return state_.with([](const State& state) -> Result<std::uint64_t> { return state.change; });
}

// Rows -------------------------------------------------------------------------------------------

bool MemoryPool::move(State& state, Row& row, ProxyEvent event, StoreTime now) {
  const auto to = domain::transition(row.proxy.state, event);
  const auto cause = domain::drain_cause(event);
  if (!to) {
    // A second reason moves nothing but may be the stronger one.
    if (row.proxy.state == ProxyState::Draining && cause && row.drain_cause < cause) {
      state.table.change(row, [&](Row& r) { r.drain_cause = cause; });
    }
    return false;
  }
  const bool owned = row.proxy.ownership == Ownership::Owned;
  // Also of an unowned proxy: whoever plans what workers get waits for it.
  const bool visible = owned || serves_in(row.proxy.state) != serves_in(*to);
  state.table.change(row, [&](Row& r) {
    r.proxy.state = *to;
    r.drain_cause = *to == ProxyState::Draining ? cause : std::nullopt;
    if (*to == ProxyState::Unhealthy) r.unhealthy_since = now;
    if (event == ProxyEvent::UpstreamEnabled) r.health = domain::fresh_record(now);
    if (owned && !ownable_in(*to)) {
      r.proxy.ownership = Ownership::Revoking;
      r.revoked_change = state.change + 1;
    }
  });
  if (visible) visible_change(state);
  return true;
}

// Supply -----------------------------------------------------------------------------------------

void MemoryPool::admit_one(State& state, const ports::AdmitBatch& batch,
                           const ports::Admission& admission, StoreTime now,
                           ports::AdmitResult& result) {
  // What has ended makes room for a new life of the same proxy (CT-21), whenever it was last swept.
  ports::SweepResult ignored;
  settle(state, admission.id, now, ignored);
  if (Row* row = state.table.find(admission.id)) {
    if (PP_BUG_IF(!same_proxy(row->proxy, admission))) {
      ++result.collisions;
      return;
    }
    ++result.duplicates;
    if (row->proxy.upstream != batch.upstream) return;
    const auto life = domain::renewed(row->proxy, admission.candidate.expires_at, batch.ttl, now);
    if (!life) return;
    ++result.renewed;
    state.table.change(*row, [&](Row& r) {
      r.proxy.expires_at = life->expires_at;
      r.proxy.usable_until = life->usable_until;
      r.proxy.vendor_expiry = life->vendor_expiry;
    });
    if (row->proxy.ownership == Ownership::Owned) visible_change(state);
    return;
  }
  const domain::Life life = domain::life_from(admission.candidate.expires_at, batch.ttl, now, now);
  if (!domain::admissible(life, now)) {
    ++result.expired;
    return;
  }
  const RowCounts counts = state.table.counts(batch.upstream);
  if (counts.owned + counts.unowned + counts.revoking >= batch.managed_max) {
    ++result.over_size;
    return;
  }
  Row row = new_row(batch, admission, life, now);
  row.tie =
      random_.with([](SplitMix64& random) { return static_cast<std::uint32_t>(random.next()); });
  const auto [left, left_end] = state.left.equal_range(admission.id);
  for (auto it = left; it != left_end; ++it) row.orphans.push_back(it->second);
  state.left.erase(left, left_end);
  Row& inserted = state.table.insert(std::move(row));
  ++result.admitted;
  if (const auto claim = state.claims.find(admission.id); claim != state.claims.end()) {
    // The claimed lease runs on from when it was claimed: its holder counts on it.
    own(state, inserted, claim->second.holder, claim->second.epoch, claim->second.lease_until);
    state.claims.erase(claim);
  }
}

void MemoryPool::remove_missing(State& state, const ports::AdmitBatch& batch, StoreTime now,
                                ports::AdmitResult& result) {
  std::set<ProxyId> listed;
  for (const ports::Admission& admission : batch.admissions) listed.insert(admission.id);
  std::vector<ProxyId> missing;
  for (const ProxyId id : state.table.of_upstream(batch.upstream)) {
    if (!listed.contains(id) && !state.table.find(id)->handing_out) missing.push_back(id);
  }
  for (const ProxyId id : missing) {
    if (move_and_settle(state, id, ProxyEvent::OperatorRemove, now)) ++result.removed;
  }
}

Result<ports::AdmitResult> MemoryPool::admit(const ports::AdmitBatch& batch, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<ports::AdmitResult> {
    ports::AdmitResult result;
    // What the list dropped makes room for what it brings.
    if (batch.authoritative) remove_missing(state, batch, now, result);
    for (const ports::Admission& admission : batch.admissions) {
      admit_one(state, batch, admission, now, result);
    }
    return result;
  });
}

Result<domain::Inventory> MemoryPool::inventory(const UpstreamId& upstream, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](const State& state) -> Result<domain::Inventory> {
    domain::Inventory inventory;
    for (const ProxyId id : state.table.of_upstream(upstream)) {
      const Row& row = *state.table.find(id);
      domain::InventoryItem item{row.proxy.state, row.proxy.ownership, row.proxy.usable_until,
                                 row.proxy.max_concurrency};
      item.orphaned = orphaned_slots(row, row.holder);
      const bool known = row.counted_at && now - *row.counted_at < kReportTtl;
      if (known) item.in_flight = domain::InFlight{row.active, row.reserved};
      inventory.add(item, now);
    }
    return inventory;
  });
}

// Life cycle -------------------------------------------------------------------------------------

void MemoryPool::settle(State& state, ProxyId id, StoreTime now, ports::SweepResult& result) {
  for (Row* row = state.table.find(id); row != nullptr; row = state.table.find(id)) {
    if (row->handing_out) return;
    forget_orphans(state, *row, [&](const auto& orphans) { return now >= orphans.until; });
    const auto rules = state.table.rules(row->proxy.upstream);
    if (row->proxy.state == ProxyState::Removed) {
      if (!idle(*row)) return;
      state.table.erase(id);
      ++result.removed;
      return;
    }
    const auto event = domain::due_event(state.table.facts(*row), rules.unhealthy_retention, now);
    if (!event || !move(state, *row, *event, now)) return;
    if (*event == ProxyEvent::MarginReached) ++result.drained;
    if (*event == ProxyEvent::HardExpiry) ++result.expired;
  }
}

bool MemoryPool::move_and_settle(State& state, ProxyId id, ProxyEvent event, StoreTime now) {
  Row* row = state.table.find(id);
  if (!row || row->handing_out) return false;
  const ProxyState before = row->proxy.state;
  move(state, *row, event, now);
  // Also when nothing moved: a stronger reason to drain may be due at once.
  ports::SweepResult ignored;
  settle(state, id, now, ignored);
  row = state.table.find(id);
  return !row || row->proxy.state != before;
}

StoreTime MemoryPool::next_due(const State& state, StoreTime now) const {
  StoreTime next = StoreTime::max();
  const auto& due = state.table.due();
  const auto later = due.lower_bound({now + milliseconds{1}, ProxyId{}});
  if (later != due.end()) next = later->first;
  for (const ports::LeaseHolder& holder : state.table.holders()) {
    const StoreTime until = state.table.earliest_end(holder);
    next = std::min(next, free_at(until, Handover::ToWorker, options_.lease_times));
  }
  return next;
}

Result<ports::SweepResult> MemoryPool::sweep(std::uint32_t count_max, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<ports::SweepResult> {
    ports::SweepResult result;
    free_ended_leases(state, now, count_max, result);
    std::vector<ProxyId> due;
    for (const ProxyId id : state.table.ripe()) {
      if (due.size() == count_max) break;
      due.push_back(id);
    }
    for (const auto& [at, id] : state.table.due()) {
      if (at > now || due.size() == count_max) break;
      due.push_back(id);
    }
    const bool more = due.size() == count_max;
    for (const ProxyId id : due) settle(state, id, now, result);
    const auto over = [&](StoreTime lease_until) {
      return now >= free_at(lease_until, Handover::ToExtraction, options_.lease_times);
    };
    state.leases.forget_ended(now - options_.lease_times.margin -
                              options_.lease_times.orphan_grace);
    std::erase_if(state.claims, [&](const auto& claim) { return over(claim.second.lease_until); });
    std::erase_if(state.left, [&](const auto& left) { return now >= left.second.until; });
    std::erase_if(state.replays,
                  [&](const auto& replay) { return now >= replay.second.replay_until; });
    result.next_due = more ? now : next_due(state, now);
    return result;
  });
}

Result<std::uint32_t> MemoryPool::configure(const UpstreamId& upstream,
                                            const ports::UpstreamRules& rules, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::uint32_t> {
    // Supply says the same four times a second; only a change is worth indexing every row anew.
    const ports::UpstreamRules known = state.table.rules(upstream);
    if (known == rules) return 0U;
    state.table.set_rules(upstream, rules);
    if (known.enabled == rules.enabled) return 0U;
    std::uint32_t moved = 0;
    const std::set<ProxyId> ids = state.table.of_upstream(upstream);
    for (const ProxyId id : ids) {
      const ProxyState before = state.table.find(id)->proxy.state;
      ports::SweepResult ignored;
      settle(state, id, now, ignored);
      const Row* after = state.table.find(id);
      if (!after || after->proxy.state != before) ++moved;
    }
    return moved;
  });
}

Result<std::uint32_t> MemoryPool::apply(const std::vector<ProxyId>& ids, ProxyEvent event,
                                        Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::uint32_t> {
    std::uint32_t moved = 0;
    for (const ProxyId id : ids) {
      if (move_and_settle(state, id, event, now)) ++moved;
    }
    return moved;
  });
}

// Health -----------------------------------------------------------------------------------------

Result<std::vector<ports::DueCheck>> MemoryPool::take_due_checks(const ports::CheckDemand& demand,
                                                                 Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::vector<ports::DueCheck>> {
    std::vector<ProxyId> due;
    for (const CheckClass c : {CheckClass::New, CheckClass::Suspect, CheckClass::Routine}) {
      if (c == CheckClass::Routine && !demand.routine) break;
      for (const auto& [at, id] : state.table.checks(c)) {
        if (at > now || due.size() == demand.count_max) break;
        due.push_back(id);
      }
    }
    domain::HealthPolicy policy;
    policy.task_lease = demand.lease;
    std::vector<ports::DueCheck> taken;
    taken.reserve(due.size());
    for (const ProxyId id : due) {
      Row& row = *state.table.find(id);
      const auto begun =
          domain::begin_check(row.proxy.state, row.health, ++state.last_task, policy, now);
      for (std::size_t i = 0; i < begun.event_count; ++i) move(state, row, begun.events[i], now);
      state.table.change(row, [&](Row& r) { r.health = begun.record; });
      taken.push_back({state.last_task, row.proxy, row.credential});
    }
    return taken;
  });
}

Result<std::vector<ports::HealthRow>> MemoryPool::read_health(const std::vector<ProxyId>& ids,
                                                              Deadline) {
  return state_.with([&](const State& state) -> Result<std::vector<ports::HealthRow>> {
    std::vector<ports::HealthRow> rows;
    for (const ProxyId id : ids) {
      const Row* row = state.table.find(id);
      if (!row) continue;
      rows.push_back({id, row->proxy.upstream, row->proxy.state, row->health, row->revision,
                      row->holder.worker, row->lease_epoch});
    }
    return rows;
  });
}

Result<std::vector<bool>> MemoryPool::write_health(const std::vector<ports::HealthWrite>& writes,
                                                   Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) -> Result<std::vector<bool>> {
    std::vector<bool> done;
    done.reserve(writes.size());
    for (const ports::HealthWrite& write : writes) {
      Row* row = state.table.find(write.id);
      const bool good = row && row->revision == write.revision && !row->handing_out;
      if (good) {
        for (const ProxyEvent event : write.events) {
          // The reducer follows the table from the state that it read.
          static_cast<void>(PP_BUG_IF(!move(state, *row, event, now)));
        }
        state.table.change(*row, [&](Row& r) {
          r.health = write.record;
          r.last_failure = write.failure;
          r.proxy.last_checked_at = write.record.last_checked_at;
          r.proxy.last_success_at = write.record.last_success_at;
          r.proxy.latency = write.record.latency;
        });
      }
      done.push_back(good);
    }
    return done;
  });
}

Result<std::vector<ports::ProxyRow>> MemoryPool::list(const ports::ProxyQuery& query, Deadline) {
  return state_.with([&](const State& state) -> Result<std::vector<ports::ProxyRow>> {
    std::vector<ports::ProxyRow> page;
    const auto& rows = state.table.rows();
    const auto matches = [](const auto& wanted, const auto& value) {
      return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
    };
    const std::size_t limit = std::clamp<std::size_t>(query.limit, 1, 1000);
    for (auto it = query.after ? rows.upper_bound(*query.after) : rows.begin(); it != rows.end();
         ++it) {
      if (page.size() == limit) break;
      const Row& row = it->second;
      if (!matches(query.upstreams, row.proxy.upstream)) continue;
      if (query.states.empty() && row.proxy.state == ProxyState::Removed) continue;
      if (!matches(query.states, row.proxy.state)) continue;
      page.push_back({leased(row), row.last_failure, row.active, row.reserved});
    }
    return page;
  });
}

}  // namespace proxypool::memory
