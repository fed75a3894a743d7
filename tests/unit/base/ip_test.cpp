#include "proxypool/base/ip.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "proxypool/base/random.hpp"

namespace proxypool {
namespace {

// What a text means, in the one spelling that we write; "-" where it means nothing.
std::string canonical(std::string_view text) {
  const auto address = IpAddress::parse(text);
  return address ? address->str() : "-";
}
IpClass class_of(std::string_view text) {
  const auto address = IpAddress::parse(text);
  EXPECT_TRUE(address) << text;
  return classify(address.value_or(IpAddress{}));
}
bool contains(std::string_view range, std::string_view address) {
  return Cidr::parse(range).value().contains(IpAddress::parse(address).value());
}

TEST(IpAddressTest, ReadsFourPlainDecimalParts) {
  for (const auto* text : {"0.0.0.0", "1.2.3.4", "255.255.255.255", "127.0.0.1"}) {
    EXPECT_EQ(canonical(text), text);
  }
  for (const auto* text : {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "256.1.1.1",
                           "01.2.3.4", "1.2.3.04", "0x7f.0.0.1", "1.2.3.4 ", " 1.2.3.4", "1.2.3.-4",
                           "+1.2.3.4", "1.2.3.4/8", "1.2.3.a", "2130706433", "1.2.3.4294967297"}) {
    EXPECT_EQ(canonical(text), "-") << text;
  }
}

TEST(IpAddressTest, ReadsEverySpellingOfIpv6AndWritesOne) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"::", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"0:0:0:0:0:0:0:0", "::"},
      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
      {"2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"},
      {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
      {"1:0:0:2:0:0:3:4", "1::2:0:0:3:4"},
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
      {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
      {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
      {"::ffff:1.2.3.4", "::ffff:102:304"},
      {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
      {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(canonical(text), expected) << text;
}

TEST(IpAddressTest, RefusesWhatIsNoIpv6) {
  for (const auto* text : {":",
                           ":::",
                           "1:",
                           ":1",
                           "1::2::3",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "12345::",
                           "g::",
                           "::1%eth0",
                           "[::1]",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "::1.2.3",
                           "::1.2.3.4:5",
                           "1.2.3.4::",
                           "::01.2.3.4",
                           "1:::2",
                           "::-1",
                           "::0x1",
                           " ::1",
                           "::1 ",
                           "1::2:3:4:5:6:7:8",
                           "::/0"}) {
    EXPECT_EQ(canonical(text), "-") << text;
  }
}

// The C library as the judge: the same verdict and the same bytes on half a million texts that are
// nearly addresses.
TEST(IpAddressTest, AgreesWithTheCLibrary) {
  SplitMix64 random(20'261'130);
  const std::vector<std::string> seeds{"1.2.3.4",   "255.0.10.199",         "::ffff:1.2.3.4",
                                       "::1",       "2001:db8::8:800:417a", "1:2:3:4:5:6:7:8",
                                       "fe80::1:0", "64:ff9b::10.0.0.1"};
  constexpr std::string_view kBytes = "0123456789abcdefABCDEF:.:.:.g% ";
  for (int i = 0; i < 500'000; ++i) {
    std::string text = seeds[random.below(seeds.size())];
    for (auto edits = random.below(4); edits > 0; --edits) {
      const auto at = random.below(text.size() + 1);
      const char byte = kBytes[random.below(kBytes.size())];
      const auto kind = random.below(3);
      if (kind == 0) text.insert(at, 1, byte);
      if (kind == 1 && at < text.size()) text[at] = byte;
      if (kind == 2 && at < text.size()) text.erase(at, 1);
    }
    const auto ours = IpAddress::parse(text);
    std::array<unsigned char, 16> theirs{};
    const bool is_v4 = text.find(':') == std::string::npos;
    const bool valid = ::inet_pton(is_v4 ? AF_INET : AF_INET6, text.c_str(), theirs.data()) == 1;
    ASSERT_EQ(ours.has_value(), valid) << text;
    if (!valid) continue;
    ASSERT_EQ(ours->is_v4(), is_v4) << text;
    const std::size_t skip = is_v4 ? 12 : 0;
    for (std::size_t k = skip; k < 16; ++k) ASSERT_EQ(ours->bytes()[k], theirs[k - skip]) << text;
    ASSERT_EQ(IpAddress::parse(ours->str()), ours) << text;
  }
}

TEST(IpAddressTest, FamiliesNeverCompareEqual) {
  EXPECT_NE(IpAddress::parse("1.2.3.4"), IpAddress::parse("::ffff:1.2.3.4"));
  std::unordered_set<IpAddress> set;
  set.insert(*IpAddress::parse("1.2.3.4"));
  set.insert(*IpAddress::parse("1.2.3.4"));
  set.insert(*IpAddress::parse("::ffff:1.2.3.4"));
  EXPECT_EQ(set.size(), 2U);
}

TEST(CidrTest, ReadsARangeOrASingleAddress) {
  EXPECT_EQ(Cidr::parse("10.0.0.0/8")->str(), "10.0.0.0/8");
  EXPECT_EQ(Cidr::parse("10.1.2.3")->str(), "10.1.2.3/32");
  EXPECT_EQ(Cidr::parse("fd00::/8")->str(), "fd00::/8");
  EXPECT_EQ(Cidr::parse("::1")->str(), "::1/128");
  for (const auto* text : {"10.0.0.0/33", "::/129", "10.0.0.1/8", "fd00::1/8", "10.0.0.0/",
                           "10.0.0.0/-1", "10.0.0.0/8/8", "/8", "", "10.0.0.0/8 "}) {
    EXPECT_FALSE(Cidr::parse(text)) << text;
  }
}

TEST(CidrTest, ContainsExactlyItsPrefix) {
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.255.255"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(contains("192.0.2.128/25", "192.0.2.128"));
  EXPECT_FALSE(contains("192.0.2.128/25", "192.0.2.127"));
  EXPECT_TRUE(contains("0.0.0.0/0", "203.0.113.9"));
  EXPECT_TRUE(contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(contains("2001:db8::/33", "2001:db8:8000::"));
  EXPECT_TRUE(contains("::/0", "fe80::1"));
}

TEST(CidrTest, AFamilyDoesNotContainTheOther) {
  EXPECT_FALSE(contains("0.0.0.0/0", "::1"));
  EXPECT_FALSE(contains("::/0", "1.2.3.4"));
  EXPECT_FALSE(contains("::ffff:0:0/96", "1.2.3.4"));
}

// Every prefix length against the definition: the first `bits` bits are equal.
TEST(CidrTest, AgreesWithTheDefinition) {
  SplitMix64 random(7);
  const auto bit = [](const IpAddress& address, unsigned i) {
    return (address.bytes()[i / 8] >> (7 - i % 8)) & 1;
  };
  for (unsigned bits = 0; bits <= 128; ++bits) {
    for (int round = 0; round < 50; ++round) {
      IpAddress::Bytes bytes{};
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
      const auto base = IpAddress::v6(bytes);
      const auto at = random.below(128);
      bytes[at / 8] = static_cast<std::uint8_t>(bytes[at / 8] ^ (0x80U >> (at % 8)));
      const auto other = IpAddress::v6(bytes);
      bool same = true;
      for (unsigned i = 0; i < bits; ++i) same = same && bit(base, i) == bit(other, i);
      ASSERT_EQ(Cidr(base, bits).contains(other), same) << bits << " " << at;
      ASSERT_EQ(Cidr::around(base, bits) == Cidr::around(other, bits), same) << bits << " " << at;
    }
  }
}

TEST(CidrTest, AroundAnAddressIsTheRangeThatHoldsIt) {
  const auto around = [](const char* address, unsigned bits) {
    return Cidr::around(*IpAddress::parse(address), bits).str();
  };
  EXPECT_EQ(around("203.0.113.77", 24), "203.0.113.0/24");
  EXPECT_EQ(around("203.0.113.77", 32), "203.0.113.77/32");
  EXPECT_EQ(around("203.0.113.77", 25), "203.0.113.0/25");
  EXPECT_EQ(around("203.0.113.200", 25), "203.0.113.128/25");
  EXPECT_EQ(around("203.0.113.77", 0), "0.0.0.0/0");
  EXPECT_EQ(around("2001:db8:1:2::3", 32), "2001:db8::/32");
}

// GW-20: the first and the last address of each range, and their neighbours outside.
TEST(IpClassTest, Ipv4RangesEndWhereTheyShould) {
  using C = IpClass;
  const std::vector<std::pair<std::string_view, IpClass>> cases{
      {"0.0.0.0", C::Unspecified},      {"0.255.255.255", C::Unspecified},
      {"1.0.0.0", C::Public},           {"9.255.255.255", C::Public},
      {"10.0.0.0", C::Private},         {"10.255.255.255", C::Private},
      {"11.0.0.0", C::Public},          {"100.63.255.255", C::Public},
      {"100.64.0.0", C::SharedNat},     {"100.127.255.255", C::SharedNat},
      {"100.128.0.0", C::Public},       {"126.255.255.255", C::Public},
      {"127.0.0.0", C::Loopback},       {"127.255.255.255", C::Loopback},
      {"128.0.0.0", C::Public},         {"169.253.255.255", C::Public},
      {"169.254.0.0", C::LinkLocal},    {"169.254.255.255", C::LinkLocal},
      {"169.255.0.0", C::Public},       {"172.15.255.255", C::Public},
      {"172.16.0.0", C::Private},       {"172.31.255.255", C::Private},
      {"172.32.0.0", C::Public},        {"192.167.255.255", C::Public},
      {"192.168.0.0", C::Private},      {"192.168.255.255", C::Private},
      {"192.169.0.0", C::Public},       {"223.255.255.255", C::Public},
      {"224.0.0.0", C::Multicast},      {"239.255.255.255", C::Multicast},
      {"240.0.0.0", C::Broadcast},      {"255.255.255.255", C::Broadcast},
      {"169.254.169.254", C::Metadata}, {"169.254.170.2", C::Metadata},
      {"100.100.100.200", C::Metadata}, {"192.0.2.1", C::Public}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(class_of(text), expected) << text;
}

TEST(IpClassTest, Ipv6RangesEndWhereTheyShould) {
  using C = IpClass;
  const std::vector<std::pair<std::string_view, IpClass>> cases{
      {"::", C::Unspecified},          {"::1", C::Loopback},          {"::2", C::Unspecified},
      {"2001:db8::1", C::Public},      {"fbff::", C::Public},         {"fc00::", C::UniqueLocal},
      {"fdff:ffff::", C::UniqueLocal}, {"fe00::", C::Public},         {"fe7f:ffff::", C::Public},
      {"fe80::", C::LinkLocal},        {"febf:ffff::", C::LinkLocal}, {"fec0::", C::Private},
      {"feff:ffff::", C::Private},     {"ff00::", C::Multicast},      {"ffff::", C::Multicast},
      {"fd00:ec2::254", C::Metadata}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(class_of(text), expected) << text;
}

// GW-20: an IPv4 address inside an IPv6 address is judged by what it embeds.
TEST(IpClassTest, EmbeddedAddressesAreSeenThrough) {
  for (const auto* text :
       {"::ffff:127.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1",
        "64:ff9b:1::127.0.0.1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:0:808:808::80ff:fffe",
        "2001:db8::5efe:127.0.0.1", "2001:db8::200:5efe:127.0.0.1"}) {
    EXPECT_EQ(class_of(text), IpClass::Loopback) << text;
  }
  for (const auto* text : {"::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::",
                           "2001:0:808:808::f7f7:f7f7", "2001:db8::5efe:8.8.8.8"}) {
    EXPECT_EQ(class_of(text), IpClass::Public) << text;
  }
  EXPECT_EQ(class_of("::ffff:169.254.169.254"), IpClass::Metadata);
}

TEST(IpClassTest, EveryClassHasAName) {
  EXPECT_EQ(to_string(IpClass::Public), "public");
  EXPECT_EQ(to_string(IpClass::Metadata), "metadata");
}

}  // namespace
}  // namespace proxypool
