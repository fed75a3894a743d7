#include "controller/worker_sessions.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "controller/report_fence.hpp"
#include "controller/snapshot_builder.hpp"
#include "controller/usage.hpp"
#include "proxypool/domain/cluster/digest.hpp"

namespace proxypool::controller {

namespace {

Error stale() {
  return {ErrorCode::Stale, Origin::Client, "the session was replaced; register again"};
}

// A report that lost a race is not taken; the next one will be.
Error refused(domain::ReportVerdict verdict) {
  const bool base = verdict == domain::ReportVerdict::WrongBase;
  return {ErrorCode::Conflict, Origin::Client,
          base ? "the report names a version that this session did not acknowledge last"
               : "the report's sequence was used before"};
}

bool valid_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
             std::string_view::npos;
}

}  // namespace

// One registration. Its own lock is held for moments only, never while a store is called.
class WorkerSessions::Session {
 public:
  struct Data {
    std::function<void()> wake;  // of the open stream
    std::uint64_t stream = 0;    // grows by every opening; 0: none yet
    bool open = false;
    std::optional<Error> ended;                        // what the stream shall end with
    std::optional<ports::Push> full;                   // to be taken
    std::optional<ports::ExtendPush> extension;        // to be taken
    std::optional<ports::IssuedSnapshot> outstanding;  // taken or to be taken, not acknowledged
    TimePoint outstanding_since;
    std::optional<ports::IssuedSnapshot> accepted;
    std::optional<domain::SnapshotDigest> parked;  // the digest of a refused version (C13)
    bool published = false;                        // anything was issued in this session
    std::uint64_t built_change = 0;                // what the last build saw
    std::uint64_t built_section = 0;
    std::uint32_t built_workers = 0;
    std::uint64_t seen_change = 0;  // the newest change counter step() saw
    std::uint64_t seen_section = 0;
    TimePoint dirty_since = kNever;
    TimePoint last_change;
    TimePoint not_before;       // Busy: not before it
    TimePoint hold_back_until;  // young generation (C18)
    TimePoint last_extend;
    std::uint64_t report_sequence = 0;  // the last processed
    domain::SequenceFence outcomes;
  };

  Session(ports::LeaseHolder holder, Epoch epoch) : holder_(std::move(holder)), epoch_(epoch) {}

  [[nodiscard]] const ports::LeaseHolder& holder() const noexcept { return holder_; }
  [[nodiscard]] Epoch epoch() const noexcept { return epoch_; }

  template <class F>
  decltype(auto) with(F&& f) {
    return data_.with(std::forward<F>(f));
  }

  // Calls the stream's wake outside the lock.
  void wake() {
    const auto wake = data_.with([](const Data& data) { return data.open ? data.wake : nullptr; });
    if (wake) wake();
  }

  void end(Error error) {
    data_.with([&](Data& data) { data.ended = std::move(error); });
    wake();
  }

  class Box final : public ports::Outbox<ports::Push> {
   public:
    Box(SessionPtr session, std::uint64_t stream) : session_(std::move(session)), stream_(stream) {}
    Result<std::optional<ports::Push>> take() override {
      return session_->with([&](Data& data) -> Result<std::optional<ports::Push>> {
        if (data.stream != stream_) return stale();
        if (data.ended) return *data.ended;
        std::optional<ports::Push> push;
        if (data.full) {
          push = std::move(data.full);
          data.full.reset();
        } else if (data.extension) {
          push = std::move(*data.extension);
          data.extension.reset();
        }
        return push;
      });
    }
    void closed() override {
      session_->with([&](Data& data) {
        if (data.stream != stream_) return;
        data.open = false;
        data.wake = nullptr;
      });
    }

   private:
    SessionPtr session_;
    std::uint64_t stream_;
  };

 private:
  ports::LeaseHolder holder_;
  Epoch epoch_;
  Guarded<Data> data_;
};

WorkerSessions::WorkerSessions(WorkerSessionSettings settings, WorkerSessionDeps deps)
    : settings_(std::move(settings)), deps_(deps) {}

WorkerSessions::~WorkerSessions() = default;

void WorkerSessions::on_work(std::function<void()> wake) {
  state_.with([&](State& state) { state.wake = std::move(wake); });
}

