// The PROXY protocol, versions 1 and 2 (GW-3).
#include "net/proxy_header.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace proxypool::net {
namespace {

using namespace std::string_literals;

const std::string kSignature = "\r\n\r\n\0\r\nQUIT\n"s;
const std::string kBlock4 = "\xc6\x33\x64\x07\xcb\x00\x71\x01\x04\xd2\x01\xbb"s;

std::string binary(char version_and_command, char family, const std::string& block) {
  const auto size = block.size();
  return kSignature + version_and_command + family + static_cast<char>(size >> 8U) +
         static_cast<char>(size & 255U) + block;
}

std::string source_of(std::string_view bytes) {
  const ProxyHeader header = parse_proxy_header(bytes);
  switch (header.state) {
    case ParseState::NeedMore:
      return "more";
    case ParseState::Refused:
      return "refused";
    case ParseState::Done:
      break;
  }
  return header.source ? header.source->str() : "own";
}

TEST(ProxyHeader, NamesTheSourceInEitherVersionAndFamily) {
  EXPECT_EQ(source_of("PROXY TCP4 198.51.100.7 203.0.113.1 1234 443\r\nrest"), "198.51.100.7:1234");
  EXPECT_EQ(source_of("PROXY TCP6 2001:db8::7 2001:db8::1 1234 443\r\n"), "[2001:db8::7]:1234");
  EXPECT_EQ(source_of(binary(0x21, 0x11, kBlock4) + "rest"), "198.51.100.7:1234");
  const std::string six = "\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x07";
  EXPECT_EQ(source_of(binary(0x21, 0x21, six + six + "\x04\xd2\x01\xbb")), "[2001:db8::7]:1234");
}

TEST(ProxyHeader, TakesAMappedAddressForTheIpv4AddressThatItIs) {
  EXPECT_EQ(source_of("PROXY TCP6 ::ffff:198.51.100.7 ::1 1234 443\r\n"), "198.51.100.7:1234");
  const std::string mapped = std::string(10, '\0') + "\xff\xff\xc6\x33\x64\x07";
  EXPECT_EQ(source_of(binary(0x21, 0x21, mapped + mapped + "\x04\xd2\x01\xbb")),
            "198.51.100.7:1234");
}

// B041: a LOCAL header with a filled address block names nobody.
TEST(ProxyHeader, LeavesTheConnectionItsOwnAddressWhenNoneIsGiven) {
  EXPECT_EQ(source_of(binary(0x20, 0x11, kBlock4)), "own");
  EXPECT_EQ(source_of(binary(0x20, 0x00, "")), "own");
  EXPECT_EQ(source_of(binary(0x21, 0x00, "")), "own");
  EXPECT_EQ(source_of(binary(0x21, 0x31, std::string(216, 'x'))), "own");
  EXPECT_EQ(source_of("PROXY UNKNOWN\r\n"), "own");
  EXPECT_EQ(source_of("PROXY UNKNOWN 198.51.100.7 what ever\r\n"), "own");
}

TEST(ProxyHeader, SkipsWhatFollowsTheAddresses) {
  const ProxyHeader header = parse_proxy_header(binary(0x21, 0x11, kBlock4 + "\x04\0\x02no"s));
  EXPECT_EQ(header.state, ParseState::Done);
  EXPECT_EQ(header.size, 16U + 12U + 5U);
}

TEST(ProxyHeader, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"GET http://origin.example/ HTTP/1.1\r\n", "PROXY TCP4 198.51.100.7 203.0.113.1 1234\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 1234 443 1\r\n",
        "PROXY TCP4  198.51.100.7 203.0.113.1 1234 443\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 1234 443\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 01234 443\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 65536 443\r\n",
        "PROXY TCP4 198.51.100.07 203.0.113.1 1234 443\r\n",
        "PROXY TCP4 2001:db8::7 2001:db8::1 1234 443\r\n",
        "PROXY TCP6 198.51.100.7 203.0.113.1 1234 443\r\n", "PROXY TCP5 a b 1 2\r\n", "PROXY \r\n",
        "PROXY TCP4\r\n", "proxy TCP4 198.51.100.7 203.0.113.1 1234 443\r\n"}) {
    EXPECT_EQ(source_of(text), "refused") << text;
  }
  EXPECT_EQ(source_of(binary(0x11, 0x11, kBlock4)), "refused") << "version 1";
  EXPECT_EQ(source_of(binary(0x22, 0x11, kBlock4)), "refused") << "no such command";
  EXPECT_EQ(source_of(binary(0x21, 0x41, kBlock4)), "refused") << "no such family";
  EXPECT_EQ(source_of(binary(0x21, 0x12, kBlock4)), "refused") << "a datagram";
  EXPECT_EQ(source_of(binary(0x21, 0x11, kBlock4.substr(1))), "refused") << "too short a block";
}

TEST(ProxyHeader, IsBounded) {
  const std::string longest = "PROXY UNKNOWN " + std::string(91, 'x') + "\r\n";
  ASSERT_EQ(longest.size(), 107U);
  EXPECT_EQ(source_of(longest), "own");
  EXPECT_EQ(source_of("PROXY UNKNOWN " + std::string(92, 'x') + "\r\n"), "refused");
  EXPECT_EQ(source_of("PROXY UNKNOWN " + std::string(93, 'x')), "refused");
  EXPECT_EQ(source_of(binary(0x21, 0x11, kBlock4 + std::string(508, 'x'))), "198.51.100.7:1234");
  EXPECT_EQ(source_of(binary(0x21, 0x11, kBlock4 + std::string(509, 'x')).substr(0, 16)),
            "refused");
}

TEST(ProxyHeader, ComesInAnyPieces) {
  for (const std::string& whole :
       {"PROXY TCP4 198.51.100.7 203.0.113.1 1234 443\r\n"s, binary(0x21, 0x11, kBlock4)}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_EQ(source_of(whole.substr(0, size)), "more") << size;
    }
    EXPECT_EQ(source_of(whole), "198.51.100.7:1234");
  }
}

}  // namespace
}  // namespace proxypool::net
