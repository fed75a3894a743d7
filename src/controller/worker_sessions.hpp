// WorkerSessions: the controller's side of every worker's session.
//
// It registers workers, keeps each worker's leases alive, and sees to it that each worker serves
// the newest snapshot: step() builds what is due, the stream's outbox hands it over, and nothing
// new is built for a worker until it has acknowledged what it has (CP-5). Changes are coalesced:
// a snapshot is built after `quiet` without a change, and after `delay_max` at the latest.
//
// Leases (C9): a report that arrives renews the leases of its session at a third of their length,
// and the answer to that is an Extend that names the report. The pool counts the lease from then
// on, the worker from when it sent the report, so the worker always stops first (CP-9).
//
// A young generation (C18): a worker that comes back with a valid view gets its first snapshot only
// when that would not shrink what it serves, or when its view is about to end.
//
// Thread rule: any thread; step() one thread at a time. Nothing is held while a store is called.
// Limits:      one open stream per session; a push that is not acknowledged within half a lease
//              ends the stream, so that the worker registers again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/shared_section.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/activity_pool.hpp"
#include "proxypool/ports/control_plane.hpp"
#include "proxypool/ports/coordination.hpp"
#include "proxypool/ports/crypto.hpp"
#include "proxypool/ports/worker_registry.hpp"

namespace proxypool::controller {

struct WorkerSessionSettings {
  std::string cluster_id;
  std::string environment;
  milliseconds lease{60'000};
  milliseconds report_interval{1'000};
  milliseconds margin{2'000};
  milliseconds orphan_grace{30'000};
  milliseconds quiet{100};
  milliseconds delay_max{1'000};
  milliseconds store_budget{2'000};  // for the store calls of one request or build
};

// How much earlier than its lease a worker stops (C9): two seconds, and a third of a lease that is
// shorter than six.
constexpr milliseconds lease_margin(milliseconds lease) noexcept {
  return std::min(milliseconds{2'000}, lease / 3);
}

class UsageService;

struct WorkerSessionDeps {
  ports::ActivityPool& pool;
  ports::WorkerRegistry& registry;
  ports::Coordination& coordination;
  ports::Crypto& crypto;
  SharedSectionCell& shared;
  const Clock& clock;
  UsageService& usage;
  // Takes outcomes that passed their fence.
  std::function<Status(const ports::OutcomeBatch&, Deadline)> take_outcomes;
};

// What happened so far, for metrics and Admin.
struct WorkerSessionCounters {
  std::uint64_t registrations = 0;
  std::uint64_t snapshots_issued = 0;
  std::uint64_t snapshots_unchanged = 0;  // built, and found equal to what the worker has
  std::uint64_t snapshots_rejected = 0;
  std::uint64_t extends = 0;
  std::uint64_t reports_refused = 0;
  std::uint64_t build_failures = 0;  // the store did not answer; tried again
};

class WorkerSessions final : public ports::WorkerService {
 public:
  WorkerSessions(WorkerSessionSettings settings, WorkerSessionDeps deps);
  ~WorkerSessions() override;

  // Called, from any thread, when step() should run before its time.
  void on_work(std::function<void()> wake);

  Result<ports::RegisterWorkerAnswer> register_worker(const ports::RegisterWorkerRequest& request,
                                                      const ports::Peer& peer,
                                                      Deadline deadline) override;
  Result<std::shared_ptr<ports::Outbox<ports::Push>>> open_snapshots(
      const WorkerId& worker, const SessionId& session,
      const std::optional<domain::SnapshotVersion>& held, const ports::Peer& peer,
      std::function<void()> wake, Deadline deadline) override;
  Status acknowledge(const ports::SnapshotAck& ack, const ports::Peer& peer,
                     Deadline deadline) override;
  Result<ports::RuntimeAnswer> report_runtime(const ports::RuntimeReport& report,
                                              const ports::Peer& peer, Deadline deadline) override;

  Status report_outcomes(const ports::OutcomeBatch& batch, const ports::Peer& peer,
                         Deadline deadline) override;

  // Builds and hands over what is due. Answers when it wants to be called again.
  TimePoint step(TimePoint now);

  [[nodiscard]] WorkerSessionCounters counters() const;

 private:
  class Session;
  using SessionPtr = std::shared_ptr<Session>;
  struct State {
    std::map<WorkerId, SessionPtr> sessions;
    WorkerSessionCounters counters;
    std::function<void()> wake;
  };

  [[nodiscard]] Result<SessionPtr> find(const WorkerId& worker, const SessionId& session) const;
  [[nodiscard]] Status check_request(const ports::RegisterWorkerRequest& request) const;
  [[nodiscard]] Deadline budget() const;
  void request_step();
  void count(std::uint64_t WorkerSessionCounters::*counter);
  // Builds and issues a snapshot if there is something new; the session's stream is open.
  Status publish(Session& session, std::uint64_t change, const SharedSection& shared,
                 std::uint32_t workers, TimePoint now);
  [[nodiscard]] std::optional<std::uint32_t> sharers(const SharedSection& shared) const;
  // The answer to a report that was accepted, with what comes of the usage in it.
  ports::RuntimeAnswer answer_to(const ports::RuntimeReport& report, const Session& session,
                                 Deadline deadline);
  Status extend(Session& session, std::uint64_t report_sequence, TimePoint now, Deadline deadline);

  WorkerSessionSettings settings_;
  WorkerSessionDeps deps_;
  Guarded<State> state_;
};

}  // namespace proxypool::controller