Deadline WorkerSessions::budget() const {
  return Deadline::after(deps_.clock.now(), settings_.store_budget);
}

void WorkerSessions::request_step() {
  const auto wake = state_.with([](const State& state) { return state.wake; });
  if (wake) wake();
}

void WorkerSessions::count(std::uint64_t WorkerSessionCounters::*counter) {
  state_.with([&](State& state) { ++(state.counters.*counter); });
}

WorkerSessionCounters WorkerSessions::counters() const {
  return state_.with([](const State& state) { return state.counters; });
}

Status WorkerSessions::check_request(const ports::RegisterWorkerRequest& request) const {
  if (request.protocol_version != ports::kProtocolVersion) {
    return Error{ErrorCode::InvalidArgument, Origin::Client,
                 "protocol version " + std::to_string(request.protocol_version) +
                     " is not spoken here; this controller speaks version " +
                     std::to_string(ports::kProtocolVersion)};
  }
  if (request.cluster_id != settings_.cluster_id) {
    return Error{ErrorCode::Forbidden, Origin::Client,
                 "this controller serves cluster '" + settings_.cluster_id + "', not '" +
                     request.cluster_id + "'; set --cluster-id or cluster.id"};
  }
  if (request.environment != settings_.environment) {
    return Error{ErrorCode::Forbidden, Origin::Client,
                 "this controller serves environment '" + settings_.environment + "', not '" +
                     request.environment + "'; set cluster.environment"};
  }
  if (!valid_name(request.worker.str()) || !valid_name(request.instance.str())) {
    return Error{ErrorCode::InvalidArgument, Origin::Client,
                 "worker and instance ids are 1 to 64 of A-Z a-z 0-9 . _ -"};
  }
  return ok();
}

Result<ports::RegisterWorkerAnswer> WorkerSessions::register_worker(
    const ports::RegisterWorkerRequest& request, const ports::Peer& /*peer*/, Deadline deadline) {
  PP_TRY(const Unit checked, check_request(request));
  static_cast<void>(checked);
  PP_TRY(const ports::WorkerRow row,
         deps_.registry.register_worker(
             {request.worker, request.instance, request.zone, request.draining, settings_.lease},
             deadline));
  PP_TRY(const Epoch epoch, deps_.coordination.next_epoch(deadline));
  const ports::LeaseHolder holder{request.worker, request.instance, row.session};
  // A view that has ended claims nothing: its proxies may have been given to others since.
  const bool valid = request.held_valid_for > milliseconds{0};
  const ports::Holdings holdings{valid ? request.held : std::vector<ProxyId>{}, request.running};
  PP_TRY(const std::uint32_t open,
         deps_.pool.adopt(holder, holdings, epoch, settings_.lease, deadline));

  const TimePoint now = deps_.clock.now();
  auto session = std::make_shared<Session>(holder, epoch);
  session->with([&](Session::Data& data) {
    data.last_extend = now;
    data.hold_back_until = now;
    if (open > 0 && request.held_valid_for > settings_.margin) {
      data.hold_back_until = now + (request.held_valid_for - settings_.margin);
    }
  });
  const SessionPtr replaced = state_.with([&](State& state) {
    ++state.counters.registrations;
    return std::exchange(state.sessions[request.worker], session);
  });
  if (replaced) replaced->end(stale());
  return ports::RegisterWorkerAnswer{row.session,      epoch,
                                     settings_.lease,  settings_.report_interval,
                                     settings_.margin, settings_.orphan_grace};
}

Result<WorkerSessions::SessionPtr> WorkerSessions::find(const WorkerId& worker,
                                                        const SessionId& session) const {
  return state_.with([&](const State& state) -> Result<SessionPtr> {
    const auto found = state.sessions.find(worker);
    if (found == state.sessions.end() || found->second->holder().session != session) {
      return stale();
    }
    return found->second;
  });
}

