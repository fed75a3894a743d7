// SIGTERM at a gateway loses nothing (GW-53): what was accepted is finished, what is idle is told,
// and the exit code is 0.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "e2e/programs.hpp"
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
  Load load(cluster, "/slow?ms=5", {"--duration", "3s", "--concurrency", "16"});
  const auto requests = [&](std::size_t gateway) {
    return cluster.gateway_metric("proxypool_gateway_requests_total", gateway);
  };
  ASSERT_TRUE(support::eventually([&] { return requests(0) > 50 && requests(1) > 50; }));
  EXPECT_EQ(cluster.gateway(0).stop(), 0) << cluster.logs();
  const double at_the_end_of_one = requests(1);
  const auto report = load.report();
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report << cluster.logs();
  EXPECT_GT(requests(1), at_the_end_of_one + 50);
}

// A load balancer in front needs time to see that the gateway goes: until then it serves.
TEST(Drain, ServesOnForItsDelayWhileReadinessIsGone) {
  Cluster cluster({.gateway = "drain: {delay: 1s}"});
  cluster.gateway().signal(SIGTERM);
  ASSERT_TRUE(support::eventually([&] { return !cluster.ready(); }));
  EXPECT_EQ(cluster.get("/t/in-the-delay").status, 200U);
  EXPECT_EQ(cluster.gateway().wait(), 0) << cluster.logs();
}

}  // namespace
}  // namespace proxypool
