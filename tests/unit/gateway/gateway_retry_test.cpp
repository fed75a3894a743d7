// Failing proxies: retries, deadlines and what the client is told (GW-35, GW-41, GW-42).
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

class GatewayRetry : public GatewayTest {
 protected:
  std::string code_of(const std::string& answer) {
    const auto at = answer.find("\"code\":\"");
    if (at == std::string::npos) return answer.substr(0, answer.find("\r\n"));
    return answer.substr(at + 8, answer.find('"', at + 8) - at - 8);
  }
  std::string ask(const std::string& request) {
    Peer c = client();
    c.send(request);
    return code_of(c.answer());
  }
  const std::string post_ =
      "POST http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\nContent-Length: "
      "2\r\n\r\nhi";
};

// Two proxies of which one fails: every GET succeeds, whichever is asked first.
TEST_F(GatewayRetry, AnotherProxyIsTriedBeforeTheAnswerHasBegun) {
  proxy(answering("ok"));
  rig_.add({.port = closed_port()});
  start();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(get("/")), "HTTP/1.1 200 OK");
  EXPECT_GT(metric("proxypool_gateway_retries_total"), 0);
}

TEST_F(GatewayRetry, AProxyThatDiesBeforeItsAnswerIsNoErrorOfTheClients) {
  proxy(answering("ok"));
  proxy([](Peer& peer, int) { peer.until("\r\n\r\n"); });
  start();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(get("/")), "HTTP/1.1 200 OK");
}

TEST_F(GatewayRetry, EachFailureHasItsCode) {
  proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    if (number_ == 0) return;
    peer.send(number_ == 1   ? "HTTP/1.1 2000 OK\r\n\r\n"
              : number_ == 2 ? "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"
                             : "SSH-2.0-x\r\n\r\n");
    (void)peer.at_end();
  });
  start();
  EXPECT_EQ(ask(get("/")), "proxy_protocol_error");
  number_ = 1;
  EXPECT_EQ(ask(get("/")), "proxy_protocol_error");
  number_ = 2;
  EXPECT_EQ(ask(get("/")), "proxy_auth_rejected");
  number_ = 3;
  EXPECT_EQ(ask(connect_to("origin.example:443")), "proxy_protocol_error");
  EXPECT_EQ(outcomes("proxy_protocol_error"), 3);
  EXPECT_EQ(outcomes("proxy_auth_rejected"), 1);
}

TEST_F(GatewayRetry, ARefusedConnectionIsToldAndCounted) {
  rig_.add({.port = closed_port()});
  start();
  EXPECT_EQ(ask(get("/")), "proxy_connect_failed");
  EXPECT_EQ(metric("proxypool_gateway_attempt_failures_total{phase=\"dial\"}"), 1);
}

// At most retry.maxAttempts different proxies, each once.
TEST_F(GatewayRetry, AttemptsAreLimited) {
  for (int i = 0; i < 5; ++i) proxy([](Peer& peer, int) { peer.until("\r\n\r\n"); });
  rig_.snapshot.routings.front().attempts_max = 3;
  start();
  EXPECT_EQ(ask(get("/")), "proxy_protocol_error");
  int tried = 0;
  for (const auto& p : proxies_) {
    EXPECT_LE(p.connections(), 1);
    tried += p.connections();
  }
  EXPECT_EQ(tried, 3);
}

TEST_F(GatewayRetry, ARequestThatMayHaveHadAnEffectIsNotRepeated) {
  for (int i = 0; i < 3; ++i) proxy([](Peer& peer, int) { peer.until("\r\n\r\n"); });
  start();
  EXPECT_EQ(ask(post_), "proxy_protocol_error");
  EXPECT_EQ(ask("TRACE http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\n\r\n"),
            "proxy_protocol_error");
  int tried = 0;
  for (const auto& p : proxies_) tried += p.connections();
  EXPECT_EQ(tried, 2);
}

TEST_F(GatewayRetry, APostThatNeverLeftIsRepeatedIfSettingsSaySo) {
  proxy([](Peer& peer, int) {
    while (!peer.until("hi").empty()) peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  rig_.add({.port = closed_port()});
  rig_.snapshot.policy.unsafe_before_send = true;
  start();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(post_), "HTTP/1.1 200 OK");
}

// A kept connection may have ended just when it was chosen. That is nobody's failure.
TEST_F(GatewayRetry, AKeptConnectionThatDiesBeforeItsAnswerIsReplacedOnce) {
  FakeProxy& p = proxy([](Peer& peer, int number) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    peer.until("\r\n\r\n");
    if (number > 0) peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain");
  });
  start();
  Peer c = client();
  c.send(get("/1"));
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  c.send(get("/2"));
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(p.connections(), 2);
  EXPECT_EQ(metric("proxypool_gateway_attempt_failures_total{phase=\"response_headers\"}"), 1);
}

TEST_F(GatewayRetry, EachDeadlineHasItsCode) {
  rig_.settings.proxy_connect = milliseconds(40);
  rig_.settings.first_byte = milliseconds(40);
  rig_.settings.idle = milliseconds(40);
  proxy([](Peer& peer, int) { (void)peer.all(); });
  start();
  EXPECT_EQ(ask(get("/")), "first_byte_timeout");
  EXPECT_EQ(ask(connect_to("origin.example:443")), "proxy_connect_timeout");
  // The client's own silence is the client's fault.
  EXPECT_EQ(ask("POST http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\n"
                "Content-Length: 2\r\n\r\n"),
            "request_timeout");
  rig_.stop();
  rig_.settings.first_byte = seconds(10);
  rig_.settings.total = milliseconds(40);
  start();
  EXPECT_EQ(ask(get("/")), "total_timeout");
}

TEST_F(GatewayRetry, AConnectionThatDoesNotComeAboutTimesOut) {
  // A listener whose queue is full drops further connections in silence.
  auto listener = net::listen_tcp({IpAddress::v4(0x7f000001), 0}, {.backlog = 0});
  ASSERT_TRUE(listener);
  const auto port = net::local_port(listener->get());
  Peer filler = Peer::dial(port);
  rig_.settings.connect = milliseconds(60);
  rig_.add({.port = port});
  start();
  EXPECT_EQ(ask(get("/")), "connect_timeout");
}

TEST_F(GatewayRetry, NamedProxiesAreLookedUpOnceAndRemembered) {
  proxies_.emplace_back(answering("ok"));
  rig_.add({.host = "vendor.example", .port = proxies_.back().port()});
  rig_.look_up = [&](const std::string& name, Deadline) -> Result<std::vector<IpAddress>> {
    ++number_;
    EXPECT_EQ(name, "vendor.example");
    return std::vector{IpAddress::v4(0x7f000001)};
  };
  rig_.settings.reuse = false;
  start();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(get("/")), "HTTP/1.1 200 OK");
  EXPECT_EQ(ask("POST http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\n"
                "Content-Length: 0\r\n\r\n"),
            "HTTP/1.1 200 OK");
  EXPECT_EQ(number_, 1);
}

TEST_F(GatewayRetry, ANameWithoutAnAddressIsAProxyThatCannotBeReached) {
  rig_.add({.host = "nowhere.example", .port = 1});
  start();
  EXPECT_EQ(ask(get("/")), "proxy_connect_failed");
}

}  // namespace
}  // namespace proxypool::gateway
