#include "checker/session.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace proxypool::checker {
namespace {

// A refusal that trying again does not mend.
bool refuses_us(ErrorCode code) noexcept {
  return code == ErrorCode::InvalidArgument || code == ErrorCode::Unauthenticated ||
         code == ErrorCode::Forbidden;
}

// Full jitter: anywhere between now and the step.
nanoseconds jitter(milliseconds step, Random& random) {
  return nanoseconds(
      static_cast<std::int64_t>(static_cast<double>(nanoseconds(step).count()) * random.unit()));
}

}  // namespace

Session::Session(SessionSettings settings, ports::CheckerControl& control, Offer offer,
                 ports::Events& events, const Clock& clock, Random& watch_random,
                 Random& report_random)
    : settings_(std::move(settings)),
      control_(control),
      offer_(std::move(offer)),
      events_(events),
      clock_(clock),
      watch_random_(watch_random),
      watch_backoff_(settings_.backoff_min),
      report_random_(report_random),
      report_backoff_(settings_.backoff_min) {}

void Session::on_report_due(std::function<void()> wake) {
  state_.with([&](State& state) { state.wake = std::move(wake); });
}

SessionStatus Session::status() const {
  return state_.with([](const State& state) {
    SessionStatus status = state.status;
    status.pending = state.pending.size();
    return status;
  });
}

TimePoint Session::watch_step(TimePoint now) {
  if (now < retry_at_) return retry_at_;
  const auto [stream, stop] = state_.with([](const State& state) {
    return std::pair(state.stream, state.draining || state.status.terminal);
  });
  if (stop) return kNever;
  if (!stream) return open(now);
  auto tasks = stream->next(Deadline::after(now, settings_.watch_slice));
  if (clock_.now() - opened_at_ >= settings_.settled_after) {
    watch_backoff_ = settings_.backoff_min;
  }
  if (!tasks) {
    if (tasks.error().code == ErrorCode::DeadlineExceeded) return clock_.now();
    return lose(tasks.error(), clock_.now());
  }
  state_.with([&](State& state) { state.status.counters.tasks += tasks->size(); });
  offer_(*std::move(tasks));
  return clock_.now();
}

TimePoint Session::open(TimePoint now) {
  ports::RegisterCheckerRequest request;
  request.cluster_id = settings_.cluster_id;
  request.environment = settings_.environment;
  request.checker = settings_.checker;
  request.instance = settings_.instance;
  request.build = settings_.build;
  request.in_flight_max = settings_.in_flight_max;
  request.levels = {domain::CheckLevel::Basic};
  auto answer = control_.register_checker(request, Deadline::after(now, settings_.call_timeout));
  if (!answer) return lose(answer.error(), clock_.now());
  auto stream = control_.watch_tasks(settings_.checker, answer->session);
  if (!stream) return lose(stream.error(), clock_.now());
  opened_at_ = clock_.now();
  ever_opened_ = true;
  const auto wake = state_.with([&](State& state) {
    state.session = answer->session;
    state.ttl = answer->session_ttl;
    state.last_report = opened_at_;
    state.stream = *std::move(stream);
    // Of tasks that an older session was given: the controller does not wait for them any more.
    state.status.counters.observations_lost += state.pending.size();
    state.pending.clear();
    state.status.registered = true;
    state.status.warning.clear();
    ++state.status.counters.registrations;
    if (state.draining) state.stream->cancel();
    return state.wake;
  });
  if (wake) wake();  // the reporter keeps the session alive from now on
  events_.emit(ports::Event::SessionOpened, {{"session", answer->session.str()}});
  return opened_at_;
}

TimePoint Session::lose(const Error& error, TimePoint now) {
  const bool draining = state_.with([&](State& state) {
    state.stream.reset();
    if (state.draining) return true;  // the session itself stays for the last reports
    state.session.reset();
    state.status.registered = false;
    state.status.warning = error.message;
    state.status.terminal = refuses_us(error.code) && !ever_opened_;
    ++state.status.counters.failures;
    return false;
  });
  if (draining) return kNever;
  const nanoseconds pause = jitter(watch_backoff_, watch_random_);
  watch_backoff_ = std::min(watch_backoff_ * 2, settings_.backoff_max);
  retry_at_ = now + pause;
  events_.emit(refuses_us(error.code) ? ports::Event::SessionRefused : ports::Event::SessionLost,
               {{"reason", error.message}, {"retry_in", pause}});
  return retry_at_;
}