Result<std::shared_ptr<ports::Outbox<ports::Push>>> WorkerSessions::open_snapshots(
    const WorkerId& worker, const SessionId& session,
    const std::optional<domain::SnapshotVersion>& /*held*/, const ports::Peer& /*peer*/,
    std::function<void()> wake, Deadline deadline) {
  PP_TRY(const SessionPtr found, find(worker, session));
  // What an earlier stream carried may be lost: the newest snapshot is built again.
  PP_TRY(const Unit withdrawn, deps_.registry.withdraw_issued(worker, session, deadline));
  static_cast<void>(withdrawn);
  const std::uint64_t stream = found->with([&](Session::Data& data) {
    data.open = true;
    data.wake = std::move(wake);
    data.full.reset();
    data.extension.reset();
    data.outstanding.reset();
    data.published = false;
    return ++data.stream;
  });
  request_step();
  return std::shared_ptr<ports::Outbox<ports::Push>>(std::make_shared<Session::Box>(found, stream));
}

Status WorkerSessions::acknowledge(const ports::SnapshotAck& ack, const ports::Peer& /*peer*/,
                                   Deadline deadline) {
  PP_TRY(const SessionPtr session, find(ack.worker, ack.session));
  const ports::IssuedSnapshot reference{ack.version, ack.epoch, ack.digest, 0};
  PP_TRY(const Unit done,
         deps_.registry.acknowledge(ack.worker, ack.session, reference, ack.status, deadline));
  const TimePoint now = deps_.clock.now();
  session->with([&](Session::Data& data) {
    if (!data.outstanding || !(data.outstanding->version == ack.version)) return;
    switch (ack.status) {
      case domain::AckStatus::Applied:
        data.accepted = data.outstanding;
        data.parked.reset();
        break;
      case domain::AckStatus::Rejected:
        data.parked = data.outstanding->digest;
        break;
      case domain::AckStatus::Busy:
        data.published = false;
        data.not_before = now + std::min(ack.retry_after, settings_.lease / 4);
        break;
    }
    data.outstanding.reset();
  });
  if (ack.status == domain::AckStatus::Rejected) count(&WorkerSessionCounters::snapshots_rejected);
  request_step();
  return done;
}

Result<ports::RuntimeAnswer> WorkerSessions::report_runtime(const ports::RuntimeReport& report,
                                                            const ports::Peer& /*peer*/,
                                                            Deadline deadline) {
  PP_TRY(const SessionPtr session, find(report.worker, report.session));
  const auto verdict = deps_.registry.accept_report(
      report.worker, report.session, fence_of(report, deps_.crypto), settings_.lease, deadline);
  if (!verdict) {
    count(&WorkerSessionCounters::reports_refused);
    return verdict.error();
  }
  // A final report that was accepted and then met a store that was away is carried out now.
  const bool repeated = *verdict == domain::ReportVerdict::Replay;
  if (repeated && !report.final_report) return answer_to(report, *session, deadline);
  if (!repeated && *verdict != domain::ReportVerdict::Accept) {
    count(&WorkerSessionCounters::reports_refused);
    return refused(*verdict);
  }
  std::vector<ports::RuntimeCount> counts;
  counts.reserve(report.counts.size());
  for (const ports::ProxyCount& count : report.counts) {
    counts.push_back({count.id, count.lease_epoch, count.active, count.reserved, count.draining});
  }
  const std::uint64_t acknowledged = session->with([&](Session::Data& data) -> std::uint64_t {
    return data.accepted && data.accepted->version == report.version ? data.accepted->change : 0;
  });
  PP_TRY(const std::vector<ProxyId> freed,
         deps_.pool.apply_runtime(session->holder(), counts, acknowledged, report.final_report,
                                  deadline));
  static_cast<void>(freed);
  if (report.final_report) {
    PP_TRY(const Unit left, deps_.registry.leave(report.worker, report.session, deadline));
    static_cast<void>(left);
    session->end({ErrorCode::Stale, Origin::Client, "the worker left with its final report"});
    state_.with([&](State& state) {
      const auto found = state.sessions.find(report.worker);
      if (found != state.sessions.end() && found->second == session) state.sessions.erase(found);
    });
    return answer_to(report, *session, deadline);
  }
  const TimePoint now = deps_.clock.now();
  PP_TRY(const Unit extended, extend(*session, report.sequence, now, deadline));
  static_cast<void>(extended);
  return answer_to(report, *session, deadline);
}

