// Proxies that are spoken to over TLS (GW-40, GW-35, GW-42).
#include <gtest/gtest.h>

#include <string>

#include "gateway_fixture.hpp"
#include "support/certificates.hpp"
#include "support/peer_tls.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::gateway {
namespace {

using testing::Authority;
using testing::over_tls;
using testing::PeerTlsOptions;

class GatewayHttpsProxy : public GatewayTest {
 protected:
  GatewayHttpsProxy() {
    rig_.settings.proxy_authorities = authority_.write_authority(folder_.path());
  }

  FakeProxy& secure_proxy(FakeProxy::Script script, const std::string& name = "IP:127.0.0.1",
                          const std::string& host = "127.0.0.1",
                          const PeerTlsOptions& options = {}) {
    proxies_.emplace_back(over_tls(authority_.issue({name}), std::move(script), options));
    rig_.add({.host = host,
              .port = proxies_.back().port(),
              .user = "vuser",
              .password = "vpass",
              .tls = true});
    return proxies_.back();
  }
  std::string code_of(const std::string& request) {
    Peer c = client();
    c.send(request);
    const std::string answer = c.answer();
    const auto at = answer.find("\"code\":\"");
    if (at == std::string::npos) return answer.substr(0, answer.find("\r\n"));
    return answer.substr(at + 8, answer.find('"', at + 8) - at - 8);
  }
  double handshakes(const std::string& outcome) {
    return metric("proxypool_gateway_upstream_tls_handshakes_total{outcome=\"" + outcome + "\"}");
  }
  const std::string post_ =
      "POST http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\nContent-Length: "
      "2\r\n\r\nhi";

