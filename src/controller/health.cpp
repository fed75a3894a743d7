#include "controller/health.hpp"

#include <algorithm>
#include <utility>

#include "controller/health_policy.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/domain/health/reducer.hpp"

namespace proxypool::controller {

namespace {

constexpr std::size_t kTasksInOneMessage = 512;
constexpr int kReduceRounds = 3;  // a proxy that changes more often than this is left to the next

Error stale() {
  return {ErrorCode::Stale, Origin::Client, "the session was replaced; register again"};
}

milliseconds longest_probe(const config::Config& config) {
  nanoseconds longest = config.check.basic.timeout;
  for (const auto& upstream : config.upstreams) {
    longest = std::max(longest, upstream.check.basic.timeout);
  }
  return std::chrono::duration_cast<milliseconds>(longest);
}

domain::CheckTask task_for(const config::Config& config, ports::DueCheck due) {
  const config::BasicCheckConfig& basic = check_of(config, due.proxy.upstream).basic;
  domain::CheckTask task;
  task.task_id = due.task_id;
  task.proxy = due.proxy.id;
  task.endpoint = std::move(due.proxy.endpoint);
  task.credential = std::move(due.credential);
  task.target_host = basic.target.host;
  task.target_port = basic.target.port;
  task.timeout = std::chrono::duration_cast<milliseconds>(basic.timeout);
  return task;
}

}  // namespace

// One registration of one checker. Its own lock is held for moments only.
class HealthService::Session {
 public:
  struct Data {
    std::vector<domain::CheckTask> queue;
    std::size_t in_flight = 0;
    std::function<void()> wake;
    std::uint64_t stream = 0;
    bool open = false;
    bool ended = false;
  };

  Session(CheckerId checker, SessionId session, std::size_t in_flight_max)
      : checker_(std::move(checker)), session_(std::move(session)), max_(in_flight_max) {}

  [[nodiscard]] const CheckerId& checker() const noexcept { return checker_; }
  [[nodiscard]] const SessionId& session() const noexcept { return session_; }

  [[nodiscard]] std::size_t room() const {
    return data_.with([&](const Data& data) {
      return data.open && !data.ended && data.in_flight < max_ ? max_ - data.in_flight : 0;
    });
  }
  template <class F>
  decltype(auto) with(F&& f) {
    return data_.with(std::forward<F>(f));
  }
  void wake() {
    const auto wake = data_.with([](const Data& data) { return data.open ? data.wake : nullptr; });
    if (wake) wake();
  }
  void end() {
    data_.with([](Data& data) { data.ended = true; });
    wake();
  }

  class Box final : public ports::Outbox<std::vector<domain::CheckTask>> {
   public:
    Box(SessionPtr session, std::uint64_t stream) : session_(std::move(session)), stream_(stream) {}
    Result<std::optional<std::vector<domain::CheckTask>>> take() override {
      using Tasks = std::vector<domain::CheckTask>;
      return session_->with([&](Data& data) -> Result<std::optional<Tasks>> {
        if (data.stream != stream_ || data.ended) return stale();
        if (data.queue.empty()) return std::optional<Tasks>{};
        if (data.queue.size() <= kTasksInOneMessage) {
          return std::optional(std::exchange(data.queue, {}));
        }
        const auto middle = data.queue.begin() + kTasksInOneMessage;
        Tasks tasks(std::make_move_iterator(data.queue.begin()), std::make_move_iterator(middle));
        data.queue.erase(data.queue.begin(), middle);
        return std::optional(std::move(tasks));
      });
    }
    void closed() override {
      session_->with([&](Data& data) {
        if (data.stream != stream_) return;
        data.open = false;
        data.wake = nullptr;
        data.queue.clear();
      });
    }

   private:
    SessionPtr session_;
    std::uint64_t stream_;
  };

