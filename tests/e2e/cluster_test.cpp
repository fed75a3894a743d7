// The main road: a request through the whole cluster of real processes, and their end.
#include "support/cluster.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

namespace proxypool {
namespace {

using support::Cluster;

std::set<std::string> places_of(const nlohmann::json& records) {
  std::set<std::string> places;
  for (const auto& seen : records.at("sightings")) places.insert(seen.at("place"));
  return places;
}

TEST(TheCluster, TakesARequestThroughAProxyToTheOrigin) {
  Cluster cluster({.proxies = 2});
  const auto reply = cluster.get("/t/token-of-the-main-road");
  EXPECT_EQ(reply.status, 200U) << reply.failure << reply.body << cluster.logs();
  const auto records = cluster.fixture().records("token-of-the-main-road");
  ASSERT_EQ(records.at("proxies").size(), 1U) << records;
  EXPECT_EQ(places_of(records), (std::set<std::string>{"origin", "proxy"})) << records;
  // The proxy that says it served is the one that dialled the origin.
  const std::string served = std::to_string(records.at("proxies").at(0).get<int>());
  EXPECT_EQ(reply.header("X-Fixture-Proxy"), served);
}

// OP-1: each process ends cleanly when it is asked to.
TEST(TheCluster, EndsWithExitCodeZero) {
  Cluster cluster;
  EXPECT_EQ(cluster.gateway().stop(), 0) << cluster.logs();
  EXPECT_EQ(cluster.checker().stop(), 0) << cluster.logs();
  EXPECT_EQ(cluster.controller().stop(), 0) << cluster.logs();
}

TEST(TheCluster, LogsWhoComesAndGoes) {
  Cluster cluster;
  const auto said = [&](const std::string& event) {
    return support::eventually([&] { return cluster.logs().find(event) != std::string::npos; });
  };
  for (const char* event : {"worker_registered worker=gateway-0", "checker_registered",
                            "session_opened", "snapshot_applied"}) {
    EXPECT_TRUE(said(event)) << event << '\n' << cluster.logs();
  }
  EXPECT_EQ(cluster.gateway().stop(), 0);
  EXPECT_TRUE(said("reason=\"it left\"")) << cluster.logs();
}

// GW-36
TEST(TheCluster, LogsWhoAskedForWhat) {
  Cluster cluster;
  ASSERT_EQ(cluster.get("/t/in-the-log").status, 200U);
  EXPECT_TRUE(support::eventually([&] {
    const std::string log = cluster.logs();
    return log.find("request_served") != std::string::npos &&
           log.find("127.0.0.1:" + std::to_string(cluster.fixture().origin_port())) !=
               std::string::npos;
  })) << cluster.logs();
  EXPECT_EQ(cluster.logs().find("in-the-log"), std::string::npos) << "a path says too much";
}

// C10
TEST(TheCluster, SaysWhichProxiesNoGatewayHasRoomFor) {
  support::ClusterOptions options;
  options.control_plane = "limits: {maxProxiesPerWorker: 1}";
  options.wait = false;
  Cluster cluster(options);
  EXPECT_TRUE(support::eventually([&] {
    return cluster.logs().find("ownership_limited") != std::string::npos;
  })) << cluster.logs();
}

// A controller that comes back on its ports and its state serves its gateways again.
TEST(TheCluster, GoesOnAfterARestartOfTheController) {
  Cluster cluster;
  cluster.restart_controller();
  EXPECT_EQ(cluster.get("/t/while-it-starts").status, 200U);
  EXPECT_TRUE(support::eventually([&] {
    return support::http_get(cluster.controller_metrics_port(), "/readyz").status == 200;
  })) << cluster.logs();
  EXPECT_TRUE(cluster.serves(3)) << cluster.logs();
}

// Without authentication a browser on this machine must not be the way in.
TEST(TheCluster, GivesNothingToAForeignWebPage) {
  Cluster cluster;
  const std::string body = R"({"count":1})";
  const auto post = [&](const std::string& fields) {
    return support::http_exchange(cluster.distribution_port(),
                                  "POST /v1/extractions HTTP/1.1\r\n" + fields +
                                      "Content-Length: 11\r\nConnection: close\r\n\r\n" + body)
        .status;
  };
  const std::string here = "Host: 127.0.0.1\r\n";
  const std::string typed = "Content-Type: application/json\r\n";
  EXPECT_EQ(post("Host: evil.example\r\n" + typed), 403U);
  EXPECT_EQ(post(here + typed + "Origin: http://evil.example\r\n"), 403U);
  EXPECT_EQ(post(here + typed + "Sec-Fetch-Site: cross-site\r\n"), 403U);
  EXPECT_EQ(post(here), 415U);
  EXPECT_EQ(
      cluster.admin("/v1/status").at("upstreams").at(0).at("proxies").at("byState").at("extracted"),
      0);
}

// Two gateways on one port share it in silence, so only who says so may.
TEST(TheCluster, ASecondGatewayOnTheSamePortIsRefused) {
  Cluster cluster;
  support::TempDir folder;
  std::ofstream(folder.path() / "second.yaml")
      << "gateway: {listen: '127.0.0.1:" << cluster.gateway_port()
      << "', metrics: {listen: '127.0.0.1:0'}}\n"
         "upstreams: [{id: a, provider: {type: static, proxies: ['http://192.0.2.1:80']}}]\n"
         "routings: [{id: d, upstreams: [{id: a}]}]\n";
  const auto second =
      support::run({"proxy-gateway", {"--config", folder.path() / "second.yaml"}, {}, {}});
  EXPECT_EQ(second.code, 1) << second.err;
  EXPECT_NE(second.err.find("another program holds port"), std::string::npos) << second.err;
  EXPECT_EQ(cluster.get("/").status, 200U);
}

}  // namespace
}  // namespace proxypool
