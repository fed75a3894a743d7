#include "gateway/dispatch/registry.hpp"

#include <algorithm>
#include <utility>

#include "gateway/dispatch/view.hpp"

namespace proxypool::gateway {

std::size_t ProxyRegistry::revoke(std::span<const ProxyId> ids) {
  std::size_t known = 0;
  for (const ProxyId id : ids) {
    const auto found = slots_.find(id);
    if (found == slots_.end()) continue;
    found->second.revoked = true;
    found->second.upstream->members.close(found->second.member);
    ++known;
  }
  return known;
}

void ProxyRegistry::adopt(const View& view) {
  adopted_ = view.stamp_;
  for (auto& [id, slot] : slots_) {
    if (slot.stamp == adopted_) slot.lease_epoch = slot.entry->lease_epoch;
    if (slot.stamp == adopted_ || slot.draining) continue;
    slot.upstream->members.close(slot.member);
    slot.draining = true;
    draining_.push_back(id);
  }
}

void ProxyRegistry::look_ahead(TimePoint now) {
  for (auto& [id, upstream] : upstreams_) upstream->members.look_ahead(now);
}

std::size_t ProxyRegistry::reclaim() {
  std::erase_if(draining_, [&](ProxyId id) {
    const auto found = slots_.find(id);
    if (found == slots_.end() || !found->second.draining) return true;  // a newer view has it again
    if (!found->second.upstream->members.reclaim(found->second.member)) return false;
    slots_.erase(found);
    return true;
  });
  return draining_.size();
}

std::vector<ports::ProxyCount> ProxyRegistry::counts() const {
  std::vector<ports::ProxyCount> out;
  for (const auto& [id, slot] : slots_) {
    const domain::Counts counts = slot.upstream->members.counts(slot.member);
    if (counts.total() == 0) continue;
    ports::ProxyCount count;
    count.id = id;
    count.lease_epoch = slot.lease_epoch;
    count.active = counts.active;
    count.reserved = counts.reserved;
    count.draining = !slot.upstream->members.is_open(slot.member);
    out.push_back(count);
  }
  return out;
}

std::vector<domain::HeldProxy> ProxyRegistry::held() const {
  std::vector<domain::HeldProxy> out;
  for (const auto& [id, slot] : slots_) {
    if (slot.draining || slot.revoked || !slot.upstream->members.is_open(slot.member)) continue;
    out.push_back({id, slot.upstream->members.until(slot.member)});
  }
  return out;
}

UpstreamRuntime* ProxyRegistry::upstream(const UpstreamId& id) {
  const auto found = upstreams_.find(id);
  if (found != upstreams_.end()) return found->second.get();
  if (upstreams_.size() >= kNamesMax) return nullptr;
  return upstreams_.emplace(id, std::make_unique<UpstreamRuntime>(id)).first->second.get();
}

RoutingRuntime* ProxyRegistry::routing(const RoutingId& id) {
  const auto found = routings_.find(id);
  if (found != routings_.end()) return found->second.get();
  if (routings_.size() >= kNamesMax) return nullptr;
  return routings_.emplace(id, std::make_unique<RoutingRuntime>(id)).first->second.get();
}

domain::ClientUse* ProxyRegistry::client(const ClientName& name) {
  const auto found = clients_.find(name);
  if (found != clients_.end()) return found->second.get();
  if (clients_.size() >= kClientsMax) return nullptr;
  const auto place = clients_.emplace(name, std::make_unique<domain::ClientUse>()).first;
  place->second->number = static_cast<std::uint32_t>(client_names_.size());
  client_names_.push_back(&place->first);
  return place->second.get();
}

void ProxyRegistry::usage(
    const std::function<void(std::uint32_t, const ClientName&, const domain::Usage&)>& each) const {
  for (std::uint32_t number = 0; number < client_names_.size(); ++number) {
    const domain::Usage total = usage_sheets_.total(number);
    if (!total.nothing()) each(number, *client_names_[number], total);
  }
}

bool ProxyRegistry::over_quota(std::span<const ClientName> clients, TimePoint until) {
  std::vector<domain::ClientUse*> over;
  bool more = false;
  for (const ClientName& name : clients) {
    const auto known = clients_.find(name);  // no view had it yet: it has moved nothing here
    if (known == clients_.end()) continue;
    domain::ClientUse* const use = known->second.get();
    more = more || use->over_until.load(std::memory_order_relaxed) == TimePoint::min();
    use->over_until.store(until, std::memory_order_relaxed);
    over.push_back(use);
  }
  std::sort(over.begin(), over.end());
  for (domain::ClientUse* const use : over_quota_) {
    if (std::binary_search(over.begin(), over.end(), use)) continue;
    use->over_until.store(TimePoint::min(), std::memory_order_relaxed);
  }
  over_quota_ = std::move(over);
  over_quota_count_.store(over_quota_.size(), std::memory_order_relaxed);
  return more;
}

ProxyRegistry::Slot* ProxyRegistry::place(ProxyId id, UpstreamRuntime& upstream,
                                          std::uint64_t stamp, const char*& refusal) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) return fresh_slot(id, upstream, refusal);
  Slot& slot = found->second;
  if (slot.stamp == stamp) {
    refusal = "the same id came before";
    return nullptr;
  }
  if (slot.upstream == &upstream) return &slot;
  // The proxy has come back from another source. Its counters stay where they are until its old
  // work has ended, so that its limit holds over both lives.
  slot.upstream->members.close(slot.member);
  if (!slot.upstream->members.reclaim(slot.member)) {
    refusal = "still busy under its former upstream";
    return nullptr;
  }
  slots_.erase(found);
  return fresh_slot(id, upstream, refusal);
}

ProxyRegistry::Slot* ProxyRegistry::fresh_slot(ProxyId id, UpstreamRuntime& upstream,
                                               const char*& refusal) {
  refusal = "no slot is free";
  if (slots_.size() >= options_.slots_max) return nullptr;
  const std::uint32_t member = upstream.members.place(id);
  if (member == domain::Members::kNone) return nullptr;
  Slot& slot = slots_[id];
  slot.upstream = &upstream;
  slot.member = member;
  return &slot;
}

}  // namespace proxypool::gateway
