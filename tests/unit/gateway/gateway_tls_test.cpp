// Clients that speak TLS to the gateway (GW-2, GW-42).
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "gateway_fixture.hpp"
#include "net/tls.hpp"
#include "support/certificates.hpp"
#include "support/peer_tls.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::gateway {
namespace {

using testing::Authority;
using testing::PeerTlsOptions;
using testing::start_tls_client;

class GatewayTls : public GatewayTest {
 protected:
  GatewayTls() {
    const auto files = authority_.write(folder_.path(), "gateway", {"IP:127.0.0.1", "DNS:gw"});
    rig_.settings.tls = net::TlsServerOptions{files.certificate, files.key, {}};
  }
  Peer secure_client(const PeerTlsOptions& options = {}) {
    Peer c = client();
    EXPECT_TRUE(start_tls_client(c, authority_.certificate(), options));
    return c;
  }
  bool can_connect(const PeerTlsOptions& options) {
    Peer c = client();
    return start_tls_client(c, authority_.certificate(), options) && c.send(get("/")) &&
           !c.answer().empty();
  }
  double handshakes(const std::string& outcome) {
    return metric("proxypool_gateway_client_tls_handshakes_total{outcome=\"" + outcome + "\"}");
  }

  support::TempDir folder_;
  Authority authority_;
};

TEST_F(GatewayTls, ServesRequestsInEitherVersion) {
  proxy(answering("hello"));
  start();
  for (const int version : {12, 13}) {
    Peer c = secure_client({.version = version, .server_name = "gw"});
    EXPECT_EQ(tls_version(c), version == 12 ? "TLSv1.2" : "TLSv1.3");
    for (int i = 0; i < 3; ++i) {
      c.send(get("/"));
      EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    }
  }
  EXPECT_EQ(handshakes("full"), 2);
}

TEST_F(GatewayTls, AnswersPipelinedRequestsThatCameInOneRecord) {
  proxy(answering("hello"));
  start();
  Peer c = secure_client();
  c.send(get("/1") + get("/2") + get("/3"));
  for (int i = 0; i < 3; ++i) EXPECT_NE(c.answer().find("hello"), std::string::npos);
}

TEST_F(GatewayTls, SpeaksHttp11WhenItIsOfferedAndNothingElse) {
  proxy(answering("hello"));
  start();
  Peer c = secure_client({.alpn = "http/1.1"});
  EXPECT_EQ(tls_alpn(c), "http/1.1");
  Peer none = secure_client();
  EXPECT_EQ(tls_alpn(none), "");
  EXPECT_FALSE(can_connect({.alpn = "h2"}));
}

TEST_F(GatewayTls, ObeysTheLeastVersion) {
  rig_.settings.tls->version_min = net::TlsVersion::Tls13;
  proxy(answering("hello"));
  start();
  EXPECT_FALSE(can_connect({.version = 12}));
  EXPECT_TRUE(can_connect({.version = 13}));
  EXPECT_EQ(handshakes("protocol"), 1);
}

TEST_F(GatewayTls, ResumesSessions) {
  proxy(answering("hello"));
  start();
  for (const int version : {12, 13}) {
    Peer first = secure_client({.version = version});
    first.send(get("/"));
    first.answer();
    Peer second = secure_client({.version = version, .session = tls_session(first)});
    EXPECT_TRUE(tls_resumed(second)) << version;
    second.send(get("/"));
    EXPECT_NE(second.answer().find("hello"), std::string::npos);
  }
  EXPECT_EQ(handshakes("resumed"), 2);
}

TEST_F(GatewayTls, RefusesNewKeysInTheMiddleOfASession) {
  proxy(answering("hello"));
  start();
  Peer c = secure_client({.version = 12});
  c.send(get("/"));
  c.answer();
  EXPECT_FALSE(renegotiate(c));
}

TEST_F(GatewayTls, ClosesAPlainRequestAtOnceAndCountsIt) {
  start();
  for (const std::string& request : {get("/"), connect_to("origin.example:443")}) {
    Peer c = client();
    c.send(request);
    EXPECT_EQ(c.all(), "");
  }
  EXPECT_EQ(handshakes("plain_text"), 2);
}

TEST_F(GatewayTls, GivesAHandshakeItsTimeAndNoMore) {
  rig_.settings.tls_handshake = milliseconds(40);
  start();
  Peer silent = client();
  EXPECT_NE(silent.end_error(), -1);
  Peer half = client();
  half.send("\x16\x03\x01\x02");
  EXPECT_NE(half.end_error(), -1);
  wait_for([&] { return handshakes("timeout") == 2; });
}

TEST_F(GatewayTls, CountsClientsThatLeaveInTheMiddle) {
  start();
  Peer c = client();
  c.send("\x16\x03\x01\x02");
  c.close();
  wait_for([&] { return handshakes("lost") == 1; });
}

TEST_F(GatewayTls, CarriesTunnelsWhoseSidesEndOneAfterTheOther) {
  proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\nfirst");
    saw(peer.all());
    peer.send("last");
  });
  start();
  for (const int version : {12, 13}) {
    Peer c = secure_client({.version = version});
    c.send(connect_to("origin.example:443") + "early");
    EXPECT_EQ(c.until("first"), "HTTP/1.1 200 Connection established\r\n\r\nfirst");
    c.send(" late");
    c.shut_write();
    EXPECT_EQ(c.exactly(4), "last");
    EXPECT_TRUE(c.at_end()) << "with close_notify";
  }
  EXPECT_EQ(seen(), "early lateearly late");
}

