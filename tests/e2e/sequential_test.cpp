// Sequential switching through the real programs (CT-40): two vendors, one after the other.
#include <gtest/gtest.h>

#include "e2e/faults.hpp"
#include "e2e/second_vendor.hpp"

namespace proxypool::e2e {
namespace {

using support::FixtureProcess;

support::ClusterOptions options(const FixtureProcess& second, const std::string& more = "") {
  support::ClusterOptions options;
  options.wait = false;
  options.control_plane = "reportInterval: 100ms";
  options.check = "basic: {interval: 10m}";  // no probe is taken for a request
  options.fetch =
      "requestInterval: 100ms\nemptyThreshold: 3\nbackoff: {initial: 100ms, max: 300ms}";
  options.pool = "minimum: 500\ntarget: 500";
  options.upstreams = upstream_of(
      second, "second",
      "requestInterval: 100ms, emptyThreshold: 3, backoff: {initial: 100ms, max: 300ms}");
  options.routings =
      "- {id: tunnels, match: {kinds: [connect]}, strategy: sequential,\n"
      "   upstreams: [{id: fixture}, {id: second}]}\n"
      "- {id: requests, match: {kinds: [http]}, strategy: sequential,\n"
      "   upstreams: [{id: fixture}, {id: second}]" +
      more + "}\n";
  options.routing = "enabled: false";
  return options;
}

class Sequential : public ::testing::Test {
 protected:
  void begin(const std::string& more = "") {
    cluster_ = std::make_unique<Cluster>(options(second_, more));
    ASSERT_TRUE(cluster_->serves(6)) << cluster_->logs();
  }
  FixtureProcess& first() { return cluster_->fixture(); }
  nlohmann::json routing(const std::string& id = "requests") {
    return cluster_->admin("/v1/routings/" + id);
  }
  bool stands_at(const std::string& upstream, const std::string& id = "requests") {
    return eventually([&] { return routing(id).value("current", "") == upstream; });
  }
  // Whether, in time, requests go through the proxies of `vendor`, and then none through others.
  bool goes_through(FixtureProcess& vendor, FixtureProcess& other) {
    const bool there = eventually([&] {
      const auto before = requests_of(vendor);
      return cluster_->get("/bytes/10").status == 200 && requests_of(vendor) > before;
    });
    const auto others = requests_of(other);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(cluster_->get("/bytes/10").status, 200U);
    return there && requests_of(other) == others;
  }
  nlohmann::json fetch_of(const std::string& upstream) {
    return cluster_->admin("/v1/upstreams/" + upstream).at("fetch");
  }
  bool empty_for_long(const std::string& upstream) {
    return eventually([&] { return fetch_of(upstream).at("emptyInARow") >= 9; });
  }
  double switches(const std::string& reason, const std::string& id = "requests") {
    return cluster_->controller_metric("proxypool_routing_switches_total{routing=\"" + id +
                                       "\",reason=\"" + reason + "\"}");
  }

  FixtureProcess second_{{"--proxies", "3", "--ttl", "600s"}};
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(Sequential, AVendorWithNothingLeftIsLeftOnceAndWhatItGaveDrains) {
  begin();
  EXPECT_TRUE(goes_through(first(), second_));
  // Under way through a proxy of the first vendor, over the switch and beyond.
  support::HttpClient tunnel(cluster_->gateway_port());
  const std::string origin = "127.0.0.1:" + std::to_string(first().origin_port());
  ASSERT_EQ(
      tunnel.exchange("CONNECT " + origin + " HTTP/1.1\r\nHost: " + origin + "\r\n\r\n").status,
      200U);

  first().control("vendor?mode=empty");
  EXPECT_TRUE(stands_at("second")) << routing();
  EXPECT_TRUE(stands_at("second", "tunnels")) << routing("tunnels");
  EXPECT_TRUE(goes_through(second_, first())) << cluster_->logs();
  EXPECT_EQ(tunnel.exchange("GET /bytes/10 HTTP/1.1\r\nHost: " + origin + "\r\n\r\n").status, 200U);

  // However often it says so.
  EXPECT_TRUE(empty_for_long("fixture"));
  EXPECT_EQ(switches("depleted"), 1);
  EXPECT_EQ(switches("depleted", "tunnels"), 1);
  EXPECT_EQ(routing().at("current"), "second");
  ASSERT_EQ(routing().at("history").size(), 1U) << routing();
  EXPECT_EQ(routing().at("history").at(0).at("from"), "fixture");
  EXPECT_EQ(routing().at("history").at(0).at("reason"), "depleted");
  EXPECT_EQ(cluster_->controller_metric(
                "proxypool_routing_current{routing=\"requests\",upstream=\"second\"}"),
            1);
  EXPECT_TRUE(cluster_->controller().wait_for_line("routing_switched"));

  // A controller that was killed finds it where it was, although its vendor has proxies again.
  first().control("vendor?mode=ok");
  cluster_->restart_controller();
  EXPECT_TRUE(stands_at("second"));
  EXPECT_TRUE(goes_through(second_, first())) << cluster_->logs();
  EXPECT_EQ(switches("depleted"), 0);
}

TEST_F(Sequential, AVendorThatFailsIsLeftAloneForAWhileAndNotForGood) {
  begin();
  EXPECT_TRUE(stands_at("fixture"));
  // The first one asks for two seconds of peace each time.
  for (const auto& [mode, errors] : {std::pair("error", 2), std::pair("down", 6)}) {
    first().control(std::string("vendor?mode=") + mode);
    const int wanted = fetch_of("fixture").at("error").get<int>() + errors;
    EXPECT_TRUE(eventually([&] { return fetch_of("fixture").at("error") >= wanted; })) << mode;
    EXPECT_TRUE(goes_through(first(), second_)) << mode;
  }
  EXPECT_EQ(fetch_of("fixture").at("emptyInARow"), 0);
  EXPECT_EQ(switches("depleted"), 0);
  EXPECT_EQ(routing().at("current"), "fixture");
  EXPECT_TRUE(routing().at("history").empty());
}

TEST_F(Sequential, AtTheEndOfTheListItStopsUntilAnOperatorSaysWhereItGoesOn) {
  begin();
  for (FixtureProcess* vendor : {&first(), &second_}) vendor->control("vendor?mode=empty");
  EXPECT_TRUE(eventually([&] { return routing().at("enabled") == false; })) << routing();
  EXPECT_TRUE(eventually([&] {
    const auto reply = cluster_->get("/bytes/10");
    return reply.status == 403 && code_of(reply) == "no_routing";
  })) << cluster_->logs();
  EXPECT_EQ(switches("depleted"), 1);
  EXPECT_EQ(switches("exhausted"), 1);
  bool warned = false;
  for (const auto status = cluster_->admin("/v1/status");
       const auto& text : status.at("warnings")) {
    warned = warned || text.get<std::string>().find("routing requests is off") == 0;
  }
  EXPECT_TRUE(warned);

  first().control("vendor?mode=ok");
  EXPECT_EQ(cluster_->operate("/v1/routings/requests:switch", R"({"to":"fixture"})").status, 200U);
  EXPECT_EQ(cluster_->operate("/v1/routings/requests:enable").status, 200U);
  EXPECT_TRUE(goes_through(first(), second_)) << cluster_->logs();
  EXPECT_EQ(switches("operator"), 1);
}

}  // namespace
}  // namespace proxypool::e2e
