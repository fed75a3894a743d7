// The fixture's vendor API and its control calls, as a real process.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/fixture_process.hpp"

namespace proxypool::support {
namespace {

nlohmann::json get_json(FixtureProcess& fixture, std::string_view target) {
  return nlohmann::json::parse(http_get(fixture.vendor_port(), target).body);
}

std::string endpoint(const FixtureProcess& fixture, std::size_t index) {
  return "127.0.0.1:" + std::to_string(fixture.proxy_port(index));
}

TEST(FixtureVendorTest, EveryShapeOffersTheRealProxies) {
  FixtureProcess fixture({"--proxies", "2", "--user", "u", "--password", "p"});
  const auto port = fixture.vendor_port();
  EXPECT_EQ(http_get(port, "/text").body,
            endpoint(fixture, 0) + "\r\n" + endpoint(fixture, 1) + "\r\n");
  EXPECT_EQ(http_get(port, "/text/colon").body,
            endpoint(fixture, 0) + ":u:p\r\n" + endpoint(fixture, 1) + ":u:p\r\n");
  const std::string lines =
      "http://u:p@" + endpoint(fixture, 0) + "\nhttp://u:p@" + endpoint(fixture, 1) + "\n";
  EXPECT_EQ(read_file(fixture.upstreams_file()), lines);
  EXPECT_EQ(get_json(fixture, "/json/list").at("/data/list/1/port"_json_pointer),
            fixture.proxy_port(1));
  EXPECT_EQ(get_json(fixture, "/json/array").at("/1/port"_json_pointer),
            std::to_string(fixture.proxy_port(1)));
  EXPECT_EQ(get_json(fixture, "/json/strings?ttl=30").at("/data/proxy_list/1"_json_pointer),
            endpoint(fixture, 1) + ",30");
  EXPECT_EQ(get_json(fixture, "/json/map").at("/list/1002/user"_json_pointer), "u");
  EXPECT_EQ(get_json(fixture, "/json/millis").at("/result/items/1/endpoint"_json_pointer),
            endpoint(fixture, 1));
}

TEST(FixtureVendorTest, PartialAnswersGoOnWhereTheLastOneEnded) {
  FixtureProcess fixture({"--proxies", "3"});
  const auto port = fixture.vendor_port();
  EXPECT_EQ(http_get(port, "/text?count=2").body,
            endpoint(fixture, 0) + "\r\n" + endpoint(fixture, 1) + "\r\n");
  EXPECT_EQ(http_get(port, "/text?count=2").body,
            endpoint(fixture, 2) + "\r\n" + endpoint(fixture, 0) + "\r\n");
  EXPECT_EQ(http_get(port, "/text?count=x").status, 400U);
  const auto stats = fixture.stats();
  EXPECT_EQ(stats.at("/vendor/calls"_json_pointer), 3);
  EXPECT_EQ(stats.at("/vendor/offered"_json_pointer), 4);
}

TEST(FixtureVendorTest, TheVendorCanBeEmptyWrongSilentOrGone) {
  FixtureProcess fixture({"--proxies", "1"});
  const auto port = fixture.vendor_port();
  fixture.control("vendor?mode=empty");
  EXPECT_EQ(http_get(port, "/text").body, "");
  EXPECT_EQ(get_json(fixture, "/json/list").at("/data/count"_json_pointer), 0);
  fixture.control("vendor?mode=error");
  EXPECT_EQ(http_get(port, "/text").body, "ERROR(-120): too many calls\n");
  EXPECT_EQ(http_get(port, "/json/array").status, 429U);
  fixture.control("vendor?mode=down");
  EXPECT_EQ(http_get(port, "/text").status, 0U);
  fixture.control("vendor?mode=hang");
  EXPECT_EQ(http_get(port, "/text", std::chrono::milliseconds(50)).failure, "nothing came in time");
  fixture.control("vendor?mode=ok");
  EXPECT_EQ(http_get(port, "/text").body, endpoint(fixture, 0) + "\r\n");
  EXPECT_EQ(http_get(port, "/text?answer=empty").body, "");
}

TEST(FixtureVendorTest, WrongControlCallsAreRefusedAndChangeNothing) {
  FixtureProcess fixture({"--proxies", "2"});
  const auto port = fixture.vendor_port();
  EXPECT_EQ(http_post(port, "/control/fault?proxy=2&kind=hang").status, 400U);
  EXPECT_EQ(http_post(port, "/control/fault?proxy=0&kind=hangs").status, 400U);
  EXPECT_EQ(http_post(port, "/control/vendor?mode=off").status, 400U);
  EXPECT_EQ(http_post(port, "/control/nothing").status, 404U);
  EXPECT_EQ(http_get(port, "/control/stop-proxies").status, 405U);
  EXPECT_EQ(fixture.proxy_stats(0).at("fault"), "none");
  EXPECT_EQ(fixture.proxy_stats(0).at("listening"), true);
}

TEST(FixtureVendorTest, AConnectionAfterTheOfferedLifeIsCounted) {
  FixtureProcess fixture({"--proxies", "2"});
  http_get(fixture.vendor_port(), "/text?ttl=600");
  HttpClient early(fixture.proxy_port(0));
  EXPECT_EQ(early.exchange("nonsense\r\n\r\n").status, 400U);
  EXPECT_EQ(fixture.proxy_stats(0).at("late_connections"), 0);
  FixtureProcess brief({"--proxies", "1"});
  http_get(brief.vendor_port(), "/text?ttl=0");
  EXPECT_TRUE(eventually([&] {
    HttpClient late(brief.proxy_port(0));
    return brief.proxy_stats(0).at("late_connections") > 0;
  }));
}

TEST(FixtureVendorTest, SignalsEndItCleanly) {
  for (const int signal : {SIGINT, SIGTERM}) {
    FixtureProcess fixture({"--proxies", "1"});
    HttpClient open(fixture.proxy_port(0));
    fixture.process().signal(signal);
    EXPECT_EQ(fixture.process().wait(), 0) << fixture.process().err();
  }
}

TEST(FixtureVendorTest, MistakesOnTheCommandLineEndWithTwo) {
  const auto unknown = run({"proxy-loadgen", {"fixture", "--proxys", "3"}, {}, {}});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean --proxies?"), std::string::npos) << unknown.err;
  EXPECT_EQ(run({"proxy-loadgen", {"fixtur"}, {}, {}}).code, 2);
  EXPECT_EQ(run({"proxy-loadgen", {}, {}, {}}).code, 2);
  EXPECT_EQ(run({"proxy-loadgen", {"fixture", "--fault", "8=hang"}, {}, {}}).code, 2);
  const auto help = run({"proxy-loadgen", {"fixture", "--help"}, {}, {}});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("--proxies N"), std::string::npos);
}

TEST(FixtureVendorTest, ATakenPortIsNamedAndEndsWithOne) {
  FixtureProcess fixture({"--proxies", "1"});
  const auto port = std::to_string(fixture.vendor_port());
  const auto second = run({"proxy-loadgen", {"fixture", "--vendor-port", port}, {}, {}});
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("127.0.0.1:" + port), std::string::npos) << second.err;
}

}  // namespace
}  // namespace proxypool::support
