// Every way to prove who one is, with curl through real processes (GW-10).
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using support::Cluster;
using support::ClusterOptions;
using support::run;

constexpr const char* kKey = "4f1c9a0e7b3d58264f1c9a0e7b3d5826";
constexpr const char* kOther = "4f1c9a0e7b3d58264f1c9a0e7b3d5827";

// `crawler` has a key, `here` is whoever comes from 127.0.0.2, and where `passwords` count there is
// `person`, who has one.
ClusterOptions asks_by(const std::string& auth, bool passwords = false) {
  ClusterOptions options;
  options.proxies = 1;
  options.gateway = "auth: " + auth;
  options.top_level =
      "clients:\n"
      "  - name: crawler\n"
      "    credentials: {gateway: {env: CRAWLER_KEY}}\n" +
      std::string(passwords ? "  - name: person\n"
                              "    credentials: {gateway: {env: PERSON_PASSWORD}}\n"
                            : "") +
      "  - name: here\n"
      "    sources: [127.0.0.2]\n";
  options.environment = {std::string("CRAWLER_KEY=") + kKey, "PERSON_PASSWORD=open sesame"};
  return options;
}

struct Got {
  std::string status;
  std::string head;
  std::string code;  // of an error's body
};

// One request by curl with these credentials.
Got ask(Cluster& cluster, e2e::Arguments how) {
  how.insert(how.end(),
             {"-w", "%{http_code}", "-D", "head", "-o", "body", cluster.origin_url("/t/who")});
  Got got;
  got.status = run(curl(cluster, std::move(how))).out;
  got.head = support::read_file(cluster.folder() / "head");
  const auto body =
      nlohmann::json::parse(support::read_file(cluster.folder() / "body"), nullptr, false);
  if (body.is_object()) got.code = body.value("code", "");
  return got;
}

e2e::Arguments as_user(const std::string& user) {
  return {"--proxy-user", user};
}
e2e::Arguments as_bearer(const std::string& token) {
  return {"--proxy-header", "Proxy-Authorization: Bearer " + token};
}
const e2e::Arguments kFromHere = {"--interface", "127.0.0.2"};

constexpr const char* kBasic =
    "Proxy-Authenticate: Basic realm=\"proxypool\", charset=\"UTF-8\"\r\n";
constexpr const char* kBearer = "Proxy-Authenticate: Bearer realm=\"proxypool\"\r\n";

void expect_refused(const Got& got, const std::string& code, bool basic, bool bearer) {
  EXPECT_EQ(got.status, "407") << got.head;
  EXPECT_EQ(got.code, code);
  EXPECT_EQ(got.head.find(kBasic) != std::string::npos, basic) << got.head;
  EXPECT_EQ(got.head.find(kBearer) != std::string::npos, bearer) << got.head;
}

TEST(AuthModes, ApiKey) {
  Cluster cluster(asks_by("{mode: apiKey}"));
  EXPECT_EQ(ask(cluster, as_user(std::string(kKey) + ":")).status, "200");
  EXPECT_EQ(ask(cluster, as_user(std::string(kKey) + "-session-a1:x")).status, "200");
  EXPECT_EQ(ask(cluster, as_bearer(kKey)).status, "200");
  expect_refused(ask(cluster, {}), "auth_required", true, true);
  expect_refused(ask(cluster, as_user(std::string(kOther) + ":")), "auth_rejected", true, true);
  expect_refused(ask(cluster, as_bearer(kOther)), "auth_rejected", true, true);
  expect_refused(ask(cluster, as_user("person:open sesame")), "auth_rejected", true, true);
  // Neither the vendor's proxy nor the origin learns the key.
  EXPECT_EQ("Proxy-Authorization: " +
                e2e::header_of(e2e::seen_at(cluster, "who", "proxy"), "Proxy-Authorization") +
                "\r\n",
            cluster.fixture().authorization());
  EXPECT_EQ(e2e::header_of(e2e::seen_at(cluster, "who", "origin"), "Proxy-Authorization"), "");
}

