// The control plane over loopback: calls, streams, and ends that go away.
#include <cstdio>

#include "contract/control_plane/control_plane_fixture.hpp"
#include "net/socket.hpp"

namespace proxypool::rpc {
namespace {

using test::await;

TEST_F(ControlPlane, RegistersAcknowledgesAndReports) {
  const auto control = worker();
  auto request = registration();
  request.held_version = domain::SnapshotVersion{3, 4};
  request.held_valid_for = milliseconds(900);
  request.held = {ProxyId(1), ProxyId(2)};
  const auto answer = control->register_worker(request, in(kPatience));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->session, SessionId("s-1"));
  EXPECT_EQ(answer->epoch, Epoch(5));
  EXPECT_EQ(answer->stale_age_max, milliseconds(60'000));
  EXPECT_EQ(workers_.last_registration.held, request.held);
  EXPECT_EQ(workers_.last_registration.held_valid_for, request.held_valid_for);
  EXPECT_EQ(workers_.last_peer.address.find("ipv4:127.0.0.1:"), 0U);
  EXPECT_TRUE(workers_.last_peer.identity.empty());

  ports::SnapshotAck ack;
  ack.worker = WorkerId("gw-1");
  ack.session = answer->session;
  ack.version = {3, 5};
  ack.status = ports::AckStatus::Rejected;
  ack.reason = "no such upstream";
  ASSERT_TRUE(control->acknowledge(ack, in(kPatience)));
  EXPECT_EQ(workers_.last_ack->status, ports::AckStatus::Rejected);
  EXPECT_EQ(workers_.last_ack->reason, ack.reason);

  ports::RuntimeReport report;
  report.worker = WorkerId("gw-1");
  report.session = answer->session;
  report.sequence = 12;
  report.counts = {{ProxyId(1), Epoch(2), 3, 4, false}};
  const auto accepted = control->report_runtime(report, in(kPatience));
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ(accepted->accepted_sequence, 12U);
  EXPECT_EQ(accepted->revoke, std::vector{ProxyId(77)});
  EXPECT_EQ(workers_.last_report->counts.at(0).reserved, 4U);
}

TEST_F(ControlPlane, StreamsSnapshotsAndExtensions) {
  const auto control = worker();
  const auto stream = watch(*control);
  const auto sent = test::sample_full_push();
  workers_.box()->put(sent);
  const auto full = stream->next(in(kPatience));
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_TRUE(*std::get<ports::FullPush>(*full).snapshot == *sent.snapshot);
  workers_.box()->put(test::sample_extend_push());
  const auto extend = stream->next(in(kPatience));
  ASSERT_TRUE(extend) << extend.error().message;
  EXPECT_EQ(std::get<ports::ExtendPush>(*extend).revoked, test::sample_extend_push().revoked);
  const auto nothing = stream->next(in(milliseconds(20)));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::DeadlineExceeded);
  workers_.box()->put(sent);  // the stream is still good
  EXPECT_TRUE(stream->next(in(kPatience)));
}

TEST_F(ControlPlane, TheHeldVersionArrives) {
  const auto control = worker();
  const auto answer = control->register_worker(registration(), in(kPatience));
  const auto stream =
      control->watch_snapshots(WorkerId("gw-1"), answer->session, domain::SnapshotVersion{6, 7});
  (void)workers_.box();
  EXPECT_EQ(workers_.last_held, (domain::SnapshotVersion{6, 7}));
}

// CP-7: a new registration ends the stream of the old session.
TEST_F(ControlPlane, AReplacedSessionsStreamEndsAsStale) {
  const auto control = worker();
  const auto stream = watch(*control);
  const auto box = workers_.box();
  const auto second = control->register_worker(registration(), in(kPatience));
  ASSERT_TRUE(second);
  const auto end = stream->next(in(kPatience));
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::Stale);
  EXPECT_EQ(end.error().message, "the session was replaced");
  await([&] { return box->closings.load() == 1; });
  const auto again = stream->next(in(kPatience));
  EXPECT_EQ(again.error().code, ErrorCode::Stale);
  // And the old session's name opens nothing.
  const auto late = control->watch_snapshots(WorkerId("gw-1"), SessionId("s-1"), {});
  EXPECT_EQ((*late)->next(in(kPatience)).error().code, ErrorCode::Stale);
}

TEST_F(ControlPlane, CancelEndsAWaitOnAnotherThread) {
  const auto control = worker();
  const auto stream = watch(*control);
  const auto box = workers_.box();
  std::thread canceller([&] { stream->cancel(); });
  const auto end = stream->next(in(kPatience));
  canceller.join();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::Unavailable);
  await([&] { return box->closings.load() == 1; });
}

