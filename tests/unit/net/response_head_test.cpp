#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "net/http/head.hpp"
#include "unit/net/parse_in_pieces.hpp"

namespace proxypool::net {
namespace {

std::string parse_once(std::string_view bytes, const std::vector<std::size_t>& cuts,
                       ResponseContext context) {
  constexpr std::string_view kFramings[] = {"none", "length", "chunked", "close", "tunnel"};
  ResponseParser parser;
  parser.reset(context);
  for (const std::size_t cut : cuts) {
    const test::MovedCopy copy(bytes, cut);
    const ParseState state = parser.parse(copy.view());
    const auto& head = parser.head();
    if (state == ParseState::Refused) {
      EXPECT_EQ(parser.refusal().status, 502);
      return "refused: " + std::string(parser.refusal().reason);
    }
    if (state != ParseState::Done) continue;
    std::string out = std::to_string(head.status()) + " [" + std::string(head.reason()) + "] " +
                      std::string(kFramings[static_cast<std::size_t>(head.framing())]);
    if (head.framing() == Framing::Length) out += " " + std::to_string(head.content_length());
    out += head.keep_alive() ? " keep" : "";
    out += head.interim() ? " interim" : "";
    return out;
  }
  return "more";
}

std::string parse(std::string_view bytes, ResponseContext context = {}) {
  return test::same_in_all_pieces(
      bytes, [&](const auto& cuts) { return parse_once(bytes, cuts, context); });
}

std::string answer(std::string_view status, std::string_view fields = "") {
  return "HTTP/1.1 " + std::string(status) + "\r\n" + std::string(fields) + "\r\nbody";
}

// GW-6: framing by status, method and fields.
TEST(ResponseHead, KnowsHowTheBodyEnds) {
  EXPECT_EQ(parse(answer("200 OK", "Content-Length: 4\r\n")), "200 [OK] length 4 keep");
  EXPECT_EQ(parse(answer("200 ", "Transfer-Encoding: chunked\r\n")), "200 [] chunked keep");
  EXPECT_EQ(parse(answer("200 OK")), "200 [OK] close");
  EXPECT_EQ(parse(answer("204 OK", "Content-Length: 4\r\n")), "204 [OK] none keep");
  EXPECT_EQ(parse(answer("304 OK", "Content-Length: 4\r\n")), "304 [OK] none keep");
  EXPECT_EQ(parse(answer("200 OK", "Content-Length: 77\r\n"), {.method = Method::Head}),
            "200 [OK] none keep");
  EXPECT_EQ(parse(answer("200 OK", "Transfer-Encoding: chunked\r\n"), {.method = Method::Head}),
            "200 [OK] none keep");
  EXPECT_EQ(parse(answer("103 Early Hints", "Link: x\r\n")), "103 [Early Hints] none keep interim");
  EXPECT_EQ(parse(answer("100 Continue")), "100 [Continue] none keep interim");
  EXPECT_EQ(parse(answer("999 Odd", "Content-Length: 0\r\n")), "999 [Odd] length 0 keep");
}

TEST(ResponseHead, KnowsWhetherTheConnectionGoesOn) {
  EXPECT_EQ(parse(answer("200 OK", "Content-Length: 4\r\nConnection: close\r\n")),
            "200 [OK] length 4");
  EXPECT_EQ(parse("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\n"), "200 [OK] length 4");
  EXPECT_EQ(parse("HTTP/1.0 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\n"),
            "200 [OK] length 4 keep");
}

// GW-40: any 2xx opens the tunnel, whatever its framing fields say; the rest is a plain answer.
TEST(ResponseHead, UnderstandsAnAnswerToConnect) {
  const ResponseContext connect{.method = Method::Connect};
  EXPECT_EQ(parse(answer("200 Connection established"), connect),
            "200 [Connection established] tunnel keep");
  EXPECT_EQ(parse(answer("204 No Content"), connect), "204 [No Content] tunnel keep");
  EXPECT_EQ(parse(answer("200 OK", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), connect),
            "200 [OK] tunnel keep");
  EXPECT_EQ(parse(answer("407 No", "Content-Length: 6\r\n"), connect), "407 [No] length 6 keep");
  EXPECT_EQ(parse(answer("502 Bad"), connect), "502 [Bad] close");
}

// GW-7: 101 only when it was asked for, and only for a WebSocket.
TEST(ResponseHead, Takes101OnlyAsTheAnswerToAnUpgrade) {
  const ResponseContext asked{.method = Method::Get, .upgrade_requested = true};
  constexpr std::string_view kWebSocket = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  EXPECT_EQ(parse(answer("101 Switching", kWebSocket), asked), "101 [Switching] tunnel keep");
  constexpr std::string_view kRefused = "refused: upgrade that was not asked for";
  EXPECT_EQ(parse(answer("101 Switching", kWebSocket)), kRefused);
  EXPECT_EQ(parse(answer("101 Switching", "Connection: Upgrade\r\nUpgrade: h2c\r\n"), asked),
            kRefused);
  EXPECT_EQ(parse(answer("101 Switching", "Upgrade: websocket\r\n"), asked), kRefused);
  EXPECT_EQ(parse(answer("200 OK", "Content-Length: 2\r\n"), asked), "200 [OK] length 2 keep");
}

// GW-4: answers are parsed as strictly as requests.
TEST(ResponseHead, RefusesWhatIsNotHttp) {
  using namespace std::string_literals;
  const std::pair<std::string, std::string_view> cases[] = {
      {"HTTP/1.1 2000 OK\r\n\r\n", "invalid status line"},
      {"HTTP/1.1 20 OK\r\n\r\n", "invalid status line"},
      {"HTTP/1.1 099 OK\r\n\r\n", "invalid status line"},
      {"HTTP/1.1 200\r\n\r\n", "invalid status line"},
      {"HTTP/1.1  200 OK\r\n\r\n", "invalid status line"},
      {"HTTP/1.2 200 OK\r\n\r\n", "invalid status line"},
      {"HTTP/2 200 OK\r\n\r\n", "invalid status line"},
      {"ICY 200 OK\r\n\r\n", "invalid status line"},
      {"\r\nHTTP/1.1 200 OK\r\n\r\n", "invalid status line"},
      {"<html>", "invalid status line"},
      {"HTTP/1.1 200 OK\n\r\n", "invalid status line"},
      {"HTTP/1.1 200 O\0K\r\n\r\n"s, "invalid status line"},
      {"HTTP/1.1 200 O\rK\r\n\r\n", "invalid status line"},
      {"HTTP/1.1 200 " + std::string(20'000, 'x'), "status line over 16 KiB"},
      {answer("200 OK", "X-F: a\r\n b\r\n"), "folded field line"},
      {answer("200 OK", "X : a\r\n"), "white space in or behind a field name"},
      {answer("200 OK", "X: a\n"), "line ends with a bare LF"},
      {answer("200 OK", "Content-Length: 5\r\nContent-Length: 5\r\n"), "repeated Content-Length"},
      {answer("200 OK", "Content-Length: 5, 5\r\n"), "Content-Length is no decimal number"},
      {answer("200 OK", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
       "both Content-Length and Transfer-Encoding"},
      {answer("200 OK", "Transfer-Encoding: gzip, chunked\r\n"),
       "Transfer-Encoding is not chunked"},
      {answer("200 OK", "Connection: a b\r\n"), "Connection is no list of tokens"},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding in HTTP/1.0"},
      {answer("200 OK", "X: " + std::string(70'000, 'x') + "\r\n"),
       "header section larger than 64 KiB"},
  };
  for (const auto& [bytes, reason] : cases) {
    EXPECT_EQ(parse(bytes), "refused: " + std::string(reason)) << bytes.substr(0, 60);
  }
}

TEST(ResponseHead, KeepsBytesAboveAscii) {
  EXPECT_EQ(parse(answer("401 Non-Autoris\xe9", "X-V: \xe9\xff\r\nContent-Length: 0\r\n")),
            "401 [Non-Autoris\xe9] length 0 keep");
}

}  // namespace
}  // namespace proxypool::net
