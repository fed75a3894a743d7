// What traffic shows of proxies, through the same reducer as probes. (CT-32)
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "controller/health.hpp"
#include "controller/health_policy.hpp"
#include "proxypool/domain/health/reducer.hpp"

namespace proxypool::controller {
namespace {

constexpr int kRounds = 3;  // a proxy that changes more often than this is left to the next outcome

struct Told {
  std::uint64_t successes = 0;
  std::uint64_t failures = 0;
  std::uint64_t ignored = 0;
};

// All that was told of one proxy, one after the other; nothing: it changes nothing.
std::optional<ports::HealthWrite> reduce_row(const ports::HealthRow& row, const WorkerId& worker,
                                             const std::vector<ports::Outcome>& outcomes,
                                             const domain::HealthPolicy& policy, StoreTime now,
                                             Told& told) {
  ports::HealthWrite write;
  write.id = row.id;
  write.revision = row.revision;
  write.record = row.record;
  domain::ProxyState state = row.state;
  bool counted = false;
  for (const ports::Outcome& outcome : outcomes) {
    const bool ours = row.owner == worker && row.lease_epoch == outcome.lease_epoch;
    const auto reduction =
        domain::reduce(state, write.record, outcome.what, policy, now - outcome.age);
    if (!ours || reduction.ignored) {
      ++told.ignored;
      continue;
    }
    counted = true;
    const bool failed = domain::meaning_of(outcome.what) == domain::HealthMeaning::Failure;
    ++(failed ? told.failures : told.successes);
    if (failed) write.failure = outcome.what.failure;
    state = reduction.state;
    write.record = reduction.record;
    write.events.insert(
        write.events.end(), reduction.events.begin(),
        reduction.events.begin() + static_cast<std::ptrdiff_t>(reduction.event_count));
  }
  if (!counted) return std::nullopt;
  return write;
}

}  // namespace

Status HealthService::take_traffic(const WorkerId& worker, std::vector<ports::Outcome> outcomes,
                                   Deadline deadline) {
  const auto config = state_.with([](const State& state) { return state.config; });
  std::stable_sort(outcomes.begin(), outcomes.end(),
                   [](const auto& a, const auto& b) { return a.age > b.age; });
  std::unordered_map<ProxyId, std::vector<ports::Outcome>> open;
  for (ports::Outcome& outcome : outcomes) open[outcome.what.proxy].push_back(outcome);
  PP_TRY(const ports::Generation generation, deps_.pool.generation(deadline));
  for (int round = 0; round < kRounds && !open.empty(); ++round) {
    std::vector<ProxyId> ids;
    for (const auto& [id, told] : open) ids.push_back(id);
    PP_TRY(const std::vector<ports::HealthRow> rows, deps_.pool.read_health(ids, deadline));
    std::vector<ports::HealthWrite> writes;
    std::unordered_map<ProxyId, Told> counts;
    for (const ports::HealthRow& row : rows) {
      const auto policy = policy_of(check_of(*config, row.upstream));
      auto write = reduce_row(row, worker, open[row.id], policy, generation.now, counts[row.id]);
      if (write) writes.push_back(*std::move(write));
    }
    PP_TRY(const std::vector<bool> done, deps_.pool.write_health(writes, deadline));
    std::unordered_map<ProxyId, std::vector<ports::Outcome>> again;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (done[i]) continue;
      again.insert(open.extract(writes[i].id));
      counts.erase(writes[i].id);
    }
    state_.with([&](State& state) {
      state.counters.conflicts += again.size();
      for (const auto& [id, told] : counts) {
        state.counters.traffic_successes += told.successes;
        state.counters.traffic_failures += told.failures;
        state.counters.traffic_ignored += told.ignored;
      }
    });
    open = std::move(again);
  }
  return ok();
}

}  // namespace proxypool::controller
