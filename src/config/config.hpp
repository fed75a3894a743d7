// The whole configuration file as plain values: every field with its default.
//
// The table in config/schema.cpp gives each field its key, unit, range and sentence; parser,
// validation, documentation and JSON Schema come from there. A loaded Config is complete and
// valid: defaults are filled in, references resolve, secrets are read.
//
// Thread rule: immutable once loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/provider_config.hpp"
#include "config/types.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/domain/proxy/proxy.hpp"
#include "proxypool/domain/routing/policy.hpp"

namespace proxypool::config {

using std::chrono::hours;
using std::chrono::minutes;

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

constexpr ListenAddress loopback(std::uint16_t port) noexcept {
  return {IpAddress::v4(0x7f000001), port};
}

struct ClusterConfig {
  std::string id = "local";  // names the cluster in snapshots and registrations
  bool strict = true;        // dangerous combinations are errors (GW-11), not warnings
  std::optional<SecretString> identity_key;  // keys proxy ids; none: made once, kept in stateDir
};

struct StorageConfig {
  StorageMode mode = StorageMode::Embedded;
  std::string state_dir = "state";  // embedded stores and the made identity key
};

struct ControlPlaneConfig {
  ListenAddress listen = loopback(9443);     // the controller's gRPC server
  TlsMode tls_mode = TlsMode::Disabled;      // disabled: loopback only
  nanoseconds lease = seconds(60);           // ownership lease, snapshot validity, session (C9)
  nanoseconds report_interval = seconds(1);  // runtime reports of a worker
  nanoseconds keepalive = seconds(20);       // pings, both sides
  std::uint64_t message_bytes_max = 4 * kMiB;
  std::uint32_t concurrent_streams_max = 1024;
  std::uint32_t proxies_per_worker_max = limits::kProxiesPerWorkerMax;  // the rest stays unowned
};

struct AuthConfig {
  AuthMode mode = AuthMode::None;
};

struct GatewayAuthConfig : AuthConfig {
  std::vector<AuthMode> any_of;     // mode any: in this order, the first that accepts counts
  bool username_parameters = true;  // (GW-13)

