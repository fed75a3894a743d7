// The control plane over loopback: deadlines, errors, limits, and what is refused.
#include <grpcpp/create_channel.h>

#include "adapters/grpc/transport_options.hpp"
#include "adapters/grpc/wire.hpp"
#include "contract/control_plane/control_plane_fixture.hpp"
#include "proto/controlplane/v1/controlplane.grpc.pb.h"

namespace proxypool::rpc {
namespace {

using test::await;

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
    v1::OutcomeBatch batch;
    batch.set_worker_id("gw-1");
    batch.set_session_id("s-1");
    batch.set_sequence(1);
    batch.add_outcomes()->set_phase(static_cast<v1::Phase>(99));
    EXPECT_TRUE(writer->Write(batch));
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
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
