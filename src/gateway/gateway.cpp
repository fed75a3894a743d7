#include "gateway/gateway.hpp"

#include <algorithm>
#include <utility>

#include "gateway/worker.hpp"
#include "net/socket.hpp"
#include "runtime/system.hpp"

namespace proxypool::gateway {

Gateway::Gateway(Settings settings, Needs needs)
    : settings_([&] {
        if (settings.threads == 0) {
          settings.threads = std::max(1U, std::thread::hardware_concurrency());
        }
        return std::move(settings);
      }()),
      clock_(needs.clock),
      counters_(needs.metrics),
      verifier_(needs.crypto),
      proxy_names_(needs.clock, needs.look_up, settings_.resolve, Resolver::kOfProxies),
      target_names_(needs.clock, std::move(needs.look_up), settings_.resolve, Resolver::kOfTargets),
      dial_(std::move(needs.dial)),
      common_(std::make_shared<Common>(settings_, counters_, verifier_, proxy_names_, target_names_,
                                       dial_, needs.views, needs.registry, needs.events,
                                       needs.waits, runtime::thread_random().next())) {
  show_gauges(needs.metrics);
}

Gateway::~Gateway() {
  stop();
}

Status Gateway::start(const std::vector<net::UniqueFd>& passed) {
  PP_TRY([[maybe_unused]] const Unit checked, check_access(settings_));
  PP_TRY([[maybe_unused]] const Unit prepared, prepare_tls());
  port_ = settings_.listen.port;
  if (passed.empty() && port_ != 0 && !settings_.share_port) {
    // The threads' listeners share the port, and so would another gateway's without a word. One
    // that does not share shows whether the port is taken.
    PP_TRY([[maybe_unused]] const net::UniqueFd alone, net::listen_tcp(settings_.listen, {}));
  }
  for (std::size_t i = 0; i < settings_.threads; ++i) {
    auto worker = std::make_unique<Worker>(*common_, i, runtime::thread_random().next());
    auto port =
        passed.empty() ? worker->listen(port_) : worker->listen_at(passed[i % passed.size()].get());
    if (!port) {
      workers_.clear();
      return std::move(port).error();
    }
    port_ = *port;
    workers_.push_back(std::move(worker));
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    threads_.emplace_back([this, i] {
      runtime::name_this_thread("serve-" + std::to_string(i));
      workers_[i]->run();
    });
  }
  return ok();
}

Status Gateway::prepare_tls() {
  PP_TRY(common_->proxy_tls, net::TlsContext::client(settings_.proxy_authorities));
  if (!settings_.tls || common_->client_tls != nullptr) return ok();
  PP_TRY(common_->client_tls, net::TlsContext::server(*settings_.tls));
  return ok();
}

void Gateway::use_certificate(std::shared_ptr<const net::TlsContext> context) {
  for (const auto& worker : workers_) worker->request_client_tls(context);
  if (workers_.empty()) common_->client_tls = std::move(context);
}

void Gateway::stop_intake() {
  for (const auto& worker : workers_) worker->request_drain();
}

bool Gateway::drain(Deadline deadline) {
  // Nobody else needs to hear of the last connection's end, so that a look now and then will do.
  constexpr milliseconds kLook{20};
  runtime::Alarm alarm;
  for (;;) {
    const bool accepting = std::any_of(common_->loads.begin(), common_->loads.end(),
                                       [](const Load& load) { return !load.draining.load(); });
    if (!accepting && activity().connections == 0) return true;
    const TimePoint now = clock_.now();
    if (deadline.passed(now)) return false;
    alarm.wait_until(std::min(now + kLook, deadline.at()));
  }
}

void Gateway::stop() {
  for (const auto& worker : workers_) worker->request_stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  // What still runs there posts to a loop: it ends before the loops do.
  verifier_.stop();
  proxy_names_.stop();
  target_names_.stop();
  workers_.clear();
}

void Gateway::refresh_views() {
  for (const auto& worker : workers_) worker->request_refresh();
  common_->waits.wake_all();
}

void Gateway::end_tunnels_of(std::vector<ProxyId> lost, TimePoint at) {
  std::sort(lost.begin(), lost.end());
  const auto shared = std::make_shared<const std::vector<ProxyId>>(std::move(lost));
  for (const auto& worker : workers_) worker->request_end_tunnels(shared, at);
}

void Gateway::end_tunnels(TimePoint at) {
  for (const auto& worker : workers_) worker->request_end_tunnels(nullptr, at);
}

void Gateway::end_over_quota() {
  for (const auto& worker : workers_) worker->request_end_over_quota();
}

Gateway::Activity Gateway::activity() const {
  Activity out;
  for (const Load& load : common_->loads) {
    out.connections += load.connections.load(std::memory_order_relaxed);
    out.requests += load.requests.load(std::memory_order_relaxed);
    out.tunnels += load.tunnels.load(std::memory_order_relaxed);
    out.idle_upstreams += load.idle_upstreams.load(std::memory_order_relaxed);
  }
  return out;
}

void Gateway::show_gauges(ports::Metrics& metrics) {
  // The metrics may outlive this gateway.
  const auto gauge = [&](std::string_view name, std::string_view help,
                         std::atomic<std::uint32_t> Load::*number) {
    metrics.gauge_from(name, help, [common = common_, number] {
      double sum = 0;
      for (const Load& load : common->loads) {
        sum += (load.*number).load(std::memory_order_relaxed);
      }
      return sum;
    });
  };
  gauge("proxypool_gateway_active_requests", "Requests being served, tunnels not counted",
        &Load::requests);
  gauge("proxypool_gateway_waiting_requests", "Requests that wait for a place", &Load::waiting);
  gauge("proxypool_gateway_active_tunnels", "Open tunnels", &Load::tunnels);
  gauge("proxypool_gateway_client_connections", "Open client connections", &Load::connections);
  gauge("proxypool_gateway_idle_upstreams", "Connections to proxies kept for reuse",
        &Load::idle_upstreams);
  metrics.gauge_from(
      "proxypool_gateway_sessions", "Sessions of clients that are remembered",
      [common = common_] { return static_cast<double>(common->sessions.numbers().sessions); });
  metrics.gauge_from(
      "proxypool_gateway_clients_over_quota", "Clients whose bytes for today are used up",
      [common = common_] { return static_cast<double>(common->registry.clients_over_quota()); });
  const auto counter = [&](std::string_view name, std::string_view help, auto read) {
    metrics.counter_from(name, help,
                         [common = common_, read] { return static_cast<double>(read(*common)); });
  };
  counter("proxypool_gateway_outcomes_dropped_total",
          "Outcomes of attempts that found no room on their way to the controller",
          [](const Common& all) { return all.registry.outcome_rings().dropped(); });
  counter("proxypool_gateway_session_hits_total", "Requests whose session was known",
          [](const Common& all) { return all.sessions.numbers().hits; });
  counter("proxypool_gateway_session_misses_total", "Requests whose session was new or over",
          [](const Common& all) { return all.sessions.numbers().misses; });
  counter("proxypool_gateway_session_evictions_total", "Sessions that made room for newer ones",
          [](const Common& all) { return all.sessions.numbers().evictions; });
  const auto misses = [&](std::string_view name, std::string_view help,
                          std::atomic<std::uint64_t> Load::*number) {
    counter(name, help, [number](const Common& all) {
      std::uint64_t sum = 0;
      for (const Load& load : all.loads) sum += (load.*number).load(std::memory_order_relaxed);
      return sum;
    });
  };
  misses("proxypool_gateway_host_pattern_misses_total",
         "Hosts that had to be asked of the patterns of routings", &Load::regex_misses);
  misses("proxypool_gateway_filter_misses_total",
         "Filters of user names whose proxies had to be looked up", &Load::filter_misses);
}

}  // namespace proxypool::gateway
