// CONNECT through a proxy: GW-8, GW-40, GW-41, ruling C16.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "gateway_fixture.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::gateway {
namespace {

constexpr std::string_view kUp = "HTTP/1.1 200 Connection established\r\n\r\n";

// Accepts every CONNECT and sends back whatever comes.
void echo(Peer& peer, int) {
  peer.until("\r\n\r\n");
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  for (std::string bytes = peer.exactly(1); !bytes.empty(); bytes = peer.exactly(1)) {
    if (!peer.send(bytes)) return;
  }
}

class GatewayTunnel : public GatewayTest {
 protected:
  Peer tunnel() {
    Peer c = client();
    c.send(connect_to("origin.example:443"));
    EXPECT_EQ(c.exactly(kUp.size()), kUp);
    return c;
  }
};

TEST_F(GatewayTunnel, CarriesBytesBothWaysAndEndsWithBothSides) {
  proxy([&](Peer& peer, int) {
    saw(peer.until("\r\n\r\n"));
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    saw(peer.all());
    peer.send("late reply");
  });
  start();
  Peer c = tunnel();
  c.send("request");
  c.shut_write();
  EXPECT_EQ(c.all(), "late reply") << "half of a tunnel may end before the other half (GW-8)";
  wait_for([&] { return rig_.gateway().activity().connections == 0; });
  EXPECT_EQ(seen(),
            "CONNECT origin.example:443 HTTP/1.1\r\nHost: origin.example:443\r\n"
            "Proxy-Authorization: Basic dnVzZXI6dnBhc3M=\r\n\r\nrequest");
  EXPECT_EQ(outcomes("tunnel"), 1);
}

TEST_F(GatewayTunnel, BytesBehindTheHeadAreNotLostOnEitherSide) {
  proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\nhello");
    peer.send(peer.exactly(5));
  });
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443") + "EARLY");
  EXPECT_EQ(c.all(), std::string(kUp) + "helloEARLY");
}

TEST_F(GatewayTunnel, CarriesMuchMoreThanAnyBufferInBothDirectionsAtOnce) {
  constexpr std::size_t kBytes = 8U << 20U;
  proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    std::thread writer([&] { peer.send(std::string(kBytes, 'd')); });
    const std::string up = peer.exactly(kBytes);
    writer.join();
    peer.send(up == std::string(kBytes, 'u') ? "same" : "lost");
  });
  start();
  Peer c = tunnel();
  std::thread writer([&] { c.send(std::string(kBytes, 'u')); });
  const std::string down = c.exactly(kBytes);
  writer.join();
  EXPECT_TRUE(down == std::string(kBytes, 'd'));
  EXPECT_EQ(c.exactly(4), "same");
}

// GW-43: what comes in bulk and then stands still.
TEST_F(GatewayTunnel, TheLastBytesOfABulkComeThoughItsSenderWaits) {
  constexpr std::size_t kBytes = (8U << 20U) + 777;
  proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    for (int i = 0; i < 3; ++i) {
      peer.send(std::string(kBytes, 'd'));
      peer.exactly(1);
    }
  });
  start();
  Peer c = tunnel();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(c.exactly(kBytes).size(), kBytes);
    c.send("n");
  }
}

TEST_F(GatewayTunnel, AResetOnOneSideEndsTheOtherAtOnce) {
  number_ = -2;
  proxy([&](Peer& peer, int number) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    peer.exactly(1);
    if (number == 1) return peer.reset();
    number_ = peer.end_error();
  });
  start();
  Peer first = tunnel();
  first.send("x");
  first.reset();
  wait_for([&] { return number_ != -2; });
  EXPECT_EQ(number_, ECONNRESET);
  Peer second = tunnel();
  second.send("x");
  EXPECT_EQ(second.end_error(), ECONNRESET);
  wait_for([&] { return rig_.gateway().activity().tunnels == 0; });
}

TEST_F(GatewayTunnel, ARefusalOfTheProxyIsOursToTell) {
  proxy([](Peer& peer, int) {
    const std::string head = peer.until("\r\n\r\n");
    peer.send(head.find("secret") != std::string::npos
                  ? "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"v\"\r\n\r\n"
                  : "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\npage");
    (void)peer.at_end();
  });
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443"));
  const std::string refused = c.all();
  EXPECT_EQ(refused.substr(0, refused.find("\r\n")), "HTTP/1.1 502 Bad Gateway (proxy_refused)");
  EXPECT_NE(refused.find("Proxy-Status: proxypool; error=connection_refused"), std::string::npos);
  EXPECT_EQ(refused.find("page"), std::string::npos);
  Peer d = client();
  d.send(connect_to("secret.example:443"));
  const std::string unauthorized = d.all();
  EXPECT_EQ(unauthorized.substr(0, unauthorized.find("\r\n")),
            "HTTP/1.1 502 Bad Gateway (proxy_auth_rejected)");
  EXPECT_EQ(unauthorized.find("Proxy-Authenticate"), std::string::npos);
}

