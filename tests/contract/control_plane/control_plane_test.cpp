// The control plane over loopback: both real ends in one process, small services behind.
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "adapters/grpc/control_plane_client.hpp"
#include "adapters/grpc/control_plane_server.hpp"
#include "adapters/grpc/transport_options.hpp"
#include "adapters/grpc/wire.hpp"
#include "contract/control_plane/fake_services.hpp"
#include "net/socket.hpp"
#include "proto/controlplane/v1/controlplane.grpc.pb.h"
#include "runtime/blocking_pool.hpp"
#include "runtime/system.hpp"
#include "support/control_plane_samples.hpp"

namespace proxypool::rpc {
namespace {

using test::await;
using test::FakeCheckers;
using test::FakeWorkers;
using PushStream = std::unique_ptr<ports::Stream<ports::Push>>;

constexpr seconds kPatience{8};

class ControlPlane : public testing::Test {
 protected:
  void SetUp() override { start({}); }
  void TearDown() override {
    if (server_) server_->stop(in(milliseconds(0)));
  }

  // Replaces the server; its port may be given.
  void start(ServerOptions options) {
    if (!options.executor) {
      options.executor = [this](std::function<void()> job) {
        return pool_.try_run(std::move(job));
      };
    }
    server_.reset();
    auto server = make_control_plane_server(std::move(options), workers_, checkers_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_->port());
  }
  [[nodiscard]] Deadline in(nanoseconds budget) const {
    return Deadline::after(clock_.now(), budget);
  }
  [[nodiscard]] std::unique_ptr<ports::WorkerControl> worker(ClientOptions options = {}) const {
    return *make_worker_control(address(), options, clock_);
  }
  [[nodiscard]] std::unique_ptr<ports::CheckerControl> checker(ClientOptions options = {}) const {
    return *make_checker_control(address(), options, clock_);
  }
  static ports::RegisterWorkerRequest registration() {
    ports::RegisterWorkerRequest request;
    request.cluster_id = "local";
    request.worker = WorkerId("gw-1");
    request.instance = InstanceId("i-1");
    return request;
  }
  // Registers and opens the stream.
  PushStream watch(ports::WorkerControl& control) {
    const auto answer = control.register_worker(registration(), in(kPatience));
    EXPECT_TRUE(answer) << answer.error().message;
    auto stream = control.watch_snapshots(WorkerId("gw-1"), answer->session, {});
    EXPECT_TRUE(stream);
    return *std::move(stream);
  }
  static ports::FullPush full_push(std::uint64_t counter, std::size_t proxies) {
    auto snapshot = std::make_shared<domain::WorkerSnapshot>(*test::large_snapshot(proxies, 100));
    snapshot->version.counter = counter;
    ports::FullPush push = test::sample_full_push();
    push.snapshot = std::move(snapshot);
    return push;
  }

  const Clock& clock_ = runtime::system_clock();
  runtime::BlockingPool pool_{"test-pool", 3, 64};
  FakeWorkers workers_;
  FakeCheckers checkers_;
  std::unique_ptr<ControlPlaneServer> server_;
};

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

TEST_F(ControlPlane, ADeadlineReachesTheServiceAndEndsTheCall) {
  const auto control = worker();
  // Connected first, so that the budget is the call's alone.
  ASSERT_TRUE(control->register_worker(registration(), in(kPatience)));
  nanoseconds left{0};
  workers_.on_register = [&](Deadline deadline) {
    left = deadline.left(clock_.now());
    await([&] { return deadline.passed(clock_.now()); });
    return ok();
  };
  const auto before = clock_.now();
  const auto answer = control->register_worker(registration(), in(seconds(1)));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::DeadlineExceeded);
  EXPECT_LT(clock_.now() - before, seconds(4));
  server_->stop(in(kPatience));  // the handler has left
  EXPECT_GT(left, nanoseconds(0));
  EXPECT_LE(left, milliseconds(1010));  // gRPC rounds a budget up to 10 ms
}

TEST_F(ControlPlane, ErrorsOfTheServiceArriveWithTheirCode) {
  const auto control = worker();
  for (const auto code :
       {ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::Exhausted,
        ErrorCode::Unavailable, ErrorCode::DeadlineExceeded, ErrorCode::Unauthenticated,
        ErrorCode::Forbidden, ErrorCode::Stale, ErrorCode::Corrupt, ErrorCode::Internal}) {
    workers_.on_register = [code](Deadline) -> Status {
      return Error{code, Origin::Client, "why: " + std::string(to_string(code))};
    };
    const auto answer = control->register_worker(registration(), in(kPatience));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, code);
    EXPECT_EQ(answer.error().message, "why: " + std::string(to_string(code)));
  }
}

