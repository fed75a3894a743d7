// The worker's session with the controller (GW-50): register, watch, verify, apply, acknowledge,
// report; and again with backoff when anything of it breaks.
//
// Three step services share one state: the watcher follows the stream, the reporter sends what is
// in flight, a third one tells how attempts ended and holds up neither. None of them is ever on a
// serving thread. Serving goes on from the last view until its validity ends (GW-51); the session
// only moves that end.
//
// The worker counts its lease from the moment at which it sent the report that a push names, so it
// stops before the controller gives its proxies to anybody else (CP-9).
//
// Thread rule: watch_step(), report_step() and outcome_step() one thread each, everything else any
//              thread.
// Limits:      reports of the last 128 sequences are remembered; a push that names an older one
//              counts from the registration.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gateway/snapshot/usage_reporter.hpp"
#include "gateway/snapshot/view_sink.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/control_plane.hpp"
#include "proxypool/ports/crypto.hpp"

namespace proxypool::gateway {

struct SessionSettings {
  std::string cluster_id;
  std::string environment;
  WorkerId worker;
  InstanceId instance;
  std::string zone;
  std::string build;
  milliseconds call_timeout{5'000};
  milliseconds backoff_min{500};  // full jitter between zero and the current step
  milliseconds backoff_max{30'000};
  milliseconds backoff_stale_max{5'000};  // while nothing can be served: back within seconds
  // No pause is longer than this part of what the view is still valid for, so that a controller
  // that comes back in time is found in time.
  int backoff_validity_part = 4;
  milliseconds watch_slice{250};  // how long one watch_step() may wait for a message
};

struct SessionCounters {
  std::uint64_t registrations = 0;
  std::uint64_t snapshots_applied = 0;
  std::uint64_t snapshots_rejected = 0;
  std::uint64_t apply_ns = 0;  // spent on snapshots, from their arrival to their use
  std::uint64_t extends = 0;
  std::uint64_t reports = 0;
  std::uint64_t failures = 0;  // calls and streams that ended with an error
  std::uint64_t outcomes_told = 0;
  std::uint64_t outcomes_lost = 0;  // taken from the rings, and never confirmed
};

struct SessionStatus {
  bool registered = false;
  SessionId session;  // the current or the last one
  std::optional<domain::SnapshotVersion> version;
  std::optional<TimePoint> valid_until;  // of the last view; none: never had one
  std::optional<TimePoint> orphans_end;  // when tunnels of a lost lease end (C16)
  std::string warning;                   // the last failure, until the next success
  bool terminal = false;                 // the process shall end with `warning` (GW-50)
  SessionCounters counters;
};

class Session {
 public:
  Session(SessionSettings settings, ports::WorkerControl& control, ViewSink& sink,
          ports::Crypto& crypto, const Clock& clock, Random& random);

  // Does what is due and answers when to be called again; may wait for `watch_slice`.
  TimePoint watch_step(TimePoint now);
  // Sends a report when one is due.
  TimePoint report_step(TimePoint now);

  // Tells how attempts ended. A batch whose answer was lost goes again, unchanged, a few times.
  TimePoint outcome_step(TimePoint now);

  // From now on the controller gives this worker nothing new.
  void drain();
  // The last report: nothing is in flight any more. Ends the session for good.
  Status leave(Deadline deadline);
  // Ends a wait in watch_step(), from any thread.
  void cancel();

  [[nodiscard]] SessionStatus status() const;

 private:
  struct Sent {
    std::uint64_t sequence = 0;
    TimePoint at;
  };
  struct State {
    std::optional<ports::RegisterWorkerAnswer> answer;  // of the current session
    TimePoint registered_at;                            // when the registration was sent
    std::array<Sent, 128> sent{};
    std::uint64_t sequence = 0;
    domain::SnapshotVersion acknowledged;  // in this session; zero: none
    Epoch acknowledged_epoch;
    std::shared_ptr<ports::Stream<ports::Push>> stream;
    bool draining = false;
    bool left = false;
    SessionStatus status;
  };

  TimePoint register_now(TimePoint now);
  TimePoint handle(ports::Push push, TimePoint now);
  TimePoint take_full(ports::FullPush push, TimePoint now);
  TimePoint take_extend(const ports::ExtendPush& push);
  // Verifies, compiles, publishes; what the acknowledgement shall say.
  ports::SnapshotAck apply(const ports::FullPush& push, TimePoint now);
  TimePoint fail(const Error& error, TimePoint now);
  // Sends a report with what is in flight and the usage that is due, and obeys the answer.
  Result<ports::RuntimeAnswer> send(ports::RuntimeReport& report, Deadline deadline);
  [[nodiscard]] Validity validity(std::uint64_t report_sequence, StoreTime store_now,
                                  milliseconds valid_for) const;

  const SessionSettings settings_;
  ports::WorkerControl& control_;
  ViewSink& sink_;
  ports::Crypto& crypto_;
  const Clock& clock_;
  Random& random_;
  Guarded<State> state_;
  // Of the watcher alone.
  milliseconds backoff_;
  TimePoint retry_at_;
  // Of the reporter alone.
  TimePoint next_report_;
  Guarded<UsageReporter> usage_;
  // Of outcome_step() alone.
  struct {
    ports::OutcomeBatch batch;  // without outcomes: there is none
    std::uint64_t sequence = 0;
    SessionId session;
    int tries = 0;
  } telling_;
};

}  // namespace proxypool::gateway
