// The fixture's origin: what it saw, and every framing of an answer.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "loadgen/pattern.hpp"
#include "support/fixture_process.hpp"

namespace proxypool::support {
namespace {

constexpr auto kHost = "Host: origin.example\r\n";

TEST(FixtureOriginTest, ItTellsWhatItSaw) {
  FixtureProcess fixture({"--proxies", "1"});
  const auto reply = http_exchange(
      fixture.origin_port(),
      "PUT /a?b=c HTTP/1.1\r\nHost: h\r\nX-Odd: 1\r\nx-odd: 2\r\nContent-Length: 3\r\n\r\nabc");
  ASSERT_EQ(reply.status, 200U) << reply.failure;
  const auto seen = nlohmann::json::parse(reply.body);
  EXPECT_EQ(seen.at("method"), "PUT");
  EXPECT_EQ(seen.at("target"), "/a?b=c");
  EXPECT_EQ(seen.at("headers").at(1), nlohmann::json::array({"X-Odd", "1"}));
  EXPECT_EQ(seen.at("headers").at(2), nlohmann::json::array({"x-odd", "2"}));
  EXPECT_EQ(seen.at("body_bytes"), 3);
  EXPECT_EQ(seen.at("body_sha256"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(seen.at("proxy").is_null());
}

TEST(FixtureOriginTest, BytesFollowTheKnownPattern) {
  FixtureProcess fixture({"--proxies", "1"});
  for (const auto* target :
       {"/bytes/300000", "/until-close?bytes=300000", "/chunked?chunks=3&size=100000"}) {
    const auto reply = http_get(fixture.origin_port(), target);
    EXPECT_TRUE(reply.complete) << target << ": " << reply.failure;
    EXPECT_EQ(reply.body.size(), 300'000U) << target;
    EXPECT_TRUE(loadgen::matches_pattern(0, reply.body)) << target;
  }
  EXPECT_EQ(http_get(fixture.origin_port(), "/until-close?bytes=1").header("content-length"), "");
  EXPECT_EQ(http_get(fixture.origin_port(), "/drip?bytes=3&ms=1").body.size(), 3U);
}

TEST(FixtureOriginTest, OneConnectionServesManyRequestsPipelinedOrNot) {
  FixtureProcess fixture({"--proxies", "1"});
  HttpClient client(fixture.origin_port());
  const std::string head = std::string("HEAD /bytes/7 HTTP/1.1\r\n") + kHost + "\r\n";
  const std::string get = std::string("GET /status/404 HTTP/1.1\r\n") + kHost + "\r\n";
  ASSERT_TRUE(client.send(head + get + get));
  const auto first = client.receive("HEAD");
  EXPECT_EQ(first.header("Content-Length"), "7");
  EXPECT_EQ(first.body, "");
  EXPECT_EQ(client.receive().status, 404U);
  EXPECT_EQ(client.receive().status, 404U);
  const auto none = client.exchange(std::string("GET /status/204 HTTP/1.1\r\n") + kHost + "\r\n");
  EXPECT_EQ(none.status, 204U);
  EXPECT_TRUE(none.complete);
}

TEST(FixtureOriginTest, EchoStreamsInTheFramingOfTheRequest) {
  FixtureProcess fixture({"--proxies", "1"});
  HttpClient client(fixture.origin_port());
  const std::string start = std::string("POST /echo HTTP/1.1\r\n") + kHost;
  const std::string head = start + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  ASSERT_TRUE(client.send(head + "5\r\nhello\r\n"));
  const auto early = client.receive_until("hello\r\n");
  EXPECT_NE(early.find("\r\n\r\n5\r\nhello\r\n"), std::string::npos) << early;
  ASSERT_TRUE(client.send("0\r\n\r\n"));  // the first chunk came back before the last was sent
  EXPECT_EQ(client.receive_rest(), "0\r\n\r\n");
  const auto fixed = http_exchange(fixture.origin_port(), start + "Content-Length: 5\r\n\r\nworld");
  EXPECT_EQ(fixed.header("Content-Length"), "5");
  EXPECT_EQ(fixed.body, "world");
}

TEST(FixtureOriginTest, ContinueIsSaidBeforeTheBody) {
  FixtureProcess fixture({"--proxies", "1"});
  HttpClient client(fixture.origin_port());
  const std::string head = std::string("POST / HTTP/1.1\r\n") + kHost +
                           "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  ASSERT_TRUE(client.send(head));
  EXPECT_EQ(client.receive_bytes(25), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client.exchange("ok").status, 200U);
}

TEST(FixtureOriginTest, NonsenseIsAnswered400) {
  FixtureProcess fixture({"--proxies", "1"});
  EXPECT_EQ(http_exchange(fixture.origin_port(), "nonsense\r\n\r\n").status, 400U);
  EXPECT_EQ(
      http_exchange(fixture.origin_port(), "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n")
          .status,
      400U);
}

}  // namespace
}  // namespace proxypool::support
