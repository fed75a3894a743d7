#include "net/http/chunked.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/limits.hpp"
#include "unit/net/parse_in_pieces.hpp"

namespace proxypool::net {
namespace {

// Plays the relay: shows what is held back in front of the next piece, passes on what is consumed.
struct Relay {
  ChunkedDecoder decoder;
  std::string held;
  std::string passed;
  std::string payload;
  ParseState state = ParseState::NeedMore;

  void feed(std::string_view piece) {
    held += piece;
    while (state == ParseState::NeedMore) {
      const test::MovedCopy copy(held, held.size());
      const auto step = decoder.next(copy.view());
      state = step.state;
      passed += copy.view().substr(0, step.consumed);
      payload += step.payload;
      held.erase(0, step.consumed);
      if (step.consumed == 0) return;
    }
  }
};

// "payload|rest" when the body ended, else "status reason|passed on|payload".
std::string decode_once(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  Relay relay;
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    relay.feed(bytes.substr(from, cut - from));
    from = cut;
    if (relay.state == ParseState::Refused) break;
  }
  if (relay.state == ParseState::Refused) {
    const auto& why = relay.decoder.refusal();
    return std::to_string(why.status) + " " + std::string(why.reason) + "|" + relay.payload;
  }
  if (relay.state == ParseState::NeedMore) return "more|" + relay.payload;
  EXPECT_EQ(relay.decoder.payload_bytes(), relay.payload.size());
  return relay.payload + "|" + relay.held;
}

std::string decode(std::string_view bytes) {
  return test::same_in_all_pieces(bytes,
                                  [&](const auto& cuts) { return decode_once(bytes, cuts); });
}

TEST(Chunked, GivesThePayloadAndStopsAtTheEnd) {
  EXPECT_EQ(decode("5\r\nhello\r\n0\r\n\r\nNEXT"), "hello|NEXT");
  EXPECT_EQ(decode("0\r\n\r\n"), "|");
  EXPECT_EQ(decode("0000000000000003\r\nabc\r\n000\r\n\r\n"), "abc|");
  EXPECT_EQ(decode("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"), "01234567890123456789|");
  EXPECT_EQ(decode("1\r\nx\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\nrest"), "x|rest");
  EXPECT_EQ(decode("5\r\nhel"), "more|hel");
}

TEST(Chunked, AcceptsExtensionsOfTheGrammar) {
  EXPECT_EQ(decode("1;a\r\nx\r\n0\r\n\r\n"), "x|");
  EXPECT_EQ(decode("1;a=b;c=\"d;\\\"e\"\r\nx\r\n0;z\r\n\r\n"), "x|");
  EXPECT_EQ(decode("1 ; a = b\r\nx\r\n0\r\n\r\n"), "x|");
}

// GW-4: no byte of the bad element goes on.
TEST(Chunked, RefusesABadElementAndPassesNothingOfIt) {
  using namespace std::string_literals;
  const std::pair<std::string, std::string_view> cases[] = {
      {"1junk\r\nZ\r\n0\r\n\r\n", "400 invalid chunk size|"},
      {"g\r\n", "400 invalid chunk size|"},
      {"+3\r\nabc\r\n", "400 invalid chunk size|"},
      {"0x3\r\nabc\r\n", "400 invalid chunk size|"},
      {"\r\n", "400 invalid chunk size|"},
      {" 3\r\n", "400 invalid chunk size|"},
      {"3 \r\nabc\r\n", "400 invalid chunk extension|"},
      {"3\n", "400 invalid chunk size|"},
      {"2;a\nxx", "400 line ends with a bare LF|"},
      {"2;a\0\r\nxx"s, "400 control in a chunk line|"},
      {"2;a\rxx", "400 bare CR|"},
      {"2\rxx", "400 bare CR|"},
      {"2;\r\nxx", "400 invalid chunk extension|"},
      {"2;@\r\nxx", "400 invalid chunk extension|"},
      {"2;a=\r\nxx", "400 invalid chunk extension|"},
      {"2;a=\"b\r\nxx", "400 invalid chunk extension|"},
      {"2;a=\"b\\\r\nxx", "400 invalid chunk extension|"},
      {"2;a b\r\nxx", "400 invalid chunk extension|"},
      {std::string(100, '0'), "400 chunk size of more than 16 digits|"},
      {"10000000000000000\r\n", "400 chunk size of more than 16 digits|"},
      {"2;" + std::string(5000, 'a') + "\r\n", "400 chunk line larger than 4 KiB|"},
      {"3\r\nabcd\r\n0\r\n\r\n", "400 chunk data without a line end|abc"},
      {"3\r\nabc\n0\r\n\r\n", "400 chunk data without a line end|abc"},
      {"3\r\nabc\rX", "400 chunk data without a line end|abc"},
      {"0\r\nX: a\r\n b\r\n\r\n", "400 folded field line|"},
      {"0\r\nX : a\r\n\r\n", "400 white space in or behind a field name|"},
      {"0\r\nX: a\n\r\n", "400 line ends with a bare LF|"},
      {"0\r\nContent-Length: 3\r\n\r\n", "400 field not allowed in a trailer|"},
      {"0\r\nTransfer-Encoding: chunked\r\n\r\n", "400 field not allowed in a trailer|"},
      {"0\r\nHost: h\r\n\r\n", "400 field not allowed in a trailer|"},
      {"0\r\nProxy-Authorization: x\r\n\r\n", "400 field not allowed in a trailer|"},
      {"0\r\nX: " + std::string(70'000, 'x') + "\r\n", "431 header section larger than 64 KiB|"},
  };
  for (const auto& [bytes, outcome] : cases) {
    EXPECT_EQ(decode(bytes), outcome) << bytes.substr(0, 40);
  }
  std::string many = "0\r\n";
  for (int i = 0; i < 101; ++i) many += "a: b\r\n";
  EXPECT_EQ(decode(many + "\r\n"), "431 more than 100 fields|");
}

TEST(Chunked, HoldsTheLastChunkUntilItsTrailersAreGood) {
  Relay relay;
  relay.feed("1\r\nx\r\n0\r\nX-A: 1\r\n");
  EXPECT_EQ(relay.passed, "1\r\nx\r\n");
  relay.feed("bad\r\n");
  EXPECT_EQ(relay.state, ParseState::Refused);
  EXPECT_EQ(relay.passed, "1\r\nx\r\n");
}

TEST(Chunked, RelaysAllWholeElementsInOneCall) {
  ChunkedDecoder decoder;
  const std::string bytes = "1\r\nx\r\n2;a=b\r\nyz\r\n3";
  auto step = decoder.relay(bytes);
  EXPECT_EQ(step.state, ParseState::NeedMore);
  EXPECT_EQ(step.consumed, bytes.size() - 1);
  step = decoder.relay("3\r\nabc\r\n0\r\n\r\nNEXT");
  EXPECT_EQ(step.state, ParseState::Done);
  EXPECT_EQ(step.consumed, 13U);
  EXPECT_EQ(decoder.payload_bytes(), 6U);
  decoder.reset();
  EXPECT_EQ(decoder.relay("0\r\n\r\n").state, ParseState::Done);
}

TEST(Chunked, TakesTheLargestSizeWithoutWaitingForItsEnd) {
  ChunkedDecoder decoder;
  const auto step = decoder.relay("ffffffffffffffff\r\nhello");
  EXPECT_EQ(step.state, ParseState::NeedMore);
  EXPECT_EQ(step.consumed, 23U);
}

}  // namespace
}  // namespace proxypool::net
