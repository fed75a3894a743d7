#include "net/http/rewrite.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace proxypool::net {
namespace {

std::string request(std::string_view bytes, const RequestRewrite& how = {}) {
  RequestParser parser;
  EXPECT_EQ(parser.parse(bytes), ParseState::Done) << parser.refusal().reason;
  std::string out(
      kRewriteExtraBytes + bytes.size() + how.via.size() + how.proxy_authorization.size(), '\0');
  out.resize(write_request(parser.head(), how, out));
  for (std::size_t size = 0; size < out.size(); ++size) {
    std::string small(size, '\0');
    EXPECT_EQ(write_request(parser.head(), how, small), 0U);
  }
  return out;
}

std::string response(std::string_view bytes, const ResponseRewrite& how = {},
                     ResponseContext context = {}) {
  ResponseParser parser;
  parser.reset(context);
  EXPECT_EQ(parser.parse(bytes), ParseState::Done) << parser.refusal().reason;
  std::string out(kRewriteExtraBytes + bytes.size() + how.via.size(), '\0');
  out.resize(write_response(parser.head(), how, out));
  return out;
}

// GW-5: order, case, repetitions and blanks as sent; Host in place.
TEST(WriteRequest, KeepsFieldsAsTheyWereAndReplacesHost) {
  EXPECT_EQ(request("GET http://Origin.example:8080/a?b HTTP/1.1\r\nx-B:1\r\nhOST:  other\r\n"
                    "X-b:\t2 \r\nCookie: \xe4\r\n\r\n"),
            "GET http://Origin.example:8080/a?b HTTP/1.1\r\nx-B:1\r\nhOST: Origin.example:8080\r\n"
            "X-b:\t2 \r\nCookie: \xe4\r\n\r\n");
}

// GW-5, GW-40: what belongs to this hop stays here; the vendor's credential takes the place.
TEST(WriteRequest, StripsHopByHopFieldsAndAddsTheCredential) {
  constexpr std::array<std::string_view, 2> kStrip = {"x-proxy-session", "X-Forwarded-For"};
  EXPECT_EQ(request("GET http://h/ HTTP/1.1\r\nProxy-Authorization: Basic Y2xpZW50\r\nHost: h\r\n"
                    "Connection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nA: 1\r\n"
                    "Proxy-Connection: keep-alive\r\nTE: gzip\r\nUpgrade: h2c\r\n"
                    "X-Proxy-Session: s\r\nx-forwarded-for: 1.2.3.4\r\nB: 2\r\n"
                    "Proxy-Authenticate: x\r\n\r\n",
                    {.proxy_authorization = "Basic dmVuZG9y", .via = "1.1 gw", .strip = kStrip}),
            "GET http://h/ HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nVia: 1.1 gw\r\n"
            "Proxy-Authorization: Basic dmVuZG9y\r\n\r\n");
}

TEST(WriteRequest, WritesTheTargetForItsReader) {
  const auto line = [](std::string_view start, bool to_proxy) {
    const auto text =
        request(std::string(start) + " HTTP/1.1\r\nHost: x\r\n\r\n", {.to_proxy = to_proxy});
    return text.substr(0, text.find(" HTTP/1.1\r\n"));
  };
  EXPECT_EQ(line("GET http://h", true), "GET http://h/");
  EXPECT_EQ(line("GET http://h?q=1", true), "GET http://h/?q=1");
  EXPECT_EQ(line("GET http://h:/x", true), "GET http://h/x");
  EXPECT_EQ(line("GET ws://h:1/x", true), "GET http://h:1/x");
  EXPECT_EQ(line("GET http://h", false), "GET /");
  EXPECT_EQ(line("GET http://h?q=1", false), "GET /?q=1");
  EXPECT_EQ(line("GET http://h/x?y", false), "GET /x?y");
  EXPECT_EQ(line("OPTIONS http://h", false), "OPTIONS *");
  EXPECT_EQ(line("OPTIONS http://h", true), "OPTIONS http://h");
  EXPECT_EQ(line("OPTIONS http://h?q", false), "OPTIONS /?q");
  EXPECT_EQ(line("OPTIONS http://h/", false), "OPTIONS /");
  EXPECT_EQ(line("CONNECT [::1]:443", true), "CONNECT [::1]:443");
}

TEST(WriteRequest, ReplacesHostOnConnectToo) {
  EXPECT_EQ(request("CONNECT h.example:443 HTTP/1.1\r\nHost: other\r\nUser-Agent: u\r\n\r\n"),
            "CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\nUser-Agent: u\r\n\r\n");
}

TEST(WriteRequest, SpeaksHttp11ForAnHttp10Client) {
  EXPECT_EQ(request("GET http://h/ HTTP/1.0\r\nExpect: 100-continue\r\nA: 1\r\n\r\n"),
            "GET http://h/ HTTP/1.1\r\nHost: h\r\nA: 1\r\n\r\n");
  EXPECT_EQ(request("GET http://h/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n"),
            "GET http://h/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n");
}

TEST(WriteRequest, AsksAnewForTrailersAndWebSocket) {
  constexpr std::string_view kBytes =
      "GET ws://h/ HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, TE\r\nUpgrade: websocket\r\n"
      "TE: trailers\r\nSec-WebSocket-Version: 13\r\n\r\n";
  EXPECT_EQ(request(kBytes, {.upgrade = true}),
            "GET http://h/ HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Version: 13\r\n"
            "Upgrade: websocket\r\nTE: trailers\r\nConnection: Upgrade, TE\r\n\r\n");
  EXPECT_EQ(request(kBytes),
            "GET http://h/ HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Version: 13\r\n"
            "TE: trailers\r\nConnection: TE\r\n\r\n");
}

TEST(WriteRequest, CountsMaxForwardsDown) {
  EXPECT_EQ(request("TRACE http://h/ HTTP/1.1\r\nHost: h\r\nMAX-Forwards:10\r\nA: 1\r\n\r\n"),
            "TRACE http://h/ HTTP/1.1\r\nHost: h\r\nMAX-Forwards: 9\r\nA: 1\r\n\r\n");
  EXPECT_EQ(request("GET http://h/ HTTP/1.1\r\nHost: h\r\nMax-Forwards: 10\r\n\r\n"),
            "GET http://h/ HTTP/1.1\r\nHost: h\r\nMax-Forwards: 10\r\n\r\n");
}

TEST(WriteResponse, StripsHopByHopFieldsAndKeepsTheRest) {
  EXPECT_EQ(response("HTTP/1.0 401 Non-Autoris\xe9\r\nConnection: X-Up\r\nX-Up: 1\r\n"
                     "Keep-Alive: timeout=9\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\n"
                     "WWW-Authenticate: Basic\r\nProxy-Authenticate: Basic\r\n"
                     "Proxy-Authentication-Info: x\r\nContent-Length: 2\r\n\r\nok"),
            "HTTP/1.1 401 Non-Autoris\xe9\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\n"
            "WWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\n");
}

TEST(WriteResponse, TellsTheClientWhetherTheConnectionGoesOn) {
  constexpr std::string_view kBytes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
  EXPECT_EQ(response(kBytes, {.via = "1.1 gw", .close = true}),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nVia: 1.1 gw\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(response(kBytes, {.http_1_0 = true}),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n");
}

// GW-6: a client of HTTP/1.0 never gets Transfer-Encoding.
TEST(WriteResponse, HidesChunkingFromAnHttp10Client) {
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\nA: 1\r\n\r\n",
                     {.close = true, .http_1_0 = true}),
            "HTTP/1.1 200 OK\r\nA: 1\r\nConnection: close\r\n\r\n");
}

TEST(WriteResponse, AnnouncesNoBodyWhereNoneCanBe) {
  EXPECT_EQ(response("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"), "HTTP/1.1 204 No\r\n\r\n");
  EXPECT_EQ(response("HTTP/1.1 103 Early\r\nLink: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                     {.close = true}),
            "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n");
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n", {}, {.method = Method::Head}),
            "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
  EXPECT_EQ(response("HTTP/1.1 304 No\r\nContent-Length: 77\r\n\r\n"),
            "HTTP/1.1 304 No\r\nContent-Length: 77\r\n\r\n");
}

TEST(WriteResponse, PassesAnUpgradeOn) {
  EXPECT_EQ(response("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n"
                     "Sec-WebSocket-Accept: x\r\n\r\n",
                     {.close = true}, {.method = Method::Get, .upgrade_requested = true}),
            "HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: x\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\n\r\n");
}

}  // namespace
}  // namespace proxypool::net