TEST_F(GatewayTunnel, AWebSocketBecomesATunnelAfterThe101Only) {
  proxy([&](Peer& peer, int number) {
    saw(peer.until("\r\n\r\n"));
    if (number == 0) {
      peer.send(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          "\r\nhi");
      peer.send(peer.exactly(4));
      return;
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
    (void)peer.at_end();
  });
  start();
  const std::string upgrade =
      get("/chat", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
  Peer c = client();
  c.send(upgrade + "ping");
  const std::string answer = c.all();
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 101");
  EXPECT_NE(answer.find("Upgrade: websocket\r\n"), std::string::npos);
  EXPECT_EQ(answer.substr(answer.size() - 6), "hiping");
  EXPECT_NE(seen().find("Upgrade: websocket\r\nConnection: Upgrade\r\n"), std::string::npos)
      << seen();
  Peer d = client();
  d.send(upgrade + get("/next"));
  const std::string no = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno";
  EXPECT_EQ(d.exactly(no.size()), no);
}

TEST_F(GatewayTunnel, EndsAfterItsIdleTimeAndAtItsAge) {
  rig_.settings.idle = milliseconds(80);
  proxy(echo);
  start();
  Peer idle = tunnel();
  idle.send("a");
  EXPECT_EQ(idle.exactly(1), "a");
  EXPECT_TRUE(idle.at_end());
  rig_.stop();
  rig_.settings.idle = seconds(60);
  rig_.settings.tunnel_age_max = milliseconds(80);
  start();
  Peer old = tunnel();
  while (old.send("b") && old.exactly(1) == "b") {
  }
  SUCCEED() << "a busy tunnel ended at its age";
}

TEST_F(GatewayTunnel, EndsOnceItHasCarriedItsBytes) {
  rig_.settings.tunnel_bytes_max = 100'000;
  proxy(echo);
  start();
  Peer c = tunnel();
  std::size_t bytes = 0;
  while (c.send("0123456789") && c.exactly(10).size() == 10) bytes += 20;
  EXPECT_GT(bytes, 90'000U);
  EXPECT_LT(bytes, 110'000U);
}

// C16: a tunnel of a proxy that this worker lost ends; one of another proxy goes on.
TEST_F(GatewayTunnel, TunnelsOfLostProxiesEndAtTheGivenMoment) {
  proxy(echo);
  proxy(echo);
  start();
  Peer a = tunnel();
  Peer b = tunnel();
  wait_for([&] { return rig_.registry().counts().size() == 2; });  // least_conn: one each
  rig_.gateway().end_tunnels_of({ProxyId{1}}, runtime::boot_now() + milliseconds(30));
  wait_for([&] { return rig_.gateway().activity().tunnels == 1; });
  const auto left = rig_.registry().counts();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left.front().id, ProxyId{2});
  rig_.gateway().end_tunnels(runtime::boot_now());
  wait_for([&] { return rig_.gateway().activity().tunnels == 0; });
}

// C16: whatever began while the lease stood; a tunnel that opens later is not forgotten.
TEST_F(GatewayTunnel, ATunnelThatIsStillOpeningEndsAtTheGivenMomentToo) {
  proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    number_ = 1;
    wait_for([&] { return flag_.load(); });
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    (void)peer.at_end();
  });
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443"));
  wait_for([&] { return number_ == 1; });
  rig_.gateway().end_tunnels_of({ProxyId{1}}, runtime::boot_now() + seconds(1));
  flag_ = true;
  EXPECT_EQ(c.exactly(kUp.size()), kUp);
  EXPECT_TRUE(c.at_end());
}

TEST_F(GatewayTunnel, ADownloadThroughALostProxyIsCutAtTheGivenMoment) {  // C16
  proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    number_ = 1;
    (void)peer.at_end();
  });
  start();
  Peer c = client();
  c.send(get("/"));
  EXPECT_EQ(c.until("half").size(),
            std::string("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").size());
  rig_.gateway().end_tunnels(runtime::boot_now());
  EXPECT_TRUE(c.all().empty());
}

}  // namespace
}  // namespace proxypool::gateway
