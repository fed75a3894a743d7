// proxy-checker as a program: against a controller's gRPC server in the test, and fixture proxies
// with every fault.
#include <gtest/gtest.h>

#include <fstream>

#include "adapters/grpc/control_plane_server.hpp"
#include "contract/control_plane/fake_services.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/system.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/fixture_process.hpp"
#include "support/http_client.hpp"

namespace proxypool::checker {
namespace {

using domain::FailureKind;
using domain::Phase;
using support::ChildProcess;
using support::eventually;

class CheckerProcess : public testing::Test {
 protected:
  void SetUp() override { serve("127.0.0.1:0"); }
  void TearDown() override { server_->stop(Deadline(clock_.now())); }

  void serve(const std::string& listen) {
    rpc::ServerOptions options;
    options.listen = listen;
    options.executor = [this](std::function<void()> job) { return pool_.try_run(std::move(job)); };
    auto server = rpc::make_control_plane_server(std::move(options), workers_, checkers_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }
  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_->port());
  }

  ChildProcess::Options program(std::vector<std::string> more = {}) {
    const auto config = folder_.path() / "checker.yaml";
    std::ofstream(config) << "checker:\n  metrics:\n    listen: 127.0.0.1:0\n";
    ChildProcess::Options options{"proxy-checker", {"--config", config}, {}, {}};
    for (auto& argument : more) options.arguments.push_back(std::move(argument));
    return options;
  }
  ChildProcess::Options connected_program() {
    return program({"--control-plane", address(), "--cluster-id", "test", "--checker-id", "c-1",
                    "--log-level", "debug"});
  }
  // The port of /livez, /readyz and /metrics, from the program's own log line.
  static std::uint16_t metrics_port(ChildProcess& child) {
    const auto line = child.wait_for_line("listener_opened listener=metrics");
    EXPECT_TRUE(line) << child.err();
    return line ? parse_number<std::uint16_t>(line->substr(line->rfind(':') + 1)).value_or(0) : 0;
  }
  static bool ready(std::uint16_t port) { return support::http_get(port, "/readyz").status == 200; }
  std::optional<domain::Observation> observation(std::uint64_t task) {
    return checkers_.reports.with([&](const auto& reports) {
      std::optional<domain::Observation> found;
      for (const auto& report : reports) {
        for (const auto& seen : report.observations) {
          if (seen.task_id == task) found = seen;
        }
      }
      return found;
    });
  }

  const Clock& clock_ = runtime::system_clock();
  support::TempDir folder_;
  runtime::BlockingPool pool_{"server", 2, 64};
  test::FakeWorkers workers_;
  test::FakeCheckers checkers_;
  std::unique_ptr<rpc::ControlPlaneServer> server_;
};

domain::CheckTask task_for(const support::FixtureProcess& fixture, std::size_t proxy) {
  const auto header = fixture.authorization();  // "Proxy-Authorization: Basic …\r\n"
  const auto at = header.rfind(' ') + 1;
  const auto pair = base64_decode(trim(header.substr(at))).value_or(":");
  domain::CheckTask task;
  task.task_id = proxy;
  task.proxy = ProxyId(proxy);
  task.endpoint = {domain::Scheme::Http, "127.0.0.1", fixture.proxy_port(proxy)};
  task.credential.username = pair.substr(0, pair.find(':'));
  task.credential.password = SecretString(pair.substr(pair.find(':') + 1));
  task.target_host = "192.0.2.1";
  task.target_port = 443;
  task.timeout = milliseconds(3'000);
  return task;
}

TEST_F(CheckerProcess, TellsEveryFaultOfAProxyApart) {
  const std::vector<std::pair<const char*, domain::Failure>> faults = {
      {"none", {}},
      {"slow:200ms", {}},
      {"502", {}},
      {"407", {Phase::ProxyHandshake, FailureKind::AuthRejected}},
      {"refuse", {Phase::Dial, FailureKind::Refused}},
      {"hang", {Phase::ProxyHandshake, FailureKind::Timeout}},
      {"garbage", {Phase::ProxyHandshake, FailureKind::Protocol}},
      {"close-before-head", {Phase::ProxyHandshake, FailureKind::Reset}},
      {"reset", {Phase::ProxyHandshake, FailureKind::Reset}},
  };
  support::FixtureProcess fixture({"--proxies", std::to_string(faults.size() + 1)});
  std::vector<domain::CheckTask> tasks;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    fixture.set_fault(i, faults[i].first);
    tasks.push_back(task_for(fixture, i));
  }
  tasks.push_back(task_for(fixture, faults.size()));
  tasks.back().credential.password = SecretString("wrong-secret");

  ChildProcess checker(connected_program());
  const auto port = metrics_port(checker);
  ASSERT_TRUE(eventually([&] { return ready(port); })) << checker.err();
  EXPECT_EQ(checkers_.last_registration.cluster_id, "test");
  EXPECT_EQ(checkers_.last_registration.checker, CheckerId("c-1"));
  EXPECT_EQ(checkers_.last_registration.in_flight_max, 256U);
  checkers_.box()->put(tasks);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    ASSERT_TRUE(eventually([&] { return observation(i).has_value(); })) << faults[i].first;
    EXPECT_EQ(observation(i)->failure, faults[i].second)
        << faults[i].first << ": " << to_string(observation(i)->failure.kind);
    EXPECT_EQ(observation(i)->passed, faults[i].second == domain::Failure{}) << faults[i].first;
  }
  ASSERT_TRUE(eventually([&] { return observation(faults.size()).has_value(); }));
  EXPECT_EQ(observation(faults.size())->failure.kind, FailureKind::AuthRejected);

