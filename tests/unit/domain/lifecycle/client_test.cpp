// Principals, access lists with the strict start rule (GW-10, GW-11), presented credentials.
#include <gtest/gtest.h>

#include <string>

#include "proxypool/domain/client/access.hpp"
#include "proxypool/domain/client/authorization.hpp"
#include "proxypool/domain/client/principal.hpp"

namespace proxypool::domain {
namespace {

TEST(Principal, IsKnownByItsNameAndItsGroups) {
  const Principal p{Realm::Gateway, ClientName("alice"), {"crawlers"}};
  EXPECT_TRUE(p.is("alice"));
  EXPECT_TRUE(p.is("crawlers"));
  EXPECT_FALSE(p.is("bob"));
  EXPECT_FALSE(p.is(""));
  EXPECT_TRUE(Principal{}.anonymous());
  EXPECT_FALSE(Principal{}.is("")) << "nobody is not a client without a name";
}

TEST(Access, OnlyListedSourcesPassAndMappedPeersAreIPv4GW11) {
  EXPECT_TRUE(AccessList().allows(*IpAddress::parse("203.0.113.7")));
  const AccessList list({*Cidr::parse("10.0.0.0/8"), *Cidr::parse("2001:db8::/32")});
  EXPECT_TRUE(list.allows(*IpAddress::parse("10.1.2.3")));
  EXPECT_TRUE(list.allows(*IpAddress::parse("::ffff:10.1.2.3")));
  EXPECT_TRUE(list.allows(*IpAddress::parse("2001:db8::9")));
  EXPECT_FALSE(list.allows(*IpAddress::parse("11.0.0.1")));
  EXPECT_FALSE(list.allows(*IpAddress::parse("::ffff:11.0.0.1")));
  EXPECT_FALSE(list.allows(*IpAddress::parse("2001:db9::9")));
  EXPECT_FALSE(list.allows(*IpAddress::parse("::10.1.2.3"))) << "compatible is not mapped";
}

TEST(Access, AnOpenProxyIsNeverStartedByAccidentGW11) {
  const AccessList closed({*Cidr::parse("10.0.0.0/8")});
  for (const std::string_view address : {"0.0.0.0", "::", "192.168.1.1", "203.0.113.1"}) {
    const auto listen = *IpAddress::parse(address);
    const auto refused = check_start(true, listen, false, {});
    ASSERT_FALSE(refused.has_value()) << address;
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
    EXPECT_TRUE(check_start(true, listen, true, {}).has_value());
    EXPECT_TRUE(check_start(true, listen, false, closed).has_value());
    EXPECT_TRUE(check_start(false, listen, false, {}).has_value());
  }
  EXPECT_TRUE(check_start(true, *IpAddress::parse("127.0.0.1"), false, {}).has_value());
  EXPECT_TRUE(check_start(true, *IpAddress::parse("::1"), false, {}).has_value());
}

TEST(Authorization, BasicIsSplitAtTheFirstColon) {
  const auto basic = [](std::string_view pair) {
    return parse_authorization("Basic " + base64_encode(pair));
  };
  const auto p = basic("alice:a:b:c");
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->scheme, AuthScheme::Basic);
  EXPECT_EQ(p->username.reveal(), "alice");
  EXPECT_EQ(p->secret.reveal(), "a:b:c");
  EXPECT_EQ(basic("key:")->username.reveal(), "key");
  EXPECT_EQ(basic(":pw")->secret.reveal(), "pw");
  EXPECT_FALSE(basic("alice").has_value());
  EXPECT_TRUE(parse_authorization("basic   " + base64_encode("a:b") + " ").has_value());
}

TEST(Authorization, BearerIsTakenAsItIs) {
  const auto p = parse_authorization("bEaReR tok.en~1");
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->scheme, AuthScheme::Bearer);
  EXPECT_EQ(p->secret.reveal(), "tok.en~1");
}

TEST(Authorization, AnythingElseIsNothing) {
  for (const std::string& value :
       {std::string(), std::string("Basic"), std::string("Basic "), std::string("Basic !!!"),
        std::string("Digest a=b"), std::string("Bearer a b"), std::string("Basic YTpi YTpi"),
        "Bearer " + std::string(9000, 'x')}) {
    EXPECT_FALSE(parse_authorization(value).has_value()) << value.substr(0, 20);
  }
}

}  // namespace
}  // namespace proxypool::domain
