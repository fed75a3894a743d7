// Sessions that stay with one proxy, with real clients through real processes (GW-34, R4).
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using support::Cluster;
using support::ClusterOptions;
using support::run;

ClusterOptions with_crawler(unsigned proxies) {
  auto options = e2e::with_crawler("sesame");
  options.proxies = proxies;
  return options;
}

support::Finished as(Cluster& cluster, const std::string& user, const std::string& url,
                     e2e::Arguments more = {}) {
  more.insert(more.end(),
              {"--proxy-user", user + ":sesame", "-w", "%{http_code}", "-o", "body", url});
  return run(curl(cluster, std::move(more)));
}

std::set<int> served_by(Cluster& cluster, const std::string& token) {
  return cluster.fixture().records(token).at("proxies").get<std::set<int>>();
}

TEST(Session, StaysWithOneProxyOverFiftyRequestsAndANewSnapshot) {
  auto options = with_crawler(6);
  options.check = "basic: {interval: 1s, timeout: 1s}";
  Cluster cluster(options);
  const std::string url = cluster.origin_url("/t/one");
  const double applied = cluster.gateway_metric("proxypool_snapshots_applied_total");
  for (int i = 0; i < 25; ++i) EXPECT_EQ(as(cluster, "crawler-session-a1", url).out, "200");
  ASSERT_EQ(served_by(cluster, "one").size(), 1U);
  // Another proxy fails its checks, so that the gateway gets a new snapshot.
  const int mine = *served_by(cluster, "one").begin();
  cluster.fixture().set_fault(static_cast<std::size_t>(mine == 0 ? 1 : 0), "refuse");
  ASSERT_TRUE(support::eventually(
      [&] { return cluster.gateway_metric("proxypool_snapshots_applied_total") > applied; }));
  for (int i = 0; i < 25; ++i) {
    const bool tunnel = i % 2 == 0;  // and the same for what a tunnel carries
    EXPECT_EQ(as(cluster, "crawler-sessid-a1", url, {tunnel ? "-p" : "--globoff"}).out, "200");
  }
  EXPECT_EQ(served_by(cluster, "one"), std::set<int>{mine});
  EXPECT_EQ(cluster.gateway_metric("proxypool_gateway_sessions"), 1);
}

TEST(Session, IsNamedByAFieldThatNobodyElseSees) {
  Cluster cluster({.proxies = 5});
  const std::string url = cluster.origin_url("/t/field");
  for (int i = 0; i < 20; ++i) {
    const auto got = run(curl(cluster, {"-H", "X-Proxy-Session: shop-7", "-o", "body", "-f", url}));
    EXPECT_EQ(got.code, 0) << got.err;
    const auto tunnel = run(curl(
        cluster, {"-p", "--proxy-header", "X-Proxy-Session: shop-7", "-o", "body", "-f", url}));
    EXPECT_EQ(tunnel.code, 0) << tunnel.err;
  }
  EXPECT_EQ(served_by(cluster, "field").size(), 1U);
  for (const char* place : {"proxy", "origin"}) {
    EXPECT_EQ(e2e::header_of(e2e::seen_at(cluster, "field", place), "X-Proxy-Session"), "");
  }
  const auto wrong =
      run(curl(cluster, {"-H", "X-Proxy-Session: no blanks", "-i", cluster.origin_url("/t/no")}));
  EXPECT_TRUE(wrong.out.starts_with("HTTP/1.1 400 Bad Request\r\n")) << wrong.out;
  EXPECT_NE(wrong.out.find("error=http_request_error; details=\"bad_request\""), std::string::npos);
}

TEST(Session, ThatIsStrictIsLostWithItsProxyAndSaysSo) {
  Cluster cluster(with_crawler(3));
  const std::string url = cluster.origin_url("/t/strict");
  EXPECT_EQ(as(cluster, "crawler-session-a1-strict", url).out, "200");
  EXPECT_EQ(as(cluster, "crawler-session-b2", cluster.origin_url("/t/loose")).out, "200");
  const int mine = *served_by(cluster, "strict").begin();
  cluster.fixture().set_fault(static_cast<std::size_t>(mine), "refuse");
  const auto lost = as(cluster, "crawler-session-a1-strict", url, {"-i"});
  EXPECT_EQ(lost.out, "503");
  const std::string answer = support::read_file(cluster.folder() / "body");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << answer;
  EXPECT_NE(answer.find("\"code\":\"session_lost\""), std::string::npos) << answer;
  EXPECT_NE(answer.find("Proxy-Status: proxypool; error=destination_unavailable; "
                        "details=\"session_lost\""),
            std::string::npos)
      << answer;
  EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos) << answer;
  EXPECT_EQ(served_by(cluster, "strict"), std::set<int>{mine}) << "nobody else was tried";
  EXPECT_EQ(as(cluster, "crawler-session-b2", cluster.origin_url("/t/loose")).out, "200");
  EXPECT_GE(cluster.gateway_metric("proxypool_gateway_sessions_lost_total"), 1);

  // In a tunnel the status line is all that a client shows.
  EXPECT_EQ(as(cluster, "crawler-session-c3-strict", cluster.origin_url("/t/tunnel"), {"-p"}).out,
            "200");
  const int other = *served_by(cluster, "tunnel").begin();
  cluster.fixture().set_fault(static_cast<std::size_t>(other), "refuse");
  const auto tunnel = as(cluster, "crawler-session-c3-strict", cluster.origin_url("/t/tunnel"),
                         {"-p", "--verbose"});
  EXPECT_EQ(tunnel.code, 56) << tunnel.err;
  EXPECT_NE(tunnel.err.find("503 Service Unavailable (session_lost)"), std::string::npos)
      << tunnel.err;
}

}  // namespace
}  // namespace proxypool
