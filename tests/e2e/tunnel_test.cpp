// CONNECT through the pool to a real TLS server (GW-1, GW-40), and what a client sees when the
// proxy under its tunnel dies.
#include <gtest/gtest.h>

#include <string>

#include "e2e/programs.hpp"
#include "e2e/tls_server.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using e2e::TlsServer;
using support::ChildProcess;
using support::Cluster;
using support::run;

int tunnels(Cluster& cluster) {
  int sum = 0;
  const auto stats = cluster.fixture().stats();
  for (const auto& proxy : stats.at("proxies")) sum += proxy.at("tunnels").get<int>();
  return sum;
}

TEST(Tunnel, CarriesTlsThatCurlVerifiesFromEndToEnd) {
  Cluster cluster;
  const TlsServer server("-www");
  cluster.fixture().control("reset-stats");
  const auto got =
      run(curl(cluster, {"--cacert", server.certificate(), "-w", "%{http_connect} %{http_code}",
                         "-o", "page", server.url("/")}));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, "200 200");
  const auto page = support::read_file(cluster.folder() / "page");
  EXPECT_NE(page.find("s_server"), std::string::npos) << page;
  EXPECT_EQ(tunnels(cluster), 1);
}

TEST(Tunnel, CarriesALargeFileForPython) {
  Cluster cluster;
  const TlsServer server("-WWW");
  const std::string file = e2e::sample_body(8'000'000);
  e2e::write_file(server.folder() / "large.bin", file);
  const auto got =
      run(e2e::python("tls_tunnel.py", {cluster.gateway_url().substr(7), server.authority(),
                                        "/large.bin", server.certificate()}));
  ASSERT_EQ(got.code, 0) << got.err;
  const auto answer = nlohmann::json::parse(got.out);
  EXPECT_EQ(answer.at("status"), 200);
  EXPECT_EQ(answer.at("length"), file.size());
  EXPECT_EQ(answer.at("sha256"), e2e::sha256(file));
}

TEST(Tunnel, RotatesPerTunnel) {
  Cluster cluster({.proxies = 3, .routing = "balancer: round_robin"});
  const TlsServer server("-www");
  cluster.fixture().control("reset-stats");
  for (int i = 0; i < 6; ++i) {
    const auto got =
        run(curl(cluster, {"--cacert", server.certificate(), "-o", "/dev/null", server.url("/")}));
    EXPECT_EQ(got.code, 0) << got.err;
  }
  const auto stats = cluster.fixture().stats();
  for (const auto& proxy : stats.at("proxies")) EXPECT_GE(proxy.at("tunnels"), 1) << stats;
}

// Nothing can be tried again once the tunnel stands: its end is the client's to see, at once.
TEST(Tunnel, EndsForTheClientWhenItsProxyDies) {
  Cluster cluster({.proxies = 1});
  const TlsServer server("-HTTP");
  e2e::write_file(
      server.folder() / "large.bin",
      "HTTP/1.0 200 OK\r\nContent-Length: 2000000\r\n\r\n" + e2e::sample_body(2'000'000));
  cluster.fixture().set_fault(0, "truncate:300000");
  const auto got = run(curl(cluster, {"--cacert", server.certificate(), "-o", "part", "-w",
                                      "%{http_code}", server.url("/large.bin")}));
  EXPECT_EQ(got.code, 18) << got.err;  // CURLE_PARTIAL_FILE
  EXPECT_EQ(got.out, "200");
  const auto part = support::read_file(cluster.folder() / "part").size();
  EXPECT_GT(part, 0U);
  EXPECT_LT(part, 300'000U);
}

TEST(Tunnel, TriesAnotherProxyBeforeItStands) {
  Cluster cluster({.proxies = 2, .routing = "balancer: round_robin"});
  const TlsServer server("-www");
  cluster.fixture().set_fault(0, "close-before-head");
  for (int i = 0; i < 4; ++i) {
    const auto got = run(curl(cluster, {"--cacert", server.certificate(), "-w", "%{http_connect}",
                                        "-o", "/dev/null", server.url("/")}));
    EXPECT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(got.out, "200");
  }
}

}  // namespace
}  // namespace proxypool
