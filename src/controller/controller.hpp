// Controller: the services of one controller process, put together over the stores.
//
// It owns the services and names their steps; whoever runs it gives each step a thread of its own
// (cmd/proxy-controller) or calls them in turn (the simulator). Nothing here knows an adapter.
//
// Another configuration (configure) counts at once for what is asked of the services. The step
// "switches" then does the rest in an order in which no request can be lost: first the workers'
// section without what is gone, then the end of its supply, whose proxies drain.
//
// Thread rule: the service accessors, the readings and configure: any thread. Each step: one thread
//              at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "controller/decision_ring.hpp"
#include "controller/extraction.hpp"
#include "controller/health.hpp"
#include "controller/ownership.hpp"
#include "controller/presence.hpp"
#include "controller/sequential.hpp"
#include "controller/shared_section.hpp"
#include "controller/supply.hpp"
#include "controller/usage.hpp"
#include "controller/worker_sessions.hpp"
#include "proxypool/ports/inbound.hpp"
#include "proxypool/ports/metrics.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::controller {

struct ControllerDeps {
  ports::ActivityPool& pool;
  ports::WorkerRegistry& registry;
  ports::Coordination& coordination;
  ports::ManagementStore& management;
  ports::Crypto& crypto;
  const Clock& clock;
  ports::Events& events;
  std::function<std::unique_ptr<ports::ProviderApi>(const config::UpstreamConfig&)> make_provider;
  std::function<Random&()> random;  // of the calling thread
};

struct ControllerIdentity {
  InstanceId instance;        // of this process
  std::string environment;    // cluster.environment
  SecretString identity_key;  // keys proxy ids and credential versions
};

// A step to be run on a thread of its own. `on_work` takes what wakes it before its time.
struct NamedStep {
  std::string name;
  std::function<TimePoint(TimePoint now)> step;
  std::function<void(std::function<void()> wake)> on_work;  // may be empty
};

// A configuration with what takes time to find out about it.
struct ActiveConfig {
  std::shared_ptr<const config::Config> config;
  std::vector<HashedClient> clients;
};
using ActiveConfigPtr = std::shared_ptr<const ActiveConfig>;

class Controller final : public ports::Readings {
 public:
  static Result<std::unique_ptr<Controller>> make(std::shared_ptr<const config::Config> config,
                                                  ControllerIdentity identity, ControllerDeps deps);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  ~Controller() override = default;

  // Hashes the plain secrets of clients, 70 ms each for short ones (GW-10); those that are as
  // `before` has them keep their hashes. Nothing, and the reasons, when it cannot be used.
  static ActiveConfigPtr prepare(std::shared_ptr<const config::Config> config,
                                 const ActiveConfig* before, const ports::Crypto& crypto,
                                 std::vector<std::string>& problems);
  void configure(ActiveConfigPtr active);
  [[nodiscard]] ActiveConfigPtr active() const;

  // Those that there are now; each lives as long as its copy. After another configuration was taken
  // over there may be others: `on_steps` is called then, from inside the step "switches".
  [[nodiscard]] std::vector<NamedStep> steps();
  void on_steps(std::function<void()> changed);

  [[nodiscard]] ports::WorkerService& worker_service() noexcept { return sessions_; }
  [[nodiscard]] ports::CheckerService& checker_service() noexcept { return health_; }
  [[nodiscard]] ExtractionService& extraction() noexcept { return extraction_; }
  [[nodiscard]] ports::RoutingOperations& routing_operations() noexcept { return sequential_; }
  // Further reasons to look worried.
  void warn_with(std::function<std::vector<std::string>()> source);

  // Readings, for Admin and metrics.
  ports::StatusReading status(Deadline deadline) override;
  std::vector<ports::UpstreamReading> upstreams(Deadline deadline) override;
  std::vector<ports::RoutingReading> routings(Deadline deadline) override;
  Result<std::vector<ports::WorkerRow>> workers(Deadline deadline) override;
  Result<std::vector<ports::WorkerRegistry::CheckerRow>> checkers(Deadline deadline) override;
  Result<std::vector<ports::ProxyRow>> proxies(const ports::ProxyQuery& query,
                                               Deadline deadline) override;
  Result<std::optional<ports::ClientUsageReading>> client_usage(const ClientName& client,
                                                                Deadline deadline) override;
  Result<StoreTime> store_now(Deadline deadline) override;
  std::vector<std::string> not_ready(Deadline deadline) override;

  [[nodiscard]] std::uint64_t switches(const RoutingId& routing, SwitchReason reason) const {
    return sequential_.switches(routing, reason);
  }
  [[nodiscard]] std::vector<UpstreamId> upstream_ids() const;
  [[nodiscard]] ports::UpstreamReading upstream(const UpstreamId& id) const;
  // Without its revision.
  [[nodiscard]] ports::RoutingReading routing(const RoutingId& id) const;
  [[nodiscard]] WorkerSessionCounters worker_counters() const { return sessions_.counters(); }
  [[nodiscard]] std::vector<Decision> decisions() const { return decisions_.all(); }
  [[nodiscard]] UsageCounters usage_counters() const { return usage_.counters(); }
  [[nodiscard]] std::size_t clients_over_quota() const { return usage_.over_quota(); }
  [[nodiscard]] OwnershipCounters ownership_counters() const { return ownership_.counters(); }
  [[nodiscard]] HealthCounters health_counters() const { return health_.counters(); }
  [[nodiscard]] ExtractionCounters extraction_counters() const { return extraction_.counters(); }

 private:
  using Supplies = std::vector<std::shared_ptr<SupplyService>>;
  // What others hand in, and what wakes the step "switches".
  struct Hooks {
    std::function<void()> wake_switches;
    std::function<void()> steps_changed;
    std::function<std::vector<std::string>()> warnings;
  };

  Controller(ActiveConfigPtr active, ControllerIdentity identity, ControllerDeps deps);

  [[nodiscard]] std::vector<std::string> warnings(const ports::Generation& generation) const;
  void warn_of_routings(std::vector<std::string>& warnings) const;
  [[nodiscard]] std::shared_ptr<const config::Config> config() const { return active()->config; }
  [[nodiscard]] Supplies supplies() const;
  void wake_switches() const;
  std::shared_ptr<SupplyService> make_supply(const config::UpstreamConfig& upstream);
  void supply_from(const config::Config& before, const config::Config& after);
  TimePoint step_switches(TimePoint now);
  TimePoint step_sweep(TimePoint now);
  TimePoint step_ownership(TimePoint now);
  [[nodiscard]] std::vector<OwnedUpstream> owned_upstreams() const;
  Status take_outcomes(const ports::OutcomeBatch& batch, Deadline deadline);
  void report_fetch(const UpstreamId& upstream, const domain::FetchOutcome& outcome,
                    const std::string& detail);

  Guarded<ActiveConfigPtr> active_;  // never null
  ControllerIdentity identity_;
  ControllerDeps deps_;
  TimePoint started_at_;
  Guarded<Hooks> hooks_;
  SharedSectionCell shared_;
  SequentialService sequential_;
  UsageService usage_;
  DecisionRing decisions_;
  WorkerSessions sessions_;
  HealthService health_;
  ExtractionService extraction_;
  OwnershipService ownership_;
  Presence presence_;
  Guarded<Supplies> supplies_;
  // Of the switches' step.
  std::string published_switches_;
  ActiveConfigPtr published_;
  ActiveConfigPtr supplied_;
};

// The registered metrics of a controller; the values are read at each scrape. Again when there are
// other upstreams and routings.
void register_metrics(Controller& controller, ports::Metrics& metrics);

}  // namespace proxypool::controller
