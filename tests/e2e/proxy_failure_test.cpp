// Proxies that die under load: before the head of the answer the client notices nothing (GW-35),
// after it the client sees that its answer is short, and nothing is sent twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using e2e::Load;
using support::Cluster;
using support::ClusterOptions;
using support::run;

class ProxyThatDies : public ::testing::TestWithParam<const char*> {};

TEST_P(ProxyThatDies, BeforeTheHeadCostsNoGet) {
  // A probe that finds the proxy ill would take it out of the test.
  Cluster cluster({.proxies = 3,
                   .gateway = "transport: {firstByte: 300ms}\nbench: 200ms",
                   .check = "basic: {interval: 1h}"});
  Load load(cluster, "/bytes/2000", {"--duration", "2s", "--concurrency", "8"});
  const auto served = [&] { return cluster.fixture().proxy_stats(1).at("requests").get<int>(); };
  const int before = served();
  ASSERT_TRUE(support::eventually([&] { return served() > before + 20; }));
  cluster.fixture().set_fault(1, GetParam());
  const auto report = load.report();
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report << cluster.logs();
  EXPECT_GT(report.at("requests").at("done"), 50) << report;
  // The fault did strike.
  EXPECT_GT(cluster.gateway_metric("proxypool_gateway_retries_total"), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, ProxyThatDies,
                         ::testing::Values("refuse", "reset", "hang", "close-before-head",
                                           "garbage"),
                         [](const auto& given) {
                           std::string name = given.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// stop-proxies is the process gone: listener closed, every open connection reset.
TEST(ProxyProcess, ThatIsKilledCostsNoGetThatHasNoAnswerYet) {
  Cluster cluster({.proxies = 3, .check = "basic: {interval: 1h}"});
  Load load(cluster, "/slow?ms=20", {"--duration", "2s", "--concurrency", "6"});
  ASSERT_TRUE(support::eventually(
      [&] { return cluster.gateway_metric("proxypool_gateway_requests_total") > 30; }));
  cluster.fixture().control("stop-proxies?proxy=0");
  const auto report = load.report();
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report << cluster.logs();
  EXPECT_GT(cluster.gateway_metric("proxypool_gateway_retries_total"), 0);
}

// Neither a complete answer nor a second attempt: part of it has reached the client.
class AnswerCutShort : public ::testing::TestWithParam<const char*> {};

TEST_P(AnswerCutShort, IsVisiblyShort) {
  Cluster cluster({.proxies = 2});
  cluster.fixture().control("fault?proxy=*&kind=truncate:1000");
  const std::string path = GetParam();
  const auto got = run(curl(cluster, {"-H", "X-Token: cut", "-o", "part", "-w", "%{http_code}",
                                      cluster.origin_url(path)}));
  EXPECT_EQ(got.code, 18) << got.err;  // CURLE_PARTIAL_FILE
  EXPECT_EQ(got.out, "200");
  const auto part = support::read_file(cluster.folder() / "part");
  EXPECT_GT(part.size(), 0U);
  EXPECT_LE(part.size(), 1'000U);
  EXPECT_EQ(cluster.gateway_metric("proxypool_gateway_retries_total"), 0);
}

INSTANTIATE_TEST_SUITE_P(EachFraming, AnswerCutShort,
                         ::testing::Values("/bytes/100000", "/chunked?chunks=100&size=1000"),
                         [](const auto& given) {
                           return std::string(given.index == 0 ? "Length" : "Chunks");
                         });

// What may have been carried out is not sent a second time.
TEST(AProxyThatDies, UnderARequestThatIsNotSafeIsTheClientsToKnow) {
  Cluster cluster({.proxies = 2});
  cluster.fixture().control("fault?proxy=*&kind=close-before-head");
  for (const char* method : {"POST", "DELETE"}) {
    const std::string token = std::string("once-") + method;
    const auto got = run(curl(cluster, {"-X", method, "-w", "%{http_code}", "-o", "body",
                                        cluster.origin_url("/t/" + token)}));
    EXPECT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(got.out, "502");
    EXPECT_EQ(cluster.fixture().records(token).at("sightings").size(), 1U) << method;
  }
}

}  // namespace
}  // namespace proxypool
