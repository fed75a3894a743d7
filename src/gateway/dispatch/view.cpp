#include "gateway/dispatch/view.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "gateway/dispatch/host_regex.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/domain/cluster/digest.hpp"
#include "proxypool/domain/cluster/validate.hpp"

namespace proxypool::gateway {
namespace {

std::shared_ptr<const ProxyCredential> ready(const domain::SnapshotCredential& credential) {
  auto made = std::make_shared<ProxyCredential>();
  made->version = credential.version;
  const SecretString pair(credential.username + ":" + std::string(credential.password.reveal()));
  made->authorization =
      SecretString("Proxy-Authorization: Basic " + base64_encode(pair.reveal()) + "\r\n");
  return made;
}

bool same(const ProxyCredential* a, const ProxyCredential* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->version == b->version && a->authorization == b->authorization;
}

}  // namespace

TimePoint StoreMoment::to_local(StoreTime time) const noexcept {
  constexpr milliseconds kFar = std::chrono::hours(24 * 365 * 100);
  if (time >= store_now + kFar) return kNever;
  if (time <= store_now - kFar) return TimePoint::min();
  return local + (time - store_now);
}

View::View(const domain::WorkerSnapshot& snapshot, domain::Matcher matcher, std::uint64_t stamp)
    : stamp_(stamp),
      version_(snapshot.version),
      epoch_(snapshot.epoch),
      policy_(snapshot.policy),
      matcher_(std::move(matcher)),
      targets_({policy_.deny_cidrs, policy_.allow_cidrs, policy_.deny_hosts, policy_.allow_ports}),
      clients_(snapshot.clients),
      principals_(snapshot.clients) {
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    client_numbers_.emplace(clients_[i].name.str(), i);
  }
}

std::optional<std::uint32_t> View::client(std::string_view name) const noexcept {
  const auto found = client_numbers_.find(name);
  if (found == client_numbers_.end()) return std::nullopt;
  return found->second;
}

FilteredPointer View::filtered(const Routing& routing, const Wanted& wanted) const {
  return filter_lists_.find(number_of(routing), wanted.key, [&] {
    FilteredRouting out;
    out.parts.reserve(routing.upstreams.size());
    for (const Upstream* upstream : routing.upstreams) {
      FilteredRouting::Part& part = out.parts.emplace_back();
      part.mask.resize(upstream->mask.size());
      const auto mark = [&](std::uint32_t slot) {
        part.mask[slot / 64] |= std::uint64_t{1} << (slot % 64);
      };
      for (const Kind& kind : upstream->kinds) {
        if (!wanted.filter->admits(kind.attributes, kind.tags, routing.tag_keys)) continue;
        part.available.insert(part.available.end(), kind.available.begin(), kind.available.end());
        part.suspects += kind.suspects.size();
        std::for_each(kind.available.begin(), kind.available.end(), mark);
        std::for_each(kind.suspects.begin(), kind.suspects.end(), mark);
      }
    }
    return out;
  });
}

ViewBuilder::ViewBuilder(ProxyRegistry& registry,
                         std::shared_ptr<const domain::WorkerSnapshot> snapshot, StoreMoment moment)
    : registry_(registry),
      snapshot_(std::move(snapshot)),
      moment_(moment),
      stamp_(++registry.stamp_) {}

Status ViewBuilder::begin() {
  PP_TRY(const Unit checked, domain::check_snapshot(*snapshot_));
  (void)checked;
  PP_TRY(domain::Matcher matcher,
         domain::Matcher::compile(snapshot_->routings, snapshot_->clients, compile_host_regexes));
  view_ = std::shared_ptr<View>(new View(*snapshot_, std::move(matcher), stamp_));
  // Reserved, so that routings can point into it.
  view_->upstreams_.reserve(snapshot_->upstreams.size());
  for (const auto& upstream : snapshot_->upstreams) {
    UpstreamRuntime* runtime = registry_.upstream(upstream.id);
    if (runtime == nullptr) {
      return Error(ErrorCode::Exhausted, Origin::Internal, "too many upstream names in one life");
    }
    upstream_numbers_.emplace(upstream.id, view_->upstreams_.size());
    view_->upstreams_.emplace_back().runtime = runtime;
  }
  PP_TRY(const Unit limited, add_clients());
  (void)limited;
  for (const auto& routing : snapshot_->routings) {
    PP_TRY(const Unit added, add_routing(routing));
    (void)added;
  }
  credentials_.resize(snapshot_->credentials.size());
  slots_.reserve(snapshot_->proxies.size());
  registry_.slots_.reserve(std::max(registry_.slots_.size(), snapshot_->proxies.size()));
  kinds_.resize(view_->upstreams_.size());
  return ok();
}

