// Connections and requests that come through proxies of our own (GW-3, GW-5).
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "gateway/ingress/forwarded.hpp"
#include "gateway_fixture.hpp"
#include "support/certificates.hpp"
#include "support/peer_tls.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::gateway {
namespace {

using namespace std::string_literals;

const std::string kFrom7 = "PROXY TCP4 198.51.100.7 203.0.113.1 1234 443\r\n";
const std::string kFrom8 = "PROXY TCP4 198.51.100.8 203.0.113.1 1234 443\r\n";
// Version 2, LOCAL, with an address block that names 198.51.100.7 (B041).
const std::string kLocal =
    "\r\n\r\n\0\r\nQUIT\n\x20\x11\x00\x0c\xc6\x33\x64\x07\xcb\x00\x71\x01\x04\xd2\x01\xbb"s;

Cidr range(std::string_view text) {
  return *Cidr::parse(text);
}

class GatewayProxyHeader : public GatewayTest {
 protected:
  GatewayProxyHeader() {
    rig_.settings.trusted_proxies = {range("127.0.0.1/32")};
    rig_.settings.allow_cidrs = {range("198.51.100.7/32")};
    proxy([&](Peer& peer, int) {
      for (;;) {
        const std::string head = peer.until("\r\n\r\n");
        if (head.empty()) return;
        saw(head);
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }
    });
  }
  std::string status_of(const std::string& bytes) {
    Peer c = client();
    c.send(bytes);
    const std::string answer = c.answer();
    return answer.substr(0, answer.find("\r\n"));
  }
  double headers(const std::string& outcome) {
    return metric("proxypool_gateway_proxy_headers_total{outcome=\"" + outcome + "\"}");
  }
};

TEST_F(GatewayProxyHeader, NamesTheClientWhoseAddressCounts) {
  rig_.settings.proxy_header = true;
  start();
  EXPECT_EQ(status_of(kFrom7 + get("/")), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of(kFrom8 + get("/")), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(seen().find("PROXY"), std::string::npos);
  EXPECT_EQ(headers("taken"), 2);
}

TEST_F(GatewayProxyHeader, ALocalHeaderLeavesThePeersOwnAddress) {
  rig_.settings.proxy_header = true;
  start();
  EXPECT_EQ(status_of(kLocal + get("/")), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(headers("local"), 1);
}

TEST_F(GatewayProxyHeader, ATrustedPeerThatSendsNoneIsClosed) {
  rig_.settings.proxy_header = true;
  start();
  Peer c = client();
  c.send(get("/"));
  EXPECT_EQ(c.all(), "");
  EXPECT_EQ(headers("malformed"), 1);
  EXPECT_EQ(seen(), "");
}

TEST_F(GatewayProxyHeader, MayComeByteByByteAndHasADeadline) {
  rig_.settings.proxy_header = true;
  rig_.settings.head = milliseconds(300);
  start();
  Peer c = client();
  for (const char byte : kFrom7 + get("/")) c.send({&byte, 1});
  EXPECT_EQ(c.answer().substr(0, 15), "HTTP/1.1 200 OK");
  Peer slow = client();
  slow.send(kFrom7.substr(0, 20));
  EXPECT_EQ(slow.all(), "");
  wait_for([&] { return headers("missing") == 1; });
}

// B043: nobody but the trusted proxies may send one; for the others it is a bad request.
TEST_F(GatewayProxyHeader, OfAnUntrustedPeerIsABadRequest) {
  rig_.settings.proxy_header = true;
  rig_.settings.trusted_proxies = {range("192.0.2.1/32")};
  rig_.settings.allow_cidrs.clear();
  start();
  for (const std::string& header : {kFrom7, kLocal}) {
    Peer c = client();
    c.send(header + get("/"));
    EXPECT_EQ(c.answer().substr(0, 12), "HTTP/1.1 400");
    EXPECT_TRUE(c.at_end());
  }
  EXPECT_EQ(status_of(get("/")), "HTTP/1.1 200 OK") << "it may come directly";
}

TEST_F(GatewayProxyHeader, IsNotGuessedWhereItIsOff) {
  rig_.settings.allow_cidrs.clear();
  start();
  EXPECT_EQ(status_of(kFrom7 + get("/")), "HTTP/1.1 400 Bad Request");
}

TEST_F(GatewayProxyHeader, ComesBeforeTlsAlsoInTheSameSegment) {
  support::TempDir folder;
  const testing::Authority authority;
  const auto files = authority.write(folder.path(), "gateway", {"IP:127.0.0.1"});
  rig_.settings.tls = net::TlsServerOptions{files.certificate, files.key, {}};
  rig_.settings.proxy_header = true;
  start();
  for (const int flags : {0, int{MSG_MORE}}) {
    for (const std::string& header : {kFrom7, kFrom8}) {
      Peer c = client();
      ASSERT_GT(::send(c.fd(), header.data(), header.size(), flags), 0);
      ASSERT_TRUE(testing::start_tls_client(c, authority.certificate()));
      c.send(get("/"));
      EXPECT_EQ(c.answer().substr(9, 3), header == kFrom7 ? "200" : "403");
    }
  }
}

TEST_F(GatewayProxyHeader, ForwardedForIsBelievedFromTrustedPeersAndGoesNoFurther) {
  start();
  EXPECT_EQ(status_of(get("/", "X-Forwarded-For: 198.51.100.7\r\n")), "HTTP/1.1 200 OK");
  EXPECT_EQ(seen().find("198.51.100.7"), std::string::npos);
  EXPECT_EQ(status_of(get("/")), "HTTP/1.1 403 Forbidden");
  // What the client itself wrote stands left of what our proxy saw.
  EXPECT_EQ(status_of(get("/", "X-Forwarded-For: 198.51.100.7, 198.51.100.8\r\n")),
            "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(status_of(get("/", "X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-For: 127.0.0.1\r\n")),
            "HTTP/1.1 200 OK");
}

TEST_F(GatewayProxyHeader, ForwardedForOfOthersIsNotBelieved) {
  rig_.settings.trusted_proxies = {range("192.0.2.1/32")};
  start();
  EXPECT_EQ(status_of(get("/", "X-Forwarded-For: 198.51.100.7\r\n")), "HTTP/1.1 403 Forbidden");
  rig_.stop();
  rig_.settings.allow_cidrs.clear();
  start();
  EXPECT_EQ(status_of(get("/", "X-Forwarded-For: 198.51.100.7\r\n")), "HTTP/1.1 200 OK");
  EXPECT_NE(seen().find("X-Forwarded-For: 198.51.100.7\r\n"), std::string::npos)
      << "it is a field like any other";
}

// A balancer that passes bytes on cannot vouch for what the client says in them.
TEST_F(GatewayProxyHeader, ForwardedForIsTheWordOfWhomTheHeaderNames) {
  rig_.settings.proxy_header = true;
  start();
  EXPECT_EQ(status_of(kFrom8 + get("/", "X-Forwarded-For: 198.51.100.7\r\n")),
            "HTTP/1.1 403 Forbidden");
}

std::string caller(const std::string& fields) {
  net::RequestParser parser;
  const std::string text = get("/", fields);
  EXPECT_EQ(parser.parse(text), net::ParseState::Done);
  return caller_of(parser.head(), *IpAddress::parse("10.0.0.1"),
                   {range("10.0.0.0/8"), range("fd00::/8")})
      .str();
}

TEST(CallerOf, IsTheRightmostAddressThatIsNoneOfOurs) {
  EXPECT_EQ(caller(""), "10.0.0.1");
  EXPECT_EQ(caller("X-Forwarded-For: 198.51.100.7\r\n"), "198.51.100.7");
  EXPECT_EQ(caller("X-Forwarded-For: 1.1.1.1, 198.51.100.7 , 10.0.0.2\r\n"), "198.51.100.7");
  EXPECT_EQ(caller("x-forwarded-for: 1.1.1.1\r\nX-Forwarded-For: 198.51.100.7,fd00::1\r\n"),
            "198.51.100.7");
  EXPECT_EQ(caller("X-Forwarded-For: 198.51.100.7:4000\r\n"), "198.51.100.7");
  EXPECT_EQ(caller("X-Forwarded-For: [2001:db8::7]:4000\r\n"), "2001:db8::7");
  EXPECT_EQ(caller("X-Forwarded-For: 2001:db8::7\r\n"), "2001:db8::7");
}

TEST(CallerOf, EndsAtWhatIsNoAddress) {
  EXPECT_EQ(caller("X-Forwarded-For: 198.51.100.7, unknown\r\n"), "10.0.0.1");
  EXPECT_EQ(caller("X-Forwarded-For: 198.51.100.7, unknown, 10.0.0.3\r\n"), "10.0.0.3");
  EXPECT_EQ(caller("X-Forwarded-For: 198.51.100.7,\r\n"), "10.0.0.1");
  EXPECT_EQ(caller("X-Forwarded-For: [2001:db8::7\r\n"), "10.0.0.1");
}

}  // namespace
}  // namespace proxypool::gateway
