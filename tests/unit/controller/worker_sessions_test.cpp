#include "controller/worker_sessions.hpp"

#include <gtest/gtest.h>

#include <memory>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/usage.hpp"
#include "proxypool/domain/cluster/digest.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using contract::kLease;
using contract::kMargin;
using contract::proxy_ids;
using domain::AckStatus;

class WorkerSessionsTest : public contract::PoolSteps<Stores> {
 protected:
  WorkerSessionsTest() {
    SharedSection section;
    section.upstreams = {{UpstreamId("a"), true}};
    shared_.publish(std::move(section));
    begin();
  }
  void begin() {
    WorkerSessionSettings settings;
    settings.cluster_id = "c";
    settings.environment = "e";
    auto config = std::make_shared<config::Config>();
    config->clients.resize(1);
    config->clients[0].name = ClientName("ann");
    config->clients[0].limits.bytes_per_day = 1000;
    usage_ = std::make_unique<UsageService>(config, fixture_.management(), fixture_.clock());
    sessions_ = std::make_unique<WorkerSessions>(
        settings, WorkerSessionDeps{fixture_.pool(), fixture_.registry(), fixture_.coordination(),
                                    fixture_.crypto(), shared_, fixture_.clock(), *usage_,
                                    [this](const ports::OutcomeBatch& batch, Deadline) -> Status {
                                      if (outcomes_refused_) {
                                        return Error{ErrorCode::Unavailable, Origin::Store, "away"};
                                      }
                                      outcomes_.push_back(batch);
                                      return ok();
                                    }});
  }
  void restart() {
    sessions_.reset();
    fixture_.restart();
    begin();
  }

  // One worker's side of the protocol.
  struct Worker {
    ports::LeaseHolder holder;
    std::shared_ptr<ports::Outbox<ports::Push>> outbox;
    domain::SnapshotVersion version;
    Epoch epoch;
    std::uint64_t sequence = 0;
  };
  static ports::RegisterWorkerRequest request(const std::string& instance = "i") {
    ports::RegisterWorkerRequest request;
    request.cluster_id = "c";
    request.environment = "e";
    request.worker = WorkerId("w");
    request.instance = InstanceId(instance);
    return request;
  }
  Worker enter(const ports::RegisterWorkerRequest& by) {
    const auto answer = sessions_->register_worker(by, {}, Deadline{});
    EXPECT_TRUE(answer);
    Worker worker;
    worker.holder = {by.worker, by.instance, answer->session};
    open(worker);
    return worker;
  }
  void open(Worker& worker) {
    auto opened = sessions_->open_snapshots(
        worker.holder.worker, worker.holder.session, {}, {}, [this] { ++wakes_; }, Deadline{});
    ASSERT_TRUE(opened);
    worker.outbox = *std::move(opened);
  }
  void step() { sessions_->step(fixture_.clock().now()); }
  // Steps as often as the runtime would.
  void pass(milliseconds duration) {
    for (milliseconds gone{0}; gone < duration; gone += milliseconds{50}) {
      advance(milliseconds{50});
      step();
    }
  }
  template <class Message>
  std::optional<Message> take(Worker& worker) {
    auto push = worker.outbox->take();
    EXPECT_TRUE(push) << push.error().message;
    if (!push || !*push) return std::nullopt;
    EXPECT_TRUE(std::holds_alternative<Message>(**push));
    return std::get<Message>(**push);
  }
  bool nothing(Worker& worker) {
    const auto push = worker.outbox->take();
    return push && !*push;
  }
  Status acknowledge(Worker& worker, const ports::FullPush& push,
                     AckStatus status = AckStatus::Applied, milliseconds retry_after = {}) {
    ports::SnapshotAck ack;
    ack.worker = worker.holder.worker;
    ack.session = worker.holder.session;
    ack.version = push.snapshot->version;
    ack.epoch = push.snapshot->epoch;
    ack.digest = push.digest;
    ack.status = status;
    ack.retry_after = retry_after;
    const Status done = sessions_->acknowledge(ack, {}, Deadline{});
    if (done && status == AckStatus::Applied) {
      worker.version = ack.version;
      worker.epoch = ack.epoch;
    }
    return done;
  }
  // The next full push, applied.
  ports::FullPush apply_next(Worker& worker) {
    auto push = take<ports::FullPush>(worker);
    EXPECT_TRUE(push);
    if (!push) return {};
    EXPECT_TRUE(acknowledge(worker, *push));
    return *std::move(push);
  }
  Result<ports::RuntimeAnswer> report(Worker& worker, std::vector<ports::ProxyCount> counts = {},
                                      bool final_report = false) {
    ports::RuntimeReport sent;
    sent.worker = worker.holder.worker;
    sent.session = worker.holder.session;
    sent.sequence = ++worker.sequence;
    sent.version = worker.version;
    sent.epoch = worker.epoch;
    sent.final_report = final_report;
    sent.counts = std::move(counts);
    sent.usage = moved_;
    last_report_ = sent;
    return sessions_->report_runtime(sent, {}, Deadline{});
  }
  static std::vector<ProxyId> ids_of(const ports::FullPush& push) {
    std::vector<ProxyId> ids;
    if (!push.snapshot) return ids;
    for (const auto& proxy : push.snapshot->proxies) ids.push_back(proxy.id);
    return ids;
  }
  // A worker that serves proxies 1 … last.
  Worker serving(std::uint64_t last) {
    Worker worker = enter(request());
    supply("a", proxy_ids(1, last));
    assign(worker.holder, proxy_ids(1, last));
    step();
    apply_next(worker);
    return worker;
  }

