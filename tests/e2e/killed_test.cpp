// kill -9 of a program and its restart: service comes back by itself and nothing is there twice
// (C17, OP-1).
#include <gtest/gtest.h>

#include <set>

#include "e2e/faults.hpp"

namespace proxypool::e2e {
namespace {

support::ClusterOptions short_lease() {
  support::ClusterOptions options;
  options.concurrency = 2;
  options.control_plane = "lease: 5s\nreportInterval: 200ms";
  options.gateway = "transport: {orphanGrace: 0}";
  return options;
}

void expect_nothing_doubled(Cluster& cluster) {
  const auto workers = cluster.admin("/v1/workers").at("items");
  ASSERT_EQ(workers.size(), 1U) << workers;
  EXPECT_TRUE(workers[0].at("live").get<bool>()) << workers;
  const auto all = proxies(cluster);
  EXPECT_EQ(all.size(), 3U) << all;
  std::set<int> ports;
  for (const auto& proxy : all) {
    ports.insert(proxy.at("port").get<int>());
    EXPECT_EQ(proxy.value("owner", ""), "gateway-0") << proxy;
  }
  EXPECT_EQ(ports.size(), 3U) << all;
  // More than the proxies have room for is asked for; none gets more than its own.
  cluster.fixture().control("reset-stats");
  Load(cluster, seconds(1), 12).finish();
  for (const auto stats = cluster.fixture().stats(); const auto& proxy : stats.at("proxies")) {
    EXPECT_GT(proxy.at("requests"), 0) << proxy;
    EXPECT_LE(proxy.at("in_flight_max"), 3) << proxy << "two, and a check";
  }
}

TEST(Killed, AGatewayUnderTheSameNameWaitsForTheLeasesOfTheDead) {  // C17
  Cluster cluster(short_lease());
  const auto instance = cluster.admin("/v1/workers/gateway-0").at("instance");
  cluster.gateway().kill();
  const auto died = now();
  cluster.start_gateway(0);
  ASSERT_TRUE(eventually([&] { return cluster.ready(); })) << cluster.logs();
  const auto early = cluster.get("/bytes/10");
  // A slow machine may start the gateway for longer than the leases of the dead last.
  if (between(died, now()) < milliseconds(3'100)) {
    EXPECT_EQ(code_of(early), "no_candidate")
        << early.status << early.failure;  // it has a view, and no proxy yet
  }
  ASSERT_TRUE(eventually([&] { return cluster.get("/bytes/10").status == 200; })) << cluster.logs();
  EXPECT_GT(between(died, now()), milliseconds(3'100)) << "a lease, renewed at a third, less that";
  EXPECT_LT(between(died, now()), seconds(12)) << "lease, margin, and a moment";
  EXPECT_TRUE(cluster.serves(3)) << cluster.logs();
  EXPECT_NE(cluster.admin("/v1/workers/gateway-0").at("instance"), instance);
  expect_nothing_doubled(cluster);
}

TEST(Killed, AGatewayThatLeftInOrderIsSucceededAtOnce) {  // C17
  Cluster cluster(short_lease());
  EXPECT_EQ(cluster.gateway().stop(), 0) << cluster.logs();
  const auto left = now();
  cluster.start_gateway(0);
  EXPECT_TRUE(cluster.serves(3)) << cluster.logs();
  EXPECT_LT(between(left, now()), seconds(4)) << "its last report freed everything";
  EXPECT_EQ(cluster.get("/bytes/10").status, 200U);
  expect_nothing_doubled(cluster);
}

TEST(Killed, ACheckerIsMissedAndReplaced) {
  auto options = short_lease();
  options.check = "basic: {interval: 1s, timeout: 1s}";
  Cluster cluster(options);
  cluster.checker().kill();
  const auto missed = [&] {
    for (const auto all = cluster.admin("/v1/status"); const auto& warning : all.at("warnings")) {
      if (warning.get<std::string>().find("no checker") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(eventually(missed)) << cluster.logs();
  EXPECT_EQ(cluster.get("/bytes/10").status, 200U) << "what is known to work serves on";
  const auto before = proxies(cluster).at(0).at("lastCheckedAt").get<std::string>();
  cluster.start_checker();
  EXPECT_TRUE(eventually([&] {
    return proxies(cluster).at(0).at("lastCheckedAt").get<std::string>() > before;
  })) << cluster.logs();
  EXPECT_FALSE(missed());
  expect_nothing_doubled(cluster);
}

TEST(Killed, AControllerComesBackToTheSamePool) {  // C18
  Cluster cluster(short_lease());
  cluster.restart_controller();
  EXPECT_TRUE(eventually([&] {
    return cluster.gateway_metric("proxypool_session_registrations_total") >= 2 &&
           proxies(cluster).size() == 3;
  })) << cluster.logs();
  EXPECT_TRUE(cluster.serves(3)) << cluster.logs();
  expect_nothing_doubled(cluster);
}

}  // namespace
}  // namespace proxypool::e2e