// Megabytes both ways while the reader is slow: nothing is lost, nothing is kept beyond a buffer.
TEST_F(GatewayTls, CarriesLargeBodiesAtTheReadersPace) {
  std::string body(6'000'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i * 31 % 23);
  proxy([&](Peer& peer, int) {
    std::string request = peer.until("\r\n\r\n");
    std::string got = request.substr(request.find("\r\n\r\n") + 4);
    got += peer.exactly(body.size() - got.size());
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(got.size()) + "\r\n\r\n");
    peer.send(got);
    (void)peer.at_end();
  });
  start();
  Peer c = client();
  c.set_receive_buffer(100'000);
  ASSERT_TRUE(start_tls_client(c, authority_.certificate()));
  c.send("POST http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n");
  c.send(body);
  std::string answer = c.until("\r\n\r\n");
  std::string got = answer.substr(answer.find("\r\n\r\n") + 4);
  while (got.size() < body.size()) {
    const std::string more = c.exactly(std::min<std::size_t>(50'000, body.size() - got.size()));
    ASSERT_FALSE(more.empty());
    got += more;
  }
  EXPECT_TRUE(got == body);
}

// The end of the connection without close_notify is no end of a request.
TEST_F(GatewayTls, ARequestThatIsCutOffDoesNotReachTheProxyAsWhole) {
  proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    std::string rest;
    while (true) {
      const std::string more = peer.exactly(1);
      if (more.empty()) break;
      rest += more;
    }
    taken_ = peer.end_error() == ECONNRESET || rest.size() < 100 ? 1 : 2;
    flag_ = true;
  });
  start();
  Peer c = secure_client();
  c.send(
      "POST http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\n"
      "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  wait_for([&] { return proxies_.front().connections() == 1; });
  c.close();
  wait_for([&] { return flag_.load(); });
  EXPECT_EQ(taken_, 1U);
  wait_for([&] { return outcomes("aborted") == 1; });
}

TEST_F(GatewayTls, EndsAConnectionWithCloseNotify) {
  proxy(answering("hello"));
  start();
  Peer c = secure_client();
  c.send(get("/", "Connection: close\r\n"));
  c.answer();
  EXPECT_TRUE(c.at_end());
}

// Half a million handshakes would not show it better: while certificates change, requests on old
// and new connections succeed, and new connections get the newest one.
TEST_F(GatewayTls, ChangesItsCertificateWithoutLosingARequest) {
  proxy(answering("hello"));
  rig_.settings.threads = 2;
  start();
  Peer old = secure_client();
  const std::string first = tls_certificate(old);
  std::atomic<bool> done{false};
  std::atomic<int> failures{0};
  std::atomic<int> served{0};
  std::vector<std::thread> load;
  for (int i = 0; i < 3; ++i) {
    load.emplace_back([&] {
      while (!done) {
        Peer c = client();
        const bool up = start_tls_client(c, authority_.certificate()) && c.send(get("/")) &&
                        c.answer().find("hello") != std::string::npos;
        ++(up ? served : failures);
      }
    });
  }
  std::string newest;
  for (int i = 0; i < 20; ++i) {
    const auto files = authority_.write(folder_.path(), "next", {"IP:127.0.0.1"});
    auto context = net::TlsContext::server({files.certificate, files.key, {}});
    ASSERT_TRUE(context) << context.error().message;
    rig_.gateway().use_certificate(*context);
    const int before = served;
    wait_for([&] { return served >= before + 5; });
  }
  done = true;
  for (auto& thread : load) thread.join();
  EXPECT_EQ(failures, 0);
  Peer fresh = secure_client();
  EXPECT_NE(tls_certificate(fresh), first);
  EXPECT_EQ(tls_certificate(old), first);
  old.send(get("/"));
  EXPECT_NE(old.answer().find("hello"), std::string::npos);
}

TEST_F(GatewayTls, DoesNotStartWithACertificateThatIsNone) {
  testing::write_file(rig_.settings.tls->key_file, authority_.issue({"DNS:other"}).key);
  const auto started = rig_.start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("gateway.key"), std::string::npos)
      << started.error().message;
}

}  // namespace
}  // namespace proxypool::gateway
