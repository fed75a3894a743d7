// Destinations for the tests of GW-20: what must be refused, class by class, and what must pass.
//
// Thread rule: immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proxypool/base/ip.hpp"

namespace proxypool::testing {

enum class TargetClass : std::uint8_t {
  Loopback,
  Unspecified,
  Private,
  LinkLocal,
  UniqueLocal,
  SharedNat,
  Multicast,
  Reserved,
  Metadata,
  Mapped,
  Compatible,
  Translated,
  Nat64,
  SixToFour,
  Teredo,
  Isatap,
  LocalName,
  OddSpelling,
};
inline constexpr std::size_t kTargetClasses = 18;

struct TargetSample {
  TargetClass of;
  std::string_view host;  // as in a URL
};

inline constexpr TargetSample kForbiddenTargets[] = {
    {TargetClass::Loopback, "127.0.0.1"},
    {TargetClass::Loopback, "127.1.2.3"},
    {TargetClass::Loopback, "127.255.255.254"},
    {TargetClass::Loopback, "[::1]"},
    {TargetClass::Loopback, "[0:0:0:0:0:0:0:1]"},
    {TargetClass::Loopback, "[0000::0001]"},
    {TargetClass::Unspecified, "0.0.0.0"},
    {TargetClass::Unspecified, "0.1.2.3"},
    {TargetClass::Unspecified, "[::]"},
    {TargetClass::Unspecified, "[0::0]"},
    {TargetClass::Private, "10.0.0.1"},
    {TargetClass::Private, "10.255.255.255"},
    {TargetClass::Private, "172.16.0.1"},
    {TargetClass::Private, "172.31.255.255"},
    {TargetClass::Private, "192.168.1.1"},
    {TargetClass::Private, "[fec0::1]"},
    {TargetClass::LinkLocal, "169.254.0.1"},
    {TargetClass::LinkLocal, "169.254.255.255"},
    {TargetClass::LinkLocal, "[fe80::1]"},
    {TargetClass::LinkLocal, "[febf:ffff::1]"},
    {TargetClass::UniqueLocal, "[fc00::1]"},
    {TargetClass::UniqueLocal, "[fd12:3456:789a::1]"},
    {TargetClass::UniqueLocal, "[fdff:ffff::1]"},
    {TargetClass::SharedNat, "100.64.0.1"},
    {TargetClass::SharedNat, "100.100.1.1"},
    {TargetClass::SharedNat, "100.127.255.255"},
    {TargetClass::Multicast, "224.0.0.1"},
    {TargetClass::Multicast, "239.255.255.250"},
    {TargetClass::Multicast, "[ff02::1]"},
    {TargetClass::Multicast, "[ff0e::101]"},
    {TargetClass::Reserved, "240.0.0.1"},
    {TargetClass::Reserved, "250.1.2.3"},
    {TargetClass::Reserved, "255.255.255.255"},
    {TargetClass::Metadata, "169.254.169.254"},
    {TargetClass::Metadata, "169.254.170.2"},
    {TargetClass::Metadata, "100.100.100.200"},
    {TargetClass::Metadata, "168.63.129.16"},
    {TargetClass::Metadata, "192.0.0.192"},
    {TargetClass::Metadata, "[fd00:ec2::254]"},
    {TargetClass::Mapped, "[::ffff:127.0.0.1]"},
    {TargetClass::Mapped, "[::ffff:7f00:1]"},
    {TargetClass::Mapped, "[0:0:0:0:0:FFFF:10.0.0.1]"},
    {TargetClass::Mapped, "[::ffff:169.254.169.254]"},
    {TargetClass::Compatible, "[::127.0.0.1]"},
    {TargetClass::Compatible, "[::10.0.0.1]"},
    {TargetClass::Compatible, "[::a9fe:a9fe]"},
    {TargetClass::Translated, "[::ffff:0:127.0.0.1]"},
    {TargetClass::Translated, "[::ffff:0:10.0.0.1]"},
    {TargetClass::Translated, "[::ffff:0:a9fe:a9fe]"},
    {TargetClass::Nat64, "[64:ff9b::127.0.0.1]"},
    {TargetClass::Nat64, "[64:ff9b::a00:1]"},
    {TargetClass::Nat64, "[64:ff9b::169.254.169.254]"},
    {TargetClass::Nat64, "[64:ff9b:1::192.168.0.1]"},
    {TargetClass::Nat64, "[64:ff9b:1:7f00:0:100::]"},
    {TargetClass::SixToFour, "[2002:7f00:1::]"},
    {TargetClass::SixToFour, "[2002:a00:1::1]"},
    {TargetClass::SixToFour, "[2002:a9fe:a9fe::]"},
    {TargetClass::SixToFour, "[2002:c0a8:101:1::1]"},
    {TargetClass::Teredo, "[2001:0:7f00:1::1]"},
    {TargetClass::Teredo, "[2001:0:808:808:0:0:80ff:fffe]"},
    {TargetClass::Teredo, "[2001:0:808:808::f5ff:fffe]"},
    {TargetClass::Teredo, "[2001:0:0:0:0:0:80ff:fefe]"},
    {TargetClass::Isatap, "[2001:db8::5efe:10.0.0.1]"},
    {TargetClass::Isatap, "[2001:db8::200:5efe:127.0.0.1]"},
    {TargetClass::Isatap, "[2001:db8::5efe:a9fe:a9fe]"},
    {TargetClass::Isatap, "[fe80::5efe:10.0.0.1]"},
    {TargetClass::LocalName, "localhost"},
    {TargetClass::LocalName, "LOCALHOST"},
    {TargetClass::LocalName, "LocalHost."},
    {TargetClass::LocalName, "a.localhost"},
    {TargetClass::LocalName, "A.b.LOCALHOST."},
    {TargetClass::OddSpelling, "2130706433"},
    {TargetClass::OddSpelling, "017700000001"},
    {TargetClass::OddSpelling, "0x7f000001"},
    {TargetClass::OddSpelling, "0X7F.1"},
    {TargetClass::OddSpelling, "0177.0.0.1"},
    {TargetClass::OddSpelling, "127.1"},
    {TargetClass::OddSpelling, "127.0.0.1."},
    {TargetClass::OddSpelling, "127.0.0.01"},
    {TargetClass::OddSpelling, "010.8.8.8"},
    {TargetClass::OddSpelling, "8.8.2056"},
    {TargetClass::OddSpelling, "8.8.8.256"},
    {TargetClass::OddSpelling, "0"},
};

// Next to the forbidden ranges, and embeddings of what is public. Never to be dialled by a test.
inline constexpr std::string_view kPublicTargets[] = {
    "8.8.8.8",
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.1",
    "126.255.255.255",
    "128.0.0.1",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.1",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.2.1",
    "192.167.255.255",
    "192.169.0.1",
    "203.0.113.7",
    "223.255.255.255",
    "[2001:db8::1]",
    "[2606:4700::1111]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::8.8.8.8]",
    "[2002:808:808::1]",
    "[2001:0:808:808::f7f7:f7f7]",
    "[2001:db8::5efe:8.8.8.8]",
};

// The address that a sample is, without its brackets; nothing for names and odd spellings.
inline std::optional<IpAddress> address_of(std::string_view host) {
  if (host.front() == '[') host = host.substr(1, host.size() - 2);
  return IpAddress::parse(host);
}

}  // namespace proxypool::testing