Status ViewBuilder::add_clients() {
  view_->uses_.reserve(snapshot_->clients.size());
  for (const auto& client : snapshot_->clients) {
    domain::ClientUse* use = registry_.client(client.name);
    if (use == nullptr) {
      return Error(ErrorCode::Exhausted, Origin::Internal,
                   "more client names than a gateway keeps in its life; restart it");
    }
    view_->uses_.push_back(use);
  }
  return ok();
}

Status ViewBuilder::add_routing(const domain::SnapshotRouting& routing) {
  RoutingRuntime* runtime = registry_.routing(routing.id);
  if (runtime == nullptr) {
    return Error(ErrorCode::Exhausted, Origin::Internal, "too many routing names in one life");
  }
  std::vector<const View::Upstream*> upstreams;
  std::vector<std::uint32_t> weights;
  std::uint32_t current = domain::UpstreamOrder::kNone;
  for (const auto& upstream : routing.upstreams) {
    const std::size_t number = upstream_numbers_.at(upstream.id);
    if (!snapshot_->upstreams[number].enabled) continue;
    const auto place = static_cast<std::uint32_t>(upstreams.size());
    // Without a cursor a sequential routing begins at its first enabled upstream.
    if (routing.current ? *routing.current == upstream.id : place == 0) current = place;
    upstreams.push_back(&view_->upstreams_[number]);
    weights.push_back(upstream.weight);
    if (routing.strategy == domain::Strategy::LeastConn) {
      view_->upstreams_[number].runtime->counted.store(true, std::memory_order_relaxed);
    }
    if (routing.balancer == domain::Balancer::LeastConn) {
      view_->upstreams_[number].runtime->members.keep_exact();
    } else if (routing.balancer == domain::Balancer::LeastTime) {
      view_->upstreams_[number].runtime->timed.store(true, std::memory_order_relaxed);
    }
  }
  std::vector<std::string> tag_keys;
  for (const auto& [key, value] : routing.match.tags) tag_keys.push_back(key);
  view_->routings_.push_back(
      {routing.id, routing.balancer, routing.attempts_max, routing.in_flight_max,
       std::move(upstreams), domain::UpstreamOrder(routing.strategy, weights, current), runtime,
       routing.on_unavailable, routing.wait_timeout, routing.waiters_max, std::move(tag_keys)});
  return ok();
}

// Two passes: places first, opening second and quickly, so that the older view's threads meet
// members they must skip for as short a time as can be.
bool ViewBuilder::step(std::size_t proxies) {
  const auto& all = snapshot_->proxies;
  for (; proxies > 0 && slots_.size() < all.size(); --proxies) {
    slots_.push_back(place(all[slots_.size()]));
  }
  for (; proxies > 0 && opened_ < all.size(); --proxies, ++opened_) {
    if (slots_[opened_] != nullptr) open(*slots_[opened_], all[opened_]);
  }
  return opened_ < all.size();
}

std::shared_ptr<const View> ViewBuilder::finish() {
  PP_ASSERT(view_ && opened_ == snapshot_->proxies.size());
  return std::move(view_);
}

