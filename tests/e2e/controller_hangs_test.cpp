// A controller that hangs keeps its connections: nothing tells the gateway but time (GW-51, CP-9).
#include <gtest/gtest.h>

#include <csignal>

#include "e2e/faults.hpp"

namespace proxypool::e2e {
namespace {

TEST(ControllerLost, OneThatHangsIsAsGoodAsAway) {
  Cluster cluster({.control_plane = "lease: 5s\nreportInterval: 200ms"});
  cluster.controller().signal(SIGSTOP);
  const double left = cluster.gateway_metric("proxypool_snapshot_validity_seconds");
  const auto end = now() + milliseconds(static_cast<int>(left * 1'000));
  while (now() < end + seconds(5) && cluster.get("/bytes/10").status == 200) {
  }
  EXPECT_LT(between(end, now()), seconds(1));
  EXPECT_EQ(code_of(cluster.get("/bytes/10")), "not_ready");
  const auto back = now();
  cluster.controller().signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return cluster.get("/bytes/10").status == 200; })) << cluster.logs();
  EXPECT_LT(between(back, now()), seconds(10));
}

}  // namespace
}  // namespace proxypool::e2e