  support::TempDir folder_;
  Authority authority_;
};

TEST_F(GatewayHttpsProxy, GetsTheRequestInsideTls) {
  secure_proxy([&](Peer& peer, int) {
    for (;;) {
      const std::string head = peer.until("\r\n\r\n");
      if (head.empty()) return;
      saw(head + "[" + tls_version(peer) + tls_server_name(peer) + "]");
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  start();
  EXPECT_EQ(code_of(get("/page")), "HTTP/1.1 200 OK");
  EXPECT_EQ(seen(),
            "GET http://origin.example/page HTTP/1.1\r\nHost: origin.example\r\n"
            "Proxy-Authorization: Basic dnVzZXI6dnBhc3M=\r\n\r\n[TLSv1.3]");
  EXPECT_EQ(handshakes("full"), 1);
}

TEST_F(GatewayHttpsProxy, IsAskedForByItsNameAndMustBearIt) {
  secure_proxy(
      [&](Peer& peer, int) {
        peer.until("\r\n\r\n");
        saw(tls_server_name(peer));
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        (void)peer.at_end();
      },
      "DNS:vendor.example", "vendor.example");
  rig_.look_up = [](const std::string&, Deadline) -> Result<std::vector<IpAddress>> {
    return std::vector{IpAddress::v4(0x7f000001)};
  };
  start();
  EXPECT_EQ(code_of(get("/")), "HTTP/1.1 200 OK");
  EXPECT_EQ(seen(), "vendor.example");
}

TEST_F(GatewayHttpsProxy, WithAnotherNameIsAProxyThatCannotBeReached) {
  secure_proxy(answering("ok"), "DNS:other.example");
  start();
  EXPECT_EQ(code_of(get("/")), "proxy_connect_failed");
  EXPECT_EQ(code_of(connect_to("origin.example:443")), "proxy_connect_failed");
  EXPECT_EQ(handshakes("certificate"), 2);
  EXPECT_EQ(metric("proxypool_gateway_attempt_failures_total{phase=\"proxy_handshake\"}"), 2);
}

TEST_F(GatewayHttpsProxy, OfAnUnknownAuthorityIsAProxyThatCannotBeReached) {
  secure_proxy(answering("ok"));
  rig_.settings.proxy_authorities = Authority().write_authority(folder_.path());
  start();
  EXPECT_EQ(code_of(get("/")), "proxy_connect_failed");
  EXPECT_EQ(handshakes("certificate"), 1);
}

TEST_F(GatewayHttpsProxy, ThatSpeaksPlainHttpIsAProxyThatCannotBeReached) {
  proxies_.emplace_back([](Peer& peer, int) {
    peer.exactly(20);
    peer.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  });
  rig_.add({.port = proxies_.back().port(), .tls = true});
  start();
  EXPECT_EQ(code_of(get("/")), "proxy_connect_failed");
  EXPECT_EQ(handshakes("protocol"), 1);
}

TEST_F(GatewayHttpsProxy, ThatNeverAnswersTheHandshakeTimesOut) {
  rig_.settings.tls_handshake = milliseconds(40);
  proxies_.emplace_back([](Peer& peer, int) { (void)peer.all(); });
  rig_.add({.port = proxies_.back().port(), .tls = true});
  start();
  EXPECT_EQ(code_of(get("/")), "tls_timeout");
  EXPECT_EQ(code_of(post_), "tls_timeout");
  EXPECT_EQ(code_of(connect_to("origin.example:443")), "tls_timeout");
  EXPECT_EQ(handshakes("timeout"), 3);
}

TEST_F(GatewayHttpsProxy, ThatIsNotThereIsRefusedAtTheDoor) {
  rig_.add({.port = closed_port(), .tls = true});
  start();
  EXPECT_EQ(code_of(get("/")), "proxy_connect_failed");
  EXPECT_EQ(metric("proxypool_gateway_attempt_failures_total{phase=\"dial\"}"), 1);
}

// A handshake that fails has sent nothing of the request.
TEST_F(GatewayHttpsProxy, AFailedHandshakeIsRepeatedElsewhere) {
  secure_proxy(answering("ok"), "DNS:other.example");
  secure_proxy([](Peer& peer, int) {
    for (;;) {
      const std::string head = peer.until("\r\n\r\n");
      if (head.empty()) return;
      if (head.starts_with("POST") && head.size() < head.find("\r\n\r\n") + 6) peer.until("hi");
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  rig_.snapshot.policy.unsafe_before_send = true;
  start();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(code_of(get("/")), "HTTP/1.1 200 OK");
    EXPECT_EQ(code_of(post_), "HTTP/1.1 200 OK");
  }
  EXPECT_GT(metric("proxypool_gateway_retries_total"), 0);
}

TEST_F(GatewayHttpsProxy, APostIsNotRepeatedUnlessSettingsSaySo) {
  for (int i = 0; i < 2; ++i) secure_proxy(answering("ok"), "DNS:other.example");
  start();
  EXPECT_EQ(code_of(post_), "proxy_connect_failed");
  EXPECT_EQ(metric("proxypool_gateway_retries_total"), 0);
}

TEST_F(GatewayHttpsProxy, KeepsItsConnectionForTheNextRequest) {
  FakeProxy& p = secure_proxy(answering("ok"));
  start();
  Peer c = client();
  for (int i = 0; i < 5; ++i) {
    c.send(get("/"));
    EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  }
  EXPECT_EQ(p.connections(), 1);
  EXPECT_EQ(metric("proxypool_gateway_upstream_reuses_total"), 4);
}

TEST_F(GatewayHttpsProxy, ThatEndsAnIdleConnectionLosesIt) {
  secure_proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    peer.shut_write();
    (void)peer.at_end();
  });
  start();
  EXPECT_EQ(code_of(get("/")), "HTTP/1.1 200 OK");
  wait_for([&] { return metric("proxypool_gateway_idle_upstreams") == 0; });
  EXPECT_EQ(code_of(get("/")), "HTTP/1.1 200 OK");
}

TEST_F(GatewayHttpsProxy, ResumesItsSessionOnTheNextConnection) {
  for (const int version : {12, 13}) {
    secure_proxy(
        [&](Peer& peer, int) {
          if (tls_resumed(peer)) ++number_;
          peer.until("\r\n\r\n");
          peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
          (void)peer.at_end();
        },
        "IP:127.0.0.1", "127.0.0.1", {.version = version});
    rig_.settings.reuse = false;
    start();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(code_of(get("/")), "HTTP/1.1 200 OK");
    EXPECT_EQ(number_.exchange(0), 3) << version;
    rig_.stop();
    rig_.snapshot.proxies.clear();
  }
}

TEST_F(GatewayHttpsProxy, CarriesTunnels) {
  secure_proxy([&](Peer& peer, int) {
    saw(peer.until("\r\n\r\n").substr(0, 30));
    peer.send("HTTP/1.1 200 OK\r\n\r\nearly");
    saw(peer.all());
    peer.send("last");
  });
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443"));
  EXPECT_EQ(c.until("early"), "HTTP/1.1 200 Connection established\r\n\r\nearly");
  c.send("hello");
  c.shut_write();
  EXPECT_EQ(c.all(), "last");
  EXPECT_EQ(seen(), "CONNECT origin.example:443 HTThello");
}

TEST_F(GatewayHttpsProxy, CarriesLargeBodiesBothWays) {
  const std::string body(5'000'000, 'x');
  secure_proxy([&](Peer& peer, int) {
    const std::string request = peer.until("\r\n\r\n");
    const std::size_t there = request.size() - request.find("\r\n\r\n") - 4;
    taken_ = there + peer.exactly(body.size() - there).size();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
    peer.send(body);
    (void)peer.at_end();
  });
  start();
  Peer c = client();
  c.set_receive_buffer(100'000);
  c.send("POST http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::string answer = c.answer();
  EXPECT_TRUE(answer.substr(answer.find("\r\n\r\n") + 4) == body);
  EXPECT_EQ(taken_, body.size());
}

// A body that ends with the connection is whole only when close_notify says so.
TEST_F(GatewayHttpsProxy, ABodyWithoutCloseNotifyIsCutOff) {
  secure_proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\nall of it");
    if (flag_) peer.shut_write();  // close_notify
    peer.close();
  });
  start();
  Peer cut = client();
  cut.send(get("/"));
  EXPECT_EQ(cut.until("all of it").substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_EQ(cut.end_error(), ECONNRESET);
  EXPECT_EQ(outcomes("truncated"), 1);
  flag_ = true;
  Peer whole = client();
  whole.send(get("/"));
  whole.until("all of it");
  EXPECT_TRUE(whole.at_end());
}

// In a tunnel what came before a bare end still arrives, also at a client that reads it later.
TEST_F(GatewayHttpsProxy, ATunnelThatEndsWithoutCloseNotifyLosesNothing) {
  const std::string large(200'000, 'y');
  secure_proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\n" + large);
    peer.close();
  });
  start();
  Peer c = client();
  c.set_receive_buffer(20'000);
  c.send(connect_to("origin.example:443"));
  wait_for(
      [&] { return outcomes("tunnel") == 1 && metric("proxypool_gateway_active_tunnels") == 0; });
  const std::string got = c.all();
  EXPECT_EQ(got.size(), large.size() + 39);
}

TEST_F(GatewayHttpsProxy, ServesClientsThatSpeakTlsThemselves) {
  const auto files = authority_.write(folder_.path(), "gateway", {"IP:127.0.0.1"});
  rig_.settings.tls = net::TlsServerOptions{files.certificate, files.key, {}};
  secure_proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (true) {
      const std::string echo = peer.exactly(1);
      if (echo.empty()) return;
      peer.send(echo);
    }
  });
  start();
  Peer c = client();
  ASSERT_TRUE(testing::start_tls_client(c, authority_.certificate()));
  c.send(connect_to("origin.example:443"));
  c.until("\r\n\r\n");
  c.send("round trip");
  EXPECT_EQ(c.exactly(10), "round trip");
}

}  // namespace
}  // namespace proxypool::gateway
