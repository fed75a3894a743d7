#include "config/schema/tables.hpp"
#include "config/schema/types.hpp"

namespace proxypool::config::schema {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

Type<ClusterConfig> cluster() {
  using C = ClusterConfig;
  return object<C>(section<C>({
      field("id", &C::id, identifier(),
            "Names the cluster; gateways and checkers must name it too.")
          .needs_restart("every program"),
      field("strict", &C::strict, boolean(),
            "Dangerous combinations are errors at the start; false makes them warnings."),
      field("identityKey", &C::identity_key, optional(secret()),
            "Keys the identifiers of proxies. Without it a random key is made at the first start "
            "and kept in storage.stateDir.")
          .sample("{env: PROXY_POOL_IDENTITY_KEY}")
          .needs_restart("controller"),
  }));
}

Type<StorageConfig> storage() {
  using S = StorageConfig;
  return object<S>(section<S>({
      field("mode", &S::mode, word<StorageMode>({StorageMode::Embedded}),
            "Where the controller keeps its state; embedded is for one machine."),
      field("stateDir", &S::state_dir, text(4096),
            "Folder of the embedded stores, as seen from the controller's working directory."),
  }));
}

std::vector<Row> control_plane_limits() {
  using C = ControlPlaneConfig;
  return {
      field("maxMessageBytes", &C::message_bytes_max, bytes(kMiB, 64 * kMiB),
            "Largest message on the wire; a larger one is refused."),
      field("maxConcurrentStreams", &C::concurrent_streams_max, integer<std::uint32_t>(1, 100'000),
            "Streams of one connection at once; further calls wait."),
      field("maxProxiesPerWorker", &C::proxies_per_worker_max,
            integer<std::uint32_t>(1, limits::kProxiesPerWorkerMax),
            "Proxies that one worker may own; what does not fit stays unowned."),
  };
}

Type<ControlPlaneConfig> control_plane() {
  using C = ControlPlaneConfig;
  return object<C>(section<C>({
      field("listen", &C::listen, listen_address(),
            "Where the controller serves gateways and checkers."),
      nested<C>("tls",
                {
                    field("mode", &C::tls_mode, word<TlsMode>({TlsMode::Disabled}),
                          "Encryption of the control plane; disabled is allowed on a loopback "
                          "address alone."),
                },
                "Security of the control plane."),
      field("lease", &C::lease, duration(seconds(5), minutes(10)),
            "How long a worker may serve a proxy, and a snapshot, without news from the "
            "controller."),
      field("reportInterval", &C::report_interval, duration(milliseconds(100), seconds(10)),
            "How often a worker reports its counters."),
      field("keepalive", &C::keepalive, duration(seconds(5), minutes(10)),
            "How often an idle connection is probed, by both sides.")
          .needs_restart("every program"),
      nested<C>("limits", control_plane_limits(), "Maxima of the control plane."),
  }));
}

Type<ControllerConfig> controller() {
  using C = ControllerConfig;
  return object<C>(section<C>({
      nested<C>("metrics",
                {
                    field("listen", &C::metrics_listen, listen_address(),
                          "Where metrics and health are served."),
                },
                "Metrics and health.")
          .needs_restart("controller"),
      field("watch", &C::watch, duration_or_zero(milliseconds(100), hours(1)),
            "How often the controller looks whether this file, or a file of a secret that it "
            "names, has changed, and takes the change over. 0: only on SIGHUP and by the Admin "
            "API."),
  }));
}

Type<CheckerConfig> checker() {
  using C = CheckerConfig;
  return object<C>(section<C>({
      nested<C>("metrics",
                {
                    field("listen", &C::metrics_listen, listen_address(),
                          "Where metrics and health are served."),
                },
                "Metrics and health."),
      field("controlPlane", &C::control_plane, host_port(), "Where the controller is."),
      field("maxInFlight", &C::in_flight_max, integer<std::uint32_t>(1, 10'000),
            "Probes at once in one checker."),
  }));
}

Type<AdminConfig> admin() {
  using A = AdminConfig;
  return object<A>(section<A>({
      field("listen", &A::listen, listen_address(), "Where the Admin API is served.")
          .needs_restart("controller"),
      nested<A>("auth",
                {
                    field("readToken", &A::read_token, optional(secret()),
                          "Bearer token that may read. Without any of these tokens the listener "
                          "must be on a loopback address.")
                        .sample("{env: PROXY_POOL_ADMIN_READ_TOKEN}"),
                    field("writeToken", &A::write_token, optional(secret()),
                          "Bearer token that may read, and operate upstreams and routings.")
                        .sample("{env: PROXY_POOL_ADMIN_WRITE_TOKEN}"),
                    field("adminToken", &A::admin_token, optional(secret()),
                          "Bearer token that may do everything, the configuration included.")
                        .sample("{env: PROXY_POOL_ADMIN_TOKEN}"),
                },
                "Who may use the Admin API."),
      field("access", &A::access, access(), "From where the Admin API may be used."),
  }));
}

Type<ObservabilityConfig> observability() {
  using O = ObservabilityConfig;
  return object<O>(section<O>({
      field("logLevel", &O::log_level,
            word<LogLevel>({LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warn,
                            LogLevel::Error}),
            "The least severe messages that are written."),
      field("logFormat", &O::log_format, word<LogFormat>({LogFormat::Text, LogFormat::Json}),
            "Lines for people, or JSON for machines."),
  }));
}

}  // namespace

Type<AuthConfig> auth() {
  using A = AuthConfig;
  return object<A>(section<A>({
      field("mode", &A::mode, word<AuthMode>({AuthMode::None, AuthMode::UsernamePassword}),
            "How a caller proves who it is; usernamePassword takes the names and secrets of "
            "clients."),
  }));
}

Row allow_cidrs_row() {
  return field("allowCIDRs", &AccessConfig::allow_cidrs, cidrs(),
               "Source addresses that may connect; empty: all.")
      .sample("[10.0.0.0/8, 192.0.2.7]");
}

Type<AccessConfig> access() {
  using A = AccessConfig;
  return object<A>(section<A>({
      allow_cidrs_row(),
  }));
}

std::vector<Row> basic_check_rows() {
  using B = BasicCheckConfig;
  return {
      field("interval", &B::interval, duration(seconds(1), hours(24)),
            "Time between two probes of one proxy, ± 20 %."),
      field("timeout", &B::timeout, duration(milliseconds(100), minutes(1)),
            "A probe that takes longer has failed."),
      field("failureThreshold", &B::failure_threshold, integer<std::uint32_t>(1, 100),
            "Failures in a row that make a proxy unhealthy."),
      field("successThreshold", &B::success_threshold, integer<std::uint32_t>(1, 100),
            "Successes in a row that make a proxy available."),
      field("target", &B::target, host_port(),
            "What the probe asks the proxy to connect to; every well-formed answer but 407 "
            "passes."),
  };
}

Type<CheckConfig> check() {
  using C = CheckConfig;
  return object<C>(section<C>({
      field("basic", &C::basic,
            object<BasicCheckConfig>(section<BasicCheckConfig>(basic_check_rows())),
            "The probe that decides whether a proxy may serve."),
      field("maxInFlight", &C::in_flight_max, integer<std::uint32_t>(1, 100'000),
            "Probes given out to checkers and not yet answered."),
      field("unhealthyRetention", &C::unhealthy_retention, duration(seconds(1), hours(24)),
            "How long an unhealthy proxy is remembered, so that the vendor giving it again "
            "changes nothing."),
  }));
}

const SectionPtr& root() {
  using C = Config;
  static const SectionPtr table = section<C>({
      field("cluster", &C::cluster, cluster(), "The cluster as a whole."),
      field("storage", &C::storage, storage(), "Where state is kept.").needs_restart("controller"),
      field("controlPlane", &C::control_plane, control_plane(),
            "The line between controller, gateways and checkers.")
          .needs_restart("controller"),
      field("gateway", &C::gateway, gateway(), "The proxy that clients talk to."),
      field("distribution", &C::distribution, distribution(),
            "The API that hands proxies out for good."),
      field("controller", &C::controller, controller(), "The controller's own process."),
      field("checker", &C::checker, checker(), "The process that probes proxies.")
          .needs_restart("checkers"),
      field("admin", &C::admin, admin(), "The API for operators."),
      field("check", &C::check, check(), "How proxies are probed."),
      field("upstreams", &C::upstreams, upstreams(), "The sources of proxies."),
      field("routings", &C::routings, routings(),
            "Rules that send requests to upstreams; the first that matches wins."),
      field("clients", &C::clients, clients(), "The callers that can prove who they are."),
      field("observability", &C::observability, observability(), "Logs.")
          .needs_restart("every program"),
  });
  return table;
}

}  // namespace proxypool::config::schema
