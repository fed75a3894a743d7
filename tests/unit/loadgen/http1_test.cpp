#include "loadgen/http1.hpp"

#include <gtest/gtest.h>

namespace proxypool::loadgen {
namespace {

// Feeds `wire` in pieces of `step` bytes; the content, or nothing when it is malformed.
std::optional<std::string> content_of(Framing framing, std::string_view wire, std::size_t step) {
  BodyScanner scanner(framing);
  std::string content;
  while (!scanner.done() && !wire.empty()) {
    const auto taken = scanner.take(wire.substr(0, step));
    if (taken.malformed) return std::nullopt;
    content += taken.payload;
    wire.remove_prefix(taken.consumed);
  }
  if (!scanner.done()) return std::nullopt;
  return content;
}

constexpr Framing kChunked{Framing::Kind::Chunked, 0};

TEST(Http1Test, AHeadEndsAtItsEmptyLineWhereverThePiecesAreCut) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t cut = 0; cut < head.size(); ++cut) {
    EXPECT_FALSE(head_size(std::string_view(head).substr(0, cut))) << cut;
    EXPECT_EQ(head_size(head + "body", cut), head.size()) << cut;
  }
  EXPECT_EQ(head_size("HTTP/1.1 200 OK\n\n"), 17U);
}

TEST(Http1Test, ARequestKeepsItsPartsAndTheSpellingOfItsHeaders) {
  const auto request = parse_request("POST /a?b HTTP/1.0\r\nX-One:  two \r\nhost: h\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->target, "/a?b");
  EXPECT_EQ(request->minor, 0U);
  EXPECT_EQ(request->fields.all()[0].name, "X-One");
  EXPECT_EQ(request->fields.find("x-one"), "two");
  EXPECT_EQ(to_text(*request), "POST /a?b HTTP/1.0\r\nX-One: two\r\nhost: h\r\n\r\n");
}

TEST(Http1Test, WhatIsNoHttpIsRefused) {
  for (const auto* head : {"GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", " / HTTP/1.1\r\n\r\n",
                           "GET / HTTP/1.1\r\nno colon\r\n\r\n", "\x16\x03\x01\r\n\r\n"}) {
    EXPECT_FALSE(parse_request(head)) << head;
  }
  for (const auto* head : {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "HTTP/3 200\r\n\r\n",
                           "HTTP/1.1  200 OK\r\n\r\n", "garbage\r\n\r\n"}) {
    EXPECT_FALSE(parse_response(head)) << head;
  }
  EXPECT_TRUE(parse_response("HTTP/1.1 200\r\n\r\n"));
}

TEST(Http1Test, ChunksGiveTheirContentHoweverTheyArrive) {
  const std::string wire = "5\r\nhello\r\nA;x=y\r\n, chunked!\r\n0\r\nTrailer: t\r\n\r\n";
  for (std::size_t step = 1; step <= wire.size(); ++step) {
    EXPECT_EQ(content_of(kChunked, wire, step), "hello, chunked!") << step;
  }
}

TEST(Http1Test, BrokenChunksAreMalformedNotShort) {
  for (const auto* wire : {"x\r\n", "\r\nhello", "5\r\nhelloX\r\n0\r\n\r\n", "-1\r\n", "5 5\r\n",
                           "fffffffffffffffff\r\n"}) {
    EXPECT_FALSE(content_of(kChunked, wire, 100)) << wire;
  }
  BodyScanner scanner(kChunked);
  EXPECT_TRUE(scanner.take(std::string(5000, '1')).malformed);
}

TEST(Http1Test, ABodyOfKnownLengthLeavesWhatFollows) {
  BodyScanner scanner(Framing{Framing::Kind::Length, 4});
  const auto step = scanner.take("bodyNEXT");
  EXPECT_EQ(step.payload, "body");
  EXPECT_EQ(step.consumed, 4U);
  EXPECT_TRUE(scanner.done());
}

TEST(Http1Test, FramingFollowsMethodStatusAndHeaders) {
  using Kind = Framing::Kind;
  const auto kind = [](std::string_view head, std::string_view method) {
    return framing_of(*parse_response(head), method)->kind;
  };
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET"), Kind::Length);
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD"), Kind::None);
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\n\r\n", "CONNECT"), Kind::None);
  EXPECT_EQ(kind("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET"), Kind::None);
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\n\r\n", "GET"), Kind::UntilClose);
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", "GET"), Kind::Chunked);
  const auto request = parse_request("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(framing_of(*request)->kind, Kind::None);
  EXPECT_FALSE(framing_of(*parse_request("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n")));
}

TEST(Http1Test, ConnectionHeadersAndCredentialsStayBehind) {
  auto request = parse_request(
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
      "Proxy-Authorization: Basic x\r\nProxy-Connection: close\r\nX-Stays: 1\r\n\r\n");
  ASSERT_TRUE(request);
  request->fields.erase_hop_by_hop();
  EXPECT_EQ(to_text(*request), "GET / HTTP/1.1\r\nHost: h\r\nX-Stays: 1\r\n\r\n");
}

TEST(Http1Test, KeepAliveIsTheDefaultOfOneOneOnly) {
  EXPECT_TRUE(keeps_alive(*parse_request("GET / HTTP/1.1\r\n\r\n")));
  EXPECT_FALSE(keeps_alive(*parse_request("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n")));
  EXPECT_FALSE(keeps_alive(*parse_request("GET / HTTP/1.0\r\n\r\n")));
  EXPECT_TRUE(keeps_alive(*parse_request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")));
}

}  // namespace
}  // namespace proxypool::loadgen
