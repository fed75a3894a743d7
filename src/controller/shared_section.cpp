#include "controller/shared_section.hpp"

#include <algorithm>
#include <utility>

#include "proxypool/domain/routing/sequential.hpp"

namespace proxypool::controller {

namespace {

template <class State, class Id>
const State* find(const std::vector<State>& states, const Id State::*key, const Id& id) {
  const auto found = std::find_if(states.begin(), states.end(),
                                  [&](const State& state) { return state.*key == id; });
  return found == states.end() ? nullptr : &*found;
}

std::vector<domain::SnapshotUpstream> upstreams_of(const config::Config& config,
                                                   const Switches& switches) {
  std::vector<domain::SnapshotUpstream> upstreams;
  upstreams.reserve(config.upstreams.size());
  for (const config::UpstreamConfig& upstream : config.upstreams) {
    const auto* state = find(switches.upstreams, &ports::UpstreamState::upstream, upstream.id);
    upstreams.push_back({upstream.id, upstream.enabled && (!state || state->enabled)});
  }
  return upstreams;
}

// Where a sequential routing stands. With nobody to go to it keeps its place, so that workers do
// not begin at the start of the list.
std::optional<UpstreamId> place_of(const config::RoutingConfig& routing,
                                   const std::vector<domain::SnapshotUpstream>& upstreams,
                                   const ports::RoutingState* state) {
  if (routing.upstreams.empty()) return std::nullopt;
  std::vector<domain::SequentialStop> stops;
  for (const domain::RoutingUpstream& entry : routing.upstreams) {
    const auto* known = find(upstreams, &domain::SnapshotUpstream::id, entry.id);
    stops.push_back({entry.id, known && known->enabled});
  }
  const auto cursor = state ? state->current : std::nullopt;
  const auto current = domain::current_upstream(stops, cursor, routing.exhaustion);
  if (current) return current;
  const bool own = cursor && std::any_of(stops.begin(), stops.end(), [&](const auto& stop) {
                     return stop.upstream == *cursor;
                   });
  return own ? cursor : stops.front().upstream;
}

domain::SnapshotRouting routing_of(const config::Config& config,
                                   const config::RoutingConfig& routing,
                                   const std::vector<domain::SnapshotUpstream>& upstreams,
                                   const ports::RoutingState* state) {
  domain::SnapshotRouting out;
  out.id = routing.id;
  out.enabled = routing.enabled && (!state || state->enabled);
  out.match = routing.match;
  out.strategy = routing.strategy;
  out.balancer = routing.balancer;
  out.upstreams = routing.upstreams;
  if (routing.strategy == domain::Strategy::Sequential) {
    out.current = place_of(routing, upstreams, state);
  }
  out.on_unavailable = routing.on_unavailable;
  if (routing.on_unavailable == domain::OnUnavailable::Wait) {
    out.wait_timeout = std::chrono::duration_cast<milliseconds>(routing.wait_timeout);
    out.waiters_max = routing.waiters_max;
  }
  out.in_flight_max = routing.in_flight_max;
  out.attempts_max = config.gateway.retry.attempts_max;
  return out;
}

}  // namespace

SharedSection make_shared_section(const config::Config& config,
                                  const std::vector<HashedClient>& clients,
                                  const Switches& switches) {
  SharedSection section;
  section.upstreams = upstreams_of(config, switches);
  for (const config::RoutingConfig& routing : config.routings) {
    const auto* state = find(switches.routings, &ports::RoutingState::routing, routing.id);
    section.routing_numbers.emplace(routing.id, section.routings.size());
    section.routings.push_back(routing_of(config, routing, section.upstreams, state));
  }
  for (const config::ClientConfig& client : config.clients) {
    const auto* hashed = find(clients, &HashedClient::name, client.name);
    domain::SnapshotClient out;
    out.name = client.name;
    out.groups = client.groups;
    out.rate_per_second = client.limits.rate_per_second;
    out.burst = client.limits.burst;
    out.in_flight_max = client.limits.in_flight_max;
    if (hashed) out.gateway_secret = hashed->gateway_secret;
    out.sources = client.sources;
    section.clients.push_back(std::move(out));
  }
  section.policy.use_suspect = config.gateway.use_suspect;
  section.policy.unsafe_before_send = config.gateway.retry.unsafe_before_send;
  section.policy.deny_cidrs = config.gateway.target.deny_cidrs;
  section.policy.allow_cidrs = config.gateway.target.allow_cidrs;
  section.policy.deny_hosts = config.gateway.target.deny_hosts;
  section.policy.allow_ports = config.gateway.target.allow_ports;
  section.policy.resolve_before_proxy = config.gateway.target.resolve_before_proxy;
  section.policy.username_parameters = config.gateway.auth.username_parameters;
  section.policy.session_header = config.gateway.sticky.header;
  section.policy.session_idle =
      std::chrono::duration_cast<milliseconds>(config.gateway.sticky.idle_ttl);
  return section;
}

}  // namespace proxypool::controller
