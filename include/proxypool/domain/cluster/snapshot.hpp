// The snapshot: the versioned, complete picture that one worker serves from.
//
// Values only. What compiles it into a View lives in the gateway; what puts it on the wire lives in
// the gRPC adapter; what digests it is in digest.hpp. Store times are absolute and in the
// controller's store time; `store_now` of the push that carries the snapshot lets the worker turn
// them into moments on its own steady clock.
//
// Thread rule: immutable once published (shared_ptr<const WorkerSnapshot>).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/proxy/proxy.hpp"
#include "proxypool/domain/routing/policy.hpp"

namespace proxypool::domain {

// Counters are never compared across generations (CP-1); equality is the only relation.
struct SnapshotVersion {
  std::uint64_t generation = 0;  // the store's (C18)
  std::uint64_t counter = 0;     // per worker, grows by every issued version
  friend bool operator==(const SnapshotVersion&, const SnapshotVersion&) = default;
};

// Order-independent: the sum modulo 2^256 of SHA-256 over each entry's encoding (CP-3).
using SnapshotDigest = std::array<std::uint8_t, 32>;

// A credential towards proxies, referenced by SnapshotProxy::credential.
struct SnapshotCredential {
  std::string username;
  SecretString password;
  CredentialVersion version;
  friend bool operator==(const SnapshotCredential&, const SnapshotCredential&) = default;
};

struct SnapshotProxy {
  ProxyId id;
  UpstreamId upstream;
  Endpoint endpoint;
  std::uint32_t credential = 0;  // 1 + index into WorkerSnapshot::credentials; 0: none
  std::uint32_t max_concurrency = 1;
  bool suspect = false;  // last resort only (C6)
  Epoch lease_epoch;     // of this proxy's own lease (C12)
  std::optional<StoreTime> usable_until;
  std::optional<StoreTime> expires_at;
  Attributes attributes;
  Tags tags;
  friend bool operator==(const SnapshotProxy&, const SnapshotProxy&) = default;
};

// An upstream as routings see it; disabled ones travel so that their absence is explained.
struct SnapshotUpstream {
  UpstreamId id;
  bool enabled = true;
  friend bool operator==(const SnapshotUpstream&, const SnapshotUpstream&) = default;
};

struct RoutingUpstream {
  UpstreamId id;
  std::uint32_t weight = 1;
  friend bool operator==(const RoutingUpstream&, const RoutingUpstream&) = default;
};

// Match fields of ruling R2: all optional, AND between fields, OR inside one.
struct RoutingMatch {
  std::vector<std::string> hosts;       // canonical; "*.suffix" matches any depth below
  std::vector<std::string> host_regex;  // RE2, whole match
  std::vector<std::uint16_t> ports;
  std::vector<RequestKind> kinds;
  std::vector<std::string> methods;        // http only
  std::vector<std::string> path_prefixes;  // http only
  std::vector<std::string> clients;        // names or groups
  Tags tags;
  friend bool operator==(const RoutingMatch&, const RoutingMatch&) = default;
};

struct SnapshotRouting {
  RoutingId id;
  bool enabled = true;
  RoutingMatch match;
  Strategy strategy = Strategy::RoundRobin;
  Balancer balancer = Balancer::LeastConn;
  std::vector<RoutingUpstream> upstreams;
  std::optional<UpstreamId> current;  // sequential: where the cursor stands
  OnUnavailable on_unavailable = OnUnavailable::Reject;
  milliseconds wait_timeout{0};
  std::uint32_t waiters_max = 0;
  std::uint32_t attempts_max = 2;   // different proxies for a safe method
  std::uint32_t in_flight_max = 0;  // 0: no limit of its own
  friend bool operator==(const SnapshotRouting&, const SnapshotRouting&) = default;
};

// A caller as the gateway must know it. The secret travels as a digest only.
struct SnapshotClient {
  ClientName name;
  std::vector<std::string> groups;
  std::string gateway_secret;         // "$scrypt$…" or "$sha256$…"; empty: it has none
  std::uint32_t rate_per_second = 0;  // this worker's share; 0: no limit
  std::uint32_t burst = 0;
  std::uint32_t in_flight_max = 0;
  std::vector<Cidr> sources{};  // addresses that prove it where ipWhitelist counts (GW-10)
  friend bool operator==(const SnapshotClient&, const SnapshotClient&) = default;
};

// What the gateway obeys beside routings: destinations, retries, SUSPECT use, user names,
// sessions.
struct SnapshotPolicy {
  UseSuspect use_suspect = UseSuspect::WhenEmpty;
  bool unsafe_before_send = false;
  std::vector<Cidr> deny_cidrs;
  std::vector<Cidr> allow_cidrs;
  std::vector<std::string> deny_hosts;
  std::vector<std::uint16_t> allow_ports;          // empty: every port
  bool username_parameters = true;                 // R5: a user name may ask for more than a client
  std::string session_header = "X-Proxy-Session";  // R4; empty: none
  milliseconds session_idle{600'000};              // a session that is not used so long is over
  bool resolve_before_proxy = false;  // GW-20: names are judged by our own resolution, too
  friend bool operator==(const SnapshotPolicy&, const SnapshotPolicy&) = default;
};

struct WorkerSnapshot {
  SnapshotVersion version;
  Epoch epoch;
  bool intentional_loss = false;  // CP-6: losing more than half is meant
  std::vector<SnapshotUpstream> upstreams;
  std::vector<SnapshotRouting> routings;  // first match wins, in this order
  std::vector<SnapshotClient> clients;
  SnapshotPolicy policy;
  std::vector<SnapshotCredential> credentials;
  std::vector<SnapshotProxy> proxies;
  friend bool operator==(const WorkerSnapshot&, const WorkerSnapshot&) = default;
};

}  // namespace proxypool::domain