ports::RuntimeAnswer WorkerSessions::answer_to(const ports::RuntimeReport& report,
                                               const Session& session, Deadline deadline) {
  ports::RuntimeAnswer answer;
  answer.accepted_sequence = report.sequence;
  auto verdicts = deps_.usage.take(session.holder().instance, report.usage, deadline);
  answer.kept_usage = verdicts.kept;
  answer.over_quota = std::move(verdicts.over);
  answer.quota_resets_in = verdicts.resets_in;
  return answer;
}

Status WorkerSessions::report_outcomes(const ports::OutcomeBatch& batch,
                                       const ports::Peer& /*peer*/, Deadline deadline) {
  PP_TRY(const SessionPtr session, find(batch.worker, batch.session));
  const domain::ContentDigest digest = digest_of(batch, deps_.crypto);
  const auto verdict = session->with(
      [&](const Session::Data& data) { return data.outcomes.judge(batch.sequence, digest); });
  if (verdict == domain::SequenceVerdict::Replay) return ok();
  if (verdict != domain::SequenceVerdict::Accept) return refused(domain::ReportVerdict::Stale);
  // Not before it was taken: what a store refused may come again.
  PP_TRY([[maybe_unused]] const Unit taken, deps_.take_outcomes(batch, deadline));
  session->with([&](Session::Data& data) { data.outcomes.accept(batch.sequence, digest); });
  return ok();
}

Status WorkerSessions::extend(Session& session, std::uint64_t report_sequence, TimePoint now,
                              Deadline deadline) {
  const auto due = session.with([&](Session::Data& data) -> std::optional<ports::IssuedSnapshot> {
    data.report_sequence = report_sequence;
    if (!data.accepted || now - data.last_extend < settings_.lease / 3) return std::nullopt;
    return data.accepted;
  });
  if (!due) return ok();
  PP_TRY(const std::uint32_t renewed,
         deps_.pool.renew(session.holder(), settings_.lease, deadline));
  static_cast<void>(renewed);
  PP_TRY(const ports::Generation generation, deps_.pool.generation(deadline));
  ports::ExtendPush push{due->version,    due->epoch,      generation.now,
                         settings_.lease, report_sequence, {}};
  // A worker that refuses the newest version still obeys what was revoked since (C13).
  PP_TRY(const std::vector<ports::HeldProxy> held, deps_.pool.held_by(session.holder(), deadline));
  for (const ports::HeldProxy& entry : held) {
    if (entry.proxy.ownership == domain::Ownership::Revoking) {
      push.revoked.push_back(entry.proxy.id);
    }
  }
  session.with([&](Session::Data& data) {
    data.extension = std::move(push);
    data.last_extend = now;
  });
  count(&WorkerSessionCounters::extends);
  session.wake();
  return ok();
}

// How many workers share the clients' limits; 1 while no client has any, so that nothing is built
// for it. Nothing when the store does not answer: shares stay as they are.
std::optional<std::uint32_t> WorkerSessions::sharers(const SharedSection& shared) const {
  const bool limited = std::any_of(
      shared.clients.begin(), shared.clients.end(),
      [](const auto& client) { return client.rate_per_second != 0 || client.in_flight_max != 0; });
  if (!limited) return 1;
  const auto workers = deps_.registry.workers(budget());
  if (!workers) return std::nullopt;
  const auto live = std::count_if(workers->begin(), workers->end(),
                                  [](const auto& row) { return row.live && !row.draining; });
  return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(1, live));
}

