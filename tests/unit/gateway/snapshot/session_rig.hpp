// A session between a control plane and a sink that the test holds in its hands; time is virtual.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "gateway/snapshot/session.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/domain/cluster/digest.hpp"
#include "runtime/manual_clock.hpp"
#include "support/control_plane_samples.hpp"
#include "unit/gateway/dispatch/snapshots.hpp"

namespace proxypool::gateway::testing_support {

inline constexpr milliseconds kLease{60'000};
inline constexpr milliseconds kMargin{2'000};
inline constexpr milliseconds kGrace{30'000};

inline Error refusal(ErrorCode code, std::string message) {
  return Error{code, Origin::Internal, std::move(message)};
}

// What the streams of one control plane carry, and whether the newest was cancelled.
struct Line {
  std::deque<Result<ports::Push>> pushes;
  std::uint64_t opened = 0;
  bool cancelled = false;
};

class ScriptedStream final : public ports::Stream<ports::Push> {
 public:
  explicit ScriptedStream(Guarded<Line>& line)
      : line_(line), number_(line.with([](Line& l) { return ++l.opened; })) {
    line_.with([](Line& l) { l.cancelled = false; });
  }
  // Never waits: nothing there reads as a slice that has passed.
  Result<ports::Push> next(Deadline) override {
    return line_.with([&](Line& line) -> Result<ports::Push> {
      if (line.cancelled) return refusal(ErrorCode::Unavailable, "cancelled");
      if (line.pushes.empty()) return refusal(ErrorCode::DeadlineExceeded, "nothing came");
      auto push = std::move(line.pushes.front());
      line.pushes.pop_front();
      return push;
    });
  }
  void cancel() override {
    line_.with([&](Line& line) {
      if (line.opened == number_) line.cancelled = true;
    });
  }

 private:
  Guarded<Line>& line_;
  const std::uint64_t number_;
};

// Any thread may call; the test looks when nobody does.
class ScriptedControl final : public ports::WorkerControl {
 public:
  Result<ports::RegisterWorkerAnswer> register_worker(const ports::RegisterWorkerRequest& request,
                                                      Deadline) override {
    registrations.push_back(request);
    if (register_error) return *register_error;
    ports::RegisterWorkerAnswer answer;
    answer.session = SessionId("session-" + std::to_string(registrations.size()));
    answer.epoch = Epoch(registrations.size());
    answer.stale_age_max = kLease;
    answer.margin = kMargin;
    answer.orphan_grace = kGrace;
    return answer;
  }
  Result<std::unique_ptr<ports::Stream<ports::Push>>> watch_snapshots(
      const WorkerId&, const SessionId& session,
      const std::optional<domain::SnapshotVersion>& held) override {
    watched.emplace_back(session, held);
    if (watch_error) return *watch_error;
    return std::unique_ptr<ports::Stream<ports::Push>>(std::make_unique<ScriptedStream>(line));
  }
  Status acknowledge(const ports::SnapshotAck& ack, Deadline) override {
    acks.push_back(ack);
    if (ack_error) return *ack_error;
    return ok();
  }
  Result<ports::RuntimeAnswer> report_runtime(const ports::RuntimeReport& report,
                                              Deadline) override {
    reports.push_back(report);
    if (during_report) during_report();
    if (report_error) return *report_error;
    ports::RuntimeAnswer answer{report.sequence, revoke};
    if (keeps_usage) answer.kept_usage = report.usage.number;
    answer.over_quota = over_quota;
    answer.quota_resets_in = milliseconds(3'600'000);
    return answer;
  }

  Status report_outcomes(const ports::OutcomeBatch& batch, Deadline) override {
    told.push_back(batch);
    if (outcome_error) return *outcome_error;
    return ok();
  }

  Guarded<Line> line;
  std::vector<ports::OutcomeBatch> told;
  std::optional<Error> outcome_error;
  std::optional<Error> register_error, watch_error, ack_error, report_error;
  std::vector<ProxyId> revoke;
  bool keeps_usage = true;
  std::vector<ClientName> over_quota;
  std::function<void()> during_report;
  std::vector<ports::RegisterWorkerRequest> registrations;
  std::vector<std::pair<SessionId, std::optional<domain::SnapshotVersion>>> watched;
  std::vector<ports::SnapshotAck> acks;
  std::vector<ports::RuntimeReport> reports;
};

// Remembers what it was given.
class RecordingSink final : public ViewSink {
 public:
  Result<std::vector<ports::RejectedEntry>> apply(
      std::shared_ptr<const domain::WorkerSnapshot> snapshot, const Validity& validity) override {
    if (apply_error) return *apply_error;
    applied.push_back({snapshot->version, validity});
    std::vector<ProxyId> ids;
    for (const auto& proxy : snapshot->proxies) ids.push_back(proxy.id);
    holds = HeldView{snapshot->version, validity.until, std::move(ids)};
    return quarantined;
  }
  void extend(const Validity& validity, const std::vector<ProxyId>& ids) override {
    extended.push_back(validity);
    if (holds) holds->valid_until = std::max(holds->valid_until, validity.until);
    revoked.insert(revoked.end(), ids.begin(), ids.end());
  }
  void revoke(const std::vector<ProxyId>& ids) override {
    revoked.insert(revoked.end(), ids.begin(), ids.end());
  }
  std::vector<ports::ProxyCount> counts() override { return in_flight; }
  void usage(const EachUsage& each) override {
    std::uint32_t number = 0;
    for (const auto& [client, total] : moved) each(number++, client, total);
  }
  void over_quota(const std::vector<ClientName>& clients, TimePoint until) override {
    without_quota = clients;
    quota_until = until;
  }
  void take_outcomes(ports::OutcomeBatch& batch, std::size_t most, TimePoint) override {
    for (; most > 0 && !outcomes.empty(); --most) {
      batch.outcomes.push_back(outcomes.front());
      outcomes.pop_front();
    }
    if (!batch.outcomes.empty()) batch.routings = {RoutingId("all")};
  }
  std::optional<HeldView> held() override { return holds; }

  struct Applied {
    domain::SnapshotVersion version;
    Validity validity;
  };
  std::optional<Error> apply_error;
  std::vector<ports::RejectedEntry> quarantined;
  std::vector<ports::ProxyCount> in_flight;
  std::vector<domain::ClientUsage> moved;  // so far, by client
  std::deque<ports::Outcome> outcomes;
  std::vector<ClientName> without_quota;
  TimePoint quota_until{};
  std::vector<Applied> applied;
  std::vector<Validity> extended;
  std::vector<ProxyId> revoked;
  std::optional<HeldView> holds;
};

// Always in the middle: full jitter becomes half of the step.
class Middle final : public Random {
 public:
  std::uint64_t next() noexcept override { return std::uint64_t{1} << 63U; }
};

class SessionTest : public ::testing::Test {
 protected:
  static SessionSettings settings() {
    SessionSettings settings;
    settings.cluster_id = "c";
    settings.environment = "e";
    settings.worker = WorkerId("w");
    settings.instance = InstanceId("i");
    settings.zone = "z";
    settings.build = "b";
    return settings;
  }
  static SnapshotBuilder snapshot(std::uint64_t counter, std::uint64_t proxies = 3) {
    SnapshotBuilder s;
    s.upstream("up").routing("all", {"up"}).proxies("up", 1, proxies);
    s.get().version = {7, counter};
    s.get().epoch = Epoch(1);
    return s;
  }
  ports::FullPush full(const SnapshotBuilder& snapshot, std::uint64_t report = 0,
                       milliseconds valid_for = kLease) {
    ports::FullPush push;
    push.snapshot = snapshot.share();
    push.digest = domain::digest_of(
        *push.snapshot, [this](std::string_view bytes) { return crypto_->sha256(bytes); });
    push.store_now = kStoreNow;
    push.valid_for = valid_for;
    push.report_sequence = report;
    return push;
  }
  static ports::ExtendPush extension(std::uint64_t counter, std::uint64_t report = 0,
                                     std::vector<ProxyId> revoked = {}) {
    return {{7, counter}, Epoch(1), kStoreNow, kLease, report, std::move(revoked)};
  }

  TimePoint watch() { return session_.watch_step(clock_.now()); }
  TimePoint report() { return session_.report_step(clock_.now()); }
  // The controller says something and the session hears it.
  TimePoint push(ports::Push push) {
    control_.line.with([&](Line& line) { line.pushes.emplace_back(std::move(push)); });
    return watch();
  }
  TimePoint break_stream(ErrorCode code = ErrorCode::Unavailable) {
    control_.line.with([&](Line& line) { line.pushes.emplace_back(refusal(code, "broken")); });
    return watch();
  }
  // Registered, serving version `counter`.
  void serve(std::uint64_t counter = 1) {
    watch();
    push(full(snapshot(counter)));
    ASSERT_EQ(control_.acks.back().status, domain::AckStatus::Applied);
  }
  [[nodiscard]] bool cancelled() {
    return control_.line.with([](const Line& line) { return line.cancelled; });
  }

  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  runtime::ManualClock clock_;
  Middle random_;
  ScriptedControl control_;
  RecordingSink sink_;
  Session session_{settings(), control_, sink_, *crypto_, clock_, random_};
};

}  // namespace proxypool::gateway::testing_support
