#include "config/proxy_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace proxypool::config {
namespace {

struct Spelled {
  std::string text;
  ProxyForm form;
  std::string host;
  int port;
  std::string user;
  std::string password;
};
class ProxyForms : public testing::TestWithParam<Spelled> {};

TEST_P(ProxyForms, AreRead) {
  const auto& expected = GetParam();
  const auto proxy = parse_proxy(expected.text, expected.form);
  ASSERT_TRUE(proxy) << proxy.error().message;
  EXPECT_EQ(proxy->endpoint.host, expected.host);
  EXPECT_EQ(proxy->endpoint.port, expected.port);
  EXPECT_EQ(proxy->credential.username, expected.user);
  EXPECT_EQ(proxy->credential.password.reveal(), expected.password);
}

INSTANTIATE_TEST_SUITE_P(
    ProxyLine, ProxyForms,
    testing::Values(
        Spelled{"http://u:p%40@H.example.:80", ProxyForm::Line, "h.example", 80, "u", "p@"},
        Spelled{"https://u:p@h.example:443", ProxyForm::Line, "h.example", 443, "u", "p"},
        Spelled{" 192.0.2.1:80:u:p:q ", ProxyForm::Line, "192.0.2.1", 80, "u", "p:q"},
        Spelled{"192.0.2.1:80", ProxyForm::HostPort, "192.0.2.1", 80, "", ""},
        Spelled{"[2001:db8::1]:80", ProxyForm::HostPort, "2001:db8::1", 80, "", ""},
        Spelled{"h.example:80:u:p:q", ProxyForm::HostPortUserPass, "h.example", 80, "u", "p:q"},
        Spelled{"u:p@h.example:80", ProxyForm::Url, "h.example", 80, "u", "p"},
        Spelled{"u:p:h.example:80", ProxyForm::UserPassHostPort, "h.example", 80, "u", "p"},
        Spelled{"u:p:q:192.0.2.1:80", ProxyForm::UserPassHostPort, "192.0.2.1", 80, "u", "p:q"},
        Spelled{"u:p:[2001:db8::1]:80", ProxyForm::UserPassHostPort, "2001:db8::1", 80, "u", "p"},
        Spelled{"h.example:80@u:p@q", ProxyForm::HostPortAtUserPass, "h.example", 80, "u", "p@q"}));

struct Wrong {
  std::string text;
  ProxyForm form;
};
class WrongProxies : public testing::TestWithParam<Wrong> {};

TEST_P(WrongProxies, AreRefusedWithoutBeingRepeated) {
  const auto proxy = parse_proxy(GetParam().text, GetParam().form);
  ASSERT_FALSE(proxy) << GetParam().text;
  EXPECT_THAT(proxy.error().message, testing::Not(testing::HasSubstr("hunter")));
  EXPECT_FALSE(proxy.error().message.empty());
}

INSTANTIATE_TEST_SUITE_P(
    ProxyLine, WrongProxies,
    testing::Values(Wrong{"", ProxyForm::Line}, Wrong{"hunter", ProxyForm::Line},
                    Wrong{"192.0.2.1", ProxyForm::HostPort},
                    Wrong{"192.0.2.1:80:hunter:hunter", ProxyForm::HostPort},
                    Wrong{"http://192.0.2.1:80", ProxyForm::HostPort},
                    Wrong{"192.0.2.1:80", ProxyForm::HostPortUserPass},
                    Wrong{"ftp://hunter:hunter@192.0.2.1:80", ProxyForm::Line},
                    Wrong{"socks5://hunter:hunter@192.0.2.1:80", ProxyForm::Url},
                    Wrong{"hunter:192.0.2.1:80", ProxyForm::UserPassHostPort},
                    Wrong{":80", ProxyForm::UserPassHostPort},
                    Wrong{"hunter:hunter:0x7f.1:80", ProxyForm::UserPassHostPort},
                    Wrong{"hunter:hunter:]:80", ProxyForm::UserPassHostPort},
                    Wrong{"h.example:80@hunter", ProxyForm::HostPortAtUserPass},
                    Wrong{"h.example:0@hunter:x", ProxyForm::HostPortAtUserPass},
                    Wrong{std::string(5000, 'a') + ":80", ProxyForm::Line}));

}  // namespace
}  // namespace proxypool::config
