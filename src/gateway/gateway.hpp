// The data plane as its process sees it: serving threads that read views and answer requests.
//
//   Gateway gateway(settings, {views, registry, metrics, crypto, events, clock, look_up});
//   PP_TRY(..., gateway.start());
//   …
//   gateway.stop_intake(); gateway.drain(deadline); gateway.stop();
//
// Whoever publishes a view in the cell calls refresh_views() afterwards, so that threads without
// requests take it as well and the cell can tell when all have.
//
// Thread rule: start, drain and stop: the owner's thread; the rest from any thread.
// Invariant:   no request is cut off by stop_intake(); stop() cuts off what is left.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gateway/counters.hpp"
#include "gateway/dispatch/registry.hpp"
#include "gateway/dispatch/view.hpp"
#include "gateway/dispatch/wait_queue.hpp"
#include "gateway/ingress/verifier.hpp"
#include "gateway/settings.hpp"
#include "gateway/transport/race.hpp"
#include "gateway/transport/resolver.hpp"
#include "net/socket.hpp"
#include "net/tls.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/crypto.hpp"
#include "proxypool/ports/metrics.hpp"
#include "proxypool/ports/telemetry.hpp"
#include "runtime/alarm.hpp"
#include "runtime/snapshot_cell.hpp"

namespace proxypool::gateway {

class Worker;
struct Common;

class Gateway {
 public:
  struct Needs {
    runtime::SnapshotCell<View>& views;
    ProxyRegistry& registry;
    WaitQueue& waits;  // the registry's listener
    ports::Metrics& metrics;
    const ports::Crypto& crypto;
    ports::Events& events;
    const Clock& clock;
    Resolver::LookUp look_up;              // of proxies and targets that are named
    Race::Dial dial = net::start_connect;  // of targets
  };

  Gateway(Settings settings, Needs needs);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();

  // Opens the listeners and serves. Refused when it would be an open proxy (GW-11), or when the
  // port is taken.
  //
  // `passed`: listens there instead (GW-53); settings.listen must be the first one's address.
  // Others may accept from the same sockets; this gateway begins with its first view that has
  // proxies, or after Worker::kPatience, and leaves what waits to the others when it stops.
  [[nodiscard]] Status start(const std::vector<net::UniqueFd>& passed = {});
  // The one that was taken for port 0. REQUIRES: started.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  // Accepts nothing new; answers from now on close their connections.
  void stop_intake();
  // Waits until nothing is left to do; false when the deadline passes first.
  bool drain(Deadline deadline);
  // Ends what is left and joins. May be called twice.
  void stop();

  // What clients' TLS begins with from now on; connections that stand are left alone. Not during
  // start() and stop(). REQUIRES: Settings::tls.
  void use_certificate(std::shared_ptr<const net::TlsContext> context);

  void refresh_views();
  // Tunnels and whatever else is open through these proxies (without a list: through any) end at
  // `at` (ruling C16).
  void end_tunnels_of(std::vector<ProxyId> lost, TimePoint at);
  void end_tunnels(TimePoint at);
  // Tunnels of clients whose quota is used up end now (GW-14).
  void end_over_quota();

  struct Activity {
    std::uint64_t connections = 0;
    std::uint64_t requests = 0;
    std::uint64_t tunnels = 0;
    std::uint64_t idle_upstreams = 0;
  };
  [[nodiscard]] Activity activity() const;

 private:
  [[nodiscard]] Status prepare_tls();
  void show_gauges(ports::Metrics& metrics);

  const Settings settings_;
  const Clock& clock_;
  Counters counters_;
  Verifier verifier_;
  Resolver proxy_names_;
  Resolver target_names_;
  const Race::Dial dial_;
  std::shared_ptr<Common> common_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::uint16_t port_ = 0;
};

}  // namespace proxypool::gateway
