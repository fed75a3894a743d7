#include "gateway/snapshot/session_metrics.hpp"

namespace proxypool::gateway {

namespace {

double seconds_of(nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::vector<std::string> not_ready(const Session& session, const Clock& clock) {
  const SessionStatus status = session.status();
  if (!status.valid_until) {
    return {status.warning.empty() ? "no snapshot yet" : "no snapshot yet: " + status.warning};
  }
  if (clock.now() >= *status.valid_until) {
    return {"the snapshot is no longer valid: " +
            (status.warning.empty() ? std::string("the controller does not extend it")
                                    : status.warning)};
  }
  return {};
}

std::vector<std::string> warnings(const Session& session) {
  const SessionStatus status = session.status();
  if (status.warning.empty()) return {};
  return {status.warning};
}

void register_metrics(const Session& session, ViewSink& views, const Clock& clock,
                      ports::Metrics& metrics) {
  const auto counter = [&](std::string_view name, std::string_view help,
                           std::uint64_t SessionCounters::*member) {
    metrics.counter_from(name, help, [&session, member] {
      return static_cast<double>(session.status().counters.*member);
    });
  };
  counter("proxypool_session_registrations_total", "Sessions opened with the controller",
          &SessionCounters::registrations);
  counter("proxypool_session_failures_total", "Calls and streams that ended with an error",
          &SessionCounters::failures);
  counter("proxypool_session_reports_total", "Runtime reports that were accepted",
          &SessionCounters::reports);
  counter("proxypool_snapshots_applied_total", "Snapshots that every serving thread uses",
          &SessionCounters::snapshots_applied);
  counter("proxypool_snapshots_refused_total", "Snapshots that were refused as a whole",
          &SessionCounters::snapshots_rejected);
  metrics.counter_from("proxypool_snapshot_apply_seconds_total",
                       "Time spent on snapshots, from their arrival to their use", [&session] {
                         return static_cast<double>(session.status().counters.apply_ns) * 1e-9;
                       });
  counter("proxypool_session_outcomes_told_total", "Outcomes of attempts that the controller took",
          &SessionCounters::outcomes_told);
  counter("proxypool_session_outcomes_lost_total",
          "Outcomes of attempts that were never confirmed by the controller",
          &SessionCounters::outcomes_lost);
  metrics.gauge_from("proxypool_snapshot_version", "Counter of the snapshot that is served",
                     [&session] {
                       const auto version = session.status().version;
                       return version ? static_cast<double>(version->counter) : 0.0;
                     });
  counter("proxypool_snapshot_extensions_total", "Extensions of the validity",
          &SessionCounters::extends);
  metrics.gauge_from("proxypool_gateway_proxies", "Proxies of the view that may be used", [&views] {
    const auto held = views.held();
    return held ? static_cast<double>(held->proxies.size()) : 0.0;
  });
  metrics.gauge_from("proxypool_session_registered", "Whether a session stands",
                     [&session] { return session.status().registered ? 1.0 : 0.0; });
  metrics.gauge_from("proxypool_snapshot_validity_seconds",
                     "How long the view stays valid, or since when not", [&session, &clock] {
                       const auto until = session.status().valid_until;
                       return until ? seconds_of(*until - clock.now()) : 0.0;
                     });
}

}  // namespace proxypool::gateway
