// The whole checker without its main: session over gRPC, prober, a real proxy's answers.
#include <gtest/gtest.h>

#include "adapters/grpc/control_plane_client.hpp"
#include "adapters/grpc/control_plane_server.hpp"
#include "adapters/telemetry/telemetry.hpp"
#include "checker/checker.hpp"
#include "contract/control_plane/fake_services.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/system.hpp"
#include "support/recording_events.hpp"
#include "unit/checker/fake_proxy.hpp"

namespace proxypool::checker {
namespace {

using test::await;
using test::FakeProxy;

domain::CheckTask task_for(const FakeProxy& proxy, std::uint64_t id) {
  domain::CheckTask task;
  task.task_id = id;
  task.proxy = ProxyId(id);
  task.endpoint = {domain::Scheme::Http, "127.0.0.1", proxy.port()};
  task.target_host = "192.0.2.1";
  task.target_port = 443;
  return task;
}

// The observations that arrived, by task.
std::map<std::uint64_t, domain::Observation> reported(test::FakeCheckers& service) {
  return service.reports.with([](const auto& reports) {
    std::map<std::uint64_t, domain::Observation> all;
    for (const auto& report : reports) {
      for (const auto& observation : report.observations) {
        all.emplace(observation.task_id, observation);
      }
    }
    return all;
  });
}

TEST(CheckerOverGrpc, TakesTasksProbesReportsAndComesBackAfterAReplacedSession) {
  const Clock& clock = runtime::system_clock();
  runtime::BlockingPool pool("server", 2, 64);
  test::FakeWorkers workers;
  test::FakeCheckers checkers;
  rpc::ServerOptions options;
  options.executor = [&](std::function<void()> job) { return pool.try_run(std::move(job)); };
  auto server = *rpc::make_control_plane_server(std::move(options), workers, checkers, clock);
  auto control =
      *rpc::make_checker_control("127.0.0.1:" + std::to_string(server->port()), {}, clock);

  FakeProxy good(FakeProxy::answering("HTTP/1.1 200 OK\r\n\r\n"));
  FakeProxy bad(FakeProxy::answering("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"));
  const auto metrics = telemetry::make_metrics();
  test::RecordingEvents events;
  SessionSettings settings;
  settings.cluster_id = "local";
  settings.checker = CheckerId("checker-1");
  settings.instance = InstanceId("i-1");
  Checker checker(settings, {}, {*control, events, *metrics, clock, [](const std::string& reason) {
                                   ADD_FAILURE() << reason;
                                 }});
  EXPECT_FALSE(checker.not_ready().empty());
  ASSERT_TRUE(checker.start());

  checkers.box()->put({task_for(good, 1), task_for(bad, 2)});
  await([&] { return reported(checkers).size() == 2; });
  EXPECT_TRUE(reported(checkers)[1].passed);
  EXPECT_EQ(reported(checkers)[2].failure.kind, domain::FailureKind::AuthRejected);

  const auto box = checkers.box();
  ++checkers.sessions;  // somebody else registered in its name
  box->fail(test::stale());
  await([&] { return checkers.sessions.load() == 3 && checkers.box() != box; });
  checkers.box()->put({task_for(good, 3)});
  await([&] { return reported(checkers).size() == 3; });

  EXPECT_TRUE(checker.not_ready().empty());

  checker.stop_intake();
  EXPECT_TRUE(checker.drain(Deadline::after(clock.now(), seconds(5))));
  checker.stop();
  server->stop(Deadline::after(clock.now(), seconds(2)));
  EXPECT_EQ(checker.status().counters.registrations, 2U);
  EXPECT_EQ(checker.status().counters.observations_sent, 3U);
}

}  // namespace
}  // namespace proxypool::checker
