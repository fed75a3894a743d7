#include "adapters/memory/pool_table.hpp"

#include <algorithm>

#include "proxypool/base/assert.hpp"

namespace proxypool::memory {

namespace {

using domain::Ownership;
using domain::ProxyState;

std::tuple<WorkerId, InstanceId, SessionId> key_of(const ports::LeaseHolder& holder) {
  return {holder.worker, holder.instance, holder.session};
}

LifeKey life_of(const Row& row) {
  return {row.proxy.expires_at.value_or(StoreTime::max()), row.tie, row.proxy.id};
}

std::optional<CheckClass> check_class(const Row& row) {
  switch (row.proxy.state) {
    case ProxyState::Fetched:
    case ProxyState::Checking:
      return CheckClass::New;
    case ProxyState::Suspect:
      return CheckClass::Suspect;
    case ProxyState::Available:
      return CheckClass::Routine;
    default:
      return std::nullopt;
  }
}

const std::set<ProxyId> kNone;

}  // namespace

std::uint32_t orphaned_slots(const Row& row, const ports::LeaseHolder& holder) noexcept {
  std::uint32_t slots = 0;
  for (const domain::Orphans& orphans : row.orphans) {
    if (!left_by(holder, orphans)) slots += orphans.slots;
  }
  return std::min(slots, row.proxy.max_concurrency);
}

Row* PoolTable::find(ProxyId id) {
  const auto found = rows_.find(id);
  return found == rows_.end() ? nullptr : &found->second;
}

const Row* PoolTable::find(ProxyId id) const {
  const auto found = rows_.find(id);
  return found == rows_.end() ? nullptr : &found->second;
}

Row& PoolTable::insert(Row row) {
  const ProxyId id = row.proxy.id;
  const auto [at, fresh] = rows_.emplace(id, std::move(row));
  PP_ASSERT(fresh);
  upstreams_[at->second.proxy.upstream].insert(id);
  index(at->second);
  return at->second;
}

void PoolTable::erase(ProxyId id) {
  const auto found = rows_.find(id);
  PP_ASSERT(found != rows_.end());
  unindex(found->second);
  const auto upstream = upstreams_.find(found->second.proxy.upstream);
  upstream->second.erase(id);
  if (upstream->second.empty()) upstreams_.erase(upstream);
  rows_.erase(found);
}

const std::set<ProxyId>& PoolTable::of_upstream(const UpstreamId& upstream) const {
  const auto found = upstreams_.find(upstream);
  return found == upstreams_.end() ? kNone : found->second;
}

const std::set<ProxyId>& PoolTable::of_holder(const ports::LeaseHolder& holder) const {
  const auto found = holders_.find(key_of(holder));
  return found == holders_.end() ? kNone : found->second.ids;
}

StoreTime PoolTable::earliest_end(const ports::LeaseHolder& holder) const {
  const auto found = holders_.find(key_of(holder));
  return found == holders_.end() ? StoreTime::max() : found->second.earliest_end;
}

void PoolTable::set_earliest_end(const ports::LeaseHolder& holder, StoreTime end) {
  const auto found = holders_.find(key_of(holder));
  if (found != holders_.end()) found->second.earliest_end = end;
}

std::vector<ProxyId> PoolTable::orphaned_by(const ports::LeaseHolder& holder) const {
  const auto found = orphaned_.find({holder.worker, holder.instance});
  if (found == orphaned_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::vector<ports::LeaseHolder> PoolTable::holders() const {
  std::vector<ports::LeaseHolder> all;
  all.reserve(holders_.size());
  for (const auto& [key, ids] : holders_) {
    all.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  }
  return all;
}

RowCounts PoolTable::counts(const UpstreamId& upstream) const {
  const auto found = counts_.find(upstream);
  return found == counts_.end() ? RowCounts{} : found->second;
}

void PoolTable::set_rules(const UpstreamId& upstream, const ports::UpstreamRules& rules) {
  // The rules are part of when a row is due, so its rows are indexed anew.
  const std::set<ProxyId> ids = of_upstream(upstream);
  for (const ProxyId id : ids) unindex(*find(id));
  rules_[upstream] = rules;
  for (const ProxyId id : ids) index(*find(id));
}

ports::UpstreamRules PoolTable::rules(const UpstreamId& upstream) const {
  const auto found = rules_.find(upstream);
  return found == rules_.end() ? ports::UpstreamRules{} : found->second;
}

domain::LifeFacts PoolTable::facts(const Row& row) const {
  domain::LifeFacts facts;
  facts.state = row.proxy.state;
  facts.expires_at = row.proxy.expires_at;
  facts.usable_until = row.proxy.usable_until;
  facts.unhealthy_since = row.unhealthy_since;
  facts.drain_cause = row.drain_cause;
  facts.idle = idle(row);
  facts.upstream_enabled = rules(row.proxy.upstream).enabled;
  return facts;
}

void PoolTable::index_class(const Row& row, bool add) {
  const domain::Proxy& proxy = row.proxy;
  if (!idle(row) || row.handing_out || proxy.state != ProxyState::Available) return;
  ClassKey key{proxy.upstream, proxy.endpoint.scheme, proxy.attributes.country,
               proxy.attributes.region, proxy.attributes.carrier};
  if (add) {
    extractable_[std::move(key)].insert(life_of(row));
    return;
  }
  const auto found = extractable_.find(key);
  PP_ASSERT(found != extractable_.end());
  found->second.erase(life_of(row));
  if (found->second.empty()) extractable_.erase(found);
}

void PoolTable::count(const Row& row, bool add) {
  RowCounts& counts = counts_[row.proxy.upstream];
  const auto move = [add](std::uint32_t& counter) { counter = add ? counter + 1 : counter - 1; };
  move(counts.by_state[static_cast<std::size_t>(row.proxy.state)]);
  if (row.handing_out) move(counts.handing_out);
  if (!domain::managed(row.proxy.state)) return;
  switch (row.proxy.ownership) {
    case Ownership::Unowned:
      return move(counts.unowned);
    case Ownership::Owned:
      return move(counts.owned);
    case Ownership::Revoking:
      return move(counts.revoking);
  }
}

void PoolTable::index(const Row& row) {
  const ProxyId id = row.proxy.id;
  count(row, true);
  index_class(row, true);
  if (row.proxy.ownership != Ownership::Unowned) {
    Held& held = holders_[key_of(row.holder)];
    held.ids.insert(id);
    held.earliest_end = std::min(held.earliest_end, row.lease_until);
  }
  if (const auto c = check_class(row)) {
    // A task that is not answered is due again when its lease ends.
    const bool open = row.health.open_task != 0;
    const StoreTime at = open ? row.health.task_until : row.health.next_check_at;
    checks_[static_cast<std::size_t>(*c)].emplace(at, id);
    check_at_[id] = {*c, at};
  }
  const domain::LifeFacts life = facts(row);
  const milliseconds retention = rules(row.proxy.upstream).unhealthy_retention;
  // Asked for the beginning of time: what is due at once has no moment, what waits has one.
  if (domain::due_event(life, retention, StoreTime::min())) ripe_.insert(id);
  // Past its margin a draining row waits for its owner, which no clock tells: only its expiry is a
  // moment. Otherwise such rows would stay in front and be looked at by every sweep.
  domain::LifeFacts timed = life;
  if (timed.state == ProxyState::Draining && !timed.idle) timed.usable_until.reset();
  auto at = domain::next_due(timed, retention, StoreTime::min());
  for (const domain::Orphans& orphans : row.orphans) {
    orphaned_[{orphans.worker, orphans.instance}].insert(id);
    at = std::min(at.value_or(StoreTime::max()), orphans.until);
  }
  if (at) {
    due_.emplace(*at, id);
    due_at_[id] = *at;
  }
}

void PoolTable::unindex(const Row& row) {
  const ProxyId id = row.proxy.id;
  count(row, false);
  index_class(row, false);
  if (row.proxy.ownership != Ownership::Unowned) {
    const auto held = holders_.find(key_of(row.holder));
    PP_ASSERT(held != holders_.end());
    held->second.ids.erase(id);
    if (held->second.ids.empty()) holders_.erase(held);
  }
  if (const auto check = check_at_.find(id); check != check_at_.end()) {
    checks_[static_cast<std::size_t>(check->second.first)].erase({check->second.second, id});
    check_at_.erase(check);
  }
  if (const auto due = due_at_.find(id); due != due_at_.end()) {
    due_.erase({due->second, id});
    due_at_.erase(due);
  }
  ripe_.erase(id);
  for (const domain::Orphans& orphans : row.orphans) {
    const auto of_instance = orphaned_.find({orphans.worker, orphans.instance});
    if (of_instance == orphaned_.end()) continue;  // two of one instance
    of_instance->second.erase(id);
    if (of_instance->second.empty()) orphaned_.erase(of_instance);
  }
}

}  // namespace proxypool::memory
