// WorkerRegistry: sessions of workers and checkers, what was issued to them, what they reported.
//
// A session is one registration of one instance; registering again replaces it and clears its
// runtime and issued references (CP-7). The acceptance rules are pure: domain/activitypool/
// session.hpp.
//
// Adapters: memory, Redis. Both pass tests/contract/worker_registry_contract.hpp.
//
// Thread rule: any thread. Methods block until done or until the deadline.
// Limits:      10,000 workers and as many checkers; more are refused with Exhausted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/activitypool/session.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"

namespace proxypool::ports {

struct Registration {
  WorkerId worker;
  InstanceId instance;
  std::string zone;
  bool draining = false;
  milliseconds session_ttl{60'000};
};

struct WorkerRow {
  WorkerId worker;
  InstanceId instance;
  SessionId session;
  std::string zone;
  StoreTime registered_at;
  StoreTime last_report_at;  // = registered_at before the first
  std::optional<domain::SnapshotVersion> issued;
  std::optional<domain::SnapshotVersion> acknowledged;
  std::optional<domain::SnapshotVersion> rejected;  // parked (C13)
  Epoch acknowledged_epoch;
  std::uint64_t acknowledged_change = 0;  // IssuedSnapshot::change of the acknowledged version
  std::uint64_t report_sequence = 0;      // the last accepted
  std::uint32_t active = 0;
  std::uint32_t reserved = 0;
  bool draining = false;
  bool live = true;  // session TTL not passed
};

// A reference to what was sent, for checking the acknowledgement against.
struct IssuedSnapshot {
  domain::SnapshotVersion version;
  Epoch epoch;
  domain::SnapshotDigest digest{};
  std::uint64_t change = 0;  // the pool's change counter before it was built
};

struct ReportFence {
  std::uint64_t sequence = 0;
  domain::SnapshotDigest digest{};  // SHA-256 of the report's canonical bytes
  domain::SnapshotVersion version;  // last acknowledged, as the worker believes
  Epoch epoch;
  std::uint32_t active = 0;  // sums, for WorkerRow
  std::uint32_t reserved = 0;
  bool draining = false;
};

class WorkerRegistry {
 public:
  virtual ~WorkerRegistry() = default;

  // Opens a session under a fresh id; an older one of the same worker ends at once.
  virtual Result<WorkerRow> register_worker(const Registration& registration,
                                            Deadline deadline) = 0;
  // The row if the session is the worker's current one, else Stale.
  virtual Result<WorkerRow> session(const WorkerId& worker, const SessionId& session,
                                    Deadline deadline) = 0;
  virtual Result<std::vector<WorkerRow>> workers(Deadline deadline) = 0;
  // Ends a session for good (final report, graceful leave).
  virtual Status leave(const WorkerId& worker, const SessionId& session, Deadline deadline) = 0;

  // The next snapshot counter of this worker.
  virtual Result<std::uint64_t> next_version(const WorkerId& worker, Deadline deadline) = 0;
  // Remembers what is outstanding (one at a time, CP-5). Stale if the session is no longer current.
  virtual Status record_issued(const WorkerId& worker, const SessionId& session,
                               const IssuedSnapshot& issued, Deadline deadline) = 0;
  // What was issued and not acknowledged is lost with its stream; another may be issued.
  virtual Status withdraw_issued(const WorkerId& worker, const SessionId& session,
                                 Deadline deadline) = 0;
  // Takes the acknowledgement of the issued reference; another reference is Conflict, a replaced
  // session Stale. A rejection parks the version.
  virtual Status acknowledge(const WorkerId& worker, const SessionId& session,
                             const IssuedSnapshot& reference, domain::AckStatus status,
                             Deadline deadline) = 0;
  // Checks and stores a runtime report's fence, and prolongs the session.
  virtual Result<domain::ReportVerdict> accept_report(const WorkerId& worker,
                                                      const SessionId& session,
                                                      const ReportFence& fence,
                                                      milliseconds session_ttl,
                                                      Deadline deadline) = 0;

  // Checkers ----------------------------------------------------------------------------------
  struct CheckerRow {
    CheckerId checker;
    InstanceId instance;
    SessionId session;
    std::uint32_t in_flight_max = 0;
    StoreTime registered_at;
    StoreTime last_seen_at;
    bool live = true;
  };
  virtual Result<CheckerRow> register_checker(const CheckerId& checker, const InstanceId& instance,
                                              std::uint32_t in_flight_max, milliseconds session_ttl,
                                              Deadline deadline) = 0;
  // Prolongs and answers the row; Stale when another session replaced it.
  virtual Result<CheckerRow> touch_checker(const CheckerId& checker, const SessionId& session,
                                           milliseconds session_ttl, Deadline deadline) = 0;
  virtual Result<std::vector<CheckerRow>> checkers(Deadline deadline) = 0;
};

}  // namespace proxypool::ports
