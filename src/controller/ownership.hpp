// OwnershipService: decides which worker owns which proxy, and keeps the extraction reserve.
//
// The plan is the domain's (domain/activitypool/ownership.hpp); this service feeds it with the rows
// and the live workers, and carries it out. It plans when something changed, and otherwise every
// few seconds, so that a lost notification costs seconds and not proxies.
//
// Thread rule: step() one thread at a time; counters() any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/activitypool/ownership.hpp"
#include "proxypool/ports/activity_pool.hpp"
#include "proxypool/ports/coordination.hpp"
#include "proxypool/ports/worker_registry.hpp"

namespace proxypool::controller {

struct OwnedUpstream {
  UpstreamId id;
  domain::ReservePolicy reserve;
};

struct OwnershipSettings {
  milliseconds lease{60'000};
  std::uint32_t proxies_per_worker_max = limits::kProxiesPerWorkerMax;
  milliseconds poll{100};       // how often changes are looked for
  milliseconds refresh{5'000};  // plan at least so often
  milliseconds store_budget{2'000};
};

struct OwnershipCounters {
  std::uint64_t assigned = 0;
  std::uint64_t revoked = 0;
  std::uint64_t unplaced = 0;  // of the last plan: no worker had room (C10)
  std::uint64_t failures = 0;  // the store did not answer; tried again
};

class OwnershipService {
 public:
  // `upstreams` and `shortage` are read at each plan: the configured ones, and how many proxies
  // recent extractions lacked (C3).
  OwnershipService(OwnershipSettings settings, ports::ActivityPool& pool,
                   ports::WorkerRegistry& registry, ports::Coordination& coordination,
                   const Clock& clock, std::function<std::vector<OwnedUpstream>()> upstreams,
                   std::function<std::size_t(const UpstreamId&)> shortage);

  TimePoint step(TimePoint now);
  [[nodiscard]] OwnershipCounters counters() const;

 private:
  struct Worker {
    ports::LeaseHolder holder;
    bool draining = false;
  };
  Status plan(TimePoint now);
  Status carry_out(const domain::OwnershipPlan& plan, const std::vector<Worker>& workers);

  const OwnershipSettings settings_;
  ports::ActivityPool& pool_;
  ports::WorkerRegistry& registry_;
  ports::Coordination& coordination_;
  const Clock& clock_;
  const std::function<std::vector<OwnedUpstream>()> upstreams_;
  const std::function<std::size_t(const UpstreamId&)> shortage_;
  std::uint64_t planned_change_ = 0;
  std::vector<std::string> planned_sessions_;
  std::vector<std::pair<UpstreamId, std::size_t>> planned_shortages_;
  TimePoint next_refresh_;
  Guarded<OwnershipCounters> counters_;
};

}  // namespace proxypool::controller