TEST_F(ControlPlane, AStreamThatIsDroppedUnreadIsClosedOnce) {
  for (const bool filled : {false, true}) {
    const auto control = worker();
    auto stream = watch(*control);
    const auto box = workers_.box();
    if (filled) {
      box->put(full_push(1, 20'000));
      await([&] { return box->takes.load() >= 2; });
    }
    stream.reset();
    await([&] { return box->closings.load() > 0; });
    server_->stop(in(kPatience));
    EXPECT_EQ(box->closings.load(), 1);
    start({});
  }
}

// The last holder of a channel must not be one of gRPC's own threads: the last channel of a process
// waits for these threads, and one of them would wait for itself.
TEST_F(ControlPlane, AStreamMayBeTheLastOfItsChannelAndOfTheProcess) {
  server_->stop(in(kPatience));
  server_.reset();
  const auto silent = net::listen_tcp({IpAddress::v4(0x7f000001), 0});
  ASSERT_TRUE(silent);
  for (int i = 0; i < 50; ++i) {
    const auto place = net::local_endpoint(silent->get()).str();
    auto control = *make_worker_control(place, {}, clock_);
    auto stream = *control->watch_snapshots(WorkerId("gw-1"), SessionId("s-1"), {});
    control.reset();
    stream.reset();
  }
}

TEST_F(ControlPlane, AStoppingServerEndsItsStreamsAtOnce) {
  const auto control = worker();
  const auto stream = watch(*control);
  const auto box = workers_.box();
  const auto before = clock_.now();
  server_->stop(in(kPatience));
  EXPECT_LT(clock_.now() - before, seconds(2));
  const auto end = stream->next(in(kPatience));
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::Unavailable);
  EXPECT_TRUE(end.error().retryable);
  EXPECT_EQ(box->closings.load(), 1);
  box->put(test::sample_extend_push());  // a late wake-up
  EXPECT_FALSE(control->register_worker(registration(), in(kPatience)));
}

TEST_F(ControlPlane, AStoppingServerCancelsCallsAtItsDeadline) {
  std::atomic<bool> entered{false};
  std::atomic<bool> leave{false};
  workers_.on_register = [&](Deadline) {
    entered = true;
    await([&] { return leave.load(); });
    return ok();
  };
  const auto control = worker();
  std::thread stopper([&] {
    await([&] { return entered.load(); });
    server_->stop(in(milliseconds(50)));
  });
  const auto answer = control->register_worker(registration(), in(kPatience));
  EXPECT_FALSE(answer);
  leave = true;
  stopper.join();
}

TEST_F(ControlPlane, ReconnectsToAControllerThatCameBack) {
  const auto control = worker();
  ASSERT_TRUE(control->register_worker(registration(), in(kPatience)));
  ServerOptions same_place;
  same_place.listen = address();
  server_->stop(in(seconds(1)));
  const auto away = control->register_worker(registration(), in(kPatience));
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, ErrorCode::Unavailable);
  start(same_place);
  const auto limit = in(kPatience);
  bool back = false;
  while (!back && !limit.passed(clock_.now())) {
    back = control->register_worker(registration(), in(kPatience)).has_value();
  }
  EXPECT_TRUE(back);
}

