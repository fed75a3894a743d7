// The checker's session with the controller: register, take tasks, report what was observed; and
// again with backoff when anything of it breaks.
//
// Two step services share one state, like the worker's session: the watcher follows the stream of
// tasks, the reporter sends observations in batches. An empty report keeps the session alive while
// there is nothing to observe. A batch that could not be delivered is kept and sent again; one of
// a session that was replaced is worthless, and dropped.
//
// Thread rule: watch_step() one thread, report_step() and flush() one thread, all else any thread.
// Limits:      `batch_max` observations in a report, none older than `batch_age_max` when it is
//              sent; `pending_max` kept, beyond that the oldest is lost and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/control_plane.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::checker {

struct SessionSettings {
  std::string cluster_id;
  std::string environment;
  CheckerId checker;
  InstanceId instance;
  std::string build;
  std::uint32_t in_flight_max = 256;
  milliseconds call_timeout{5'000};
  milliseconds backoff_min{500};      // full jitter between zero and the current step
  milliseconds backoff_max{5'000};    // no proxy of a new store is served before its first check
  milliseconds settled_after{5'000};  // a session that lived so long resets the backoff
  milliseconds watch_slice{250};      // how long one watch_step() may wait for a message
  std::size_t batch_max = 512;
  milliseconds batch_age_max{200};
  std::size_t pending_max = 8'192;
};

struct SessionCounters {
  std::uint64_t registrations = 0;
  std::uint64_t tasks = 0;
  std::uint64_t observations_sent = 0;
  std::uint64_t observations_lost = 0;
  std::uint64_t failures = 0;  // calls and streams that ended with an error
};

struct SessionStatus {
  bool registered = false;
  bool terminal = false;  // the process shall end with `warning`
  std::string warning;    // the last failure, until the next registration
  std::size_t pending = 0;
  SessionCounters counters;
};

class Session {
 public:
  using Offer = std::function<void(std::vector<domain::CheckTask>)>;

  Session(SessionSettings settings, ports::CheckerControl& control, Offer offer,
          ports::Events& events, const Clock& clock, Random& watch_random, Random& report_random);

  // Called, from any thread, when report_step() should run before its time.
  void on_report_due(std::function<void()> wake);

  // Does what is due and answers when to be called again; may wait for `watch_slice`.
  TimePoint watch_step(TimePoint now);
  // Sends a batch when one is due.
  TimePoint report_step(TimePoint now);

  void observe(const domain::Observation& observation);

  // Takes no more tasks, from any thread; observations are still reported.
  void drain();
  // Sends everything that is pending now.
  Status flush(Deadline deadline);

  [[nodiscard]] SessionStatus status() const;

 private:
  struct Pending {
    domain::Observation observation;
    TimePoint since;
  };
  struct State {
    std::optional<SessionId> session;
    milliseconds ttl{0};
    TimePoint last_report;  // the last that arrived, or the registration
    std::shared_ptr<ports::Stream<std::vector<domain::CheckTask>>> stream;
    std::deque<Pending> pending;
    bool draining = false;
    std::function<void()> wake;
    SessionStatus status;
  };
  struct Batch {
    ports::ObservationReport report;
    TimePoint since;  // of its oldest
  };

  TimePoint open(TimePoint now);
  TimePoint lose(const Error& error, TimePoint now);
  // The next batch when one is due at `now`; else when one will be.
  std::optional<Batch> take_due(TimePoint now, TimePoint& next);
  Status send(Batch batch, Deadline deadline);
  static void drop_oldest(State& state, std::size_t pending_max);

  const SessionSettings settings_;
  ports::CheckerControl& control_;
  const Offer offer_;
  ports::Events& events_;
  const Clock& clock_;
  Guarded<State> state_;
  // Of the watcher alone.
  Random& watch_random_;
  milliseconds watch_backoff_;
  TimePoint retry_at_;
  TimePoint opened_at_;
  bool ever_opened_ = false;
  // Of the reporter alone.
  Random& report_random_;
  milliseconds report_backoff_;
  TimePoint report_not_before_;
};

}  // namespace proxypool::checker
