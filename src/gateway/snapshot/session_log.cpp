#include "gateway/snapshot/session_log.hpp"

#include <utility>

namespace proxypool::gateway {

using ports::Event;

void SessionLog::look(TimePoint now) {
  SessionStatus status = session_.status();
  say_session(status);
  say_snapshots(status, now);
  seen_ = std::move(status);
}

void SessionLog::say_session(const SessionStatus& status) {
  const bool another = status.counters.registrations != seen_.counters.registrations;
  if (seen_.registered && (!status.registered || another)) {
    events_.emit(Event::SessionLost,
                 {{"session", seen_.session.str()}, {"reason", status.warning}});
  }
  if (status.registered && (!seen_.registered || another)) {
    events_.emit(Event::SessionOpened, {{"session", status.session.str()}});
  }
  // Nobody answers at all: said once, and again when another reason comes up.
  const bool failed = status.counters.failures != seen_.counters.failures;
  if (!status.registered && !seen_.registered && failed && status.warning != seen_.warning) {
    events_.emit(Event::SessionLost, {{"reason", status.warning}});
  }
}

void SessionLog::say_snapshots(const SessionStatus& status, TimePoint now) {
  const auto version = status.version.value_or(domain::SnapshotVersion{});
  if (status.counters.snapshots_rejected != seen_.counters.snapshots_rejected) {
    events_.emit(Event::SnapshotRefused, {{"reason", status.warning}});
  }
  if (status.counters.snapshots_applied != seen_.counters.snapshots_applied) {
    const auto held = views_.held();
    events_.emit(Event::SnapshotApplied, {{"generation", version.generation},
                                          {"version", version.counter},
                                          {"proxies", held ? held->proxies.size() : 0},
                                          {"valid_for", status.valid_until.value_or(now) - now}});
  }
  const bool over = status.valid_until && now >= *status.valid_until;
  if (over && !std::exchange(expired_, true)) {
    events_.emit(Event::SnapshotExpired, {{"version", version.counter}});
  }
  if (!over) expired_ = false;
}

}  // namespace proxypool::gateway
