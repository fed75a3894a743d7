// What traffic shows reaches the controller, and puts a proxy aside before any probe does (CT-32).
#include <gtest/gtest.h>

#include <string>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

namespace proxypool {
namespace {

using support::Cluster;
using support::eventually;

std::size_t in_state(Cluster& cluster, const std::string& state) {
  return cluster.admin("/v1/proxies?state=" + state).at("items").size();
}
double told(Cluster& cluster, const std::string& meaning) {
  const auto text = support::http_get(cluster.controller_metrics_port(), "/metrics").body;
  return support::metric_sum(text, "proxypool_outcomes_total{meaning=\"" + meaning + "\"}");
}

TEST(Outcomes, OfTrafficAloneTakeABadProxyOutAndBringAGoodOneBack) {
  // No probe comes to help: what is decided is decided by traffic.
  Cluster cluster(
      {.proxies = 3, .gateway = "bench: 0\nuseSuspect: never", .check = "basic: {interval: 1h}"});
  EXPECT_EQ(cluster.get("/t/first").status, 200U);
  EXPECT_TRUE(eventually([&] { return told(cluster, "success") >= 1; })) << cluster.logs();
  EXPECT_EQ(told(cluster, "failure"), 0);
  cluster.fixture().set_fault(1, "refuse");
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(cluster.get("/t/served").status, 200U) << "another proxy was tried";
    return in_state(cluster, "suspect") == 1;
  })) << cluster.logs();
  EXPECT_GE(told(cluster, "failure"), 1);
  EXPECT_EQ(in_state(cluster, "available"), 2U);
  // A proxy in doubt is probed again soon, whatever the interval.
  cluster.fixture().set_fault(1, "none");
  EXPECT_TRUE(eventually([&] { return in_state(cluster, "available") == 3; })) << cluster.logs();
  EXPECT_EQ(cluster.gateway_metric("proxypool_gateway_outcomes_dropped_total"), 0);
  EXPECT_EQ(cluster.gateway_metric("proxypool_session_outcomes_lost_total"), 0);
}

}  // namespace
}  // namespace proxypool
