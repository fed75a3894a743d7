// SIGTERM at a gateway loses nothing (GW-53): what was accepted is finished, what is idle is told,
// and the exit code is 0.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "e2e/programs.hpp"
#include "net/socket.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using e2e::Load;
using support::ChildProcess;
using support::Cluster;

double active(Cluster& cluster) {
  return cluster.gateway_metric("proxypool_gateway_active_requests");
}

TEST(Drain, FinishesWhatIsUnderWay) {
  Cluster cluster;
  std::vector<std::unique_ptr<ChildProcess>> clients;
  for (int i = 0; i < 4; ++i) {
    // 150 bytes, one each 10 ms: under way for 1.5 s.
    clients.push_back(std::make_unique<ChildProcess>(
        curl(cluster, {"-w", "%{http_code} %{size_download}", "-o", "/dev/null",
                       cluster.origin_url("/drip?ms=10&bytes=150")})));
  }
  ASSERT_TRUE(support::eventually([&] { return active(cluster) == 4; }));
  cluster.gateway().signal(SIGTERM);
  ASSERT_TRUE(support::eventually([&] { return !cluster.ready(); }));
  for (const auto& client : clients) {
    EXPECT_EQ(client->wait(), 0) << client->err();
    EXPECT_EQ(client->out(), "200 150");
  }
  EXPECT_EQ(cluster.gateway().wait(), 0) << cluster.logs();
  EXPECT_FALSE(support::HttpClient(cluster.gateway_port()).connected());
}

TEST(Drain, LetsATunnelEndByItself) {
  Cluster cluster;
  ChildProcess client(curl(cluster, {"--proxytunnel", "-w", "%{http_code} %{size_download}", "-o",
                                     "/dev/null", cluster.origin_url("/drip?ms=10&bytes=100")}));
  ASSERT_TRUE(support::eventually(
      [&] { return cluster.gateway_metric("proxypool_gateway_active_tunnels") == 1; }));
  cluster.gateway().signal(SIGTERM);
  EXPECT_EQ(client.wait(), 0) << client.err();
  EXPECT_EQ(client.out(), "200 100");
  EXPECT_EQ(cluster.gateway().wait(), 0) << cluster.logs();
}

TEST(Drain, EndsATunnelThatOutlastsItsTimeout) {
  Cluster cluster({.gateway = "drain: {timeout: 500ms}"});
  ChildProcess client(curl(cluster, {"--proxytunnel", "-o", "/dev/null",
                                     cluster.origin_url("/drip?ms=100&bytes=1000")}));
  ASSERT_TRUE(support::eventually(
      [&] { return cluster.gateway_metric("proxypool_gateway_active_tunnels") == 1; }));
  EXPECT_EQ(cluster.gateway().stop(std::chrono::seconds(5)), 0) << cluster.logs();
  const auto code = client.wait(std::chrono::seconds(5));
  EXPECT_TRUE(code == 18 || code == 56) << client.err();
}

// Clients on keep-alive connections, while one of two gateways on the port goes: each request is
// answered, and each client finds the other gateway.
TEST(Drain, OfOneOfTwoGatewaysFailsNoRequest) {
  // So many that neither gateway stays without, and each could serve all clients.
  Cluster cluster({.proxies = 24, .concurrency = 20, .gateways = 2, .one_port = true});
  Load load(cluster, "/slow?ms=5", {"--duration", "5s", "--concurrency", "16"});
  const auto requests = [&](std::size_t gateway) {
    return cluster.gateway_metric("proxypool_gateway_requests_total", gateway);
  };
  ASSERT_TRUE(support::eventually([&] { return requests(0) > 50 && requests(1) > 50; }));
  EXPECT_EQ(cluster.gateway(0).stop(), 0) << cluster.logs();
  const double at_the_end_of_one = requests(1);
  EXPECT_TRUE(support::eventually([&] { return requests(1) > at_the_end_of_one + 50; }));
  const auto report = load.report();
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report << cluster.logs();
}

// A load balancer in front needs time to see that the gateway goes: until then it serves.
TEST(Drain, ServesOnForItsDelayWhileReadinessIsGone) {
  Cluster cluster({.gateway = "drain: {delay: 1s}"});
  cluster.gateway().signal(SIGTERM);
  ASSERT_TRUE(support::eventually([&] { return !cluster.ready(); }));
  EXPECT_EQ(cluster.get("/t/in-the-delay").status, 200U);
  EXPECT_EQ(cluster.gateway().wait(), 0) << cluster.logs();
}

// As a service manager does it: it holds the socket, and a gateway gets it as descriptor 3.
class Upgrade : public ::testing::Test {
 protected:
  Upgrade() : cluster_({.proxies = 24, .concurrency = 20, .gateways = 2, .one_port = true}) {
    EXPECT_EQ(cluster_.gateway(0).stop(), 0);
    EXPECT_EQ(cluster_.gateway(1).stop(), 0);
    socket_ = *net::listen_tcp({IpAddress::v4(0x7f000001), cluster_.gateway_port()});
  }
  [[nodiscard]] ChildProcess::Options options(int descriptor_3, std::string_view number) const {
    ChildProcess::Options out;
    out.program = "/bin/sh";
    out.arguments = {"-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" --config \"$1\"",
                     support::program_path("proxy-gateway"),
                     cluster_.folder() / ("gateway-" + std::string(number) + ".yaml")};
    out.descriptor_3 = descriptor_3;
    return out;
  }
  [[nodiscard]] std::unique_ptr<ChildProcess> gateway(std::string_view number) const {
    return std::make_unique<ChildProcess>(options(socket_.get(), number));
  }

  Cluster cluster_;
  net::UniqueFd socket_;
};

// GW-53
TEST_F(Upgrade, WithTheSocketPassedOnLosesNoRequestAndNoConnection) {
  auto old_one = gateway("0");
  ASSERT_TRUE(old_one->wait_for_line("snapshot_applied"));
  Load load(cluster_, "/slow?ms=5", {"--duration", "4s", "--concurrency", "16", "--no-keep-alive"});
  auto new_one = gateway("1");
  ASSERT_TRUE(new_one->wait_for_line("snapshot_applied"));
  EXPECT_EQ(old_one->stop(), 0) << old_one->err();
  const auto report = load.report();
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report << new_one->err();
  EXPECT_EQ(new_one->stop(), 0) << new_one->err();
}

TEST_F(Upgrade, SomethingElseThanASocketIsRefusedWithTheRemedy) {
  const net::UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ChildProcess gateway(options(file.get(), "0"));
  EXPECT_EQ(gateway.wait(), 1);
  EXPECT_NE(gateway.err().find("ListenStream="), std::string::npos) << gateway.err();
}

TEST_F(Upgrade, AClientThatComesWhileNobodyServesWaits) {
  support::HttpClient early(cluster_.gateway_port());
  ASSERT_TRUE(early.connected());
  early.send("GET " + cluster_.origin_url("/t/early") + " HTTP/1.1\r\nHost: x\r\n\r\n");
  auto only = gateway("0");
  EXPECT_EQ(early.receive().status, 200U) << only->err();
  EXPECT_EQ(only->stop(), 0) << only->err();
}

}  // namespace
}  // namespace proxypool
