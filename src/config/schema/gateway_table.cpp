#include "config/schema/tables.hpp"
#include "config/schema/types.hpp"
#include "config/schema/values.hpp"

namespace proxypool::config::schema {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr milliseconds kShortest{10};

Type<GatewayTlsConfig> gateway_tls() {
  using T = GatewayTlsConfig;
  return object<T>(section<T>({
      field("cert", &T::cert, file_path(),
            "PEM file: the certificate, then its intermediates. Read again when it changes.")
          .must("gateway.pem"),
      field("key", &T::key, file_path(), "PEM file: its key, without a pass phrase.")
          .must("gateway.key"),
      field("minVersion", &T::version_min, word<TlsMinimum>({TlsMinimum::Tls12, TlsMinimum::Tls13}),
            "The least version of TLS that a client may speak."),
  }));
}

Type<GatewayAccessConfig> gateway_access() {
  using A = GatewayAccessConfig;
  return object<A>(section<A>({
      allow_cidrs_row(),
      field("trustedProxies", &A::trusted_proxies, cidrs(),
            "Balancers of yours, which are believed when they say whose connection (PROXY "
            "protocol) or request (X-Forwarded-For) it is.")
          .sample("[10.0.0.10, 10.0.0.11]"),
      field("proxyProtocol", &A::proxy_protocol,
            word<ProxyProtocol>({ProxyProtocol::Off, ProxyProtocol::Required}),
            "required: trustedProxies begin each connection with a PROXY header, version 1 or 2; "
            "other peers never may."),
  }));
}

Type<GatewayLimits> gateway_limits() {
  using L = GatewayLimits;
  return object<L>(section<L>({
      field("maxConnections", &L::connections_max, integer<std::uint32_t>(1, 1'000'000),
            "Client connections at once; further ones are closed."),
      field("maxConnectionsPerSource", &L::connections_per_source_max,
            integer<std::uint32_t>(0, 1'000'000),
            "Client connections at once from one IPv4 address or IPv6 /64; further ones are "
            "closed. 0: no limit."),
      field("maxInFlight", &L::in_flight_max, integer<std::uint32_t>(1, 1'000'000),
            "Requests and tunnels at once; further ones get 503."),
      field("maxBodyBytes", &L::body_bytes_max, bytes_or_zero(1, std::uint64_t{1} << 40U),
            "Largest request body; a larger one gets 413. 0: no limit."),
  }));
}

Type<GatewayAuthConfig> gateway_auth() {
  using A = GatewayAuthConfig;
  const std::vector<AuthMode> ways{AuthMode::UsernamePassword, AuthMode::ApiKey, AuthMode::Bearer,
                                   AuthMode::IpWhitelist};
  std::vector<AuthMode> modes = ways;
  modes.insert(modes.begin(), AuthMode::None);
  modes.push_back(AuthMode::Any);
  return object<A>(section<A>({
      field("mode", &A::mode, word<AuthMode>(modes),
            "How a caller proves which client it is: usernamePassword by the client's name and "
            "secret; apiKey by the secret alone, as user name or as Bearer token; bearer by the "
            "secret as Bearer token; ipWhitelist by its address (clients[].sources); any by one "
            "of anyOf.")
          .needs_restart("gateways"),
      field("anyOf", &A::any_of, list_of(word<AuthMode>(ways), 0, ways.size()),
            "For mode any: the ways that are tried, in this order; the first that accepts counts.")
          .sample("[ipWhitelist, apiKey, usernamePassword]")
          .needs_restart("gateways"),
      field("usernameParameters", &A::username_parameters, boolean(),
            "Whether a user name may go on with parameters, as in crawler-country-us-session-a1."),
  }));
}

Type<TargetConfig> target() {
  using T = TargetConfig;
  return object<T>(section<T>({
      field("denyCIDRs", &T::deny_cidrs, cidrs(),
            "Destinations that are refused beside the built-in ones (loopback, private, "
            "link-local, metadata and kin).")
          .sample("[198.51.100.0/24]"),
      field("allowCIDRs", &T::allow_cidrs, cidrs(),
            "Destinations that are let through although a range denies them.")
          .sample("[127.0.0.1]"),
      field("denyHosts", &T::deny_hosts, list_of(host_pattern(), 0, 10'000),
            "Host names that are refused; *.suffix matches any depth below.")
          .sample("[\"*.internal.example\"]"),
      field("allowPorts", &T::allow_ports, list_of(integer<std::uint16_t>(1), 0, 1000),
            "Destination ports that are let through; empty: all.")
          .sample("[80, 443]"),
      field("resolveBeforeProxy", &T::resolve_before_proxy, boolean(),
            "Whether names are looked up here before they go to a proxy, and refused when any of "
            "their addresses is. What goes direct always is."),
  }));
}

Type<RetryConfig> retry() {
  using R = RetryConfig;
  return object<R>(section<R>({
      field("maxAttempts", &R::attempts_max, integer<std::uint32_t>(1, 10),
            "Different proxies that one safe request may try; 1: no retry."),
      field("unsafeBeforeSend", &R::unsafe_before_send, boolean(),
            "Also try again with POST, PUT, PATCH and DELETE when no byte has left yet."),
  }));
}

Type<TransportConfig> transport() {
  using T = TransportConfig;
  return object<T>(section<T>({
      field("resolve", &T::resolve, duration(kShortest, minutes(1)),
            "Finding the address of a proxy, or of a target."),
      field("connect", &T::connect, duration(kShortest, minutes(1)),
            "Connecting to a proxy, or to a target."),
      field("tls", &T::tls, duration(kShortest, minutes(1)),
            "The TLS handshake, with a client and with an https proxy."),
      field("proxyConnect", &T::proxy_connect, duration(kShortest, minutes(5)),
            "Waiting for a proxy's answer to CONNECT."),
      field("firstByte", &T::first_byte, duration(kShortest, hours(1)),
            "Waiting for the answer once the request has been sent."),
      field("idle", &T::idle, duration(kShortest, hours(24)),
            "Silence in both directions; each byte starts it anew."),
      field("total", &T::total, duration_or_zero(kShortest, hours(24)),
            "The whole request. 0: no limit."),
      field("maxTunnelAge", &T::tunnel_age_max, duration_or_zero(seconds(1), hours(720)),
            "Life of a tunnel. 0: no limit."),
      field("maxTunnelBytes", &T::tunnel_bytes_max, bytes_or_zero(1024, std::uint64_t{1} << 50U),
            "Bytes through a tunnel, both ways. 0: no limit."),
      field("orphanGrace", &T::orphan_grace, duration_or_zero(seconds(1), hours(1)),
            "How long a tunnel lives on after its proxy's lease has ended.")
          .needs_restart("controller and gateways"),
      field("reuse", &T::reuse, boolean(),
            "Keep idle connections to proxies for the same client's next request."),
  }));
}

Type<StickyConfig> sticky() {
  using S = StickyConfig;
  return object<S>(section<S>({
      field("header", &S::header, field_name(),
            "Request field that names a session, for clients that cannot say it in the user name; "
            "it goes no further than the gateway. Empty: none."),
      field("idleTTL", &S::idle_ttl, duration(seconds(1), hours(24)),
            "A session that is not used for so long is over."),
      field("maxSessions", &S::sessions_max, integer<std::uint32_t>(1, 1'000'000),
            "Sessions that one gateway remembers; the one unused for the longest time makes room.")
          .needs_restart("gateways"),
  }));
}

Type<DrainConfig> drain() {
  using D = DrainConfig;
  return object<D>(section<D>({
      field("delay", &D::delay, duration_or_zero(kShortest, minutes(10)),
            "Time from reporting not ready to closing the listener, for a load balancer to "
            "notice."),
      field("timeout", &D::timeout, duration_or_zero(kShortest, hours(24)),
            "Time for running requests and tunnels to end."),
  }));
}

}  // namespace

Type<GatewayConfig> gateway() {
  using G = GatewayConfig;
  return object<G>(section<G>({
      field("listen", &G::listen, listen_address(), "Where clients connect.")
          .needs_restart("gateways"),
      field("sharePort", &G::share_port, boolean(),
            "Whether other gateways of this user on this machine may listen there, too; the system "
            "spreads the connections over them.")
          .needs_restart("gateways"),
      field("tls", &G::tls, optional(gateway_tls()),
            "Clients speak TLS to the gateway (an https:// proxy). Absent: plain HTTP.")
          .as_comment()
          .needs_restart("gateways"),
      nested<G>("metrics",
                {
                    field("listen", &G::metrics_listen, listen_address(),
                          "Where metrics and health are served."),
                },
                "Metrics and health.")
          .needs_restart("gateways"),
      field("controlPlane", &G::control_plane, host_port(), "Where the controller is.")
          .needs_restart("gateways"),
      field("threads", &G::threads, threads(), "Serving threads; auto: one per core.")
          .needs_restart("gateways"),
      field("auth", &G::auth, gateway_auth(), "Who may use the gateway."),
      field("access", &G::access, gateway_access(), "From where the gateway may be used.")
          .needs_restart("gateways"),
      field("limits", &G::limits, gateway_limits(), "Maxima of one gateway.")
          .needs_restart("gateways"),
      field("target", &G::target, target(), "Where requests may go."),
      field("retry", &G::retry, retry(), "Trying another proxy before an answer has begun."),
      field("transport", &G::transport, transport(), "Deadlines and limits of connections.")
          .needs_restart("gateways"),
      field("useSuspect", &G::use_suspect,
            word<domain::UseSuspect>({domain::UseSuspect::WhenEmpty, domain::UseSuspect::Never}),
            "Whether a proxy that has just failed may serve when no other is free."),
      field("sticky", &G::sticky, sticky(), "Sessions that stay with one proxy."),
      field("bench", &G::bench, duration_or_zero(milliseconds(100), minutes(5)),
            "Rest of a proxy that failed twice in a row. 0: none.")
          .needs_restart("gateways"),
      nested<G>("accessLog",
                {
                    field("oneIn", &G::access_log_one_in, integer<std::uint32_t>(0, 1'000'000),
                          "Answered requests for one line of the log; 1: each has one; 0: none "
                          "has. What the gateway refuses is logged in any case."),
                },
                "A line for a request: client, routing, proxy, target host, status, times.")
          .needs_restart("gateways"),
      field("drain", &G::drain, drain(), "Stopping without losing requests.")
          .needs_restart("gateways"),
  }));
}

Type<DistributionConfig> distribution() {
  using D = DistributionConfig;
  using E = ExtractionApiConfig;
  const auto extraction = object<E>(section<E>({
      field("maxCount", &E::count_max, integer<std::uint32_t>(1, 10'000),
            "Proxies in one call; more is refused."),
      field("minRemainingTTL", &E::remaining_ttl_min, duration_or_zero(seconds(1), hours(24)),
            "Least remaining life of a proxy, when the call names none."),
      field("maxHealthCheckAge", &E::health_check_age_max, duration(seconds(1), hours(24)),
            "Greatest age of a proxy's last successful probe, when the call names none."),
      field("idempotencyTTL", &E::idempotency_ttl, duration(seconds(10), hours(24)),
            "How long a call with the same Idempotency-Key gets the same answer."),
  }));
  return object<D>(section<D>({
      field("listen", &D::listen, listen_address(), "Where the Distribution API is served.")
          .needs_restart("controller"),
      field("auth", &D::auth, auth(), "Who may use the Distribution API."),
      field("access", &D::access, access(), "From where the Distribution API may be used."),
      field("extraction", &D::extraction, extraction, "Handing proxies out."),
  }));
}

}  // namespace proxypool::config::schema