TEST(AuthModes, ApiKeyOpensATunnel) {
  Cluster cluster(asks_by("{mode: apiKey}"));
  auto how = as_bearer(kKey);
  how.insert(how.end(), {"-p"});
  EXPECT_EQ(ask(cluster, how).status, "200");
  const auto refused = run(curl(cluster, {"-p", "--verbose", cluster.origin_url("/t/none")}));
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("407 Proxy Authentication Required (auth_required)"),
            std::string::npos)
      << refused.err;
}

TEST(AuthModes, Bearer) {
  Cluster cluster(asks_by("{mode: bearer}"));
  EXPECT_EQ(ask(cluster, as_bearer(kKey)).status, "200");
  expect_refused(ask(cluster, {}), "auth_required", false, true);
  expect_refused(ask(cluster, as_bearer(kOther)), "auth_rejected", false, true);
  expect_refused(ask(cluster, as_user(std::string(kKey) + ":")), "auth_rejected", false, true);
}

TEST(AuthModes, IpWhitelist) {
  Cluster cluster(asks_by("{mode: ipWhitelist}"));
  EXPECT_EQ(ask(cluster, kFromHere).status, "200");
  for (const e2e::Arguments& how : {e2e::Arguments{}, as_bearer(kKey)}) {
    const Got got = ask(cluster, how);
    EXPECT_EQ(got.status, "403");
    EXPECT_EQ(got.code, "source_denied");
    EXPECT_EQ(got.head.find("Proxy-Authenticate"), std::string::npos) << got.head;
  }
}

TEST(AuthModes, AnyTakesTheFirstThatAccepts) {
  ClusterOptions options =
      asks_by("{mode: any, anyOf: [ipWhitelist, bearer, usernamePassword]}", true);
  // A limit of its own shows when it was the address that counted.
  options.top_level += "    limits: {requestsPerSecond: 1, burst: 1}\n";
  Cluster cluster(options);
  EXPECT_EQ(ask(cluster, as_bearer(kKey)).status, "200");
  EXPECT_EQ(ask(cluster, as_user("person:open sesame")).status, "200");
  expect_refused(ask(cluster, {}), "auth_required", true, true);
  expect_refused(ask(cluster, as_user("person:open barley")), "auth_rejected", true, true);
  expect_refused(ask(cluster, as_user(std::string(kKey) + ":")), "auth_rejected", true, true);
  auto both = as_bearer(kKey);
  both.insert(both.end(), kFromHere.begin(), kFromHere.end());
  bool limited = false;
  for (int i = 0; i < 10 && !limited; ++i) {
    const Got got = ask(cluster, both);
    limited = got.status == "429" && got.code == "client_limited";
  }
  EXPECT_TRUE(limited) << "the address came first, and its client has a limit";
  auto wrong = as_user("person:open barley");
  wrong.insert(wrong.end(), kFromHere.begin(), kFromHere.end());
  EXPECT_NE(ask(cluster, wrong).status, "407");
}

TEST(AuthModes, AHashedKeyMayStandInTheFile) {
  const auto hashed = run({"sh",
                           {"-c", std::string("printf %s\\\\n ") + kKey + " | \"$0\" --hash-key",
                            PROXYPOOL_BIN_DIR "/proxy-controller"},
                           {},
                           {}});
  ASSERT_EQ(hashed.code, 0) << hashed.err;
  ASSERT_TRUE(hashed.out.starts_with("$sha256$")) << hashed.out;
  ClusterOptions options;
  options.proxies = 1;
  options.gateway = "auth: {mode: bearer}";
  options.top_level = "clients:\n  - name: crawler\n    credentials: {gateway: \"" +
                      hashed.out.substr(0, hashed.out.find('\n')) + "\"}\n";
  Cluster cluster(options);
  EXPECT_EQ(ask(cluster, as_bearer(kKey)).status, "200");
  EXPECT_EQ(ask(cluster, as_bearer(kOther)).status, "407");
  const auto weak =
      run({"sh",
           {"-c", "echo open sesame | \"$0\" --hash-key", PROXYPOOL_BIN_DIR "/proxy-controller"},
           {},
           {}});
  EXPECT_EQ(weak.code, 2);
  EXPECT_NE(weak.err.find("openssl rand -hex 32"), std::string::npos) << weak.err;
}

}  // namespace
}  // namespace proxypool
