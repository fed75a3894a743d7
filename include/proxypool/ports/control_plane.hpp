// The control plane, seen from both ends and without its transport.
//
// A worker or checker calls WorkerControl and CheckerControl; the controller implements
// WorkerService and CheckerService, and the gRPC adapter joins them. Messages are domain values.
//
// Durations only: lease and validity travel as milliseconds, and each side counts them on its own
// boot clock (CP-9). The worker counts from the moment at which it sent the report whose sequence
// a push echoes; the controller from processing it, plus the margin.
//
// Thread rule: as written on each class.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/activitypool/lease.hpp"
#include "proxypool/domain/activitypool/session.hpp"
#include "proxypool/domain/client/usage.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/domain/traffic/outcome.hpp"

namespace proxypool::ports {

inline constexpr std::uint32_t kProtocolVersion = 1;

// Messages ---------------------------------------------------------------------------------------

struct RegisterWorkerRequest {
  std::string cluster_id;
  std::string environment;
  WorkerId worker;
  InstanceId instance;
  std::string zone;
  std::uint32_t protocol_version = kProtocolVersion;
  std::string build;      // shown in Admin, never compared
  bool draining = false;  // hand-over: may still report, gets nothing new (C17)
  // The last view, valid or not, and the proxies in it (C18).
  std::optional<domain::SnapshotVersion> held_version;
  milliseconds held_valid_for{0};  // how long that view stays valid; 0: it has ended
  std::vector<ProxyId> held;
  // What it works on besides: proxies that it lost, and those of a view that has ended (C16).
  std::vector<domain::RunningOn> running;
};

struct RegisterWorkerAnswer {
  SessionId session;
  Epoch epoch;
  milliseconds stale_age_max{60'000};  // = controlPlane.lease (C9)
  milliseconds report_interval{1'000};
  milliseconds margin{2'000};
  milliseconds orphan_grace{30'000};  // tunnels end this long after the lease (C16)
};

// A complete picture. `report_sequence` is the last report processed before `valid_for` was set; 0:
// none yet, the worker counts from the moment at which it sent the registration.
struct FullPush {
  std::shared_ptr<const domain::WorkerSnapshot> snapshot;
  domain::SnapshotDigest digest{};
  StoreTime store_now;
  milliseconds valid_for{0};
  std::uint64_t report_sequence = 0;
};

// Prolongs a version that the worker acknowledged; `revoked` is always obeyed (C13).
struct ExtendPush {
  domain::SnapshotVersion version;
  Epoch epoch;
  StoreTime store_now;
  milliseconds valid_for{0};
  std::uint64_t report_sequence = 0;
  std::vector<ProxyId> revoked;
};

using Push = std::variant<FullPush, ExtendPush>;

using domain::AckStatus;

struct RejectedEntry {
  ProxyId proxy;
  std::string reason;
};

struct SnapshotAck {
  WorkerId worker;
  SessionId session;
  domain::SnapshotVersion version;
  Epoch epoch;
  domain::SnapshotDigest digest{};
  AckStatus status = AckStatus::Applied;
  std::string reason;                   // of a rejection
  milliseconds retry_after{0};          // of Busy
  std::vector<RejectedEntry> rejected;  // quarantined proxies of an applied version; at most 1,000
};

struct ProxyCount {
  ProxyId id;
  Epoch lease_epoch;
  std::uint32_t active = 0;
  std::uint32_t reserved = 0;
  bool draining = false;
};

// A full sparse replacement: a proxy that is absent has nothing in flight.
struct RuntimeReport {
  WorkerId worker;
  SessionId session;
  std::uint64_t sequence = 0;  // 1, 2, 3 … within the session
  domain::SnapshotVersion version;
  Epoch epoch;
  bool final_report = false;  // the worker leaves: nothing is in flight any more
  bool draining = false;
  std::vector<ProxyCount> counts;
  // The batch that waits for its confirmation, the same in every report until then.
  domain::UsageBatch usage;
};

struct RuntimeAnswer {
  std::uint64_t accepted_sequence = 0;
  std::vector<ProxyId> revoke;           // only speeds up what a push says anyway
  std::uint64_t kept_usage = 0;          // every batch of this instance up to that number is kept
  std::vector<ClientName> over_quota{};  // all of them; they begin nothing until the day ends
  milliseconds quota_resets_in{0};       // when it does
};

// How one attempt through a proxy ended, as a worker tells it.
struct Outcome {
  domain::TrafficOutcome what;
  Epoch lease_epoch;          // of the lease that it had on the proxy
  std::uint32_t routing = 0;  // in OutcomeBatch::routings
  std::uint64_t request_id = 0;
  milliseconds age{0};  // since it happened, when the batch was made
};

// Sent again unchanged when its answer was lost; sequences count 1, 2, 3 … within the session.
struct OutcomeBatch {
  WorkerId worker;
  SessionId session;
  std::uint64_t sequence = 0;
  domain::SnapshotVersion version;  // that the worker had acknowledged when it made the batch
  std::vector<RoutingId> routings;
  std::vector<Outcome> outcomes;
};

inline constexpr std::size_t kOutcomesMax = 512;  // in one batch

struct RegisterCheckerRequest {
  std::string cluster_id;
  std::string environment;
  CheckerId checker;
  InstanceId instance;
  std::uint32_t protocol_version = kProtocolVersion;
  std::string build;
  std::uint32_t in_flight_max = 0;
  std::vector<domain::CheckLevel> levels;
};

struct RegisterCheckerAnswer {
  SessionId session;
  milliseconds session_ttl{60'000};
};

struct ObservationReport {
  CheckerId checker;
  SessionId session;
  std::vector<domain::Observation> observations;  // at most 512
};

// The worker's and checker's side ----------------------------------------------------------------

// A server stream. Thread rule: one thread at a time; cancel() from any thread.
template <class Message>
class Stream {
 public:
  virtual ~Stream() = default;
  // The next message; DeadlineExceeded leaves the stream usable, every other error ends it.
  virtual Result<Message> next(Deadline deadline) = 0;
  virtual void cancel() = 0;
};

// Thread rule: any thread.
// Errors:      Unavailable, DeadlineExceeded (retry with backoff); Stale (register again);
//              Unauthenticated, Forbidden, InvalidArgument (terminal before the first valid view).
class WorkerControl {
 public:
  virtual ~WorkerControl() = default;
  virtual Result<RegisterWorkerAnswer> register_worker(const RegisterWorkerRequest& request,
                                                       Deadline deadline) = 0;
  virtual Result<std::unique_ptr<Stream<Push>>> watch_snapshots(
      const WorkerId& worker, const SessionId& session,
      const std::optional<domain::SnapshotVersion>& held) = 0;
  virtual Status acknowledge(const SnapshotAck& ack, Deadline deadline) = 0;
  virtual Result<RuntimeAnswer> report_runtime(const RuntimeReport& report, Deadline deadline) = 0;
  virtual Status report_outcomes(const OutcomeBatch& batch, Deadline deadline) = 0;
};

class CheckerControl {
 public:
  virtual ~CheckerControl() = default;
  virtual Result<RegisterCheckerAnswer> register_checker(const RegisterCheckerRequest& request,
                                                         Deadline deadline) = 0;
  virtual Result<std::unique_ptr<Stream<std::vector<domain::CheckTask>>>> watch_tasks(
      const CheckerId& checker, const SessionId& session) = 0;
  virtual Status report_observations(const ObservationReport& report, Deadline deadline) = 0;
};

// The controller's side --------------------------------------------------------------------------

// What a peer proved about itself; empty on plaintext loopback.
struct Peer {
  std::string identity;  // SPIFFE id
  std::string address;
};

// One open server stream as its service sees it. The transport calls take() when it can write and
// after each wake(); it never holds more than one message (CP-5: a mailbox of one, latest wins).
//
// Thread rule: take() one thread at a time; wake() (given at opening) is called from any thread and
//              must not block. closed() is called once, after which wake() is not called any more.
template <class Message>
class Outbox {
 public:
  virtual ~Outbox() = default;
  // The next message, or nothing now; an error ends the stream with that error.
  virtual Result<std::optional<Message>> take() = 0;
  virtual void closed() = 0;
};

// Thread rule: any thread; methods may block on stores, within the deadline.
class WorkerService {
 public:
  virtual ~WorkerService() = default;
  virtual Result<RegisterWorkerAnswer> register_worker(const RegisterWorkerRequest& request,
                                                       const Peer& peer, Deadline deadline) = 0;
  virtual Result<std::shared_ptr<Outbox<Push>>> open_snapshots(
      const WorkerId& worker, const SessionId& session,
      const std::optional<domain::SnapshotVersion>& held, const Peer& peer,
      std::function<void()> wake, Deadline deadline) = 0;
  virtual Status acknowledge(const SnapshotAck& ack, const Peer& peer, Deadline deadline) = 0;
  virtual Result<RuntimeAnswer> report_runtime(const RuntimeReport& report, const Peer& peer,
                                               Deadline deadline) = 0;
  // A batch counts once. Conflict: its sequence was used with another content, or is too old.
  virtual Status report_outcomes(const OutcomeBatch& batch, const Peer& peer,
                                 Deadline deadline) = 0;
};

class CheckerService {
 public:
  virtual ~CheckerService() = default;
  virtual Result<RegisterCheckerAnswer> register_checker(const RegisterCheckerRequest& request,
                                                         const Peer& peer, Deadline deadline) = 0;
  virtual Result<std::shared_ptr<Outbox<std::vector<domain::CheckTask>>>> open_tasks(
      const CheckerId& checker, const SessionId& session, const Peer& peer,
      std::function<void()> wake, Deadline deadline) = 0;
  virtual Status report_observations(const ObservationReport& report, const Peer& peer,
                                     Deadline deadline) = 0;
};

}  // namespace proxypool::ports
