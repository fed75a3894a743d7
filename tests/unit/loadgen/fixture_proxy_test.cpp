// The fixture's forward proxies: absolute form, CONNECT, every fault, records, high-water marks.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "loadgen/pattern.hpp"
#include "support/fixture_process.hpp"

namespace proxypool::support {
namespace {

std::string absolute(const FixtureProcess& fixture, const std::string& path,
                     const std::string& more = {}) {
  return "GET http://shop.example" + path + " HTTP/1.1\r\nHost: shop.example\r\n" + more +
         fixture.authorization() + "\r\n";
}

std::string connect(const FixtureProcess& fixture) {
  return "CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example:443\r\n" +
         fixture.authorization() + "\r\n";
}

Reply through(const FixtureProcess& fixture, std::size_t proxy, const std::string& path,
              std::chrono::milliseconds limit = kPatience) {
  return http_exchange(fixture.proxy_port(proxy), absolute(fixture, path), limit);
}

TEST(FixtureProxyTest, AnAbsoluteRequestReachesTheOriginWithoutTheCredentials) {
  FixtureProcess fixture({"--proxies", "2"});
  const auto reply = through(fixture, 1, "/t/tok-1?x=y");
  ASSERT_EQ(reply.status, 200U) << reply.failure;
  EXPECT_EQ(reply.header("X-Fixture-Proxy"), "1");
  const auto seen = nlohmann::json::parse(reply.body);
  EXPECT_EQ(seen.at("target"), "/t/tok-1?x=y");
  EXPECT_EQ(seen.at("proxy"), 1);
  EXPECT_EQ(reply.body.find("Proxy-Authorization"), std::string::npos);
}

TEST(FixtureProxyTest, RecordsTellWhichProxyServedATokenAndWhatArrived) {
  FixtureProcess fixture({"--proxies", "3"});
  ASSERT_EQ(through(fixture, 2, "/t/tok-2").status, 200U);
  const auto records = fixture.records("tok-2");
  EXPECT_EQ(records.at("proxies"), nlohmann::json::array({2}));
  ASSERT_EQ(records.at("sightings").size(), 2U);
  EXPECT_EQ(records.at("/sightings/0/place"_json_pointer), "proxy");
  EXPECT_EQ(records.at("/sightings/0/target"_json_pointer), "http://shop.example/t/tok-2");
  EXPECT_EQ(records.at("/sightings/1/place"_json_pointer), "origin");
  EXPECT_EQ(records.at("/sightings/1/proxy"_json_pointer), 2);
  EXPECT_EQ(http_get(fixture.vendor_port(), "/records?token=never").status, 404U);
  EXPECT_TRUE(fixture.records("never").at("sightings").empty());
}

TEST(FixtureProxyTest, WrongOrMissingCredentialsAre407) {
  FixtureProcess fixture({"--proxies", "1"});
  const std::string start = "GET http://h/ HTTP/1.1\r\nHost: h\r\n";
  for (const std::string bad :
       {"", "Proxy-Authorization: Basic eDp5\r\n", "Proxy-Authorization: Bearer x\r\n"}) {
    const auto reply = http_exchange(fixture.proxy_port(0), start + bad + "\r\n");
    EXPECT_EQ(reply.status, 407U);
    EXPECT_EQ(reply.header("Proxy-Authenticate"), "Basic realm=\"fixture\"");
  }
  EXPECT_EQ(fixture.proxy_stats(0).at("wrong_credentials"), 3);
  FixtureProcess open({"--proxies", "1", "--no-auth"});
  EXPECT_EQ(http_exchange(open.proxy_port(0), start + "\r\n").status, 200U);
}

TEST(FixtureProxyTest, BodiesStreamBothWaysOnAKeptConnection) {
  FixtureProcess fixture({"--proxies", "1"});
  HttpClient client(fixture.proxy_port(0));
  std::string body;
  for (std::uint64_t i = 0; i < 2'000'000;) {
    const auto piece = loadgen::pattern_piece(i, 2'000'000 - i);
    body += piece;
    i += piece.size();
  }
  const auto start =
      "POST http://shop.example/echo HTTP/1.1\r\nHost: shop.example\r\n" + fixture.authorization();
  const auto down = client.exchange(absolute(fixture, "/chunked?chunks=20&size=50000"));
  EXPECT_EQ(down.body.size(), 1'000'000U);
  EXPECT_TRUE(loadgen::matches_pattern(0, down.body));
  const auto chunked =
      client.exchange(start + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.body, "hello");
  const auto up = client.exchange(absolute(fixture, "/"));
  EXPECT_EQ(up.status, 200U);
  // Larger than every buffer on the way, and echoed while it is sent: read on a second connection.
  ASSERT_TRUE(client.send("POST http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\n" +
                          fixture.authorization() + "Content-Length: 2000000\r\n\r\n"));
  ASSERT_TRUE(client.send(body));
  EXPECT_EQ(nlohmann::json::parse(client.receive().body).at("body_bytes"), 2'000'000);
  EXPECT_EQ(fixture.proxy_stats(0).at("connections"), 1);
}

TEST(FixtureProxyTest, ATunnelCarriesBytesAndEachHalfClosesAlone) {
  FixtureProcess fixture({"--proxies", "1"});
  HttpClient client(fixture.proxy_port(0));
  ASSERT_EQ(client.exchange(connect(fixture)).status, 200U);
  ASSERT_TRUE(client.send("GET /t/tunnelled HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
  client.end_output();
  const auto reply = client.receive();
  EXPECT_EQ(reply.status, 200U) << reply.failure;
  EXPECT_TRUE(reply.complete);
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(fixture.records("tunnelled").at("proxies"), nlohmann::json::array({0}));
  EXPECT_TRUE(eventually([&] { return fixture.proxy_stats(0).at("in_flight") == 0; }));
}

TEST(FixtureProxyTest, EachFaultShowsAsItIsNamed) {
  FixtureProcess fixture({"--proxies", "11",
                          "--fault",   "1=refuse",
                          "--fault",   "2=hang",
                          "--fault",   "3=407",
                          "--fault",   "4=slow:50ms",
                          "--fault",   "5=garbage",
                          "--fault",   "6=close-before-head",
                          "--fault",   "7=reset",
                          "--fault",   "8=502",
                          "--fault",   "9=reset-on-accept",
                          "--fault",   "10=reset-in-head"});
  const std::chrono::milliseconds little{100};
  EXPECT_EQ(through(fixture, 0, "/").status, 200U);
  EXPECT_EQ(through(fixture, 1, "/").failure, "connect: Connection refused");
  EXPECT_EQ(through(fixture, 2, "/", little).failure, "nothing came in time");
  EXPECT_EQ(through(fixture, 3, "/").status, 407U);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(through(fixture, 4, "/").status, 200U);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
  EXPECT_EQ(through(fixture, 5, "/").failure, "not an HTTP/1.x status line");
  EXPECT_EQ(through(fixture, 6, "/").failure, "end of connection");
  EXPECT_EQ(through(fixture, 7, "/").failure, "receive: Connection reset by peer");
  EXPECT_EQ(through(fixture, 8, "/").status, 502U);
  EXPECT_EQ(through(fixture, 9, "/").status, 0U);
  EXPECT_EQ(fixture.proxy_stats(9).at("requests"), 0);
  EXPECT_EQ(through(fixture, 10, "/").failure, "receive: Connection reset by peer");
  for (const std::size_t proxy : {3U, 8U}) {
    const auto reply = http_exchange(fixture.proxy_port(proxy), connect(fixture));
    EXPECT_EQ(reply.status, proxy == 3U ? 407U : 502U);
  }
}

TEST(FixtureProxyTest, ATruncatedAnswerEndsInsideItsBody) {
  FixtureProcess fixture({"--proxies", "2", "--fault", "0=truncate", "--fault", "1=truncate:10"});
  const auto half = through(fixture, 0, "/bytes/1000000");
  EXPECT_EQ(half.status, 200U);
  EXPECT_FALSE(half.complete);
  EXPECT_EQ(half.body.size(), 500'000U);
  const auto chunked = through(fixture, 1, "/chunked?chunks=3&size=100");
  EXPECT_EQ(chunked.status, 200U);
  EXPECT_FALSE(chunked.complete);
  HttpClient tunnel(fixture.proxy_port(1));
  ASSERT_EQ(tunnel.exchange(connect(fixture)).status, 200U);
  ASSERT_TRUE(tunnel.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_EQ(tunnel.receive_rest(), "HTTP/1.1 2");
}

TEST(FixtureProxyTest, AnAnswerThatIsResetEndsInsideItsBodyToo) {
  FixtureProcess fixture({"--proxies", "1", "--fault", "0=reset-in-body:10"});
  const auto plain = through(fixture, 0, "/bytes/1000");
  EXPECT_EQ(plain.status, 200U);
  EXPECT_EQ(plain.failure, "receive: Connection reset by peer");
  HttpClient tunnel(fixture.proxy_port(0));
  ASSERT_EQ(tunnel.exchange(connect(fixture)).status, 200U);
  ASSERT_TRUE(tunnel.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_EQ(tunnel.receive().failure, "receive: Connection reset by peer");
}

TEST(FixtureProxyTest, FaultsAndProxiesSwitchWhileItRuns) {
  FixtureProcess fixture({"--proxies", "2"});
  HttpClient open(fixture.proxy_port(0));
  ASSERT_EQ(open.exchange(absolute(fixture, "/")).status, 200U);
  fixture.set_fault(0, "refuse");
  EXPECT_EQ(through(fixture, 0, "/").status, 0U);
  EXPECT_EQ(open.exchange(absolute(fixture, "/")).status, 0U);
  EXPECT_EQ(through(fixture, 1, "/").status, 200U);
  fixture.set_fault(0, "none");
  EXPECT_EQ(through(fixture, 0, "/").status, 200U);

  HttpClient second(fixture.proxy_port(1));
  ASSERT_EQ(second.exchange(absolute(fixture, "/")).status, 200U);
  fixture.control("stop-proxies");
  EXPECT_TRUE(second.ended());
  EXPECT_EQ(through(fixture, 0, "/").status, 0U);
  EXPECT_EQ(through(fixture, 1, "/").status, 0U);
  fixture.control("start-proxies?proxy=1");
  EXPECT_EQ(through(fixture, 0, "/").status, 0U);
  EXPECT_EQ(through(fixture, 1, "/").status, 200U);
}

TEST(FixtureProxyTest, HighWaterMarksCountRequestsAndTunnelsNotIdleConnections) {
  FixtureProcess fixture({"--proxies", "1"});
  std::vector<HttpClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(fixture.proxy_port(0));
  for (auto& client : clients) {
    ASSERT_EQ(client.exchange(absolute(fixture, "/")).status, 200U);
  }
  EXPECT_EQ(fixture.proxy_stats(0).at("in_flight_max"), 1);  // four open, one at a time
  EXPECT_EQ(fixture.proxy_stats(0).at("connections_open"), 4);

  ASSERT_EQ(clients[0].exchange(connect(fixture)).status, 200U);
  ASSERT_TRUE(clients[1].send(absolute(fixture, "/slow?ms=60000")));
  ASSERT_TRUE(clients[2].send(absolute(fixture, "/slow?ms=60000")));
  EXPECT_TRUE(eventually([&] { return fixture.proxy_stats(0).at("in_flight") == 3; }));
  clients[1].close();  // a client that goes away leaves at once, whatever the origin does
  clients[0].close();
  EXPECT_TRUE(eventually([&] { return fixture.proxy_stats(0).at("in_flight") == 1; }));
  EXPECT_EQ(fixture.proxy_stats(0).at("in_flight_max"), 3);
  fixture.control("reset-stats");
  EXPECT_EQ(fixture.proxy_stats(0).at("in_flight_max"), 1);
}

}  // namespace
}  // namespace proxypool::support
