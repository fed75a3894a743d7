#include "controller/ownership.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace proxypool::controller {

OwnershipService::OwnershipService(OwnershipSettings settings, ports::ActivityPool& pool,
                                   ports::WorkerRegistry& registry,
                                   ports::Coordination& coordination, const Clock& clock,
                                   std::function<std::vector<OwnedUpstream>()> upstreams,
                                   std::function<std::size_t(const UpstreamId&)> shortage)
    : settings_(settings),
      pool_(pool),
      registry_(registry),
      coordination_(coordination),
      clock_(clock),
      upstreams_(std::move(upstreams)),
      shortage_(std::move(shortage)) {}

OwnershipCounters OwnershipService::counters() const {
  return counters_.with([](const OwnershipCounters& counters) { return counters; });
}

TimePoint OwnershipService::step(TimePoint now) {
  const Deadline deadline = Deadline::after(now, settings_.store_budget);
  const auto change = pool_.change_counter(deadline);
  const auto workers = registry_.workers(deadline);
  if (!change || !workers) {
    counters_.with([](OwnershipCounters& counters) { ++counters.failures; });
    return now + settings_.refresh;
  }
  std::vector<std::string> sessions;
  for (const ports::WorkerRow& row : *workers) {
    if (row.live && !row.draining) sessions.push_back(row.session.str());
  }
  const bool lacking =
      std::any_of(planned_shortages_.begin(), planned_shortages_.end(),
                  [&](const auto& planned) { return shortage_(planned.first) > planned.second; });
  const bool changed = *change != planned_change_ || sessions != planned_sessions_ || lacking;
  if (!changed && now < next_refresh_) return now + settings_.poll;
  if (const Status planned = plan(now); !planned) {
    counters_.with([](OwnershipCounters& counters) { ++counters.failures; });
    return now + settings_.refresh;
  }
  // The counter from before the plan: what it changed itself costs one more plan, and nothing that
  // came in between is missed.
  planned_change_ = *change;
  planned_sessions_ = std::move(sessions);
  next_refresh_ = now + settings_.refresh;
  return now + settings_.poll;
}

Status OwnershipService::plan(TimePoint now) {
  const Deadline deadline = Deadline::after(now, settings_.store_budget);
  PP_TRY(const std::vector<ports::WorkerRow> rows, registry_.workers(deadline));
  std::vector<Worker> workers;
  std::vector<domain::LiveWorker> live;
  std::map<std::string, std::size_t> by_session;
  for (const ports::WorkerRow& row : rows) {
    if (!row.live) continue;
    by_session[row.session.str()] = live.size();
    workers.push_back({{row.worker, row.instance, row.session}, row.draining});
    live.push_back({row.worker, row.draining ? 0U : 1U, 0, settings_.proxies_per_worker_max});
  }

  struct Share {
    std::vector<domain::OwnableProxy> proxies;
    std::size_t reserve = 0;
  };
  std::vector<Share> shares;
  planned_shortages_.clear();
  for (const OwnedUpstream& upstream : upstreams_()) {
    PP_TRY(const std::vector<ports::LeasedProxy> ownable, pool_.ownable(upstream.id, deadline));
    Share share;
    std::size_t available = 0;
    for (const ports::LeasedProxy& row : ownable) {
      domain::OwnableProxy proxy{row.proxy.id, row.proxy.ownership, std::nullopt,
                                 row.orphaned_until.has_value()};
      const auto owner = by_session.find(row.holder.session.str());
      if (owner != by_session.end()) {
        proxy.owner = owner->second;
        ++live[owner->second].owned;
      }
      if (row.proxy.state == domain::ProxyState::Available) ++available;
      const bool full = row.orphaned_slots >= row.proxy.max_concurrency;
      if (full && row.proxy.ownership == domain::Ownership::Unowned) continue;
      share.proxies.push_back(proxy);
    }
    const std::size_t shortage = shortage_(upstream.id);
    planned_shortages_.emplace_back(upstream.id, shortage);
    share.reserve = domain::unowned_target(upstream.reserve, available, shortage);
    shares.push_back(std::move(share));
  }
  std::uint64_t unplaced = 0;
  for (const Share& share : shares) {
    // A tenth at a time: what moves is not in use while it moves.
    const std::size_t moves_max = std::max<std::size_t>(8, share.proxies.size() / 10);
    const auto plan = domain::plan_ownership(share.proxies, live, share.reserve, moves_max);
    if (!live.empty()) unplaced += plan.unplaced;
    PP_TRY(const Unit done, carry_out(plan, workers));
    static_cast<void>(done);
  }
  counters_.with([&](OwnershipCounters& counters) { counters.unplaced = unplaced; });
  return ok();
}

Status OwnershipService::carry_out(const domain::OwnershipPlan& plan,
                                   const std::vector<Worker>& workers) {
  const Deadline deadline = Deadline::after(clock_.now(), settings_.store_budget);
  std::uint64_t assigned = 0;
  std::map<std::size_t, std::vector<ProxyId>> gifts;
  for (const domain::Assignment& assignment : plan.assign) {
    gifts[assignment.worker].push_back(assignment.proxy);
  }
  for (const auto& [worker, ids] : gifts) {
    PP_TRY(const Epoch epoch, coordination_.next_epoch(deadline));
    PP_TRY(const std::vector<ProxyId> given,
           pool_.assign(workers[worker].holder, ids, epoch, settings_.lease, deadline));
    assigned += given.size();
  }
  std::uint32_t revoked = 0;
  if (!plan.revoke.empty()) {
    PP_TRY(revoked, pool_.revoke(plan.revoke, deadline));
  }
  counters_.with([&](OwnershipCounters& counters) {
    counters.assigned += assigned;
    counters.revoked += revoked;
  });
  return ok();
}

}  // namespace proxypool::controller