  SharedSectionCell shared_;
  std::unique_ptr<UsageService> usage_;
  std::unique_ptr<WorkerSessions> sessions_;
  domain::UsageBatch moved_;  // what the next reports carry
  std::vector<ports::OutcomeBatch> outcomes_;
  bool outcomes_refused_ = false;
  ports::RuntimeReport last_report_;
  int wakes_ = 0;
};

TEST_F(WorkerSessionsTest, ARegistrationThatDoesNotFitIsRefused) {
  const auto code = [&](const ports::RegisterWorkerRequest& wrong) {
    const auto answer = sessions_->register_worker(wrong, {}, Deadline{});
    EXPECT_FALSE(answer);
    return answer ? ErrorCode::Internal : answer.error().code;
  };
  auto wrong = request();
  wrong.protocol_version = 99;
  EXPECT_EQ(code(wrong), ErrorCode::InvalidArgument);
  wrong = request();
  wrong.cluster_id = "other";
  EXPECT_EQ(code(wrong), ErrorCode::Forbidden);
  wrong = request();
  wrong.environment = "other";
  EXPECT_EQ(code(wrong), ErrorCode::Forbidden);
  for (const std::string& name : {std::string(), std::string("a b"), std::string(65, 'a')}) {
    wrong = request();
    wrong.worker = WorkerId(name);
    EXPECT_EQ(code(wrong), ErrorCode::InvalidArgument) << name;
  }
  const auto answer = sessions_->register_worker(request(), {}, Deadline{});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->stale_age_max, kLease);  // C9
  EXPECT_EQ(answer->margin, kMargin);
}

TEST_F(WorkerSessionsTest, TheFirstSnapshotHoldsWhatTheWorkerOwns) {
  Worker worker = enter(request());
  supply("a", proxy_ids(1, 3));
  assign(worker.holder, proxy_ids(1, 2));
  step();
  EXPECT_GT(wakes_, 0);
  const auto push = take<ports::FullPush>(worker);
  ASSERT_TRUE(push);
  EXPECT_EQ(ids_of(*push), proxy_ids(1, 2));
  EXPECT_EQ(push->valid_for, kLease);
  EXPECT_EQ(push->report_sequence, 0U);
  EXPECT_EQ(push->digest, domain::digest_of(*push->snapshot, [&](std::string_view bytes) {
              return fixture_.crypto().sha256(bytes);
            }));
  EXPECT_TRUE(nothing(worker));
}