// CP-11.
TEST_F(ControlPlane, AnotherProtocolVersionFailsRegistration) {
  auto request = registration();
  request.protocol_version = 2;
  const auto answer = worker()->register_worker(request, in(kPatience));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(answer.error().message.find("protocol version 2"), std::string::npos);
  EXPECT_EQ(workers_.sessions.load(), 0);
}

// CP-11, and what no client of ours sends.
TEST_F(ControlPlane, StrangeMessagesAreRefused) {
  const auto stub = v1::WorkerControlPlane::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  {
    v1::AcknowledgeSnapshotRequest ack;
    ack.set_worker_id("gw-1");
    ack.set_session_id("s-1");
    ack.mutable_version();
    ack.set_digest(std::string(32, 'd'));
    ack.set_status(static_cast<v1::AckStatus>(9));
    grpc::ClientContext context;
    v1::AcknowledgeSnapshotResponse answer;
    const auto status = stub->AcknowledgeSnapshot(&context, ack, &answer);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), "unknown acknowledgement status 9");
  }
  {
    grpc::ClientContext context;
    const auto reader = stub->WatchSnapshots(&context, v1::WatchSnapshotsRequest());
    v1::SnapshotEvent event;
    EXPECT_FALSE(reader->Read(&event));
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    grpc::ClientContext context;
    v1::ReportOutcomesResponse answer;
    const auto writer = stub->ReportOutcomes(&context, &answer);
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(ControlPlane, AMessageThatIsTooLargeIsRefusedAndTheConnectionLives) {
  ServerOptions options;
  options.message_bytes_max = 16 << 10;
  start(std::move(options));
  const auto control = worker();
  ports::RuntimeReport report;
  report.worker = WorkerId("gw-1");
  report.session = SessionId("s-1");
  report.sequence = 1;
  report.counts.resize(2'000, {ProxyId(1), Epoch(2), 3, 4, false});
  const auto refused = control->report_runtime(report, in(kPatience));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Exhausted);
  EXPECT_FALSE(refused.error().retryable);
  report.counts.resize(10);
  EXPECT_TRUE(control->report_runtime(report, in(kPatience)));
}

TEST_F(ControlPlane, ARefusingExecutorIsUnavailableToCallsAndLosesNoWakeUp) {
  std::atomic<bool> busy{true};
  ServerOptions options;
  options.executor = [&](std::function<void()> job) {
    return !busy.load() && pool_.try_run(std::move(job));
  };
  start(std::move(options));
  const auto control = worker();
  const auto refused = control->register_worker(registration(), in(kPatience));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable);
  EXPECT_TRUE(refused.error().retryable);

  busy = false;
  const auto stream = watch(*control);
  const auto box = workers_.box();
  await([&] { return box->takes.load() >= 1; });
  busy = true;
  box->put(test::sample_extend_push());
  EXPECT_FALSE(stream->next(in(milliseconds(50))));
  busy = false;
  EXPECT_TRUE(stream->next(in(kPatience)));
  busy = true;
  box->put(test::sample_extend_push());
  server_->stop(in(kPatience));  // a turn that never gets its thread does not hold the server up
  EXPECT_EQ(box->closings.load(), 1);
}