  // The ways in which a caller can prove who it is; none: nobody needs to.
  [[nodiscard]] std::vector<AuthMode> ways() const {
    if (mode == AuthMode::None) return {};
    return mode == AuthMode::Any ? any_of : std::vector{mode};
  }
};

struct AccessConfig {
  std::vector<Cidr> allow_cidrs;  // empty: every source
};

struct GatewayAccessConfig : AccessConfig {
  ProxyProtocol proxy_protocol = ProxyProtocol::Off;  // required: of trusted_proxies
  std::vector<Cidr> trusted_proxies;                  // believed: PROXY header, X-Forwarded-For
};

struct GatewayTlsConfig {  // an https:// proxy
  std::string cert;        // PEM, intermediates behind it
  std::string key;         // PEM
  TlsMinimum version_min = TlsMinimum::Tls12;
};

struct GatewayLimits {                           // each for this worker
  std::uint32_t connections_max = 20'000;        // client connections; over: closed on arrival
  std::uint32_t connections_per_source_max = 0;  // IPv4 address or IPv6 /64; 0: no limit; so, too
  std::uint32_t in_flight_max = 10'000;          // requests and tunnels; over: 503
  std::uint64_t body_bytes_max = 0;              // request body; 0: no limit; over: 413
};

struct TargetConfig {                      // destinations (GW-20)
  std::vector<Cidr> deny_cidrs;            // refused beside the built-in classes
  std::vector<Cidr> allow_cidrs;           // exceptions from every denied range
  std::vector<std::string> deny_hosts;     // exact, or "*.suffix"
  std::vector<std::uint16_t> allow_ports;  // empty: every port
  bool resolve_before_proxy = false;       // what a name means to us is judged, too
};

struct RetryConfig {
  std::uint32_t attempts_max = 2;   // different proxies for GET, HEAD, OPTIONS, CONNECT
  bool unsafe_before_send = false;  // also others, when no byte of the request has left
};

struct TransportConfig {  // 0: no limit
  nanoseconds resolve = seconds(5);
  nanoseconds connect = seconds(5);
  nanoseconds tls = seconds(5);             // the handshake, with a proxy or with a client
  nanoseconds proxy_connect = seconds(10);  // the proxy's answer to CONNECT
  nanoseconds first_byte = seconds(60);     // from the end of the request
  nanoseconds idle = minutes(5);            // restarts with each byte
  nanoseconds total{0};
  nanoseconds tunnel_age_max{0};
  std::uint64_t tunnel_bytes_max = 0;
  nanoseconds orphan_grace = seconds(30);  // tunnels of a lost lease live so long (C16)
  bool reuse = true;                       // keep idle upstream connections
};

struct StickyConfig {                      // sessions of clients (GW-34)
  std::string header = "X-Proxy-Session";  // beside the user name; empty: none
  nanoseconds idle_ttl = minutes(10);
  std::uint32_t sessions_max = 65'536;  // of one worker; the one unused for longest makes room
};

struct DrainConfig {
  nanoseconds delay{0};               // from "not ready" to closing the listener
  nanoseconds timeout = seconds(30);  // for what is still running
};

struct GatewayConfig {
  ListenAddress listen = loopback(8080);
  bool share_port = false;              // with other gateways of this machine
  std::optional<GatewayTlsConfig> tls;  // none: clients speak plain HTTP
  ListenAddress metrics_listen = loopback(9101);
  HostPort control_plane{"127.0.0.1", 9443};  // where the controller is
  std::uint32_t threads = 0;                  // 0: one per core
  GatewayAuthConfig auth;
  GatewayAccessConfig access;
  GatewayLimits limits;
  TargetConfig target;
  RetryConfig retry;
  TransportConfig transport;
  domain::UseSuspect use_suspect = domain::UseSuspect::WhenEmpty;
  StickyConfig sticky;
  nanoseconds bench = seconds(2);         // local rest of a failing proxy; 0: off
  std::uint32_t access_log_one_in = 100;  // answered requests for one line of the log; 0: none
  DrainConfig drain;
};

struct ExtractionApiConfig {
  std::uint32_t count_max = 100;                  // proxies in one call
  nanoseconds remaining_ttl_min = seconds(30);    // when the call names none
  nanoseconds health_check_age_max = minutes(2);  // when the call names none
  nanoseconds idempotency_ttl = minutes(10);
};

struct DistributionConfig {
  ListenAddress listen = loopback(8081);
  AuthConfig auth;
  AccessConfig access;
  ExtractionApiConfig extraction;
};

struct ControllerConfig {
  ListenAddress metrics_listen = loopback(9102);
  nanoseconds watch = seconds(1);  // how often its file is looked at; 0: never
};

struct CheckerConfig {
  ListenAddress metrics_listen = loopback(9103);
  HostPort control_plane{"127.0.0.1", 9443};
  std::uint32_t in_flight_max = 256;  // probes at once
};

struct AdminConfig {
  ListenAddress listen = loopback(8082);
  std::optional<SecretString> read_token;
  std::optional<SecretString> write_token;  // also operates upstreams and routings
  std::optional<SecretString> admin_token;  // also reloads the configuration
  AccessConfig access;

