#include "config/schema/tables.hpp"
#include "config/schema/types.hpp"
#include "config/schema/values.hpp"

namespace proxypool::config::schema {
namespace {

using std::chrono::minutes;

using domain::Balancer;
using domain::Exhaustion;
using domain::OnUnavailable;
using domain::RequestKind;
using domain::Strategy;

// What this version can do; the other words of the enumerations are refused by name.
const std::vector<Strategy> kStrategies = {Strategy::Sequential,         Strategy::RoundRobin,
                                           Strategy::WeightedRoundRobin, Strategy::Random,
                                           Strategy::LeastConn,          Strategy::First};
const std::vector<Exhaustion> kExhaustions = {Exhaustion::Stop, Exhaustion::Loop,
                                              Exhaustion::StayLast};
const std::vector<Balancer> kBalancers = {Balancer::LeastConn, Balancer::RoundRobin,
                                          Balancer::Random,    Balancer::TwoRandomChoices,
                                          Balancer::LeastTime, Balancer::ConsistentHash};
const std::vector<OnUnavailable> kOnUnavailable = {OnUnavailable::Reject, OnUnavailable::Wait,
                                                   OnUnavailable::Direct};

bool sequential(const RoutingConfig& routing) {
  return routing.strategy == Strategy::Sequential;
}

bool waits(const RoutingConfig& routing) {
  return routing.on_unavailable == OnUnavailable::Wait;
}

Type<ClientLimits> client_limits() {
  using L = ClientLimits;
  return object<L>(section<L>({
      field("requestsPerSecond", &L::rate_per_second, integer<std::uint32_t>(0, 1'000'000),
            "Requests and tunnels that may begin in a second; more get 429. 0: no limit."),
      field("burst", &L::burst, integer<std::uint32_t>(0, 1'000'000),
            "How many may begin at once after a pause; 0: as many as in a second."),
      field("maxInFlight", &L::in_flight_max, integer<std::uint32_t>(0, 1'000'000),
            "Requests and tunnels at once; more get 429. 0: no limit."),
      field("bytesPerDay", &L::bytes_per_day, bytes_or_zero(1, std::uint64_t{1} << 50U),
            "Bytes of requests, answers and tunnels, both ways, in a day of UTC; once they are "
            "used up tunnels end and requests get 429 until the day ends. 0: no limit."),
  }));
}

Type<domain::RoutingMatch> match() {
  using M = domain::RoutingMatch;
  return object<M>(section<M>({
      field("hosts", &M::hosts, list_of(host_pattern(), 0, 10'000),
            "Target hosts; *.suffix matches any depth below.")
          .sample("[www.example.com, \"*.example.org\"]"),
      field("hostRegex", &M::host_regex, list_of(host_regex(), 0, 1000),
            "Expressions that must match a target host as a whole.")
          .sample("[\"img[0-9]+\\\\.example\\\\.com\"]"),
      field("ports", &M::ports, list_of(integer<std::uint16_t>(1), 0, 1000), "Target ports.")
          .sample("[443]"),
      field("kinds", &M::kinds,
            list_of(word<RequestKind>({RequestKind::Http, RequestKind::Connect}), 0, 2),
            "Plain requests, tunnels, or both when empty.")
          .sample("[connect]"),
      field("methods", &M::methods, list_of(method(), 0, 32), "Methods of plain requests.")
          .sample("[GET, HEAD]"),
      field("pathPrefixes", &M::path_prefixes, list_of(path_prefix(), 0, 1000),
            "Beginnings of the path of plain requests.")
          .sample("[/api/]"),
      field("clients", &M::clients, list_of(identifier(), 0, 10'000), "Names or groups of clients.")
          .sample("[crawler]"),
      field("tags", &M::tags, tags(), "Tags that the client asked for.").sample("{tier: gold}"),
  }));
}

Type<domain::RoutingUpstream> routing_upstream() {
  using U = domain::RoutingUpstream;
  return object<U>(section<U>({
      field("id", &U::id, name_id<UpstreamId>(), "The upstream.").must("my-list"),
      field("weight", &U::weight, integer<std::uint32_t>(1, 10'000),
            "Share under strategy weighted_round_robin."),
  }));
}

}  // namespace

Type<std::vector<RoutingConfig>> routings() {
  using R = RoutingConfig;
  return list_of(
      object<R>(section<R>({
          field("id", &R::id, name_id<RoutingId>(), "Names the routing.").must("everything"),
          field("enabled", &R::enabled, boolean(), "A routing that is off matches nothing."),
          field("match", &R::match, match(),
                "Which requests: every field that is given must match, one entry of each is "
                "enough. Nothing given matches all."),
          field("strategy", &R::strategy, word<Strategy>(kStrategies),
                "How the upstream is chosen. sequential uses one at a time, in the order of the "
                "list, and goes on to the next once its vendor has nothing left "
                "(upstreams[].fetch.emptyThreshold)."),
          field("balancer", &R::balancer, word<Balancer>(kBalancers),
                "How the proxy is chosen in the upstream: least_time by how long answers take and "
                "what is in flight; consistent_hash keeps a session, else a client, at one "
                "proxy."),
          field("upstreams", &R::upstreams, list_of(routing_upstream(), 0, 1000),
                "Where the requests go; empty, with onUnavailable: direct: to their targets "
                "without a proxy.")
              .must("[{id: my-list}]"),
          field("exhaustion", &R::exhaustion, word<Exhaustion>(kExhaustions),
                "Under strategy sequential, when the last upstream is used up: the routing is "
                "switched off, begins anew at the first, or stays with the last.")
              .sample("loop")
              .defaults_to("stop")
              .where<R>(sequential),
          field("onUnavailable", &R::on_unavailable, word<OnUnavailable>(kOnUnavailable),
                "What happens when no proxy is free: 503 at once, waiting in line, or going to the "
                "target without a proxy, from the gateway's own address."),
          field("waitTimeout", &R::wait_timeout, duration(milliseconds(10), minutes(5)),
                "Longest wait for a free proxy; then 503.")
              .where<R>(waits),
          field("maxWaiters", &R::waiters_max, integer<std::uint32_t>(1, 100'000),
                "Requests that wait in one gateway; further ones get 503 at once.")
              .where<R>(waits),
          field("maxInFlight", &R::in_flight_max, integer<std::uint32_t>(0, 1'000'000),
                "Requests and tunnels at once in one gateway; 0: no limit."),
      })),
      0, 10'000);
}

Type<std::vector<ClientConfig>> clients() {
  using C = ClientConfig;
  using E = ClientExtractionConfig;
  const auto extraction = object<E>(section<E>({
      field("maxCount", &E::count_max, integer<std::uint32_t>(0, 10'000),
            "Proxies in one call; 0: distribution.extraction.maxCount."),
  }));
  return list_of(
      object<C>(section<C>({
          field("name", &C::name, name_id<ClientName>(), "The user name.").must("crawler"),
          field("groups", &C::groups, list_of(identifier(), 0, 100),
                "Groups, for the match of routings.")
              .sample("[team-a]"),
          nested<C>("credentials",
                    {
                        field("gateway", &C::gateway_secret, optional(client_secret()),
                              "Secret at the gateway: a password, or an API key of at least 128 "
                              "random bits; without it the client gets in by its sources alone.")
                            .sample("{env: CRAWLER_PASSWORD}"),
                        field("distribution", &C::distribution_secret, optional(client_secret()),
                              "Password at the Distribution API; without it the client may not "
                              "use that API under usernamePassword.")
                            .sample("{file: /run/secrets/crawler}"),
                    },
                    "What the client proves itself with."),
          field("sources", &C::sources, cidrs(),
                "Addresses whose callers are this client where gateway.auth takes ipWhitelist; of "
                "ranges that overlap the narrowest counts.")
              .sample("[198.51.100.7, 203.0.113.0/24]"),
          field("allowedUpstreams", &C::allowed_upstreams, list_of(name_id<UpstreamId>(), 0, 1000),
                "Upstreams whose proxies the client may extract; empty: all.")
              .sample("[my-list]"),
          field("extraction", &C::extraction, extraction, "Limits of extraction."),
          field("limits", &C::limits, client_limits(),
                "Limits at the gateways, all of the cluster together; each gateway keeps an equal "
                "share of requests, at least 1."),
      })),
      0, 100'000);
}

}  // namespace proxypool::config::schema
