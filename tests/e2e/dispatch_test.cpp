// How requests spread over proxies, and that none gets more at once than it may (GW-31, R1, R8).
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::Load;
using support::Cluster;

std::vector<int> of_each_proxy(Cluster& cluster, const char* counter) {
  std::vector<int> counts;
  const auto stats = cluster.fixture().stats();
  for (const auto& proxy : stats.at("proxies")) counts.push_back(proxy.at(counter));
  return counts;
}

TEST(Rotation, GivesEachProxyItsTurnOnOneConnection) {
  Cluster cluster({.proxies = 3, .routing = "balancer: round_robin"});
  cluster.fixture().control("reset-stats");
  Load load(cluster, "/bytes/10", {"--requests", "30", "--concurrency", "1"});
  const auto report = load.report();
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report;
  EXPECT_EQ(of_each_proxy(cluster, "requests"), (std::vector<int>{10, 10, 10}));
}

TEST(Rotation, SpreadsManyClientsOverAllProxies) {
  Cluster cluster({.proxies = 4, .routing = "balancer: round_robin"});
  cluster.fixture().control("reset-stats");
  Load load(cluster, "/bytes/10", {"--requests", "400", "--concurrency", "8", "--no-keep-alive"});
  const auto report = load.report();
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report;
  for (const int requests : of_each_proxy(cluster, "requests")) {
    EXPECT_GE(requests, 80);  // a hundred each, give or take a start of each serving thread
    EXPECT_LE(requests, 120);
  }
}

// Each proxy belongs to one gateway; beyond what it may carry there is an answer and no wait.
void expect_limit_kept(Cluster& cluster, std::deque<Load>& loads, int limit) {
  int served = 0;
  int turned_away = 0;
  for (Load& load : loads) {
    const auto report = load.report();
    EXPECT_EQ(report.at("requests").at("failed"), 0) << report;
    served += report.at("statuses").value("200", 0);
    turned_away += report.at("statuses").value("503", 0);
    for (const auto& [code, count] : report.at("codes").items()) EXPECT_EQ(code, "no_candidate");
  }
  EXPECT_GT(served, 0);
  EXPECT_GT(turned_away, 0);
  for (const int most : of_each_proxy(cluster, "in_flight_max")) EXPECT_EQ(most, limit);
}

e2e::Arguments crowd() {
  return {"--requests", "300", "--concurrency", "24", "--expect-status", "200,503"};
}

TEST(ConcurrencyPerProxy, IsNeverExceededByOneGateway) {
  Cluster cluster({.proxies = 3, .concurrency = 2});
  cluster.fixture().control("reset-stats");
  std::deque<Load> loads;
  loads.emplace_back(cluster, "/slow?ms=30", crowd());
  expect_limit_kept(cluster, loads, 2);
}

TEST(ConcurrencyPerProxy, IsNeverExceededByTwoGatewaysTogether) {
  Cluster cluster({.proxies = 6, .concurrency = 1, .gateways = 2, .one_port = true});
  cluster.fixture().control("reset-stats");
  std::deque<Load> loads;
  loads.emplace_back(cluster, "/slow?ms=30", crowd());
  loads.emplace_back(cluster, "/slow?ms=30", crowd());
  expect_limit_kept(cluster, loads, 1);
}

TEST(ConcurrencyPerProxy, AnswersTheExcessWithA503ThatSaysWhenToComeBack) {
  Cluster cluster({.proxies = 1, .concurrency = 1});
  Load load(cluster, "/slow?ms=2000", {"--requests", "1", "--concurrency", "1"});
  ASSERT_TRUE(support::eventually(
      [&] { return cluster.gateway_metric("proxypool_gateway_active_requests") == 1; }));
  const auto reply = cluster.get("/t/excess");
  EXPECT_EQ(reply.status, 503U);
  EXPECT_EQ(nlohmann::json::parse(reply.body).at("code"), "no_candidate");
  EXPECT_EQ(reply.header("Proxy-Status"),
            "proxypool; error=destination_unavailable; details=\"no_candidate\"");
  EXPECT_EQ(reply.header("Retry-After"), "5");
  EXPECT_EQ(load.report().at("requests").at("failed"), 0);
  EXPECT_EQ(cluster.get("/t/afterwards").status, 200U);
}

}  // namespace
}  // namespace proxypool
