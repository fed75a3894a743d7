#include "gateway/snapshot/session.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "proxypool/domain/activitypool/lease.hpp"
#include "proxypool/domain/cluster/digest.hpp"

namespace proxypool::gateway {

namespace {

bool refuses_us(ErrorCode code) noexcept {
  return code == ErrorCode::Unauthenticated || code == ErrorCode::Forbidden ||
         code == ErrorCode::InvalidArgument;
}

}  // namespace

Session::Session(SessionSettings settings, ports::WorkerControl& control, ViewSink& sink,
                 ports::Crypto& crypto, const Clock& clock, Random& random)
    : settings_(std::move(settings)),
      control_(control),
      sink_(sink),
      crypto_(crypto),
      clock_(clock),
      random_(random),
      backoff_(settings_.backoff_min),
      usage_(UsageReporter(clock.wall_now())) {}

SessionStatus Session::status() const {
  return state_.with([](const State& state) { return state.status; });
}

void Session::drain() {
  state_.with([](State& state) { state.draining = true; });
}

void Session::cancel() {
  const auto stream = state_.with([](const State& state) { return state.stream; });
  if (stream) stream->cancel();
}

TimePoint Session::watch_step(TimePoint now) {
  const auto stream = state_.with([](const State& state) { return state.stream; });
  if (state_.with([](const State& state) { return state.left; })) return kNever;
  if (!stream) return now < retry_at_ ? retry_at_ : register_now(now);
  auto push = stream->next(Deadline::after(now, settings_.watch_slice));
  if (push) return handle(*std::move(push), clock_.now());
  if (push.error().code == ErrorCode::DeadlineExceeded) return now;
  return fail(push.error(), clock_.now());
}

TimePoint Session::register_now(TimePoint now) {
  ports::RegisterWorkerRequest request;
  request.cluster_id = settings_.cluster_id;
  request.environment = settings_.environment;
  request.worker = settings_.worker;
  request.instance = settings_.instance;
  request.zone = settings_.zone;
  request.build = settings_.build;
  request.draining = state_.with([](const State& state) { return state.draining; });
  if (auto held = sink_.held()) {
    request.held_version = held->version;
    request.held = std::move(held->proxies);
    if (held->valid_until > now) {
      request.held_valid_for = std::chrono::duration_cast<milliseconds>(held->valid_until - now);
    }
  }
  const bool valid = request.held_valid_for > milliseconds{0};
  const std::set<ProxyId> claimed(request.held.begin(), request.held.end());
  for (const ports::ProxyCount& count : sink_.counts()) {
    if (valid && claimed.contains(count.id)) continue;
    request.running.push_back({count.id, count.active + count.reserved});
  }
  auto answer = control_.register_worker(request, Deadline::after(now, settings_.call_timeout));
  if (!answer) return fail(answer.error(), clock_.now());
  auto stream = control_.watch_snapshots(settings_.worker, answer->session, request.held_version);
  if (!stream) return fail(stream.error(), clock_.now());
  state_.with([&](State& state) {
    state.answer = *answer;
    state.registered_at = now;
    state.sent = {};
    state.sequence = 0;
    state.acknowledged = {};
    state.acknowledged_epoch = {};
    state.stream = *std::move(stream);
    state.status.registered = true;
    state.status.session = state.answer->session;
    ++state.status.counters.registrations;
  });
  return now;
}

TimePoint Session::fail(const Error& error, TimePoint now) {
  const milliseconds longest = state_.with([&](State& state) {
    state.stream.reset();
    state.answer.reset();
    state.status.registered = false;
    state.status.warning = error.message;
    ++state.status.counters.failures;
    // Before the first view a refusal can only be a wrong set-up. Later the worker serves what it
    // has, and ends when its tunnels have (GW-50).
    const bool ended = !state.status.orphans_end || now >= *state.status.orphans_end;
    state.status.terminal = refuses_us(error.code) && ended;
    if (!state.status.valid_until || now >= *state.status.valid_until) {
      return settings_.backoff_stale_max;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(*state.status.valid_until - now);
    return std::max(settings_.backoff_min, left / settings_.backoff_validity_part);
  });
  // A replaced session says nothing about the controller's health: register again soon.
  const auto jitter =
      std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double, std::milli>(
          static_cast<double>(std::min(backoff_, longest).count()) * random_.unit()));
  retry_at_ = now + jitter;
  backoff_ = std::min(backoff_ * 2, settings_.backoff_max);
  return retry_at_;
}

TimePoint Session::handle(ports::Push push, TimePoint now) {
  if (auto* full = std::get_if<ports::FullPush>(&push)) return take_full(std::move(*full), now);
  return take_extend(std::get<ports::ExtendPush>(push));
}

Validity Session::validity(std::uint64_t report_sequence, StoreTime store_now,
                           milliseconds valid_for) const {
  return state_.with([&](const State& state) {
    const Sent& sent = state.sent[report_sequence % state.sent.size()];
    const bool known = report_sequence != 0 && sent.sequence == report_sequence;
    Validity validity;
    validity.base = known ? sent.at : state.registered_at;
    validity.store_now = store_now;
    const auto answer = state.answer.value_or(ports::RegisterWorkerAnswer{});
    const auto lease =
        domain::worker_lease(validity.base, valid_for, {answer.margin, answer.orphan_grace});
    validity.until = lease.work_until;
    validity.tunnels_until = lease.tunnels_until;
    return validity;
  });
}

ports::SnapshotAck Session::apply(const ports::FullPush& push, TimePoint now) {
  ports::SnapshotAck ack;
  ack.worker = settings_.worker;
  ack.version = push.snapshot->version;
  ack.epoch = push.snapshot->epoch;
  ack.digest = push.digest;
  const Validity times = validity(push.report_sequence, push.store_now, push.valid_for);
  const auto digest = domain::digest_of(
      *push.snapshot, [this](std::string_view bytes) { return crypto_.sha256(bytes); });
  Result<std::vector<ports::RejectedEntry>> applied = [&]() -> decltype(applied) {
    if (digest != push.digest) {
      return Error{ErrorCode::Corrupt, Origin::Internal, "the digest does not match"};
    }
    if (times.until <= now) {
      return Error{ErrorCode::Stale, Origin::Internal, "the snapshot's validity has ended"};
    }
    return sink_.apply(push.snapshot, times);
  }();
  if (applied) {
    ack.status = domain::AckStatus::Applied;
    ack.rejected = *std::move(applied);
  } else {
    ack.status = domain::AckStatus::Rejected;
    ack.reason = applied.error().message;
  }
  const TimePoint done = clock_.now();
  state_.with([&](State& state) {
    state.status.counters.apply_ns += static_cast<std::uint64_t>((done - now).count());
    if (!state.answer) return;
    ack.session = state.answer->session;
    if (ack.status != domain::AckStatus::Applied) {
      ++state.status.counters.snapshots_rejected;
      state.status.warning = "snapshot refused: " + ack.reason;
      return;
    }
    ++state.status.counters.snapshots_applied;
    state.status.version = ack.version;
    state.status.valid_until = times.until;
    state.status.orphans_end = times.tunnels_until;
  });
  return ack;
}

TimePoint Session::take_full(ports::FullPush push, TimePoint now) {
  const ports::SnapshotAck ack = apply(push, now);
  const TimePoint done = clock_.now();
  const auto sent = control_.acknowledge(ack, Deadline::after(done, settings_.call_timeout));
  if (!sent) return fail(sent.error(), clock_.now());
  if (ack.status == domain::AckStatus::Applied) {
    backoff_ = settings_.backoff_min;
    state_.with([&](State& state) {
      state.acknowledged = ack.version;
      state.acknowledged_epoch = ack.epoch;
      state.status.warning.clear();
    });
  }
  return done;
}

TimePoint Session::take_extend(const ports::ExtendPush& push) {
  const bool ours = state_.with([&](const State& state) {
    return state.acknowledged != domain::SnapshotVersion{} && state.acknowledged == push.version &&
           state.acknowledged_epoch == push.epoch;
  });
  const TimePoint now = clock_.now();
  if (!ours) {
    sink_.revoke(push.revoked);  // always obeyed (C13)
    return fail({ErrorCode::Stale, Origin::Internal, "an extension names a version not held"}, now);
  }
  const Validity times = validity(push.report_sequence, push.store_now, push.valid_for);
  sink_.extend(times, push.revoked);
  state_.with([&](State& state) {
    ++state.status.counters.extends;
    state.status.warning.clear();
    // As the sink does: an answer to an older report never shortens what stands.
    if (times.until <= *state.status.valid_until) return;
    state.status.valid_until = times.until;
    state.status.orphans_end = times.tunnels_until;
  });
  backoff_ = settings_.backoff_min;
  return now;
}

TimePoint Session::report_step(TimePoint now) {
  constexpr milliseconds kIdle{100};  // without a session: how often to look for one
  if (now < next_report_) return next_report_;
  ports::RuntimeReport report;
  report.worker = settings_.worker;
  // Read before the counts: a version acknowledged in between does not vouch for them.
  const auto interval = state_.with([&](State& state) -> std::optional<milliseconds> {
    if (!state.answer || state.left) return std::nullopt;
    report.session = state.answer->session;
    report.sequence = ++state.sequence;
    report.version = state.acknowledged;
    report.epoch = state.acknowledged_epoch;
    report.draining = state.draining;
    state.sent[report.sequence % state.sent.size()] = {report.sequence, now};
    return state.answer->report_interval;
  });
  if (!interval) return now + kIdle;
  const auto answer = send(report, Deadline::after(now, settings_.call_timeout));
  const bool current = state_.with([&](State& state) {
    if (answer) ++state.status.counters.reports;
    return state.answer && state.answer->session == report.session;
  });
  if (!answer && current) {
    state_.with([&](State& state) {
      ++state.status.counters.failures;
      state.status.warning = answer.error().message;
    });
    // The watcher owns the session: ending its stream makes it register again.
    if (answer.error().code == ErrorCode::Stale) cancel();
  }
  if (answer && !answer->revoke.empty()) sink_.revoke(answer->revoke);
  next_report_ = now + *interval;
  return next_report_;
}

Result<ports::RuntimeAnswer> Session::send(ports::RuntimeReport& report, Deadline deadline) {
  report.counts = sink_.counts();
  report.usage = usage_.with([&](UsageReporter& usage) { return usage.due(sink_); });
  auto answer = control_.report_runtime(report, deadline);
  if (!answer) return answer;
  usage_.with([&](UsageReporter& usage) { usage.kept(answer->kept_usage); });
  sink_.over_quota(answer->over_quota, clock_.now() + answer->quota_resets_in);
  return answer;
}

TimePoint Session::outcome_step(TimePoint now) {
  constexpr milliseconds kIdle{500};
  constexpr int kTriesMax = 3;  // then the news is old
  auto& [batch, sequence, own, tries] = telling_;
  domain::SnapshotVersion version;
  const auto session = state_.with([&](const State& state) -> std::optional<SessionId> {
    if (!state.answer || state.left) return std::nullopt;
    version = state.acknowledged;
    return state.answer->session;
  });
  if (!session) return now + kIdle;
  const auto forget = [&](std::uint64_t SessionCounters::*as) {
    state_.with([&](State& state) { state.status.counters.*as += batch.outcomes.size(); });
    batch = {};
  };
  if (own != *session) {
    // What an older session was told, or not, is not known there.
    forget(&SessionCounters::outcomes_lost);
    own = *session;
    sequence = 0;
  }
  if (batch.outcomes.empty()) {
    batch = {settings_.worker, own, sequence + 1, version, {}, {}};
    sink_.take_outcomes(batch, ports::kOutcomesMax, now);
    if (batch.outcomes.empty()) return now + kIdle;
    sequence = batch.sequence;
    tries = 0;
  }
  const bool full = batch.outcomes.size() == ports::kOutcomesMax;
  const Status told = control_.report_outcomes(batch, Deadline::after(now, settings_.call_timeout));
  if (told) {
    forget(&SessionCounters::outcomes_told);
    return full ? now : now + kIdle;
  }
  if (++tries == kTriesMax || !told.error().retryable) forget(&SessionCounters::outcomes_lost);
  return now + kIdle;
}

Status Session::leave(Deadline deadline) {
  ports::RuntimeReport report;
  report.worker = settings_.worker;
  report.draining = true;
  const auto next = [&] {
    return state_.with([&](State& state) {
      state.left = true;
      if (!state.answer) return false;
      report.session = state.answer->session;
      report.sequence = ++state.sequence;
      report.version = state.acknowledged;
      report.epoch = state.acknowledged_epoch;
      return true;
    });
  };
  if (!next()) return ok();
  // A batch of usage that waits for its confirmation goes first; the final report has the rest.
  const bool waits = usage_.with([&](UsageReporter& usage) { return usage.waits(); });
  if (waits) {
    static_cast<void>(send(report, deadline));
    if (!next()) return ok();
  }
  report.final_report = true;
  const auto answer = send(report, deadline);
  cancel();
  if (!answer) return answer.error();
  return ok();
}

}  // namespace proxypool::gateway