ProxyRegistry::Slot* ViewBuilder::place(const domain::SnapshotProxy& proxy) {
  if (const auto fault = domain::proxy_fault(proxy, snapshot_->credentials.size())) {
    return reject(proxy.id, *fault);
  }
  const auto number = number_of(proxy.upstream);
  if (!number) return reject(proxy.id, "unknown upstream");
  View::Upstream& upstream = view_->upstreams_[*number];
  const char* refusal = nullptr;
  ProxyRegistry::Slot* slot = registry_.place(proxy.id, *upstream.runtime, stamp_, refusal);
  if (slot == nullptr) return reject(proxy.id, refusal);
  if (slot->revoked && slot->entry && proxy.lease_epoch <= slot->entry->lease_epoch) {
    return reject(proxy.id, "revoked, and no newer lease");
  }
  slot->revoked = false;
  slot->draining = false;
  if (!slot->entry) slot->lease_epoch = proxy.lease_epoch;
  slot->stamp = stamp_;
  const std::uint32_t member = slot->member;
  if (member >= upstream.places.size()) {
    const std::size_t room = std::max<std::size_t>(member + 1, upstream.runtime->members.size());
    upstream.places.resize(room);
    upstream.mask.resize((room + 63) / 64);
  }
  upstream.places[member] = {entry_for(*slot, proxy), proxy.id};
  upstream.mask[member / 64] |= std::uint64_t{1} << (member % 64);
  View::Kind& kind = kind_of(*number, proxy);
  if (proxy.suspect) {
    ++upstream.suspects;
    kind.suspects.push_back(member);
  } else {
    upstream.available.push_back(member);
    kind.available.push_back(member);
  }
  ++view_->proxies_;
  return slot;
}

// Most lists come sorted by upstream.
std::optional<std::size_t> ViewBuilder::number_of(const UpstreamId& upstream) {
  if (last_upstream_.first == nullptr || *last_upstream_.first != upstream) {
    const auto found = upstream_numbers_.find(upstream);
    if (found == upstream_numbers_.end()) return std::nullopt;
    last_upstream_ = {&found->first, found->second};
  }
  return last_upstream_.second;
}

View::Kind& ViewBuilder::kind_of(std::size_t upstream, const domain::SnapshotProxy& proxy) {
  std::vector<View::Kind>& kinds = view_->upstreams_[upstream].kinds;
  // Most vendors tell little, and most lists come sorted.
  const auto is_it = [&](const View::Kind& kind) {
    return kind.attributes == proxy.attributes && kind.tags == proxy.tags;
  };
  if (!kinds.empty() && is_it(kinds.back())) return kinds.back();
  const std::string key = domain::ProxyFilter{proxy.attributes, proxy.tags}.key();
  const auto [place, fresh] = kinds_[upstream].try_emplace(key, kinds.size());
  if (fresh) kinds.push_back({proxy.attributes, proxy.tags, {}, {}});
  return kinds[place->second];
}

void ViewBuilder::open(const ProxyRegistry::Slot& slot, const domain::SnapshotProxy& proxy) {
  if (slot.revoked) return;  // since it was placed
  domain::Members::Settings settings;
  settings.limit = proxy.max_concurrency;
  settings.suspect = proxy.suspect;
  if (proxy.usable_until) settings.until = moment_.to_local(*proxy.usable_until);
  slot.upstream->members.set(slot.member, settings);
}

ProxyRegistry::Slot* ViewBuilder::reject(ProxyId id, std::string_view reason) {
  ++rejected_count_;
  if (rejected_.size() < kRejectedMax) rejected_.push_back({id, std::string(reason)});
  return nullptr;
}

const EntryPointer& ViewBuilder::entry_for(ProxyRegistry::Slot& slot,
                                           const domain::SnapshotProxy& proxy) {
  static const std::shared_ptr<const ProxyCredential> kNothing;
  const auto& wanted = proxy.credential == 0 ? kNothing : credential(proxy.credential);
  if (slot.entry && slot.entry->lease_epoch == proxy.lease_epoch &&
      slot.entry->endpoint == proxy.endpoint && same(slot.entry->credential.get(), wanted.get())) {
    return slot.entry;
  }
  auto made = std::make_unique<ProxyEntry>();
  made->id = proxy.id;
  made->lease_epoch = proxy.lease_epoch;
  made->upstream = &slot.upstream->id;
  made->endpoint = proxy.endpoint;
  made->address = IpAddress::parse(proxy.endpoint.host);
  made->credential = wanted;
  slot.entry = EntryPointer::adopt(std::move(made));
  return slot.entry;
}

const std::shared_ptr<const ProxyCredential>& ViewBuilder::credential(std::uint32_t reference) {
  auto& made = credentials_[reference - 1];
  if (!made) made = ready(snapshot_->credentials[reference - 1]);
  return made;
}

}  // namespace proxypool::gateway