Status WorkerSessions::publish(Session& session, std::uint64_t change, const SharedSection& shared,
                               std::uint32_t workers, TimePoint now) {
  const Deadline deadline = budget();
  const ports::LeaseHolder& holder = session.holder();
  PP_TRY(const std::uint32_t renewed, deps_.pool.renew(holder, settings_.lease, deadline));
  static_cast<void>(renewed);
  PP_TRY(const ports::Generation generation, deps_.pool.generation(deadline));
  PP_TRY(std::vector<ports::HeldProxy> held, deps_.pool.held_by(holder, deadline));
  PP_TRY(const std::uint64_t counter, deps_.registry.next_version(holder.worker, deadline));
  // Within one generation every loss has its reason in the life cycle; after a change of it the
  // store may have forgotten, and the worker decides (CP-6).
  const bool same_generation = session.with([&](const Session::Data& data) {
    return data.accepted && data.accepted->version.generation == generation.id;
  });
  auto snapshot = std::make_shared<const domain::WorkerSnapshot>(build_snapshot(
      shared, std::move(held),
      {{generation.id, counter}, session.epoch(), generation.now, same_generation, workers}));
  const domain::SnapshotDigest digest = domain::digest_of(
      *snapshot, [this](std::string_view bytes) { return deps_.crypto.sha256(bytes); });
  const ports::IssuedSnapshot issued{snapshot->version, snapshot->epoch, digest, change};

  const bool unchanged = session.with([&](Session::Data& data) {
    data.built_change = change;
    data.built_section = shared.revision;
    data.built_workers = workers;
    data.dirty_since = kNever;
    // Equal to what the worker serves: it keeps its version, and the newer change counter counts
    // as acknowledged, since nothing of it concerns this worker.
    if (data.published && data.accepted && data.accepted->digest == digest) {
      data.accepted->change = change;
      return true;
    }
    const bool refused_before = data.parked && *data.parked == digest;
    if (refused_before) data.published = true;  // nothing more to build until something changes
    return refused_before;
  });
  if (unchanged) {
    count(&WorkerSessionCounters::snapshots_unchanged);
    return ok();
  }
  PP_TRY(const Unit recorded,
         deps_.registry.record_issued(holder.worker, holder.session, issued, deadline));
  static_cast<void>(recorded);
  session.with([&](Session::Data& data) {
    data.full =
        ports::FullPush{snapshot, digest, generation.now, settings_.lease, data.report_sequence};
    data.outstanding = issued;
    data.outstanding_since = now;
    data.published = true;
    data.last_extend = now;
  });
  count(&WorkerSessionCounters::snapshots_issued);
  session.wake();
  return ok();
}

TimePoint WorkerSessions::step(TimePoint now) {
  constexpr milliseconds kPoll{100};  // how often the change counter is read
  const auto change = deps_.pool.change_counter(budget());
  const auto shared = deps_.shared.current();
  if (!change || !shared) {
    if (!change) count(&WorkerSessionCounters::build_failures);
    return now + settings_.delay_max;
  }
  const auto workers = sharers(*shared);
  const auto sessions = state_.with([](const State& state) {
    std::vector<SessionPtr> all;
    for (const auto& [worker, session] : state.sessions) all.push_back(session);
    return all;
  });
  for (const SessionPtr& session : sessions) {
    enum class Due { No, Build, Overdue };
    const Due due = session->with([&](Session::Data& data) {
      if (!data.open || data.ended) return Due::No;
      if (data.outstanding) {
        return now - data.outstanding_since > settings_.lease / 2 ? Due::Overdue : Due::No;
      }
      if (data.seen_change != *change || data.seen_section != shared->revision) {
        data.seen_change = *change;
        data.seen_section = shared->revision;
        data.last_change = now;
        data.dirty_since = std::min(data.dirty_since, now);
      }
      if (now < data.not_before) return Due::No;
      if (!data.published) return now >= data.hold_back_until ? Due::Build : Due::No;
      if (workers && data.built_workers != *workers) return Due::Build;
      if (data.built_change == *change && data.built_section == shared->revision) return Due::No;
      const bool quiet = now - data.last_change >= settings_.quiet;
      const bool late = data.dirty_since != kNever && now - data.dirty_since >= settings_.delay_max;
      return quiet || late ? Due::Build : Due::No;
    });
    if (due == Due::Overdue) {
      session->end({ErrorCode::Unavailable, Origin::Client,
                    "a snapshot was not acknowledged in time; register again", true});
      continue;
    }
    bool build = due == Due::Build;
    if (!build) {
      // Held back: looked at again as soon as every claim is settled.
      const bool waiting = session->with([&](Session::Data& data) {
        return data.open && !data.published && !data.outstanding && now < data.hold_back_until &&
               now >= data.not_before;
      });
      if (waiting) {
        const auto open = deps_.pool.open_claims(session->holder(), budget());
        build = open && *open == 0;
      }
    }
    const std::uint32_t share = workers.value_or(
        session->with([](const Session::Data& data) { return data.built_workers; }));
    if (build && !publish(*session, *change, *shared, share, now)) {
      count(&WorkerSessionCounters::build_failures);
    }
  }
  return now + kPoll;
}

}  // namespace proxypool::controller
