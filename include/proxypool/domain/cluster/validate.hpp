// What a worker checks before it takes a snapshot (CP-4, CP-6).
//
// Two kinds of fault. In routings, upstreams and clients: the whole snapshot is refused, since half
// a configuration routes traffic where nobody meant it to go. In one proxy: that proxy is left out
// and named, the rest serves. Unknown enumeration values never come this far; the adapter refuses
// them.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/domain/routing/matcher.hpp"
#include "proxypool/domain/routing/strategy.hpp"

namespace proxypool::domain {

namespace validate_detail {

inline Error refuse(std::string why) {
  return Error(ErrorCode::InvalidArgument, Origin::Internal, std::move(why));
}

inline Status check_routing(const SnapshotRouting& routing,
                            const std::unordered_set<UpstreamId>& upstreams) {
  const std::string name = "routing " + routing.id.str();
  if (routing.upstreams.size() > UpstreamOrder::kUpstreamsMax) {
    return refuse(name + " has more upstreams than 64");
  }
  if (routing.on_unavailable == OnUnavailable::Wait &&
      (routing.wait_timeout <= milliseconds{0} || routing.waiters_max == 0)) {
    return refuse(name + " waits without a waitTimeout and maxWaiters");
  }
  std::unordered_set<UpstreamId> own;
  for (const auto& upstream : routing.upstreams) {
    if (!upstreams.contains(upstream.id)) {
      return refuse(name + " names the unknown upstream " + upstream.id.str());
    }
    if (!own.insert(upstream.id).second) {
      return refuse(name + " names the upstream " + upstream.id.str() + " twice");
    }
  }
  if (routing.current && !own.contains(*routing.current)) {
    return refuse(name + " stands at " + routing.current->str() + ", which is not in it");
  }
  return ok();
}

}  // namespace validate_detail

// The configuration part and the counts. An error refuses the snapshot.
inline Status check_snapshot(const WorkerSnapshot& snapshot) {
  using validate_detail::refuse;
  if (snapshot.proxies.size() > limits::kProxiesPerWorkerMax) {
    return refuse("more proxies than a worker takes");
  }
  if (snapshot.routings.size() > Matcher::kRulesMax) {
    return refuse("more routings than a worker takes");
  }
  std::unordered_set<UpstreamId> upstreams;
  for (const auto& upstream : snapshot.upstreams) {
    if (upstream.id.empty()) return refuse("an upstream without a name");
    if (!upstreams.insert(upstream.id).second) {
      return refuse("the upstream " + upstream.id.str() + " comes twice");
    }
  }
  std::unordered_set<RoutingId> routings;
  for (const auto& routing : snapshot.routings) {
    if (routing.id.empty()) return refuse("a routing without a name");
    if (!routings.insert(routing.id).second) {
      return refuse("the routing " + routing.id.str() + " comes twice");
    }
    PP_TRY(const Unit checked, validate_detail::check_routing(routing, upstreams));
    (void)checked;
  }
  std::unordered_set<ClientName> clients;
  for (const auto& client : snapshot.clients) {
    if (client.name.empty()) return refuse("a client without a name");
    if (!clients.insert(client.name).second) {
      return refuse("the client " + client.name.str() + " comes twice");
    }
  }
  return ok();
}

// Why this proxy cannot be served, or nothing. Whether its upstream is known and its id comes once
// is the caller's to see.
inline std::optional<std::string_view> proxy_fault(const SnapshotProxy& proxy,
                                                   std::size_t credentials) {
  if (proxy.id == ProxyId()) return "no id";
  if (proxy.endpoint.scheme == Scheme::Socks5) return "socks5 is not served yet";
  if (proxy.endpoint.host.empty() || proxy.endpoint.port == 0) return "no endpoint";
  if (proxy.credential > credentials) return "unknown credential";
  if (proxy.max_concurrency == 0) return "no concurrency";
  if (proxy.max_concurrency > limits::kProxyConcurrencyMax) return "concurrency above 65535";
  return std::nullopt;
}

// A proxy that the worker serves from now.
struct HeldProxy {
  ProxyId id;
  TimePoint usable_until = kNever;
};

// What is held and not in `next`.
inline std::vector<HeldProxy> lost_by(std::span<const HeldProxy> held, const WorkerSnapshot& next) {
  std::unordered_set<ProxyId> kept;
  kept.reserve(next.proxies.size());
  for (const auto& proxy : next.proxies) kept.insert(proxy.id);
  std::vector<HeldProxy> lost;
  for (const auto& proxy : held) {
    if (!kept.contains(proxy.id)) lost.push_back(proxy);
  }
  return lost;
}

// CP-6: whether losing `lost` of what is held is more than half of what is still usable, and nobody
// said that this is meant. Then the old set is kept until its leases end, and reported.
inline bool loses_too_much(std::span<const HeldProxy> held, std::span<const HeldProxy> lost,
                           const WorkerSnapshot& next, TimePoint now) {
  if (next.intentional_loss) return false;
  // Its end explains the absence of one that is not usable any more.
  const auto usable = [&](const HeldProxy& proxy) { return now < proxy.usable_until; };
  return 2 * std::count_if(lost.begin(), lost.end(), usable) >
         std::count_if(held.begin(), held.end(), usable);
}

}  // namespace proxypool::domain
