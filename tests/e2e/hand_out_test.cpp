// Proxies that leave the pool: each once, none too late, and none that a gateway still uses (EX-1,
// CT-60, C2, C3, ruling on ownership).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "e2e/faults.hpp"

namespace proxypool::e2e {
namespace {

// Takes until nothing is left; an extractor of its own connection a call.
std::vector<std::string> take_all(std::uint16_t port, const std::string& body) {
  std::vector<std::string> taken;
  for (;;) {
    const auto reply = support::http_post(port, "/v1/extractions", body);
    const auto some = given(reply);
    if (some.empty()) return taken;
    taken.insert(taken.end(), some.begin(), some.end());
  }
}

TEST(HandOut, ExtractorsAtOnceNeverShareAProxy) {
  constexpr unsigned kProxies = 60;
  Cluster cluster({.proxies = kProxies, .reserve = kProxies});
  ASSERT_TRUE(unowned(cluster, kProxies)) << cluster.logs();
  const std::vector<std::string> bodies{
      R"({"count":3,"fulfillment":"partial"})", R"({"count":3,"fulfillment":"allOrNothing"})",
      R"({"count":1,"fulfillment":"partial"})", R"({"count":5,"fulfillment":"allOrNothing"})"};
  std::vector<std::vector<std::string>> taken(bodies.size());
  std::atomic<bool> go{false};
  std::vector<std::thread> extractors;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    extractors.emplace_back([&, i] {
      while (!go) std::this_thread::yield();
      taken[i] = take_all(cluster.distribution_port(), bodies[i]);
    });
  }
  go = true;
  for (auto& extractor : extractors) extractor.join();
  std::set<std::string> different;
  std::size_t all = 0;
  for (const auto& some : taken) {
    all += some.size();
    different.insert(some.begin(), some.end());
  }
  EXPECT_EQ(different.size(), all) << "somebody got what another one has";
  EXPECT_EQ(all, kProxies) << "and everything was there to be had";
  EXPECT_EQ(taken[1].size() % 3, 0U);
  EXPECT_EQ(taken[3].size() % 5, 0U);
  const auto none = cluster.extract(R"({"count":2,"fulfillment":"allOrNothing"})");
  EXPECT_EQ(none.status, 409U);
  EXPECT_EQ(code_of(none), "insufficient_inventory");
}

// The vendor offers the same proxies again and again, and a crash is no excuse either.
TEST(HandOut, WhatIsHandedOutStaysSoOverAKilledController) {
  Cluster cluster({.proxies = 6, .reserve = 6});
  ASSERT_TRUE(unowned(cluster, 6)) << cluster.logs();
  const auto first = given(cluster.extract(R"({"count":2})"));
  ASSERT_EQ(first.size(), 2U);
  cluster.restart_controller();
  ASSERT_TRUE(unowned(cluster, 4)) << cluster.logs();
  std::vector<std::string> rest;
  ASSERT_TRUE(eventually([&] {
    rest = given(cluster.extract(R"({"count":4,"fulfillment":"allOrNothing"})"));
    return !rest.empty();
  })) << cluster.logs();
  for (const auto& proxy : first) {
    EXPECT_EQ(std::count(rest.begin(), rest.end(), proxy), 0) << proxy << " was given twice";
  }
  EXPECT_TRUE(given(cluster.extract(R"({"count":6})")).empty());
}

TEST(HandOut, AnExtractedProxyIsNotDialledByTheGatewayAnyMore) {
  Cluster cluster({.proxies = 4, .control_plane = "lease: 5s\nreportInterval: 200ms"});
  Load load(cluster, seconds(6));
  // All are owned; the shortage of the first call takes one away from the gateway (C3).
  std::vector<std::string> taken;
  ASSERT_TRUE(eventually([&] {
    taken = given(cluster.extract(R"({"count":1,"fulfillment":"allOrNothing"})"));
    return !taken.empty();
  })) << cluster.logs();
  const auto index = [&] {
    const auto all = cluster.fixture().stats().at("proxies");
    std::size_t i = 0;
    while (i < all.size() &&
           !taken[0].ends_with(":" + std::to_string(all[i].at("port").get<int>())))
      ++i;
    return i;
  }();
  const auto at_once = cluster.fixture().proxy_stats(index);
  EXPECT_EQ(at_once.at("in_flight"), 0) << at_once;
  EXPECT_GT(at_once.at("requests"), 0) << "it served before";
  const auto requests = cluster.gateway_metric("proxypool_gateway_requests_total");
  expect_flawless(load.finish(), cluster);
  EXPECT_GT(cluster.gateway_metric("proxypool_gateway_requests_total"), requests + 500);
  const auto later = cluster.fixture().proxy_stats(index);
  EXPECT_EQ(later.at("requests"), at_once.at("requests")) << later;
  EXPECT_EQ(later.at("connections"), at_once.at("connections")) << later;
}

// CT-22: neither for a caller of the Distribution API nor for a request.
TEST(HandOut, AProxyPastItsMarginIsNeitherGivenNorDialled) {
  constexpr std::int64_t kMarginMs = 3'000;
  constexpr std::int64_t kClocksMs =
      1'000;  // the vendor counts from its answer, we from its receipt
  Cluster cluster({.proxies = 6,
                   .ttl = seconds(9),
                   .reserve = 3,
                   .distribution = "extraction: {minRemainingTTL: 0}",
                   .pool = "allocationSafetyMargin: 3s"});
  cluster.fixture().control("vendor?mode=empty");
  std::int64_t first_end = INT64_MAX;
  std::int64_t last_end = 0;
  const auto offered = cluster.fixture().stats().at("proxies");
  for (const auto& proxy : offered) {
    first_end = std::min(first_end, proxy.at("offered_until_ms").get<std::int64_t>());
    last_end = std::max(last_end, proxy.at("offered_until_ms").get<std::int64_t>());
  }
  EXPECT_EQ(given(cluster.extract(R"({"count":1})")).size(), 1U) << cluster.logs();
  ASSERT_LT(wall_ms(), first_end - kMarginMs) << "it must have begun in time";
  std::size_t served = 0;
  std::size_t late = 0;
  for (std::size_t i = 0; wall_ms() < last_end; ++i) {
    const std::string token = "late" + std::to_string(i);
    served += cluster.get("/t/" + token).status == 200 ? 1 : 0;
    for (const auto all = cluster.fixture().records(token);
         const auto& seen : all.at("sightings")) {
      if (seen.at("place") != "proxy") continue;
      const auto end = offered[seen.at("proxy").get<std::size_t>()].at("offered_until_ms");
      late +=
          seen.at("at_ms").get<std::int64_t>() > end.get<std::int64_t>() - kMarginMs + kClocksMs;
    }
    if (wall_ms() < last_end - kMarginMs + kClocksMs) continue;
    EXPECT_TRUE(given(cluster.extract(R"({"count":1})")).empty());
  }
  EXPECT_GT(served, 10U);
  EXPECT_EQ(late, 0U);
  for (const auto all = cluster.fixture().stats(); const auto& proxy : all.at("proxies")) {
    EXPECT_EQ(proxy.at("late_connections"), 0) << proxy;
  }
}

}  // namespace
}  // namespace proxypool::e2e
