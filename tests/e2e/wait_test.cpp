// Waiting in line for a proxy, through real processes (R8).
#include <gtest/gtest.h>

#include <string>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using e2e::Load;
using support::Cluster;
using support::run;

bool one_is_served(Cluster& cluster) {
  return support::eventually(
      [&] { return cluster.gateway_metric("proxypool_gateway_active_requests") == 1; });
}

TEST(WaitingInLine, SucceedsWhenAPlaceBecomesFree) {
  Cluster cluster({.proxies = 1,
                   .concurrency = 1,
                   .routing = "onUnavailable: wait\nwaitTimeout: 20s\nmaxWaiters: 50"});
  Load load(cluster, "/slow?ms=1000", {"--requests", "1", "--concurrency", "1"});
  ASSERT_TRUE(one_is_served(cluster));
  const auto got = run(
      curl(cluster, {"-w", "%{http_code}", "-o", "/dev/null", cluster.origin_url("/t/waited")}));
  EXPECT_EQ(got.out, "200") << got.err;
  EXPECT_EQ(load.report().at("requests").at("failed"), 0);
  EXPECT_EQ(cluster.gateway_metric("proxypool_gateway_waits_total{end=\"served\"}"), 1);

  // A crowd at one place: nobody is turned away, nobody is forgotten.
  Load crowd(cluster, "/slow?ms=5", {"--requests", "200", "--concurrency", "20"});
  const auto report = crowd.report();
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report;
  EXPECT_EQ(report.at("statuses").value("200", 0), 200) << report;
  EXPECT_EQ(cluster.gateway_metric("proxypool_gateway_waiting_requests"), 0);
}

TEST(WaitingInLine, EndsInTimeAndIsFullInTime) {
  Cluster cluster({.proxies = 1,
                   .concurrency = 1,
                   .routing = "onUnavailable: wait\nwaitTimeout: 300ms\nmaxWaiters: 1"});
  Load load(cluster, "/slow?ms=3000", {"--requests", "1", "--concurrency", "1"});
  ASSERT_TRUE(one_is_served(cluster));
  const auto late = cluster.get("/t/late");
  EXPECT_EQ(late.status, 503U);
  EXPECT_EQ(nlohmann::json::parse(late.body).at("code"), "wait_timeout");
  EXPECT_EQ(late.header("Proxy-Status"),
            "proxypool; error=destination_unavailable; details=\"wait_timeout\"");
  EXPECT_EQ(late.header("Retry-After"), "1");
  Load crowd(cluster, "/t/crowd",
             {"--requests", "12", "--concurrency", "6", "--expect-status", "503"});
  const auto codes = crowd.report().at("codes");
  EXPECT_GT(codes.value("overloaded", 0), 0) << codes;
  EXPECT_GT(codes.value("wait_timeout", 0), 0) << codes;
  EXPECT_EQ(load.report().at("requests").at("failed"), 0);
}

}  // namespace
}  // namespace proxypool
