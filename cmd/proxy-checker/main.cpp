// proxy-checker: wiring, and nothing else.
#include <memory>
#include <string>
#include <utility>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/grpc/control_plane_client.hpp"
#include "adapters/http/apis.hpp"
#include "checker/checker.hpp"
#include "common/process.hpp"
#include "net/tls.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/system.hpp"

namespace proxypool {
namespace {

constexpr seconds kDrain{10};  // longer than a probe may take by default

checker::SessionSettings session_of(const config::CommandLine& line, const config::Config& config,
                                    const std::string& version, const ports::Crypto& crypto) {
  checker::SessionSettings settings;
  settings.cluster_id = line.cluster_id.empty() ? config.cluster.id : line.cluster_id;
  const std::string instance =
      line.instance_id.empty() ? hex(crypto.random_bytes(8)) : line.instance_id;
  settings.checker = CheckerId(
      line.checker_id.empty() ? process::default_name(config.checker.metrics_listen.port, instance)
                              : line.checker_id);
  settings.instance = InstanceId(instance);
  settings.build = version;
  settings.in_flight_max = config.checker.in_flight_max;
  return settings;
}

int serve(const config::CommandLine& line, const config::Config& config) {
  process::Process process("checker", line, config);
  const Clock& clock = runtime::system_clock();
  const auto crypto = crypto::make_openssl_crypto();
  const config::HostPort address = line.control_plane.value_or(config.checker.control_plane);
  rpc::ClientOptions client_options;
  client_options.keepalive = config.control_plane.keepalive;
  auto control = rpc::make_checker_control(address.str(), client_options, clock);
  if (!control) return process.fail(control.error().message);

  auto tls = net::TlsContext::client();
  if (!tls) return process.fail(tls.error().message);

  checker::ProberSettings prober;
  prober.in_flight_max = config.checker.in_flight_max;
  checker::Checker checker(
      session_of(line, config, process.version(), *crypto), prober,
      {**control, process.events(), process.metrics(), clock,
       [&](const std::string& reason) { process.give_up(reason); }, *std::move(tls)});

  auto router = std::make_unique<http::Router>(*crypto);
  http::add_health(*router, process.readiness([&] { return checker.not_ready(); }), nullptr);
  http::add_metrics(*router, nullptr, process.metrics());

  runtime::Group group(clock, process.stage_report());
  group.add({"checker", [&] { return checker.start(); }, [&] { checker.stop_intake(); },
             [&](Deadline deadline) { return checker.drain(deadline); }, [&] { checker.stop(); }});
  process::add_rest_server(
      group, process, "metrics",
      {config.checker.metrics_listen.address, config.checker.metrics_listen.port},
      std::move(router));
  return process.run(group, kDrain);
}

}  // namespace
}  // namespace proxypool

int main(int argc, char** argv) {
  using namespace proxypool;
  return process::main_of(config::Program::Checker, argc, argv,
                          [](const config::CommandLine& line, const config::LoadResult& loaded) {
                            return serve(line, *loaded.config);
                          });
}