// CP-5: one push is outstanding, and what comes meanwhile is in the next.
TEST_F(WorkerSessionsTest, NothingIsPushedBeforeTheLastPushIsAcknowledged) {
  Worker worker = enter(request());
  supply("a", proxy_ids(1, 3));
  step();
  const auto first = take<ports::FullPush>(worker);
  ASSERT_TRUE(first);
  assign(worker.holder, {ProxyId(1)});
  pass(milliseconds{1'500});
  assign(worker.holder, {ProxyId(2)});
  pass(milliseconds{1'500});
  EXPECT_TRUE(nothing(worker));
  ASSERT_TRUE(acknowledge(worker, *first));
  pass(milliseconds{200});
  EXPECT_EQ(ids_of(apply_next(worker)), proxy_ids(1, 2));
}

// CP-5: 100 ms of quiet, one second at most.
TEST_F(WorkerSessionsTest, ChangesAreCoalesced) {
  Worker worker = serving(1);
  supply("a", proxy_ids(2, 60));
  assign(worker.holder, {ProxyId(2)});
  step();
  pass(milliseconds{50});
  EXPECT_TRUE(nothing(worker));
  pass(milliseconds{50});
  EXPECT_EQ(ids_of(apply_next(worker)).size(), 2U);
  // Never quiet: after a second all the same.
  std::uint64_t id = 3;
  milliseconds gone{0};
  std::optional<ports::FullPush> push;
  while (!push && gone < milliseconds{3'000}) {
    assign(worker.holder, {ProxyId(id++)});
    pass(milliseconds{50});
    gone += milliseconds{50};
    push = take<ports::FullPush>(worker);
  }
  EXPECT_GE(gone, milliseconds{1'000});
  EXPECT_LE(gone, milliseconds{1'100});
}

TEST_F(WorkerSessionsTest, AChangeThatDoesNotConcernTheWorkerIsNotPushed) {
  Worker worker = serving(1);
  supply("a", {ProxyId(2)});
  assign(contract::holder("other"), {ProxyId(2)});
  pass(milliseconds{1'500});
  EXPECT_TRUE(nothing(worker));
  EXPECT_GE(sessions_->counters().snapshots_unchanged, 1U);
}

// R7: limits of clients are totals; each live worker keeps its share, and learns of a new one.
TEST_F(WorkerSessionsTest, ClientsLimitsAreSharedAmongLiveWorkers) {
  SharedSection section;
  section.clients.resize(2);
  section.clients[0].name = ClientName("crawler");
  section.clients[0].rate_per_second = 100;
  section.clients[0].in_flight_max = 3;
  section.clients[1].name = ClientName("free");
  shared_.publish(section);
  Worker one = enter(request());
  step();
  const auto alone = apply_next(one);
  EXPECT_EQ(alone.snapshot->clients[0].rate_per_second, 100U);
  EXPECT_EQ(alone.snapshot->clients[0].burst, 100U) << "that of a second";
  EXPECT_EQ(alone.snapshot->clients[0].in_flight_max, 3U);
  EXPECT_EQ(alone.snapshot->clients[1].rate_per_second, 0U);
  auto another = request();
  another.worker = WorkerId("w2");
  Worker two = enter(another);
  step();
  for (Worker* worker : {&one, &two}) {
    const auto shared = apply_next(*worker);
    EXPECT_EQ(shared.snapshot->clients[0].rate_per_second, 50U);
    EXPECT_EQ(shared.snapshot->clients[0].burst, 50U);
    EXPECT_EQ(shared.snapshot->clients[0].in_flight_max, 1U);
  }
  pass(milliseconds{500});
  EXPECT_TRUE(nothing(one)) << "told once";
  ASSERT_TRUE(report(two, {}, true));  // it leaves
  pass(milliseconds{200});
  EXPECT_EQ(apply_next(one).snapshot->clients[0].rate_per_second, 100U);
}

// C13: a refused version is never sent again, and the accepted one is prolonged all the same.
TEST_F(WorkerSessionsTest, ARefusedSnapshotIsParkedAndTheOldOneIsExtended) {
  Worker worker = serving(2);
  revoke({ProxyId(1)});
  pass(milliseconds{200});
  const auto refused = take<ports::FullPush>(worker);
  ASSERT_TRUE(refused);
  ASSERT_TRUE(acknowledge(worker, *refused, AckStatus::Rejected));
  pass(kLease / 3);
  EXPECT_TRUE(nothing(worker));
  EXPECT_EQ(sessions_->counters().snapshots_rejected, 1U);
  ASSERT_TRUE(report(worker));
  const auto extension = take<ports::ExtendPush>(worker);
  ASSERT_TRUE(extension);
  EXPECT_EQ(extension->version, worker.version);
  EXPECT_EQ(extension->revoked, (std::vector<ProxyId>{ProxyId(1)}));
  // Something new is sent again.
  supply("a", {ProxyId(3)});
  assign(worker.holder, {ProxyId(3)});
  pass(milliseconds{200});
  EXPECT_EQ(ids_of(apply_next(worker)), proxy_ids(2, 3));
}

TEST_F(WorkerSessionsTest, ARefusedSnapshotIsNotBuiltAgainAndAgainForAReopenedStream) {
  Worker worker = serving(2);
  revoke({ProxyId(1)});
  pass(milliseconds{200});
  const auto refused = take<ports::FullPush>(worker);
  ASSERT_TRUE(refused);
  ASSERT_TRUE(acknowledge(worker, *refused, AckStatus::Rejected));
  worker.outbox->closed();
  open(worker);
  const auto before = sessions_->counters().snapshots_unchanged;
  pass(milliseconds{5'000});
  EXPECT_TRUE(nothing(worker));
  EXPECT_LE(sessions_->counters().snapshots_unchanged, before + 1);
}

TEST_F(WorkerSessionsTest, ABusyWorkerIsAskedAgainWhenItSaid) {
  Worker worker = enter(request());
  step();
  const auto push = take<ports::FullPush>(worker);
  ASSERT_TRUE(push);
  ASSERT_TRUE(acknowledge(worker, *push, AckStatus::Busy, milliseconds{3'000}));
  pass(milliseconds{2'900});
  EXPECT_TRUE(nothing(worker));
  pass(milliseconds{200});
  EXPECT_TRUE(take<ports::FullPush>(worker));
}

// C9, CP-9
TEST_F(WorkerSessionsTest, AReportProlongsTheLeaseAtAThirdOfIt) {
  Worker worker = serving(1);
  const auto lease_of = [&] { return find(ProxyId(1))->leased.lease_until; };
  const auto given = lease_of();
  advance(kLease / 3 - milliseconds{1});
  ASSERT_TRUE(report(worker));
  EXPECT_TRUE(nothing(worker));
  EXPECT_EQ(lease_of(), given);
  advance(milliseconds{1});
  ASSERT_TRUE(report(worker));
  const auto extension = take<ports::ExtendPush>(worker);
  ASSERT_TRUE(extension);
  EXPECT_EQ(extension->report_sequence, 2U);
  EXPECT_EQ(extension->valid_for, kLease);
  EXPECT_EQ(lease_of(), now() + kLease);
  EXPECT_TRUE(extension->revoked.empty());
}

// A repeat is answered and changes nothing; another content or base is refused.
TEST_F(WorkerSessionsTest, AReportCountsOnce) {
  Worker worker = serving(1);
  ASSERT_TRUE(report(worker, {{ProxyId(1), Epoch(1), 2, 0, false}}));
  EXPECT_EQ(find(ProxyId(1))->active, 2U);
  EXPECT_TRUE(sessions_->report_runtime(last_report_, {}, Deadline{}));
  auto other = last_report_;
  other.counts.clear();
  EXPECT_EQ(sessions_->report_runtime(other, {}, Deadline{}).error().code, ErrorCode::Conflict);
  other.sequence = 2;
  other.epoch = Epoch(99);
  EXPECT_EQ(sessions_->report_runtime(other, {}, Deadline{}).error().code, ErrorCode::Conflict);
  EXPECT_EQ(find(ProxyId(1))->active, 2U);
  EXPECT_EQ(sessions_->counters().reports_refused, 2U);
}

// C2: taken back when the worker serves without it and has nothing in flight on it.
TEST_F(WorkerSessionsTest, ARevokedProxyComesBackAfterTheAcknowledgement) {
  Worker worker = serving(2);
  revoke({ProxyId(1)});
  ASSERT_TRUE(report(worker));
  EXPECT_EQ(ownership(ProxyId(1)), domain::Ownership::Revoking);
  pass(milliseconds{200});
  EXPECT_EQ(ids_of(apply_next(worker)), (std::vector<ProxyId>{ProxyId(2)}));
  ASSERT_TRUE(report(worker, {{ProxyId(1), Epoch(1), 1, 0, true}}));
  EXPECT_EQ(ownership(ProxyId(1)), domain::Ownership::Revoking);
  ASSERT_TRUE(report(worker));
  EXPECT_EQ(ownership(ProxyId(1)), domain::Ownership::Unowned);
}

TEST_F(WorkerSessionsTest, AFinalReportEndsTheSessionAndFreesEverything) {
  Worker worker = serving(2);
  ASSERT_TRUE(report(worker, {}, true));
  EXPECT_EQ(ownership(ProxyId(1)), domain::Ownership::Unowned);
  EXPECT_EQ(worker.outbox->take().error().code, ErrorCode::Stale);
  EXPECT_EQ(report(worker).error().code, ErrorCode::Stale);
  EXPECT_TRUE(fixture_.registry().workers(Deadline{})->empty());
}

// CP-7
TEST_F(WorkerSessionsTest, ANewRegistrationEndsTheOldSession) {
  Worker old = serving(1);
  Worker fresh = enter(request("j"));
  EXPECT_EQ(old.outbox->take().error().code, ErrorCode::Stale);
  EXPECT_EQ(report(old).error().code, ErrorCode::Stale);
  step();
  EXPECT_TRUE(ids_of(apply_next(fresh)).empty());  // C17: the old process may still use it
  EXPECT_TRUE(report(fresh));
}

TEST_F(WorkerSessionsTest, AReopenedStreamCarriesTheNewestSnapshotAgain) {
  Worker worker = serving(1);
  worker.outbox->closed();
  open(worker);
  step();
  EXPECT_EQ(ids_of(apply_next(worker)), proxy_ids(1, 1));
  EXPECT_TRUE(report(worker));
}

TEST_F(WorkerSessionsTest, APushThatIsNeverAcknowledgedEndsTheStream) {
  Worker worker = enter(request());
  step();
  ASSERT_TRUE(take<ports::FullPush>(worker));
  advance(kLease / 2);
  step();
  EXPECT_TRUE(nothing(worker));
  advance(milliseconds{1});
  step();
  EXPECT_EQ(worker.outbox->take().error().code, ErrorCode::Unavailable);
}

// C18: after the controller lost its state no worker is told to serve less than it does.
TEST_F(WorkerSessionsTest, AWorkerThatComesBackWaitsUntilItsProxiesAreThereAgain) {
  serving(2);
  restart();
  auto back = request();
  back.held = proxy_ids(1, 2);
  back.held_valid_for = milliseconds{40'000};
  Worker worker = enter(back);
  supply("a", {ProxyId(1)});
  pass(milliseconds{5'000});
  EXPECT_TRUE(nothing(worker));
  supply("a", {ProxyId(2)});
  pass(milliseconds{100});
  EXPECT_EQ(ids_of(apply_next(worker)), proxy_ids(1, 2));
}

// What its view held may have been given to others since (C18); what it works on is not extracted.
TEST_F(WorkerSessionsTest, AViewThatHasEndedClaimsNothing) {
  serving(2);
  restart();
  auto back = request();
  back.held = proxy_ids(1, 2);
  back.held_valid_for = milliseconds{0};
  back.running = {{ProxyId(1), 1}};
  const Worker worker = enter(back);
  supply("a", proxy_ids(1, 2));
  EXPECT_TRUE(pool().held_by(worker.holder, Deadline{})->empty());
  const auto taken = extract(command(2)).proxies;
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].proxy.id, ProxyId(2));
}

TEST_F(WorkerSessionsTest, AWorkerThatComesBackIsServedAtTheLatestWhenItsViewEnds) {
  serving(2);
  restart();
  auto back = request();
  back.held = proxy_ids(1, 2);
  back.held_valid_for = milliseconds{40'000};
  Worker worker = enter(back);
  supply("a", {ProxyId(1)});
  pass(milliseconds{40'000} - kMargin - milliseconds{50});
  EXPECT_TRUE(nothing(worker));
  pass(milliseconds{50});
  const auto push = take<ports::FullPush>(worker);
  ASSERT_TRUE(push);
  EXPECT_EQ(ids_of(*push), proxy_ids(1, 1));
  EXPECT_FALSE(push->snapshot->intentional_loss);  // CP-6: the worker decides
}

// GW-14
TEST_F(WorkerSessionsTest, UsageRidesOnReportsAndCountsOnce) {
  Worker worker = serving(1);
  moved_ = {7, {{ClientName("ann"), {400, 200, 2}}}};
  auto answer = report(worker);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kept_usage, 7U);
  EXPECT_TRUE(answer->over_quota.empty());
  // The answer was lost: the transport repeats the report, and the next one has the batch again.
  EXPECT_EQ(sessions_->report_runtime(last_report_, {}, Deadline{})->kept_usage, 7U);
  EXPECT_EQ(report(worker)->kept_usage, 7U);
  EXPECT_EQ(usage_->reading(ClientName("ann"), Deadline{})->value().today.bytes(), 600U);
  moved_ = {8, {{ClientName("ann"), {399, 0, 1}}}};
  EXPECT_TRUE(report(worker)->over_quota.empty());
  moved_ = {9, {{ClientName("ann"), {1, 0, 0}}}};
  answer = report(worker);
  EXPECT_EQ(answer->over_quota, std::vector{ClientName("ann")});
  EXPECT_GT(answer->quota_resets_in.count(), 0);
  moved_ = {};
  EXPECT_EQ(report(worker)->over_quota.size(), 1U) << "said in every answer";
}

TEST_F(WorkerSessionsTest, AReportThatIsRefusedMovesNothing) {  // GW-14, CP-7
  Worker worker = serving(1);
  moved_ = {1, {{ClientName("ann"), {5, 0, 1}}}};
  worker.version.counter += 1;
  EXPECT_FALSE(report(worker));
  EXPECT_EQ(usage_->reading(ClientName("ann"), Deadline{})->value().today.bytes(), 0U);
}

TEST_F(WorkerSessionsTest, TheFinalReportBringsTheLastUsage) {  // GW-14
  Worker worker = serving(1);
  moved_ = {1, {{ClientName("ann"), {5, 0, 1}}}};
  const auto answer = report(worker, {}, true);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kept_usage, 1U);
  EXPECT_EQ(usage_->reading(ClientName("ann"), Deadline{})->value().today.bytes(), 5U);
}

TEST_F(WorkerSessionsTest, ABatchOfOutcomesCountsOnceAndInItsSession) {  // CP-7
  Worker worker = serving(1);
  ports::OutcomeBatch batch;
  batch.worker = worker.holder.worker;
  batch.session = worker.holder.session;
  batch.sequence = 1;
  batch.routings = {RoutingId("r")};
  batch.outcomes.resize(2);
  outcomes_refused_ = true;
  EXPECT_FALSE(sessions_->report_outcomes(batch, {}, Deadline{})) << "the store is away";
  outcomes_refused_ = false;
  EXPECT_TRUE(sessions_->report_outcomes(batch, {}, Deadline{}));
  EXPECT_TRUE(sessions_->report_outcomes(batch, {}, Deadline{})) << "the answer was lost";
  EXPECT_EQ(outcomes_.size(), 1U);
  batch.outcomes[0].what.status = 200;
  const auto other = sessions_->report_outcomes(batch, {}, Deadline{});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::Conflict);
  batch.sequence = 2;
  EXPECT_TRUE(sessions_->report_outcomes(batch, {}, Deadline{}));
  EXPECT_EQ(outcomes_.size(), 2U);
  enter(request());
  const auto late = sessions_->report_outcomes(batch, {}, Deadline{});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::Stale);
}

}  // namespace
}  // namespace proxypool::controller