 private:
  const CheckerId checker_;
  const SessionId session_;
  const std::size_t max_;
  Guarded<Data> data_;
};

HealthService::HealthService(HealthSettings settings, std::shared_ptr<const config::Config> config,
                             HealthDeps deps)
    : settings_(std::move(settings)), deps_(deps) {
  configure(std::move(config));
}

HealthService::~HealthService() = default;

void HealthService::configure(std::shared_ptr<const config::Config> config) {
  PP_ASSERT(config != nullptr);
  state_.with([&](State& state) {
    const auto before = std::exchange(state.config, std::move(config));
    if (!before) return;
    for (const config::UpstreamConfig& upstream : state.config->upstreams) {
      const auto interval = check_of(*before, upstream.id).basic.interval;
      if (upstream.check.basic.interval >= interval) continue;
      std::erase_if(state.replans,
                    [&](const Replan& plan) { return plan.upstream == upstream.id; });
      state.replans.push_back({upstream.id, std::nullopt});
    }
  });
}

HealthCounters HealthService::counters() const {
  return state_.with([](const State& state) {
    HealthCounters counters = state.counters;
    counters.in_flight = state.leases.size();
    for (const auto& [checker, session] : state.sessions) {
      counters.checkers += session->with([](const auto& data) { return data.open ? 1U : 0U; });
    }
    return counters;
  });
}

Result<ports::RegisterCheckerAnswer> HealthService::register_checker(
    const ports::RegisterCheckerRequest& request, const ports::Peer& /*peer*/, Deadline deadline) {
  if (request.protocol_version != ports::kProtocolVersion) {
    return Error{ErrorCode::InvalidArgument, Origin::Client,
                 "protocol version " + std::to_string(request.protocol_version) +
                     " is not spoken here; this controller speaks version " +
                     std::to_string(ports::kProtocolVersion)};
  }
  if (request.cluster_id != settings_.cluster_id || request.environment != settings_.environment) {
    return Error{ErrorCode::Forbidden, Origin::Client,
                 "this controller serves cluster '" + settings_.cluster_id + "', environment '" +
                     settings_.environment + "'; set cluster.id and cluster.environment"};
  }
  if (request.checker.empty() || request.in_flight_max == 0) {
    return Error{ErrorCode::InvalidArgument, Origin::Client,
                 "a checker needs a name and room for at least one probe"};
  }
  PP_TRY(const auto row,
         deps_.registry.register_checker(request.checker, request.instance, request.in_flight_max,
                                         settings_.session_ttl, deadline));
  auto session = std::make_shared<Session>(request.checker, row.session, request.in_flight_max);
  const SessionPtr replaced = state_.with(
      [&](State& state) { return std::exchange(state.sessions[request.checker], session); });
  if (replaced) replaced->end();
  return ports::RegisterCheckerAnswer{row.session, settings_.session_ttl};
}

Result<HealthService::SessionPtr> HealthService::find(const CheckerId& checker,
                                                      const SessionId& session) const {
  return state_.with([&](const State& state) -> Result<SessionPtr> {
    const auto found = state.sessions.find(checker);
    if (found == state.sessions.end() || found->second->session() != session) return stale();
    return found->second;
  });
}

Result<std::shared_ptr<ports::Outbox<std::vector<domain::CheckTask>>>> HealthService::open_tasks(
    const CheckerId& checker, const SessionId& session, const ports::Peer& /*peer*/,
    std::function<void()> wake, Deadline deadline) {
  PP_TRY(const SessionPtr found, find(checker, session));
  PP_TRY(const auto row,
         deps_.registry.touch_checker(checker, session, settings_.session_ttl, deadline));
  static_cast<void>(row);
  const std::uint64_t stream = found->with([&](Session::Data& data) {
    data.open = true;
    data.wake = std::move(wake);
    data.queue.clear();
    return ++data.stream;
  });
  return std::shared_ptr<ports::Outbox<std::vector<domain::CheckTask>>>(
      std::make_shared<Session::Box>(found, stream));
}

void HealthService::forget_lost(TimePoint now) {
  state_.with([&](State& state) {
    for (auto it = state.leases.begin(); it != state.leases.end();) {
      if (now < it->second.until) {
        ++it;
        continue;
      }
      it->second.session->with([](Session::Data& data) { --data.in_flight; });
      ++state.counters.lost;
      it = state.leases.erase(it);
    }
  });
}

void HealthService::replan(TimePoint now) {
  constexpr std::uint32_t kPage = 1'000;
  const auto [config, plan] = state_.with([](const State& state) {
    return std::pair(state.config,
                     state.replans.empty() ? std::nullopt : std::optional(state.replans.front()));
  });
  if (!plan) return;
  const Deadline deadline = Deadline::after(now, settings_.store_budget);
  const auto generation = deps_.pool.generation(deadline);
  const auto rows = deps_.pool.list(
      {{plan->upstream}, {domain::ProxyState::Available}, plan->after, kPage}, deadline);
  if (!generation || !rows) return;
  std::vector<ProxyId> ids;
  for (const ports::ProxyRow& row : *rows) ids.push_back(row.leased.proxy.id);
  const auto health = deps_.pool.read_health(ids, deadline);
  if (!health) return;
  const auto interval = policy_of(check_of(*config, plan->upstream)).interval;
  std::vector<ports::HealthWrite> writes;
  for (const ports::HealthRow& row : *health) {
    if (row.state != domain::ProxyState::Available) continue;
    // Somewhere in the new interval, each proxy at its own place.
    const auto next =
        generation->now + domain::jittered(interval / 2, 100, row.id, row.record.turn);
    if (row.record.next_check_at <= next) continue;
    ports::HealthWrite write{row.id, row.revision, row.record, {}, {}};
    write.record.next_check_at = next;
    writes.push_back(std::move(write));
  }
  // What was changed meanwhile was planned by the new policy.
  if (!deps_.pool.write_health(writes, deadline)) return;
  state_.with([&](State& state) {
    if (state.replans.empty() || state.replans.front().upstream != plan->upstream) return;
    state.replans.pop_front();
    if (rows->size() == kPage) state.replans.push_front({plan->upstream, ids.back()});
  });
}

TimePoint HealthService::step(TimePoint now) {
  forget_lost(now);
  replan(now);
  const auto [config, sessions, given] = state_.with([](const State& state) {
    std::vector<SessionPtr> open;
    for (const auto& [checker, session] : state.sessions) open.push_back(session);
    return std::tuple(state.config, std::move(open), state.leases.size());
  });
  std::size_t room = 0;
  for (const SessionPtr& session : sessions) room += session->room();
  const std::size_t limit = config->check.in_flight_max;
  room = std::min(room, limit > given ? limit - given : 0);
  if (room == 0) return now + settings_.poll;

  ports::CheckDemand demand;
  demand.count_max = static_cast<std::uint32_t>(room);
  demand.lease = longest_probe(*config) + settings_.task_slack;
  auto due = deps_.pool.take_due_checks(demand, Deadline::after(now, settings_.store_budget));
  if (!due) return now + settings_.store_budget;
  // Round robin over the checkers that have room.
  std::size_t turn = 0;
  for (ports::DueCheck& check : *due) {
    std::size_t looked = 0;
    while (looked < sessions.size() && sessions[turn % sessions.size()]->room() == 0) {
      ++turn;
      ++looked;
    }
    if (looked == sessions.size()) break;  // a stream closed meanwhile: due again after the lease
    const SessionPtr& session = sessions[turn++ % sessions.size()];
    domain::CheckTask task = task_for(*config, std::move(check));
    state_.with([&](State& state) {
      state.leases[task.task_id] = {session, now + demand.lease};
      ++state.counters.tasks;
    });
    session->with([&](Session::Data& data) {
      ++data.in_flight;
      data.queue.push_back(std::move(task));
    });
  }
  for (const SessionPtr& session : sessions) session->wake();
  return now + settings_.poll;
}

std::vector<domain::Observation> HealthService::awaited(
    const SessionPtr& session, const std::vector<domain::Observation>& observations) {
  return state_.with([&](State& state) {
    std::vector<domain::Observation> taken;
    for (const domain::Observation& observation : observations) {
      const auto lease = state.leases.find(observation.task_id);
      if (lease == state.leases.end() || lease->second.session != session) {
        ++state.counters.ignored;
        continue;
      }
      session->with([](Session::Data& data) { --data.in_flight; });
      state.leases.erase(lease);
      ++(observation.passed ? state.counters.passed : state.counters.failed);
      taken.push_back(observation);
    }
    return taken;
  });
}

Status HealthService::report_observations(const ports::ObservationReport& report,
                                          const ports::Peer& /*peer*/, Deadline deadline) {
  PP_TRY(const SessionPtr session, find(report.checker, report.session));
  PP_TRY(const auto row, deps_.registry.touch_checker(report.checker, report.session,
                                                      settings_.session_ttl, deadline));
  static_cast<void>(row);
  const auto config = state_.with([](const State& state) { return state.config; });
  return reduce(*config, awaited(session, report.observations), deadline);
}

Status HealthService::reduce(const config::Config& config,
                             std::vector<domain::Observation> observations, Deadline deadline) {
  for (int round = 0; round < kReduceRounds && !observations.empty(); ++round) {
    std::vector<ProxyId> ids;
    std::unordered_map<ProxyId, domain::Observation> by_id;
    for (const domain::Observation& observation : observations) {
      ids.push_back(observation.proxy);
      by_id[observation.proxy] = observation;
    }
    PP_TRY(const ports::Generation generation, deps_.pool.generation(deadline));
    PP_TRY(const std::vector<ports::HealthRow> rows, deps_.pool.read_health(ids, deadline));
    std::vector<ports::HealthWrite> writes;
    for (const ports::HealthRow& row : rows) {
      const domain::Observation& observation = by_id[row.id];
      const auto reduction =
          domain::reduce(row.state, row.record, observation,
                         policy_of(check_of(config, row.upstream)), generation.now);
      if (reduction.ignored && reduction.record == row.record) continue;
      ports::HealthWrite write;
      write.id = row.id;
      write.revision = row.revision;
      write.record = reduction.record;
      write.events.assign(
          reduction.events.begin(),
          reduction.events.begin() + static_cast<std::ptrdiff_t>(reduction.event_count));
      write.failure = observation.failure;
      writes.push_back(std::move(write));
    }
    PP_TRY(const std::vector<bool> done, deps_.pool.write_health(writes, deadline));
    observations.clear();
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (!done[i]) observations.push_back(by_id[writes[i].id]);
    }
    state_.with([&](State& state) { state.counters.conflicts += observations.size(); });
  }
  return ok();
}

}  // namespace proxypool::controller
