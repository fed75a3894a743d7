// Limits of clients, for the whole cluster, through real processes (GW-12, R7).
#include <gtest/gtest.h>

#include <string>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using support::Cluster;
using support::ClusterOptions;
using support::run;

ClusterOptions limited(const std::string& limits) {
  return e2e::with_crawler("sesame", "    limits: " + limits + "\n");
}

// One curl that asks `count` times, and the statuses that it got, one a line.
std::string statuses(Cluster& cluster, int count, std::size_t gateway = 0) {
  e2e::Arguments arguments{"--proxy",      cluster.gateway_url(gateway),
                           "--proxy-user", "crawler:sesame",
                           "-w",           "%{http_code}\n"};
  for (int i = 0; i < count; ++i) {
    arguments.insert(arguments.end(), {"-o", "/dev/null", cluster.origin_url("/t/limited")});
  }
  return run(curl(cluster, std::move(arguments))).out;
}

int count_of(const std::string& text, const std::string& line) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(line, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(ClientLimits, ARateIsAnsweredWith429AndWhenToComeBack) {
  Cluster cluster(limited("{requestsPerSecond: 1, burst: 3}"));
  const std::string got = statuses(cluster, 8);
  EXPECT_GE(count_of(got, "200"), 3) << got;
  EXPECT_GE(count_of(got, "429"), 3) << got;
  const auto refused = run(
      curl(cluster, {"--proxy-user", "crawler:sesame", "-i", cluster.origin_url("/t/refused")}));
  EXPECT_TRUE(refused.out.starts_with("HTTP/1.1 429 Too Many Requests\r\n")) << refused.out;
  EXPECT_NE(refused.out.find("Retry-After: 1\r\n"), std::string::npos) << refused.out;
  EXPECT_NE(refused.out.find("Proxy-Status: proxypool; error=http_request_denied; "
                             "details=\"client_limited\"\r\n"),
            std::string::npos)
      << refused.out;
  EXPECT_NE(refused.out.find("\"code\":\"client_limited\""), std::string::npos) << refused.out;
  EXPECT_TRUE(cluster.fixture().records("refused").at("sightings").empty());
  const auto tunnel = run(curl(cluster, {"--proxy-user", "crawler:sesame", "-p", "--verbose",
                                         cluster.origin_url("/t/refused")}));
  if (tunnel.code != 0) {  // a second may have passed
    EXPECT_NE(tunnel.err.find("429 Too Many Requests (client_limited)"), std::string::npos)
        << tunnel.err;
  }
}

TEST(ClientLimits, TwoGatewaysShareThem) {
  ClusterOptions options = limited("{requestsPerSecond: 1, burst: 8}");
  options.proxies = 6;
  options.gateways = 2;
  Cluster cluster(options);
  for (std::size_t gateway : {1U, 0U}) {
    // A half for each: the second one knows of the first from the beginning on, the first one of
    // the second by the time that it is asked.
    const std::string got = statuses(cluster, 12, gateway);
    EXPECT_GE(count_of(got, "200"), 4) << got;
    EXPECT_LE(count_of(got, "200"), 7) << got;
  }
}

}  // namespace
}  // namespace proxypool