TEST_F(ControlPlane, CheckersRegisterTakeTasksAndReport) {
  const auto control = checker();
  ports::RegisterCheckerRequest request;
  request.cluster_id = "local";
  request.checker = CheckerId("checker-1");
  request.instance = InstanceId("i-1");
  request.in_flight_max = 8;
  request.levels = {domain::CheckLevel::Basic};
  const auto answer = control->register_checker(request, in(kPatience));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->session_ttl, milliseconds(45'000));
  EXPECT_EQ(checkers_.last_registration.in_flight_max, 8U);
  const auto stream = control->watch_tasks(CheckerId("checker-1"), answer->session);
  std::vector<domain::CheckTask> tasks(600);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].task_id = i;
    tasks[i].endpoint = {domain::Scheme::Http, "192.0.2.7", 8080};
    tasks[i].credential = {"user", SecretString("secret")};
    tasks[i].target_host = "192.0.2.1";
    tasks[i].target_port = 443;
  }
  checkers_.box()->put(tasks);
  std::vector<domain::CheckTask> got;
  for (const std::size_t size : {512U, 88U}) {
    auto batch = (*stream)->next(in(kPatience));
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(batch->size(), size);
    got.insert(got.end(), batch->begin(), batch->end());
  }
  EXPECT_TRUE(got == tasks);
  const domain::Observation seen{5,    ProxyId(6), domain::CheckLevel::Basic,
                                 true, {},         milliseconds(7)};
  ASSERT_TRUE(control->report_observations({CheckerId("checker-1"), answer->session, {seen}},
                                           in(kPatience)));
  checkers_.reports.with([&](const auto& reports) {
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0].observations, std::vector{seen});
  });
  const auto stale = control->report_observations(
      {CheckerId("checker-1"), SessionId("c-0"), {seen}}, in(kPatience));
  EXPECT_EQ(stale.error().code, ErrorCode::Stale);
}

TEST_F(ControlPlane, ATakenPortIsAnErrorThatSaysSo) {
  ServerOptions options;
  options.listen = address();
  options.executor = [](auto) { return false; };
  const auto second = make_control_plane_server(options, workers_, checkers_, clock_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Unavailable);
  EXPECT_NE(second.error().message.find(address()), std::string::npos);
}

// CP-10: plaintext on loopback only.
TEST_F(ControlPlane, PlaintextIsRefusedBeyondLoopback) {
  for (const char* bad : {"192.0.2.1:9443", "controller.example:9443", "0.0.0.0:0", "[::]:9443",
                          "127.0.0.1", ":9443", "127.0.0.1:x", "::1:9443:"}) {
    const auto client = make_worker_control(bad, {}, clock_);
    ASSERT_FALSE(client) << bad;
    EXPECT_EQ(client.error().code, ErrorCode::InvalidArgument);
    EXPECT_FALSE(make_checker_control(bad, {}, clock_)) << bad;
    ServerOptions options;
    options.listen = bad;
    options.executor = [](auto) { return false; };
    EXPECT_FALSE(make_control_plane_server(options, workers_, checkers_, clock_)) << bad;
  }
  for (const char* good : {"127.0.0.1:9443", "localhost:9443", "[::1]:9443", "127.8.9.1:1"}) {
    EXPECT_TRUE(make_worker_control(good, {}, clock_)) << good;
  }
}

// The client never pings faster than the server allows: first the figures, then the real thing,
// which an unfitting server ends with "too_many_pings" after four pings.
TEST_F(ControlPlane, TheClientNeverPingsFasterThanTheServerAllows) {
  for (const auto configured : {milliseconds(0), milliseconds(1'000), milliseconds(1'001),
                                milliseconds(20'000), milliseconds(86'400'000)}) {
    const auto keepalive = keepalive_of(configured);
    EXPECT_GE(keepalive.interval, milliseconds(1'000));
    EXPECT_LE(keepalive.server_interval_min, keepalive.interval / 2);
    EXPECT_LE(keepalive.timeout, std::max(keepalive.interval, milliseconds(1'000)));
  }
  ServerOptions server;
  server.keepalive = seconds(1);
  start(std::move(server));
  ClientOptions client;
  client.keepalive = seconds(1);
  const auto control = worker(client);
  const auto stream = watch(*control);
  const auto quiet = stream->next(in(milliseconds(6'000)));
  ASSERT_FALSE(quiet);
  EXPECT_EQ(quiet.error().code, ErrorCode::DeadlineExceeded) << quiet.error().message;
  workers_.box()->put(test::sample_extend_push());
  EXPECT_TRUE(stream->next(in(kPatience)));
}

}  // namespace
}  // namespace proxypool::rpc