void Session::observe(const domain::Observation& observation) {
  const TimePoint now = clock_.now();
  const auto wake = state_.with([&](State& state) -> std::function<void()> {
    state.pending.push_back({observation, now});
    drop_oldest(state, settings_.pending_max);
    // The first one sets the alarm, a full batch rings it.
    const std::size_t count = state.pending.size();
    return count == 1 || count == settings_.batch_max ? state.wake : nullptr;
  });
  if (wake) wake();
}

void Session::drop_oldest(State& state, std::size_t pending_max) {
  while (state.pending.size() > pending_max) {
    state.pending.pop_front();
    ++state.status.counters.observations_lost;
  }
}

std::optional<Session::Batch> Session::take_due(TimePoint now, TimePoint& next) {
  return state_.with([&](State& state) -> std::optional<Batch> {
    next = kNever;  // on_report_due() will tell
    if (!state.session) {
      if (!state.pending.empty()) next = Deadline::after(now, settings_.batch_age_max).at();
      return std::nullopt;
    }
    const TimePoint heartbeat = state.last_report + state.ttl / 3;
    next = state.pending.empty()
               ? heartbeat
               : std::min(heartbeat, state.pending.front().since + settings_.batch_age_max);
    if (now < next && state.pending.size() < settings_.batch_max) return std::nullopt;
    Batch batch;
    batch.report.checker = settings_.checker;
    batch.report.session = *state.session;
    batch.since = state.pending.empty() ? now : state.pending.front().since;
    while (!state.pending.empty() && batch.report.observations.size() < settings_.batch_max) {
      batch.report.observations.push_back(state.pending.front().observation);
      state.pending.pop_front();
    }
    return batch;
  });
}

TimePoint Session::report_step(TimePoint now) {
  if (now < report_not_before_) return report_not_before_;
  TimePoint next = kNever;
  auto batch = take_due(now, next);
  if (!batch) return next;
  if (send(*std::move(batch), Deadline::after(now, settings_.call_timeout))) {
    report_backoff_ = settings_.backoff_min;
    return clock_.now();
  }
  report_not_before_ = clock_.now() + jitter(report_backoff_, report_random_);
  report_backoff_ = std::min(report_backoff_ * 2, settings_.backoff_max);
  return report_not_before_;
}

Status Session::send(Batch batch, Deadline deadline) {
  const std::size_t count = batch.report.observations.size();
  const TimePoint sent_at = clock_.now();
  auto sent = control_.report_observations(batch.report, deadline);
  std::size_t lost = 0;
  state_.with([&](State& state) {
    const bool current = state.session == batch.report.session;
    if (sent) {
      state.status.counters.observations_sent += count;
      if (current) state.last_report = sent_at;
      return;
    }
    ++state.status.counters.failures;
    const std::uint64_t before = state.status.counters.observations_lost;
    // What another try may deliver is kept; a refusal and the end of the session are final.
    if (current && sent.error().retryable) {
      for (auto it = batch.report.observations.rbegin(); it != batch.report.observations.rend();
           ++it) {
        state.pending.push_front({*it, batch.since});
      }
      drop_oldest(state, settings_.pending_max);
    } else {
      state.status.counters.observations_lost += count;
    }
    // The watcher owns the session: ending its stream makes it register again.
    if (current && !sent.error().retryable && state.stream) state.stream->cancel();
    lost = state.status.counters.observations_lost - before;
  });
  if (!sent) {
    events_.emit(ports::Event::ReportFailed, {{"reason", sent.error().message}, {"lost", lost}});
  }
  return sent;
}

void Session::drain() {
  const auto stream = state_.with([](State& state) {
    state.draining = true;
    return state.stream;
  });
  if (stream) stream->cancel();
}

Status Session::flush(Deadline deadline) {
  while (true) {
    TimePoint next = kNever;
    // Far enough ahead for everything to be due; an empty batch is a heartbeat nobody needs.
    auto batch = take_due(kNever, next);
    if (!batch || batch->report.observations.empty()) return ok();
    if (auto sent = send(*std::move(batch), deadline); !sent) return sent;
  }
}

}  // namespace proxypool::checker