// CP-2, end to end.
TEST_F(ControlPlane, AHundredThousandProxiesArriveAsTheyWere) {
  const auto control = worker();
  const auto stream = watch(*control);
  const auto sent = full_push(1, 100'000);
  const auto box = workers_.box();
  const auto before = clock_.now();
  box->put(sent);
  const auto got = stream->next(in(seconds(50)));
  const auto took = std::chrono::duration_cast<milliseconds>(clock_.now() - before);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*std::get<ports::FullPush>(*got).snapshot == *sent.snapshot);
  std::printf("100,000 proxies from mailbox to snapshot: %lld ms\n",
              static_cast<long long>(took.count()));
}

// CP-5: while a slow worker reads, newer pushes replace each other in the mailbox.
TEST_F(ControlPlane, ASlowReaderGetsTheNewestPushAndNotEveryPush) {
  const auto control = worker();
  const auto stream = watch(*control);
  const auto box = workers_.box();
  await([&] { return box->takes.load() >= 1; });
  const int before = box->takes.load();
  const auto large = full_push(1, 40'000);  // about 2 MiB: far more than the windows hold
  box->put(large);
  await([&] { return box->takes.load() == before + 1; });
  for (std::uint64_t counter = 2; counter <= 200; ++counter) box->put(full_push(counter, 1));
  EXPECT_EQ(box->takes.load(), before + 1);  // still writing the first
  const auto first = stream->next(in(kPatience));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(std::get<ports::FullPush>(*first).snapshot->version.counter, 1U);
  const auto second = stream->next(in(kPatience));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(std::get<ports::FullPush>(*second).snapshot->version.counter, 200U);
}

TEST_F(ControlPlane, OutcomesArriveAndAStaleSessionIsSaid) {  // CP-7
  const auto control = worker();
  ASSERT_TRUE(control->register_worker(registration(), in(kPatience)));
  ports::OutcomeBatch batch;
  batch.worker = WorkerId("gw-1");
  batch.session = SessionId("s-1");
  batch.sequence = 3;
  batch.version = {6, 7};
  batch.routings = {RoutingId("a"), RoutingId("b")};
  for (std::uint64_t i = 1; i <= ports::kOutcomesMax; ++i) {
    ports::Outcome outcome;
    outcome.what = {ProxyId(i),
                    domain::RequestKind::Connect,
                    {domain::Phase::ProxyHandshake, domain::FailureKind::AuthRejected},
                    407,
                    false,
                    milliseconds(12)};
    outcome.lease_epoch = Epoch(9);
    outcome.routing = static_cast<std::uint32_t>(i % 2);
    outcome.request_id = i << 40U;
    outcome.age = milliseconds(250);
    batch.outcomes.push_back(outcome);
  }
  const auto told = control->report_outcomes(batch, in(kPatience));
  ASSERT_TRUE(told) << told.error().message;
  ASSERT_TRUE(workers_.last_outcomes);
  const auto& got = *workers_.last_outcomes;
  EXPECT_EQ(got.sequence, 3U);
  EXPECT_EQ(got.version, batch.version);
  EXPECT_EQ(got.routings, batch.routings);
  ASSERT_EQ(got.outcomes.size(), batch.outcomes.size());
  const ports::Outcome& last = got.outcomes.back();
  EXPECT_EQ(last.what.proxy, ProxyId(ports::kOutcomesMax));
  EXPECT_EQ(last.what.kind, domain::RequestKind::Connect);
  EXPECT_EQ(last.what.failure, batch.outcomes.back().what.failure);
  EXPECT_EQ(last.what.status, 407);
  EXPECT_EQ(last.what.latency, milliseconds(12));
  EXPECT_EQ(last.lease_epoch, Epoch(9));
  EXPECT_EQ(last.request_id, batch.outcomes.back().request_id);
  EXPECT_EQ(last.age, milliseconds(250));
  batch.session = SessionId("s-0");
  const auto stale = control->report_outcomes(batch, in(kPatience));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::Stale);
  batch.outcomes.resize(ports::kOutcomesMax + 1);
  const auto many = control->report_outcomes(batch, in(kPatience));
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, ErrorCode::InvalidArgument);
}

}  // namespace
}  // namespace proxypool::rpc
