// Limits of clients and sources through a whole gateway (GW-12, R7).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway/ingress/sources.hpp"
#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class GatewayLimited : public GatewayTest {
 protected:
  std::string ask(const std::string& name) {
    Peer c = client();
    c.send(get("/", as(name)));
    return c.answer();
  }
  static std::string as(const std::string& name) {
    return "Proxy-Authorization: Basic " + base64_encode(name + ":secret") + "\r\n";
  }
};

TEST_F(GatewayLimited, ARateIsTheClientsOwnAndToldWithItsTime) {
  FakeProxy& p = proxy(answering("ok"));
  rig_.add_client("ann", "secret");
  rig_.add_client("bob", "secret");
  rig_.snapshot.clients[0].rate_per_second = 1;
  rig_.snapshot.clients[0].burst = 3;
  rig_.settings.threads = 2;
  start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask("ann").substr(0, 12), "HTTP/1.1 200");
  const std::string limited = ask("ann-session-s1");
  EXPECT_TRUE(limited.starts_with("HTTP/1.1 429 Too Many Requests\r\n")) << limited;
  EXPECT_TRUE(has(limited, "\"code\":\"client_limited\""));
  EXPECT_TRUE(has(limited, "error=http_request_denied; details=\"client_limited\""));
  EXPECT_TRUE(has(limited, "Retry-After: 1\r\n"));
  EXPECT_EQ(ask("bob").substr(0, 12), "HTTP/1.1 200") << "another client";
  Peer tunnel = client();
  tunnel.send(connect_to("origin.example:443", as("ann")));
  EXPECT_TRUE(has(tunnel.answer(), "429 Too Many Requests (client_limited)"));
  EXPECT_LE(p.connections(), 4) << "nothing was dialled for what was refused";
  // What is used up stays used up over a new snapshot.
  rig_.snapshot.clients[0].burst = 2;
  rig_.snapshot.version.counter = 2;
  rig_.publish();
  EXPECT_TRUE(has(ask("ann"), "client_limited"));
  rig_.snapshot.clients[0].rate_per_second = 0;
  rig_.publish();
  EXPECT_EQ(ask("ann").substr(0, 12), "HTTP/1.1 200") << "no limit any more";
}

TEST_F(GatewayLimited, RequestsAndTunnelsAtOnceAreCountedAndGivenBack) {
  proxy([this](Peer& peer, int) {
    const std::string head = peer.until("\r\n\r\n");
    ++number_;
    if (has(head, "CONNECT")) {
      peer.send("HTTP/1.1 200 OK\r\n\r\n");
      (void)peer.at_end();
      return;
    }
    while (!flag_) std::this_thread::yield();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  });
  rig_.add_client("ann", "secret");
  rig_.snapshot.clients[0].in_flight_max = 2;
  start();
  Peer slow = client();
  slow.send(get("/", as("ann")));
  Peer tunnel = client();
  tunnel.send(connect_to("origin.example:443", as("ann")));
  EXPECT_TRUE(has(tunnel.until("\r\n\r\n"), "200"));
  wait_for([&] { return number_ == 2; });
  const std::string third = ask("ann");
  EXPECT_TRUE(has(third, "\"code\":\"client_limited\"")) << third;
  EXPECT_TRUE(has(third, "Retry-After: 1\r\n"));
  tunnel.close();
  flag_ = true;
  EXPECT_TRUE(slow.answer().ends_with("ok"));
  for (int i = 0; i < 5; ++i) {
    std::string answer;
    wait_for([&] { return !has(answer = ask("ann"), "client_limited"); });
    EXPECT_TRUE(answer.ends_with("ok")) << answer;
  }
}

TEST_F(GatewayLimited, ConnectionsOfOneSourceAreCounted) {
  proxy(answering("ok"));
  rig_.settings.connections_per_source_max = 2;
  start();
  Peer one = client();
  one.send(get("/"));
  EXPECT_EQ(one.answer().substr(0, 12), "HTTP/1.1 200");
  Peer two = client();
  two.send(get("/"));
  EXPECT_EQ(two.answer().substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(client().all(), "") << "closed on arrival";
  EXPECT_EQ(metric("proxypool_gateway_connections_refused_total"), 1);
  one.close();
  wait_for([&] { return metric("proxypool_gateway_client_connections") == 1; });
  Peer four = client();
  four.send(get("/"));
  EXPECT_EQ(four.answer().substr(0, 12), "HTTP/1.1 200");
}

TEST(Sources, OneNetworkIsOneSource) {
  Sources sources(2);
  EXPECT_TRUE(sources.enter(*IpAddress::parse("2001:db8::1")));
  EXPECT_TRUE(sources.enter(*IpAddress::parse("2001:db8::2")));
  EXPECT_FALSE(sources.enter(*IpAddress::parse("2001:db8::ffff:3")));
  EXPECT_TRUE(sources.enter(*IpAddress::parse("2001:db8:0:1::1")));
  EXPECT_TRUE(sources.enter(*IpAddress::parse("192.0.2.1")));
  EXPECT_TRUE(sources.enter(*IpAddress::parse("192.0.2.2")));
  sources.leave(*IpAddress::parse("2001:db8::1"));
  EXPECT_TRUE(sources.enter(*IpAddress::parse("2001:db8::4")));
  EXPECT_FALSE(sources.enter(*IpAddress::parse("2001:db8::5")));
  Sources none(0);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(none.enter(IpAddress::v4(1)));
}

}  // namespace
}  // namespace proxypool::gateway
