// The controller goes while gateways serve: C9, C16, CP-8, GW-50, GW-51.
#include <gtest/gtest.h>

#include "e2e/faults.hpp"

namespace proxypool::e2e {
namespace {

constexpr milliseconds kMargin{1'666};  // a third of the shortest lease

support::ClusterOptions short_lease(const std::string& lease = "5s") {
  support::ClusterOptions options;
  options.control_plane = "lease: " + lease + "\nreportInterval: 200ms";
  options.gateway = "transport: {orphanGrace: 1s}";
  return options;
}

// When the view of the gateway ends, if nothing extends it: not before `earliest`, not after
// `latest`; between them lies the time that the question took.
struct End {
  Moment earliest;
  Moment latest;
};
End validity_end(Cluster& cluster) {
  const auto asked = now();
  const double left = cluster.gateway_metric("proxypool_snapshot_validity_seconds");
  const auto answered = now();
  const milliseconds time(static_cast<int>(left * 1'000));
  return {asked + time, answered + time};
}

TEST(ControllerLost, KilledAndBackBeforeTheValidityEndsFailsNoRequest) {
  Cluster cluster(short_lease("7s"));  // a controller takes a while to start on a slow machine
  Load load(cluster, seconds(8));
  ASSERT_TRUE(
      eventually([&] { return cluster.gateway_metric("proxypool_gateway_requests_total") > 200; }));
  const auto generation = cluster.admin("/v1/status").at("storage").at("generation");
  const auto applied = cluster.gateway_metric("proxypool_snapshots_applied_total");
  cluster.restart_controller();
  const auto old_end = validity_end(cluster);
  EXPECT_TRUE(eventually([&] {
    return cluster.gateway_metric("proxypool_session_registrations_total") >= 2 &&
           cluster.gateway_metric("proxypool_snapshots_applied_total") > applied;
  })) << cluster.logs();
  expect_flawless(load.finish(), cluster);
  EXPECT_GT(now(), old_end.latest)
      << "the load went on beyond what the first controller had promised";
  EXPECT_NE(cluster.admin("/v1/status").at("storage").at("generation"), generation);
  // Nothing is there twice: one worker, and each proxy once, with the one that held it before.
  EXPECT_TRUE(cluster.serves(3)) << cluster.logs();
  EXPECT_EQ(cluster.admin("/v1/workers").at("items").size(), 1U);
  const auto all = proxies(cluster);
  EXPECT_EQ(all.size(), 3U) << all;
  for (const auto& proxy : all) EXPECT_EQ(proxy.value("owner", ""), "gateway-0") << proxy;
}

TEST(ControllerLost, AwayForLongerEndsServiceWithTheValidityAndResumesOnceItIsBack) {
  Cluster cluster(short_lease());
  const std::string origin = "127.0.0.1:" + std::to_string(cluster.fixture().origin_port());
  support::HttpClient tunnel(cluster.gateway_port());
  ASSERT_EQ(
      tunnel.exchange("CONNECT " + origin + " HTTP/1.1\r\nHost: " + origin + "\r\n\r\n").status,
      200U);
  cluster.controller().kill();
  ASSERT_TRUE(eventually([&] {
    return cluster.gateway_metric("proxypool_session_registered") == 0;
  })) << cluster.logs();
  const auto end = validity_end(cluster);
  Moment last_ok = now();
  Reply reply;
  while (now() < end.latest + seconds(5)) {
    const auto asked = now();
    reply = cluster.get("/bytes/10");
    if (reply.status != 200) break;
    last_ok = asked;
  }
  const auto refused = now();
  EXPECT_EQ(reply.status, 503U) << reply.body;
  EXPECT_EQ(code_of(reply), "not_ready");
  EXPECT_NE(reply.header("Proxy-Status").find("not_ready"), std::string::npos);
  EXPECT_FALSE(reply.header("Retry-After").empty());
  EXPECT_LT(between(end.latest, refused), seconds(1));
  EXPECT_LE(between(end.latest, last_ok), milliseconds(1)) << "nothing begins after the end (C9)";
  EXPECT_GE(between(end.earliest, refused), milliseconds(-1)) << "nothing is refused before it";
  EXPECT_FALSE(cluster.ready());
  // C16: what is open lives on until the lease's true end and the grace.
  EXPECT_TRUE(tunnel.send("GET /bytes/10 HTTP/1.1\r\nHost: " + origin + "\r\n\r\n"));
  EXPECT_EQ(tunnel.receive().status, 200U);
  EXPECT_TRUE(tunnel.ended());
  EXPECT_GT(between(end.earliest, now()), kMargin + milliseconds(990));
  EXPECT_LT(between(end.latest, now()), kMargin + milliseconds(2'000));
  EXPECT_EQ(code_of(cluster.get("/bytes/10")), "not_ready");
  const auto back = now();
  cluster.start_controller();
  EXPECT_TRUE(eventually([&] { return cluster.get("/bytes/10").status == 200; })) << cluster.logs();
  EXPECT_LT(between(back, now()), seconds(10));
  EXPECT_TRUE(cluster.serves(3)) << cluster.logs();
}

}  // namespace
}  // namespace proxypool::e2e
