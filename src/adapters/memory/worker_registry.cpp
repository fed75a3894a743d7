// The embedded WorkerRegistry: sessions in one table; what counts is decided by domain/
// activitypool/session.hpp.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "adapters/memory/memory_stores.hpp"
#include "adapters/memory/store_clock.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::memory {

namespace {

using domain::AckVerdict;
using domain::ReportVerdict;
using domain::SnapshotRef;
using domain::WorkerSession;

constexpr std::size_t kPeersMax = 10'000;

Error stale() {
  return {ErrorCode::Stale, Origin::Client, "the session was replaced; register again"};
}

Error full(std::string_view what) {
  return {ErrorCode::Exhausted, Origin::Internal,
          "at most " + std::to_string(kPeersMax) + " " + std::string(what) + " may register"};
}

SnapshotRef ref_of(const ports::IssuedSnapshot& issued) {
  return {issued.version, issued.epoch, issued.digest};
}

struct Worker {
  WorkerSession session;
  std::string zone;
  StoreTime registered_at;
  StoreTime last_report_at;
  std::optional<domain::SnapshotVersion> issued;
  std::uint64_t outstanding_change = 0;
  std::uint64_t acknowledged_change = 0;
  std::uint32_t active = 0;
  std::uint32_t reserved = 0;
  bool draining = false;
};

class MemoryWorkerRegistry final : public ports::WorkerRegistry {
 public:
  MemoryWorkerRegistry(const Clock& clock, ports::Crypto& crypto)
      : clock_(clock), crypto_(crypto) {}

  Result<ports::WorkerRow> register_worker(const ports::Registration& registration,
                                           Deadline) override {
    const StoreTime now = clock_.now();
    return state_.with([&](State& state) -> Result<ports::WorkerRow> {
      forget_long_gone(state, now);
      if (state.workers.size() >= kPeersMax && !state.workers.contains(registration.worker)) {
        return full("workers");
      }
      domain::SessionTimes times;
      times.session_ttl = registration.session_ttl;
      Worker worker{
          WorkerSession(registration.worker, registration.instance, new_session(), now, times),
          registration.zone,
          now,
          now,
          {}};
      worker.draining = registration.draining;
      auto& stored =
          state.workers.insert_or_assign(registration.worker, std::move(worker)).first->second;
      return row_of(stored, now);
    });
  }

  Result<ports::WorkerRow> session(const WorkerId& worker, const SessionId& session,
                                   Deadline) override {
    const StoreTime now = clock_.now();
    return with_session<ports::WorkerRow>(
        worker, session,
        [&](Worker& found) -> Result<ports::WorkerRow> { return row_of(found, now); });
  }

  Result<std::vector<ports::WorkerRow>> workers(Deadline) override {
    const StoreTime now = clock_.now();
    return state_.with([&](const State& state) -> Result<std::vector<ports::WorkerRow>> {
      std::vector<ports::WorkerRow> rows;
      for (const auto& [id, worker] : state.workers) rows.push_back(row_of(worker, now));
      return rows;
    });
  }

  Status leave(const WorkerId& worker, const SessionId& session, Deadline) override {
    return state_.with([&](State& state) -> Status {
      const auto found = state.workers.find(worker);
      if (found == state.workers.end() || found->second.session.session() != session) {
        return stale();
      }
      state.workers.erase(found);
      return ok();
    });
  }

  // One counter serves every worker: each sees growing numbers, which is all that is asked.
  Result<std::uint64_t> next_version(const WorkerId&, Deadline) override {
    return state_.with([](State& state) -> Result<std::uint64_t> { return ++state.version; });
  }

  Status record_issued(const WorkerId& worker, const SessionId& session,
                       const ports::IssuedSnapshot& issued, Deadline) override {
    return with_session<Unit>(worker, session, [&](Worker& found) -> Status {
      if (!found.session.issue(ref_of(issued))) {
        return Error{ErrorCode::Conflict, Origin::Internal,
                     "another snapshot is outstanding, or this one was refused before"};
      }
      found.issued = issued.version;
      found.outstanding_change = issued.change;
      return ok();
    });
  }

  Status withdraw_issued(const WorkerId& worker, const SessionId& session, Deadline) override {
    return with_session<Unit>(worker, session, [](Worker& found) -> Status {
      found.session.withdraw();
      return ok();
    });
  }

  Status acknowledge(const WorkerId& worker, const SessionId& session,
                     const ports::IssuedSnapshot& reference, domain::AckStatus status,
                     Deadline) override {
    return with_session<Unit>(worker, session, [&](Worker& found) -> Status {
      switch (found.session.acknowledge(ref_of(reference), status)) {
        case AckVerdict::Accepted:
          found.acknowledged_change = found.outstanding_change;
          return ok();
        case AckVerdict::NotIssued:
          return Error{ErrorCode::Conflict, Origin::Client,
                       "the acknowledgement names nothing that this session was sent"};
        default:
          return ok();
      }
    });
  }

