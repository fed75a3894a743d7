// gateway.auth and what it asks of clients (GW-10, GW-11).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using test::kRest;
using test::load;
using testing::HasSubstr;

constexpr const char* kKey = "4f1c9a0e7b3d58264f1c9a0e7b3d5826";

std::string auth(const std::string& how, const std::string& clients) {
  return "gateway: {auth: " + how + "}\nclients: [" + clients + "]\n" + kRest;
}
std::string errors(const std::string& how, const std::string& clients,
                   test::Environment environment = {}) {
  return load(auth(how, clients), std::move(environment)).format_errors();
}

TEST(GatewayAuth, TakesEveryModeAndAnyInItsOrder) {
  const std::string client = "{name: c, credentials: {gateway: {env: K}}, sources: [192.0.2.1]}";
  for (const char* mode : {"none", "usernamePassword", "apiKey", "bearer", "ipWhitelist"}) {
    const auto loaded = load(auth(std::string("{mode: ") + mode + "}", client), {{"K", kKey}});
    ASSERT_TRUE(loaded.config) << loaded.format_errors();
    EXPECT_EQ(loaded.warnings.size(), 0U) << loaded.format_warnings();
    EXPECT_EQ(loaded.config->gateway.auth.ways().size(), std::string(mode) == "none" ? 0U : 1U);
  }
  const auto any = load(auth("{mode: any, anyOf: [ipWhitelist, bearer, usernamePassword]}", client),
                        {{"K", kKey}});
  ASSERT_TRUE(any.config) << any.format_errors();
  EXPECT_EQ(any.config->gateway.auth.ways(),
            (std::vector{AuthMode::IpWhitelist, AuthMode::Bearer, AuthMode::UsernamePassword}));
  ASSERT_EQ(any.config->clients[0].sources.size(), 1U);
  EXPECT_EQ(any.config->clients[0].sources[0].str(), "192.0.2.1/32");
}

TEST(GatewayAuth, AnyNeedsItsWaysAndNobodyElseHasThem) {
  EXPECT_THAT(errors("{mode: any}", ""), HasSubstr("gateway.auth.mode: any, but of nothing (name"));
  EXPECT_THAT(errors("{mode: apiKey, anyOf: [bearer]}", ""),
              HasSubstr("gateway.auth.anyOf: has no effect under auth.mode apiKey (set "
                        "gateway.auth.mode: any)"));
  EXPECT_THAT(errors("{mode: any, anyOf: [bearer, bearer]}", ""),
              HasSubstr("gateway.auth.anyOf: a way stands here twice"));
  EXPECT_THAT(errors("{mode: any, anyOf: [none]}", ""), HasSubstr("none is not supported"));
}

TEST(GatewayAuth, AShortOrPlainKeyIsAnErrorWithItsRemedy) {
  const std::string by_env = "{name: c, credentials: {gateway: {env: K}}}";
  for (const char* mode : {"{mode: apiKey}", "{mode: bearer}", "{mode: any, anyOf: [bearer]}"}) {
    EXPECT_EQ(errors(mode, by_env, {{"K", kKey}}), "");
    EXPECT_THAT(
        errors(mode, by_env, {{"K", "open sesame"}}),
        HasSubstr("clients[0].credentials.gateway: is no API key: it has not the 128 random "
                  "bits that one must have, or a space or a colon in it (make one with "
                  "`openssl rand -hex 32`)"));
  }
  const auto plain =
      errors("{mode: apiKey}", std::string("{name: c, credentials: {gateway: ") + kKey + "}}");
  EXPECT_THAT(plain, HasSubstr("a plain secret must not stand in the file"));
  EXPECT_THAT(plain, HasSubstr("--hash-key"));
  EXPECT_THAT(plain, testing::Not(HasSubstr(kKey)));
}

TEST(GatewayAuth, APasswordsHashIsNoKeysHash) {
  const std::string hash =
      "\"$scrypt$ln=4,r=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"";
  const std::string client = "{name: c, credentials: {gateway: " + hash + "}}";
  EXPECT_EQ(errors("{mode: usernamePassword}", client), "");
  EXPECT_EQ(errors("{mode: any, anyOf: [apiKey, usernamePassword]}", client), "");
  EXPECT_THAT(errors("{mode: apiKey}", client),
              HasSubstr("clients[0].credentials.gateway: is the hash of a password"));
  EXPECT_THAT(errors("{mode: apiKey}", client), HasSubstr("--hash-key"));
}

TEST(GatewayAuth, AnAddressBelongsToOneClientAndNotToAll) {
  const std::string how = "{mode: ipWhitelist}";
  EXPECT_EQ(errors(how, "{name: a, sources: [10.0.0.0/8]}, {name: b, sources: [10.1.0.0/16]}"), "");
  EXPECT_THAT(errors(how, "{name: a, sources: [10.0.0.0/8]}, {name: b, sources: [10.0.0.0/8]}"),
              HasSubstr("clients[1].sources: 10.0.0.0/8 is also client a"));
  EXPECT_THAT(errors(how, "{name: a, sources: [10.0.0.1, 10.0.0.1/32]}"),
              HasSubstr("10.0.0.1/32 stands here twice"));
  // GW-11: that would be an open proxy.
  for (const char* all : {"0.0.0.0/0", "\"::/0\""}) {
    EXPECT_THAT(errors(how, std::string("{name: a, sources: [") + all + "]}"),
                HasSubstr("clients[0].sources: everybody would be this client"));
  }
}

TEST(GatewayAuth, SaysWhenNobodyGetsIn) {
  const auto warnings = [](const std::string& how, const std::string& clients) {
    return load(auth(how, clients), {{"K", kKey}}).format_warnings();
  };
  const std::string keyed = "{name: c, credentials: {gateway: {env: K}}}";
  EXPECT_THAT(warnings("{mode: ipWhitelist}", keyed),
              HasSubstr("gateway.auth.mode: no client has sources: nobody gets in"));
  EXPECT_THAT(warnings("{mode: bearer}", "{name: c, sources: [10.0.0.1]}"),
              HasSubstr("gateway.auth.mode: no client has credentials.gateway: nobody gets in"));
  EXPECT_EQ(warnings("{mode: any, anyOf: [bearer, ipWhitelist]}", keyed), "");
  EXPECT_EQ(warnings("{mode: any, anyOf: [bearer, ipWhitelist]}", "{name: c, sources: [::1]}"), "");
}

TEST(GatewayAuth, AnyModeMakesAPublicListenerLegal) {  // GW-11
  const std::string public_listener = "gateway: {listen: \"0.0.0.0:8080\", auth: {mode: ";
  EXPECT_FALSE(load(public_listener + "none}}\n" + kRest).config);
  for (const char* mode : {"apiKey", "bearer", "ipWhitelist", "usernamePassword"}) {
    const auto loaded = load(public_listener + mode + "}}\n" + kRest);
    EXPECT_TRUE(loaded.config) << loaded.format_errors();
  }
}

// The gateway does not read clients' secrets.
TEST(GatewayAuth, TheGatewayNeedsNoKeys) {
  const auto text = auth("{mode: apiKey}", "{name: c, credentials: {gateway: {env: NOT_SET}}}");
  EXPECT_TRUE(load(text, {}, Program::Gateway).config);
  EXPECT_FALSE(load(text, {}, Program::Controller).config);
}

}  // namespace
}  // namespace proxypool::config
