// The vendor fails, or has nothing: the pool serves what it has, tells the two apart, and fills
// again by itself (CT-11, CT-12, CT-22).
#include <gtest/gtest.h>

#include "e2e/faults.hpp"

namespace proxypool::e2e {
namespace {

// The earliest end of a proxy, as the vendor promised it.
std::int64_t first_end_ms(Cluster& cluster) {
  std::int64_t first = INT64_MAX;
  for (const auto all = cluster.fixture().stats(); const auto& proxy : all.at("proxies")) {
    first = std::min(first, proxy.at("offered_until_ms").get<std::int64_t>());
  }
  return first;
}

bool warned(Cluster& cluster, std::string_view text) {
  for (const auto all = cluster.admin("/v1/status"); const auto& warning : all.at("warnings")) {
    if (warning.get<std::string>().find(text) != std::string::npos) return true;
  }
  return false;
}

// Calls to the vendor that ended so, in the metrics.
double fetches(Cluster& cluster, const std::string& kind) {
  const auto text = support::http_get(cluster.controller_metrics_port(), "/metrics").body;
  const std::string label = "{upstream=\"fixture\",class=\"" + kind + "\"}";
  EXPECT_NE(text.find("proxypool_fetches_total" + label), std::string::npos) << text;
  return support::metric_sum(text, "proxypool_fetches_total" + label);
}

TEST(VendorLost, ThePoolServesToTheEndOfItsProxiesTellsWhyAndRecovers) {
  constexpr std::int64_t kMarginMs = 1'000;
  constexpr std::int64_t kEarlyMs = 400;  // gateways count from their report: early, never late
  Cluster cluster({.ttl = seconds(6),
                   .control_plane = "reportInterval: 100ms",
                   .fetch = "requestInterval: 100ms\nbackoff: {initial: 100ms, max: 400ms}",
                   .pool = "allocationSafetyMargin: 1s"});
  cluster.fixture().control("vendor?mode=down");
  const std::int64_t served_until = first_end_ms(cluster) - kMarginMs;
  Reply reply;
  std::int64_t refused_at = 0;
  while (wall_ms() < served_until + 10'000) {
    reply = cluster.get("/bytes/10");
    refused_at = wall_ms();
    if (reply.status != 200) break;
  }
  EXPECT_GE(refused_at, served_until - kEarlyMs) << "a vendor that is down takes nothing away";
  EXPECT_EQ(reply.status, 503U);
  EXPECT_EQ(code_of(reply), "no_candidate");
  EXPECT_TRUE(cluster.ready()) << "the gateway itself is well";

  // Broken: an error with its reason, and a warning.
  EXPECT_TRUE(eventually([&] { return upstream(cluster).at("fetch").at("errorsInARow") > 0; }));
  auto fetch = upstream(cluster).at("fetch");
  EXPECT_EQ(fetch.at("last").at("class"), "error") << fetch;
  EXPECT_NE(fetch.at("last").at("reason"), "") << fetch;
  EXPECT_EQ(fetch.at("empty"), 0) << fetch;
  EXPECT_TRUE(warned(cluster, "upstream fixture fails"));
  EXPECT_GT(fetches(cluster, "error"), 0);
  EXPECT_EQ(fetches(cluster, "empty"), 0);

  // Empty: no error, and no warning of one.
  cluster.fixture().control("vendor?mode=empty");
  EXPECT_TRUE(eventually([&] { return upstream(cluster).at("fetch").at("emptyInARow") > 0; }));
  fetch = upstream(cluster).at("fetch");
  EXPECT_EQ(fetch.at("last").at("class"), "empty") << fetch;
  EXPECT_EQ(fetch.at("errorsInARow"), 0) << fetch;
  EXPECT_FALSE(warned(cluster, "upstream fixture fails"));
  EXPECT_GT(fetches(cluster, "empty"), 0);

  cluster.fixture().control("vendor?mode=ok");
  EXPECT_TRUE(eventually([&] { return cluster.get("/bytes/10").status == 200; })) << cluster.logs();
}

}  // namespace
}  // namespace proxypool::e2e