  const auto metrics = support::http_get(port, "/metrics").body;
  EXPECT_NE(metrics.find("proxypool_checker_probes_total{result=\"passed\"} 3"), std::string::npos);
  EXPECT_NE(metrics.find("proxypool_checker_probes_total{result=\"auth_rejected\"} 2"),
            std::string::npos);
  EXPECT_EQ(checker.stop(), 0) << checker.err();
  EXPECT_NE(checker.err().find("probe_finished"), std::string::npos);
  EXPECT_EQ(checker.err().find("wrong-secret"), std::string::npos);
}

// OP-2: ready means a session; CP-8: it comes back by itself.
TEST_F(CheckerProcess, IsReadyWhileItHasASessionAndComesBackWithTheController) {
  ChildProcess checker(connected_program());
  const auto port = metrics_port(checker);
  ASSERT_TRUE(eventually([&] { return ready(port); })) << checker.err();
  EXPECT_EQ(support::http_get(port, "/livez").status, 200U);
  const std::string place = address();
  server_->stop(Deadline(clock_.now()));
  ASSERT_TRUE(eventually([&] { return !ready(port); }));
  const auto reply = support::http_get(port, "/readyz");
  EXPECT_EQ(reply.status, 503U);
  EXPECT_NE(reply.body.find("no session with the controller"), std::string::npos) << reply.body;
  EXPECT_EQ(support::http_get(port, "/livez").status, 200U);
  server_.reset();
  serve(place);
  EXPECT_TRUE(eventually([&] { return ready(port); }));
  EXPECT_EQ(checker.stop(), 0) << checker.err();
}

TEST_F(CheckerProcess, ProbesThatRunAreReportedBeforeItEnds) {
  support::FixtureProcess fixture({"--proxies", "1"});
  fixture.set_fault(0, "slow:1s");
  ChildProcess checker(connected_program());
  ASSERT_TRUE(eventually([&] { return checkers_.sessions.load() == 1; })) << checker.err();
  checkers_.box()->put({task_for(fixture, 0)});
  ASSERT_TRUE(eventually([&] { return fixture.proxy_stats(0).at("connections") == 1; }))
      << fixture.proxy_stats(0);
  EXPECT_EQ(checker.stop(), 0) << checker.err();
  ASSERT_TRUE(observation(0));
  EXPECT_TRUE(observation(0)->passed);
}

TEST_F(CheckerProcess, ARefusalBeforeTheFirstSessionEndsItWithOne) {
  checkers_.refuse_with = Error{ErrorCode::Forbidden, Origin::Client, "not in this cluster"};
  const auto ended = support::run(connected_program());
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("not in this cluster"), std::string::npos) << ended.err;
}

// CP-10: plaintext on loopback only.
TEST_F(CheckerProcess, AControllerBeyondThisMachineIsAUsageError) {
  const auto ended = support::run(program({"--control-plane", "192.0.2.1:9443"}));
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("192.0.2.1:9443 is no loopback address"), std::string::npos)
      << ended.err;
}

}  // namespace
}  // namespace proxypool::checker
