// proxy-gateway: wiring, and nothing else.
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/grpc/control_plane_client.hpp"
#include "adapters/http/apis.hpp"
#include "common/process.hpp"
#include "gateway/certificate.hpp"
#include "gateway/gateway.hpp"
#include "gateway/snapshot/session.hpp"
#include "gateway/snapshot/session_log.hpp"
#include "gateway/snapshot/session_metrics.hpp"
#include "gateway/snapshot/view_publisher.hpp"
#include "net/name_lookup.hpp"
#include "net/passed_listeners.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/alarm.hpp"
#include "runtime/stepper.hpp"
#include "runtime/system.hpp"

namespace proxypool {
namespace {

gateway::Settings::Auth way_of(config::AuthMode way) {
  using Auth = gateway::Settings::Auth;
  switch (way) {
    case config::AuthMode::ApiKey:
      return Auth::ApiKey;
    case config::AuthMode::Bearer:
      return Auth::Bearer;
    case config::AuthMode::IpWhitelist:
      return Auth::IpWhitelist;
    case config::AuthMode::None:  // no way, and none that GatewayAuthConfig::ways() gives
    case config::AuthMode::Any:
    case config::AuthMode::UsernamePassword:
      break;
  }
  return Auth::UsernamePassword;
}

gateway::Settings settings_of(const config::Config& config) {
  const config::GatewayConfig& from = config.gateway;
  gateway::Settings settings;
  settings.listen = {from.listen.address, from.listen.port};
  settings.share_port = from.share_port;
  settings.threads = from.threads;
  for (const config::AuthMode way : from.auth.ways()) settings.auth.push_back(way_of(way));
  settings.allow_cidrs = from.access.allow_cidrs;
  settings.trusted_proxies = from.access.trusted_proxies;
  settings.proxy_header = from.access.proxy_protocol == config::ProxyProtocol::Required;
  if (from.tls) {
    settings.tls = net::TlsServerOptions{from.tls->cert, from.tls->key,
                                         from.tls->version_min == config::TlsMinimum::Tls13
                                             ? net::TlsVersion::Tls13
                                             : net::TlsVersion::Tls12};
  }
  settings.strict = config.cluster.strict;
  settings.access_log_one_in = from.access_log_one_in;
  settings.connections_max = from.limits.connections_max;
  settings.connections_per_source_max = from.limits.connections_per_source_max;
  settings.in_flight_max = from.limits.in_flight_max;
  settings.body_bytes_max = from.limits.body_bytes_max;
  settings.sessions_max = from.sticky.sessions_max;
  settings.reuse = from.transport.reuse;
  settings.resolve = from.transport.resolve;
  settings.connect = from.transport.connect;
  settings.tls_handshake = from.transport.tls;
  settings.proxy_connect = from.transport.proxy_connect;
  settings.first_byte = from.transport.first_byte;
  settings.idle = from.transport.idle;
  settings.total = from.transport.total;
  settings.tunnel_age_max = from.transport.tunnel_age_max;
  settings.tunnel_bytes_max = from.transport.tunnel_bytes_max;
  return settings;
}

gateway::SessionSettings session_of(const config::CommandLine& line, const config::Config& config,
                                    const std::string& version, const ports::Crypto& crypto) {
  gateway::SessionSettings settings;
  settings.cluster_id = line.cluster_id.empty() ? config.cluster.id : line.cluster_id;
  // Without a name of its own a worker is the only one of its kind: its name is its process.
  const std::string instance =
      line.instance_id.empty() ? hex(crypto.random_bytes(8)) : line.instance_id;
  settings.worker = WorkerId(line.worker_id.empty() ? "gateway-" + instance : line.worker_id);
  settings.instance = InstanceId(instance);
  settings.zone = line.zone;
  settings.build = version;
  return settings;
}

Result<std::vector<IpAddress>> look_up(const std::string& name, Deadline deadline) {
  PP_TRY(const std::vector<net::Endpoint> found, net::look_up(name, 0, deadline));
  std::vector<IpAddress> addresses;
  for (const net::Endpoint& endpoint : found) addresses.push_back(endpoint.address);
  return addresses;
}

int serve(const config::CommandLine& line, config::LoadResult loaded) {
  const config::Config& config = *loaded.config;
  auto passed = net::take_passed_listeners();  // before there are threads
  process::Process process("gateway", line, config);
  if (!passed) return process.fail(passed.error().message);
  const Clock& clock = runtime::system_clock();
  const auto crypto = crypto::make_openssl_crypto();
  const config::HostPort address = line.control_plane.value_or(config.gateway.control_plane);
  rpc::ClientOptions client_options;
  client_options.keepalive = config.control_plane.keepalive;
  auto control = rpc::make_worker_control(address.str(), client_options, clock);
  if (!control) return process.fail(control.error().message);

  gateway::Settings settings = settings_of(config);
  if (!passed->empty()) settings.listen = net::local_endpoint(passed->front().get());
  gateway::WaitQueue waits;
  gateway::ProxyRegistry::Options options{config.gateway.bench, &waits};
  options.penalty = settings.connect;
  gateway::ProxyRegistry registry(options);
  runtime::SnapshotCell<gateway::View> views;
  gateway::Gateway server(settings, {views, registry, waits, process.metrics(), *crypto,
                                     process.events(), clock, look_up});
  runtime::Alarm alarm;
  gateway::ViewPublisher publisher(
      {registry, views, clock, [&] { server.refresh_views(); },
       [&](std::vector<ProxyId> lost, TimePoint at) { server.end_tunnels_of(std::move(lost), at); },
       [&](TimePoint at) { server.end_tunnels(at); },
       [&](milliseconds pause) { alarm.wait_until(clock.now() + pause); },
       [&] { server.end_over_quota(); }});
  gateway::Session session(session_of(line, config, process.version(), *crypto), **control,
                           publisher, *crypto, clock, runtime::thread_random());
  gateway::SessionLog session_log(session, publisher, process.events());
  gateway::register_metrics(session, publisher, clock, process.metrics());

  runtime::Group group(clock, process.stage_report());
  auto router = std::make_unique<http::Router>(*crypto);
  http::add_health(*router, process.readiness([&] { return gateway::not_ready(session, clock); }),
                   [&] { return gateway::warnings(session); });
  http::add_metrics(*router, nullptr, process.metrics());

  std::unique_ptr<runtime::Stepper> watcher;
  std::unique_ptr<runtime::Stepper> reporter;
  std::unique_ptr<runtime::Stepper> teller;
  std::unique_ptr<runtime::Stepper> ender;  // a controller that hangs does not hold it up
  group.add({"session",
             [&] {
               watcher = std::make_unique<runtime::Stepper>("watch", [&](TimePoint now) {
                 const TimePoint next = session.watch_step(now);
                 if (const auto status = session.status(); status.terminal) {
                   process.give_up(status.warning);
                   return kNever;
                 }
                 return next;
               });
               reporter = std::make_unique<runtime::Stepper>(
                   "report", [&](TimePoint now) { return session.report_step(now); });
               teller = std::make_unique<runtime::Stepper>(
                   "outcomes", [&](TimePoint now) { return session.outcome_step(now); });
               ender = std::make_unique<runtime::Stepper>("end", [&](TimePoint now) {
                 publisher.tick(now);
                 session_log.look(now);
                 return now + milliseconds(100);
               });
               return ok();
             },
             [&] { session.drain(); }, nullptr,
             [&] {
               // The last word to the controller: nothing is in flight, everything is free.
               static_cast<void>(session.leave(Deadline::after(clock.now(), seconds(2))));
               ender->stop();
               teller->stop();
               reporter->stop();
               watcher->stop();
             }});
  // Before the clients' listener: a start that fails here must not have touched a client.
  process::add_rest_server(
      group, process, "metrics",
      {config.gateway.metrics_listen.address, config.gateway.metrics_listen.port},
      std::move(router));
  gateway::CertificateKeeper certificate(
      settings.tls.value_or(net::TlsServerOptions{}),
      [&](auto context) { server.use_certificate(std::move(context)); }, process.events(),
      process.metrics());
  group.add(
      {"serving",
       [&]() -> Status {
         if (settings.tls) {
           PP_TRY([[maybe_unused]] const Unit read, certificate.load());
         }
         PP_TRY(const Unit started, server.start(*passed));
         process.listening("gateway", net::Endpoint{settings.listen.address, server.port()}.str());
         return started;
       },
       [&] { server.stop_intake(); }, [&](Deadline deadline) { return server.drain(deadline); },
       [&] { server.stop(); }});
  std::unique_ptr<runtime::Stepper> renewer;
  if (settings.tls) {
    group.add({"certificate",
               [&] {
                 renewer = std::make_unique<runtime::Stepper>(
                     "certificate", [&](TimePoint now) { return certificate.step(now); });
                 process.on_hangup([&] {
                   certificate.ask();
                   renewer->wake();
                 });
                 return ok();
               },
               nullptr, nullptr,
               [&] {
                 process.on_hangup(nullptr);
                 renewer->stop();
               }});
  }
  return process.run(group, config.gateway.drain.timeout, config.gateway.drain.delay);
}

}  // namespace
}  // namespace proxypool

int main(int argc, char** argv) {
  using namespace proxypool;
  return process::main_of(config::Program::Gateway, argc, argv,
                          [](const config::CommandLine& line, config::LoadResult loaded) {
                            return serve(line, std::move(loaded));
                          });
}