  // Without any token the API is open, on a loopback listener only.
  [[nodiscard]] bool has_token() const { return read_token || write_token || admin_token; }
};

struct BasicCheckConfig {
  nanoseconds interval = seconds(30);  // ± 20 %
  nanoseconds timeout = seconds(5);
  std::uint32_t failure_threshold = 3;  // consecutive, then UNHEALTHY
  std::uint32_t success_threshold = 1;
  HostPort target{"192.0.2.1", 443};  // CONNECT to it; any well-formed answer but 407 passes
};

struct CheckConfig {
  BasicCheckConfig basic;
  std::uint32_t in_flight_max = 1000;             // tasks given out and not yet answered
  nanoseconds unhealthy_retention = minutes(10);  // then REMOVED (C5)
};

struct BackoffConfig {
  nanoseconds initial = seconds(1);
  nanoseconds max = minutes(5);
};

struct FetchConfig {                          // http only
  nanoseconds request_interval = seconds(1);  // least time between two calls
  std::uint32_t in_flight_max = 1;
  std::uint64_t total_max = 0;                // proxies taken since the last reset; 0: no limit
  std::uint32_t estimated_ips_per_call = 10;  // {{ batch }}, and what a lost call is charged with
  nanoseconds timeout = seconds(10);
  std::uint32_t empty_threshold = 3;  // empty answers in a row that make it used up (R3)
  BackoffConfig backoff;
};

struct PoolConfig {
  std::uint32_t minimum = 20;            // available slots; below: refill
  std::uint32_t target = 100;            // available slots; refill up to here
  std::uint32_t size_max = 1000;         // managed proxies; 100000 for static and file
  nanoseconds default_ttl = minutes(5);  // without a vendor expiry; 0: none (static, file)
  nanoseconds ttl_max = hours(24);       // no life is longer; 0: no cap (static, file)
  nanoseconds allocation_safety_margin = seconds(10);
  std::uint32_t concurrency_max = 10;  // requests at once through one proxy
};

struct UpstreamExtractionConfig {
  bool extractable = true;                // false for static and file (C20)
  std::optional<std::uint32_t> reserve;   // unowned proxies kept ready; none: 10 %, at least 1
  std::uint32_t reserve_for_gateway = 0;  // proxies that extraction leaves
};

struct UpstreamConfig {
  UpstreamId id;
  bool enabled = true;
  ProviderConfig provider;
  FetchConfig fetch;
  PoolConfig pool;
  UpstreamExtractionConfig extraction;
  bool allow_private_addresses = false;  // true for static and file
  CheckConfig check;                     // the global one with this upstream's overrides
  domain::Tags tags;
};

struct RoutingConfig {
  RoutingId id;
  bool enabled = true;
  domain::RoutingMatch match;
  domain::Strategy strategy = domain::Strategy::RoundRobin;
  domain::Balancer balancer = domain::Balancer::LeastConn;
  std::vector<domain::RoutingUpstream> upstreams;            // empty: always direct
  domain::Exhaustion exhaustion = domain::Exhaustion::Stop;  // strategy: sequential
  domain::OnUnavailable on_unavailable = domain::OnUnavailable::Reject;
  nanoseconds wait_timeout = seconds(10);  // onUnavailable: wait
  std::uint32_t waiters_max = 1'000;       // of one worker; over: 503
  std::uint32_t in_flight_max = 0;         // of one worker; 0: no limit
};

struct ClientExtractionConfig {
  std::uint32_t count_max = 0;  // proxies in one call; 0: distribution.extraction.maxCount
};

struct ClientLimits {                 // for the whole cluster (R7); 0: no limit
  std::uint32_t rate_per_second = 0;  // requests
  std::uint32_t burst = 0;            // requests at once after a pause; 0: those of a second
  std::uint32_t in_flight_max = 0;    // requests and tunnels
  std::uint64_t bytes_per_day = 0;    // both ways, by UTC days (GW-14)
};

struct ClientConfig {
  ClientName name;
  std::vector<std::string> groups;
  std::optional<ClientSecret> gateway_secret;       // credentials.gateway
  std::optional<ClientSecret> distribution_secret;  // credentials.distribution
  std::vector<Cidr> sources;                        // who comes from here is this client
  std::vector<UpstreamId> allowed_upstreams;        // for extraction; empty: all
  ClientExtractionConfig extraction;
  ClientLimits limits;
};

struct ObservabilityConfig {
  LogLevel log_level = LogLevel::Info;
  LogFormat log_format = LogFormat::Text;
};

struct Config {
  ClusterConfig cluster;
  StorageConfig storage;
  ControlPlaneConfig control_plane;
  GatewayConfig gateway;
  DistributionConfig distribution;
  ControllerConfig controller;
  CheckerConfig checker;
  AdminConfig admin;
  CheckConfig check;
  std::vector<UpstreamConfig> upstreams;
  std::vector<RoutingConfig> routings;
  std::vector<ClientConfig> clients;
  ObservabilityConfig observability;
};

}  // namespace proxypool::config
