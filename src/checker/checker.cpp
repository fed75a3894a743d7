#include "checker/checker.hpp"

#include <utility>

#include "net/name_lookup.hpp"
#include "runtime/system.hpp"

namespace proxypool::checker {
namespace {

void register_session_metrics(const Session& session, ports::Metrics& metrics) {
  const auto counter = [&](std::string_view name, std::string_view help,
                           std::uint64_t SessionCounters::*number) {
    metrics.counter_from(name, help, [&session, number] {
      return static_cast<double>(session.status().counters.*number);
    });
  };
  counter("proxypool_checker_registrations_total", "Sessions opened with the controller",
          &SessionCounters::registrations);
  counter("proxypool_checker_tasks_total", "Tasks taken from the controller",
          &SessionCounters::tasks);
  counter("proxypool_checker_observations_sent_total", "Observations that the controller took",
          &SessionCounters::observations_sent);
  counter("proxypool_checker_observations_lost_total", "Observations that the controller never got",
          &SessionCounters::observations_lost);
  counter("proxypool_checker_control_failures_total",
          "Calls and streams to the controller that ended with an error",
          &SessionCounters::failures);
  metrics.gauge_from("proxypool_checker_session", "1 while the checker has a session",
                     [&session] { return session.status().registered ? 1.0 : 0.0; });
  metrics.gauge_from("proxypool_checker_observations_pending",
                     "Observations that wait to be reported",
                     [&session] { return static_cast<double>(session.status().pending); });
}

}  // namespace

Checker::Checker(SessionSettings session, ProberSettings prober, CheckerDeps deps)
    : deps_(std::move(deps)),
      watch_random_(runtime::thread_random().next()),
      report_random_(runtime::thread_random().next()),
      metrics_(deps_.metrics),
      lookups_("look-up", kLookupThreads, prober.in_flight_max),
      session_(
          std::move(session), deps_.control,
          [this](std::vector<domain::CheckTask> tasks) { prober_.offer(std::move(tasks)); },
          deps_.events, deps_.clock, watch_random_, report_random_),
      prober_(prober,
              {loop_, net::look_up,
               [this](std::function<void()> job) { return lookups_.try_run(std::move(job)); },
               [this](const domain::Observation& seen) { session_.observe(seen); }, metrics_,
               deps_.events, deps_.tls}) {
  register_session_metrics(session_, deps_.metrics);
}

Status Checker::start() {
  loop_thread_ = std::thread([this] {
    runtime::name_this_thread("probes");
    loop_.run();
  });
  reporter_ = std::make_unique<runtime::Stepper>(
      "report", [this](TimePoint now) { return session_.report_step(now); });
  session_.on_report_due([this] { reporter_->wake(); });
  watcher_ =
      std::make_unique<runtime::Stepper>("watch", [this](TimePoint now) { return watch(now); });
  return ok();
}

TimePoint Checker::watch(TimePoint now) {
  const TimePoint next = session_.watch_step(now);
  const SessionStatus status = session_.status();
  if (!status.terminal) return next;
  deps_.give_up(status.warning);
  return kNever;
}

void Checker::stop_intake() {
  session_.drain();
  prober_.stop_intake();
}

bool Checker::drain(Deadline deadline) {
  return prober_.drain(deadline.left(deps_.clock.now()));
}

void Checker::stop() {
  if (!watcher_) return;
  watcher_->stop();
  lookups_.stop();
  loop_.stop();
  loop_thread_.join();
  // Nobody observes any more, so nobody wakes the reporter.
  session_.on_report_due(nullptr);
  reporter_->stop();
  // A controller that is gone learns of the rest by its own leases.
  static_cast<void>(session_.flush(Deadline::after(deps_.clock.now(), kLastReport)));
  watcher_.reset();
  reporter_.reset();
}

std::vector<std::string> Checker::not_ready() const {
  const SessionStatus status = session_.status();
  if (status.registered) return {};
  return {status.warning.empty() ? "no session with the controller yet"
                                 : "no session with the controller: " + status.warning};
}

}  // namespace proxypool::checker
