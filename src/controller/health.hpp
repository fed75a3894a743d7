// HealthService: gives checks to checkers and turns what they observe into states.
//
// Checkers decide nothing (CT-30): each task names one proxy and one deadline, each observation
// goes through the reducer, and the pool takes the result only if nobody changed the proxy
// meanwhile. The pool hands out what is due by priority (new, suspect, routine), and no more than
// the checkers can carry, so a back-log delays routine checks first.
//
// A task that is not answered within its lease is forgotten here and due again in the pool. The
// lease leaves the longest configured probe its time, and more for the way there and back.
//
// Thread rule: any thread; step() one thread at a time.
// Limits:      512 tasks a message; what the checkers declare as their maximum, up to
//              check.maxInFlight in all.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/config.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/ports/activity_pool.hpp"
#include "proxypool/ports/control_plane.hpp"
#include "proxypool/ports/worker_registry.hpp"

namespace proxypool::controller {

struct HealthSettings {
  std::string cluster_id;
  std::string environment;
  milliseconds session_ttl{60'000};
  milliseconds task_slack{10'000};  // a task's lease beyond the longest probe's timeout
  milliseconds poll{100};
  milliseconds store_budget{2'000};
};

struct HealthDeps {
  ports::ActivityPool& pool;
  ports::WorkerRegistry& registry;
  const Clock& clock;
};

struct HealthCounters {
  std::uint64_t tasks = 0;
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::uint64_t ignored = 0;    // late, repeated, or from another session
  std::uint64_t conflicts = 0;  // the proxy changed meanwhile; reduced again
  std::uint64_t lost = 0;       // not answered within the lease
  std::uint64_t in_flight = 0;
  std::uint64_t checkers = 0;           // with an open stream
  std::uint64_t traffic_successes = 0;  // outcomes of workers that counted
  std::uint64_t traffic_failures = 0;
  std::uint64_t traffic_ignored = 0;  // neutral, late, or of a proxy that is not the worker's
};

class HealthService final : public ports::CheckerService {
 public:
  HealthService(HealthSettings settings, std::shared_ptr<const config::Config> config,
                HealthDeps deps);
  ~HealthService() override;

  // Another configuration counts from now on: for the tasks that are given out next, and what is
  // planned further ahead than its interval comes forward. REQUIRES: not null.
  void configure(std::shared_ptr<const config::Config> config);

  Result<ports::RegisterCheckerAnswer> register_checker(
      const ports::RegisterCheckerRequest& request, const ports::Peer& peer,
      Deadline deadline) override;
  Result<std::shared_ptr<ports::Outbox<std::vector<domain::CheckTask>>>> open_tasks(
      const CheckerId& checker, const SessionId& session, const ports::Peer& peer,
      std::function<void()> wake, Deadline deadline) override;
  Status report_observations(const ports::ObservationReport& report, const ports::Peer& peer,
                             Deadline deadline) override;

  // What a worker's traffic showed (ruling "Health defaults"): only under its own leases, in the
  // order in which it happened.
  Status take_traffic(const WorkerId& worker, std::vector<ports::Outcome> outcomes,
                      Deadline deadline);

  TimePoint step(TimePoint now);
  [[nodiscard]] HealthCounters counters() const;

 private:
  class Session;
  using SessionPtr = std::shared_ptr<Session>;
  struct Lease {
    SessionPtr session;
    TimePoint until;
  };
  // An upstream whose interval got shorter, and how far its proxies were gone through.
  struct Replan {
    UpstreamId upstream;
    std::optional<ProxyId> after;
  };
  struct State {
    std::shared_ptr<const config::Config> config;  // never null
    std::deque<Replan> replans;
    std::map<CheckerId, SessionPtr> sessions;
    std::unordered_map<std::uint64_t, Lease> leases;  // by task
    HealthCounters counters;
  };

  Result<SessionPtr> find(const CheckerId& checker, const SessionId& session) const;
  void forget_lost(TimePoint now);
  // One page of what is to be planned anew.
  void replan(TimePoint now);
  // The tasks of this report that were still awaited from this session.
  std::vector<domain::Observation> awaited(const SessionPtr& session,
                                           const std::vector<domain::Observation>& observations);
  // Reduces what is known of each proxy and writes it back; repeats what was changed meanwhile.
  Status reduce(const config::Config& config, std::vector<domain::Observation> observations,
                Deadline deadline);

  HealthSettings settings_;
  HealthDeps deps_;
  Guarded<State> state_;
};

}  // namespace proxypool::controller
