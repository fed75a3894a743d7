// The main road: a request through the whole cluster of real processes, and their end.
#include "support/cluster.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace proxypool {
namespace {

using support::Cluster;

std::set<std::string> places_of(const nlohmann::json& records) {
  std::set<std::string> places;
  for (const auto& seen : records.at("sightings")) places.insert(seen.at("place"));
  return places;
}

TEST(TheCluster, TakesARequestThroughAProxyToTheOrigin) {
  Cluster cluster({.proxies = 2});
  const auto reply = cluster.get("/t/token-of-the-main-road");
  EXPECT_EQ(reply.status, 200U) << reply.failure << reply.body << cluster.logs();
  const auto records = cluster.fixture().records("token-of-the-main-road");
  ASSERT_EQ(records.at("proxies").size(), 1U) << records;
  EXPECT_EQ(places_of(records), (std::set<std::string>{"origin", "proxy"})) << records;
  // The proxy that says it served is the one that dialled the origin.
  const std::string served = std::to_string(records.at("proxies").at(0).get<int>());
  EXPECT_EQ(reply.header("X-Fixture-Proxy"), served);
}

// OP-1: each process ends cleanly when it is asked to.
TEST(TheCluster, EndsWithExitCodeZero) {
  Cluster cluster;
  EXPECT_EQ(cluster.gateway().stop(), 0) << cluster.logs();
  EXPECT_EQ(cluster.checker().stop(), 0) << cluster.logs();
  EXPECT_EQ(cluster.controller().stop(), 0) << cluster.logs();
}

// A controller that comes back on its ports and its state serves its gateways again.
TEST(TheCluster, GoesOnAfterARestartOfTheController) {
  Cluster cluster;
  cluster.restart_controller();
  EXPECT_EQ(cluster.get("/t/while-it-starts").status, 200U);
  EXPECT_TRUE(support::eventually([&] {
    return support::http_get(cluster.controller_metrics_port(), "/readyz").status == 200;
  })) << cluster.logs();
  EXPECT_TRUE(cluster.serves(3)) << cluster.logs();
}

}  // namespace
}  // namespace proxypool