  Result<ReportVerdict> accept_report(const WorkerId& worker, const SessionId& session,
                                      const ports::ReportFence& fence, milliseconds session_ttl,
                                      Deadline) override {
    const StoreTime now = clock_.now();
    return with_session<ReportVerdict>(
        worker, session, [&](Worker& found) -> Result<ReportVerdict> {
          domain::SessionTimes times;
          times.session_ttl = session_ttl;
          const auto verdict = found.session.report(
              {fence.sequence, fence.digest, fence.version, fence.epoch}, now, times);
          if (verdict == ReportVerdict::Accept) {
            found.last_report_at = now;
            found.active = fence.active;
            found.reserved = fence.reserved;
            found.draining = fence.draining;
          }
          return verdict;
        });
  }

  Result<CheckerRow> register_checker(const CheckerId& checker, const InstanceId& instance,
                                      std::uint32_t in_flight_max, milliseconds session_ttl,
                                      Deadline) override {
    const StoreTime now = clock_.now();
    return state_.with([&](State& state) -> Result<CheckerRow> {
      forget_long_gone(state, now);
      if (state.checkers.size() >= kPeersMax && !state.checkers.contains(checker)) {
        return full("checkers");
      }
      Checker fresh;
      fresh.row = {checker, instance, new_session(), in_flight_max, now, now, true};
      fresh.expires_at = now + session_ttl;
      state.checkers[checker] = fresh;
      return fresh.row;
    });
  }

  Result<CheckerRow> touch_checker(const CheckerId& checker, const SessionId& session,
                                   milliseconds session_ttl, Deadline) override {
    const StoreTime now = clock_.now();
    return state_.with([&](State& state) -> Result<CheckerRow> {
      const auto found = state.checkers.find(checker);
      if (found == state.checkers.end() || found->second.row.session != session) return stale();
      found->second.row.last_seen_at = now;
      found->second.expires_at = now + session_ttl;
      return found->second.row;
    });
  }

  Result<std::vector<CheckerRow>> checkers(Deadline) override {
    const StoreTime now = clock_.now();
    return state_.with([&](const State& state) -> Result<std::vector<CheckerRow>> {
      std::vector<CheckerRow> rows;
      for (const auto& [id, checker] : state.checkers) {
        rows.push_back(checker.row);
        rows.back().live = now < checker.expires_at;
      }
      return rows;
    });
  }

 private:
  struct Checker {
    CheckerRow row;
    StoreTime expires_at;
  };
  struct State {
    std::map<WorkerId, Worker> workers;
    std::map<CheckerId, Checker> checkers;
    std::uint64_t version = 0;
  };

  [[nodiscard]] SessionId new_session() const { return SessionId(hex(crypto_.random_bytes(16))); }

  // Lost peers are shown for an hour and then forgotten, so that renamed ones do not pile up.
  static void forget_long_gone(State& state, StoreTime now) {
    constexpr milliseconds kShown{3'600'000};
    std::erase_if(state.workers, [&](const auto& entry) {
      return now >= entry.second.session.expires_at() + kShown;
    });
    std::erase_if(state.checkers,
                  [&](const auto& entry) { return now >= entry.second.expires_at + kShown; });
  }

  template <class T, class F>
  Result<T> with_session(const WorkerId& worker, const SessionId& session, F&& f) {
    return state_.with([&](State& state) -> Result<T> {
      const auto found = state.workers.find(worker);
      if (found == state.workers.end() || found->second.session.session() != session) {
        return stale();
      }
      return f(found->second);
    });
  }

  static ports::WorkerRow row_of(const Worker& worker, StoreTime now) {
    ports::WorkerRow row;
    row.worker = worker.session.worker();
    row.instance = worker.session.instance();
    row.session = worker.session.session();
    row.zone = worker.zone;
    row.registered_at = worker.registered_at;
    row.last_report_at = worker.last_report_at;
    row.issued = worker.issued;
    if (const auto& acknowledged = worker.session.acknowledged()) {
      row.acknowledged = acknowledged->version;
      row.acknowledged_epoch = acknowledged->epoch;
    }
    if (worker.session.parked()) row.rejected = worker.session.parked()->version;
    row.acknowledged_change = worker.acknowledged_change;
    row.report_sequence = worker.session.last_report();
    row.active = worker.active;
    row.reserved = worker.reserved;
    row.draining = worker.draining;
    row.live = !worker.session.expired(now);
    return row;
  }

  StoreClock clock_;
  ports::Crypto& crypto_;
  Guarded<State> state_;
};

}  // namespace

std::unique_ptr<ports::WorkerRegistry> make_worker_registry(const Clock& clock,
                                                            ports::Crypto& crypto) {
  return std::make_unique<MemoryWorkerRegistry>(clock, crypto);
}

}  // namespace proxypool::memory
