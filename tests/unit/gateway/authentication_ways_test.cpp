// The ways to prove who one is, and which of them counts (GW-10).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway/ingress/answer.hpp"
#include "proxypool/domain/client/api_key.hpp"
#include "unit/gateway/authenticator_fixture.hpp"

namespace proxypool::gateway {
namespace {

using Verdict = Principal::Verdict;
using Way = Settings::Auth;

constexpr std::uint32_t kAnn = 1;
constexpr std::uint32_t kRobot = 2;
constexpr std::uint32_t kOffice = 3;

class AuthenticationWays : public AuthenticatorTest {
 protected:
  static std::string bearer(const std::string& token) { return "Bearer " + token; }
  void expect(const std::string& value, std::uint32_t client) {
    const Principal principal = check(value);
    EXPECT_EQ(principal.verdict, Verdict::Accepted) << value;
    EXPECT_EQ(principal.client, client) << value;
  }
  void expect(const std::string& value, Verdict verdict) {
    EXPECT_EQ(check(value).verdict, verdict) << value;
  }
  void from(const char* source) { source_ = *IpAddress::parse(source); }
  // The password of ann is known from then on.
  void warm_up() {
    EXPECT_EQ(check(basic("ann:se:cret")).verdict, Verdict::Pending);
    EXPECT_EQ(verdict(), Verifier::Verdict::Accepted);
  }
};

TEST_F(AuthenticationWays, AnApiKeyIsAUserNameOrABearerToken) {
  use({Way::ApiKey});
  const std::string key = kKey;
  expect(basic(key + ":"), kRobot);
  expect(basic(key + ":whatever"), kRobot);
  expect(bearer(key), kRobot);
  expect("bearer   " + key, kRobot);
  expect("", Verdict::Missing);
  expect(bearer(key + "0"), Verdict::Rejected);
  expect(bearer(key.substr(1)), Verdict::Rejected);
  expect(basic("robot:" + key), Verdict::Rejected);
  expect(basic("ann:se:cret"), Verdict::Rejected);
  expect("Digest " + key, Verdict::Rejected);
  EXPECT_EQ(crypto_.verified, 0) << "nothing went to the pool";
}

TEST_F(AuthenticationWays, ABearerTokenIsNoUserName) {
  use({Way::Bearer});
  const std::string key = kKey;
  expect(bearer(key), kRobot);
  expect(basic(key + ":"), Verdict::Rejected);
  expect(basic("robot:" + key), Verdict::Rejected);
}

TEST_F(AuthenticationWays, AnApiKeyMayGoOnWithParameters) {  // GW-13
  use({Way::ApiKey});
  const Principal robot = check(basic(std::string(kKey) + "-country-us-session-a1:"));
  ASSERT_EQ(robot.verdict, Verdict::Accepted);
  ASSERT_NE(robot.asked, nullptr);
  EXPECT_EQ(robot.asked->parameters.session, "a1");
  EXPECT_EQ(robot.asked->parameters.filter.attributes.country, "US");
  const Principal wrong = check(basic(std::string(kKey) + "-colour-red:"));
  ASSERT_EQ(wrong.verdict, Verdict::Accepted);
  EXPECT_FALSE(wrong.asked->fault.empty());
  expect(bearer(std::string(kKey) + "-country-us"), Verdict::Rejected);
  parameters_ = false;
  use({Way::ApiKey});
  expect(basic(std::string(kKey) + "-country-us:"), Verdict::Rejected);
  expect(basic(std::string(kKey) + ":"), kRobot);
}

TEST_F(AuthenticationWays, AKeyMayHoldHyphensItself) {
  const std::string key = "3b1f8c2e-91d4-4c7a-b5e6-0a2d7f9c4e18";
  domain::SnapshotClient client;
  client.name = ClientName("uuid");
  client.gateway_secret = crypto_.hash_api_key(key).str();
  clients_ = ClientTable({client});
  use({Way::ApiKey});
  EXPECT_EQ(check(basic(key + ":")).verdict, Verdict::Accepted);
  EXPECT_EQ(check(basic(key + "-session-s:")).asked->parameters.session, "s");
}

TEST_F(AuthenticationWays, AnAddressIsTheClientOfTheNarrowestRange) {
  use({Way::IpWhitelist});
  from("198.51.100.7");
  expect("", kRobot);
  expect("whatever is shown", kRobot);
  from("198.51.100.200");
  expect("", kOffice);
  from("2001:db8:1::1");
  expect("", kOffice);
  from("203.0.113.7");
  expect("", Verdict::Stranger);
  expect(bearer(kKey), Verdict::Stranger);
}

TEST_F(AuthenticationWays, TheFirstThatAcceptsCounts) {
  from("198.51.100.200");
  use({Way::IpWhitelist, Way::UsernamePassword});
  expect(basic("ann:se:cret"), kOffice);
  EXPECT_EQ(crypto_.verified, 0) << "nobody had to look at the password";
  use({Way::UsernamePassword, Way::IpWhitelist});
  warm_up();
  expect(basic("ann:se:cret"), kAnn);
  expect("", kOffice);
  expect(basic("unknown:x"), kOffice);
  use({Way::ApiKey, Way::IpWhitelist, Way::UsernamePassword});
  expect(bearer(kKey), kRobot);
  expect(basic("ann:se:cret"), kOffice);
  from("203.0.113.7");
  expect(basic("ann:se:cret"), kAnn);
  expect("", Verdict::Missing);
  expect(basic("ann:"), Verdict::Pending);
}

TEST_F(AuthenticationWays, OneSecretServesAsPasswordAndAsKey) {
  use({Way::UsernamePassword, Way::ApiKey});
  expect(bearer(kKey), kRobot);
  EXPECT_EQ(check(basic("robot:" + std::string(kKey))).verdict, Verdict::Pending);
  EXPECT_EQ(verdict(), Verifier::Verdict::Accepted);
  expect(basic("robot:" + std::string(kKey)), kRobot);
  // A key that was right says nothing about a password.
  for (const char* password : {"robot:", "robot:x"}) {
    EXPECT_EQ(check(basic(password)).verdict, Verdict::Pending) << password;
    EXPECT_EQ(verdict(), Verifier::Verdict::Rejected);
    expect(basic(password), Verdict::Rejected);
  }
}

TEST_F(AuthenticationWays, ASourceThatGuessesKeysRunsOutOfTries) {
  use({Way::ApiKey});
  expect(bearer(kKey), kRobot);
  const auto guess = [](std::uint32_t i) {
    return bearer(std::string(kKey).substr(4) + std::to_string(1000 + i));
  };
  for (std::uint32_t i = 0; i < Authenticator::kTokens; ++i) {
    expect(guess(i), Verdict::Rejected);
    expect(guess(i), Verdict::Rejected);  // the same once more is no further guess
  }
  expect(guess(999), Verdict::Limited);
  expect(bearer(kKey), kRobot);
  const Principal fresh = check(bearer(kKey), 2);
  EXPECT_EQ(fresh.verdict, Verdict::Accepted) << "known from before, under another view too";
  from("203.0.113.8");
  expect(guess(999), Verdict::Rejected);
  expect("bearer too-short", Verdict::Rejected);
}

TEST_F(AuthenticationWays, ARightKeyDoesNotHelpWhoHasGuessedTooOften) {
  use({Way::ApiKey});
  for (std::uint32_t i = 0; i < Authenticator::kTokens; ++i) {
    expect(bearer(std::string(kKey).substr(4) + std::to_string(1000 + i)), Verdict::Rejected);
  }
  expect(bearer(kKey), Verdict::Limited);
}

TEST_F(AuthenticationWays, ANewKeyMakesTheOldOneWorthless) {
  use({Way::ApiKey});
  expect(bearer(kKey), kRobot);
  domain::SnapshotClient robot;
  robot.name = ClientName("robot");
  robot.gateway_secret = crypto_.hash_api_key(std::string(kKey) + "2").str();
  clients_ = ClientTable({robot});
  EXPECT_EQ(check(bearer(kKey), 2).verdict, Verdict::Rejected);
  EXPECT_EQ(check(bearer(std::string(kKey) + "2"), 2).verdict, Verdict::Accepted);
}

TEST(Challenges, NameTheSchemesOfTheWaysInTheirOrder) {
  const std::string basic(kBasicChallenge);
  const std::string bearer(kBearerChallenge);
  EXPECT_EQ(challenges({Way::UsernamePassword}), basic);
  EXPECT_EQ(challenges({Way::Bearer}), bearer);
  EXPECT_EQ(challenges({Way::ApiKey}), basic + bearer);
  EXPECT_EQ(challenges({Way::IpWhitelist, Way::Bearer, Way::ApiKey, Way::UsernamePassword}),
            bearer + basic);
  Answer refused;
  refused.refusal = domain::Refusal::AuthRequired;
  refused.challenges = kBearerChallenge;
  const std::string answer = write_answer(refused);
  EXPECT_NE(answer.find("\r\nProxy-Authenticate: Bearer realm=\"proxypool\"\r\n"),
            std::string::npos);
  EXPECT_EQ(answer.find("Basic"), std::string::npos);
}

TEST(ApiKeys, HaveRoomFor128RandomBits) {
  using domain::is_api_key;
  EXPECT_TRUE(is_api_key("4f1c9a0e7b3d58264f1c9a0e7b3d5826"));  // 32 hex digits
  EXPECT_FALSE(is_api_key("4f1c9a0e7b3d58264f1c9a0e7b3d582"));  // 31
  EXPECT_TRUE(is_api_key("4F1C9A0E7B3D58264F1C9A0E7B3D5826"));
  EXPECT_TRUE(is_api_key("vN3kP0x_qLw7Zt-RmYb2Ag"));  // 22 of base64url
  EXPECT_FALSE(is_api_key("vN3kP0x_qLw7Zt-RmYb2A"));
  EXPECT_TRUE(is_api_key("3b1f8c2e-91d4-4c7a-b5e6-0a2d7f9c4e18"));
  EXPECT_FALSE(is_api_key("31415926535897932384626433832795"));  // digits need 39
  EXPECT_TRUE(is_api_key("314159265358979323846264338327950288419"));
  EXPECT_FALSE(is_api_key("abababababababababababababababababababab"));
  EXPECT_FALSE(is_api_key("correct horse battery staple and more"));
  EXPECT_FALSE(is_api_key("4f1c9a0e7b3d5826:4f1c9a0e7b3d5826"));
  EXPECT_FALSE(is_api_key(std::string(300, 'x')));
  EXPECT_FALSE(is_api_key(""));
}

}  // namespace
}  // namespace proxypool::gateway
