// The access log: who gets a line, what is in it, and what never is (GW-36).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway/ingress/access_log.hpp"
#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

class AccessLogTest : public GatewayTest {
 protected:
  std::string ask(const std::string& request) {
    Peer c = client();
    c.send(request);
    return c.answer();
  }
  // The lines of one event, once there are so many; the log is written after the answer.
  std::vector<std::string> lines(ports::Event event, std::size_t count) {
    wait_for([&] { return rig_.events.count(event) >= count; });
    std::vector<std::string> out;
    for (const std::string& line : rig_.events.lines()) {
      if (line.starts_with(std::string(ports::row(event).name) + " ")) out.push_back(line);
    }
    return out;
  }
  static bool has(const std::string& line, const std::string& part) {
    return (line + " ").find(" " + part + " ") != std::string::npos;
  }
};

TEST_F(AccessLogTest, ALineNamesWhoAskedForWhatAndWhoServedIt) {
  rig_.settings.access_log_one_in = 1;
  proxy(answering("hello"));
  start();
  ask(get("/secret/path?token=1"));
  const auto seen = lines(ports::Event::RequestServed, 1);
  ASSERT_EQ(seen.size(), 1U);
  for (const std::string part : {"routing=all", "upstream=vendor", "method=GET", "status=200",
                                 "attempts=1", "reason=ok", "target=origin.example:80"}) {
    EXPECT_TRUE(has(seen[0], part)) << part << " in " << seen[0];
  }
  EXPECT_TRUE(has(seen[0], "proxy=" + to_string(ProxyId(1)))) << seen[0];
  EXPECT_EQ(seen[0].find("secret"), std::string::npos) << seen[0];
  EXPECT_EQ(seen[0].find("token"), std::string::npos) << seen[0];
}

TEST_F(AccessLogTest, OneOfSoManyGetsALineAndTheFirstDoes) {
  rig_.settings.access_log_one_in = 3;
  proxy(answering("hello"));
  start();
  for (int i = 0; i < 7; ++i) ask(get("/"));
  EXPECT_EQ(lines(ports::Event::RequestServed, 3).size(), 3U);
}

TEST_F(AccessLogTest, WithoutItNoAnswerIsLoggedAndWhatIsRefusedIs) {
  rig_.settings.access_log_one_in = 0;
  proxy(answering("hello"));
  start();
  ask(get("/"));
  ask("GET / HTTP/1.1\r\nHost: origin.example\r\n\r\n");
  const auto refused = lines(ports::Event::RequestRefused, 1);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_TRUE(has(refused[0], "code=bad_request")) << refused[0];
  EXPECT_TRUE(has(refused[0], "status=400")) << refused[0];
  EXPECT_TRUE(has(refused[0], "peer=127.0.0.1")) << refused[0];
  EXPECT_EQ(rig_.events.count(ports::Event::RequestServed), 0U);
}

TEST_F(AccessLogTest, RefusalsBeyondTheLinesOfASecondAreNotEvenComposed) {
  test::RecordingEvents events;
  AccessLog log(events, 0);
  const TimePoint now{std::chrono::hours(1)};
  const auto refuse = [&](TimePoint at) {
    log.refused(nullptr, {}, IpAddress::v4(0x7f000001), domain::Refusal::BadRequest, {}, at);
  };
  for (int i = 0; i < 250; ++i) refuse(now);
  EXPECT_EQ(events.lines().size(), ports::row(ports::Event::RequestRefused).per_second_max);
  refuse(now + std::chrono::seconds(1));
  EXPECT_EQ(events.lines().size(), ports::row(ports::Event::RequestRefused).per_second_max + 1);
}

TEST_F(AccessLogTest, AFailureNamesTheProxyThatWasTriedLast) {
  rig_.settings.access_log_one_in = 1;
  const ProxyId id = rig_.add({.port = closed_port()});
  start();
  ask(get("/"));
  const auto refused = lines(ports::Event::RequestRefused, 1);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_TRUE(has(refused[0], "code=proxy_connect_failed")) << refused[0];
  EXPECT_TRUE(has(refused[0], "proxy=" + to_string(id))) << refused[0];
  EXPECT_TRUE(has(refused[0], "target=origin.example:80")) << refused[0];
}

TEST_F(AccessLogTest, ATunnelGetsItsLineWithItsBytesWhenItEnds) {
  rig_.settings.access_log_one_in = 1;
  proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\nhello");
  });
  start();
  {
    Peer c = client();
    c.send(connect_to("origin.example:443"));
    c.until("hello");
    EXPECT_EQ(rig_.events.count(ports::Event::RequestServed), 0U);
  }
  const auto seen = lines(ports::Event::RequestServed, 1);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(has(seen[0], "method=CONNECT")) << seen[0];
  EXPECT_TRUE(has(seen[0], "target=origin.example:443")) << seen[0];
}

TEST_F(AccessLogTest, ABrokenAnswerIsSaidToBeTruncated) {
  rig_.settings.access_log_one_in = 1;
  proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
  });
  start();
  ask(get("/"));
  const auto seen = lines(ports::Event::RequestServed, 1);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(has(seen[0], "reason=truncated")) << seen[0];
}

}  // namespace
}  // namespace proxypool::gateway
