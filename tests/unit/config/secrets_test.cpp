#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using test::kRest;
using test::load;
using testing::HasSubstr;
using testing::Not;

class Secrets : public testing::Test {
 protected:
  Secrets() {
    char name[] = "/tmp/config_secrets_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~Secrets() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string folder_;
};

TEST_F(Secrets, ComeFromTheEnvironmentOrFromFiles) {
  write("token", "from-file\r\n");
  const auto path = write("config.yaml",
                          "admin: {auth: {readToken: {file: token}}}\n"
                          "cluster: {identityKey: {env: KEY}}\n" +
                              kRest);
  LoadOptions options;
  options.env = test::lookup({{"KEY", "from-env"}});
  const auto loaded = load_file(path, options);
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  EXPECT_EQ(loaded.config->admin.read_token->reveal(), "from-file");
  EXPECT_EQ(loaded.config->cluster.identity_key->reveal(), "from-env");
}

TEST_F(Secrets, MustNotStandInTheFile) {
  const auto loaded = load(R"yaml(
cluster: {identityKey: hunter2}
admin: {auth: {readToken: 31337}}
clients: [{name: c, credentials: {gateway: hunter3}}]
)yaml" + kRest);
  EXPECT_EQ(loaded.errors.size(), 3U) << loaded.format_errors();
  EXPECT_THAT(loaded.format_errors(),
              HasSubstr("cluster.identityKey: a secret must not stand in the file ({env: NAME} or "
                        "{file: PATH})"));
  EXPECT_THAT(loaded.format_errors(), Not(HasSubstr("hunter")));
  EXPECT_THAT(loaded.format_errors(), Not(HasSubstr("31337")));
}

TEST_F(Secrets, MissingOnesAreErrorsWithTheirPlace) {
  const auto loaded = load(R"yaml(cluster: {identityKey: {env: NOT_SET}}
admin: {auth: {readToken: {file: /no/such/file}}}
clients:
  - {name: a, credentials: {gateway: {env: EMPTY}}}
  - {name: b, credentials: {gateway: {env: A, file: B}}}
  - {name: c, credentials: {gateway: {vault: A}}}
  - {name: d, credentials: {gateway: "$scrypt$nonsense"}}
)yaml" + kRest,
                           {{"EMPTY", ""}});
  EXPECT_EQ(loaded.errors.size(), 6U) << loaded.format_errors();
  EXPECT_THAT(loaded.format_errors(),
              HasSubstr("test.yaml:1:30: error: cluster.identityKey.env: the environment variable "
                        "NOT_SET is not set"));
  EXPECT_THAT(loaded.format_errors(), HasSubstr("cannot read /no/such/file: No such file"));
  EXPECT_THAT(loaded.format_errors(), HasSubstr("the environment variable EMPTY is empty"));
  EXPECT_THAT(loaded.format_errors(), HasSubstr("clients[3].credentials.gateway: stored hash"));
}

TEST_F(Secrets, HashesOfClientPasswordsMayStandInTheFile) {
  const std::string hash = "$sha256$n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg";
  const auto loaded = load("clients:\n  - {name: a, credentials: {gateway: \"" + hash +
                               "\"}}\n  - {name: b, credentials: {gateway: {env: H}, distribution: "
                               "{env: P}}}\n" +
                               kRest,
                           {{"H", hash}, {"P", "plain"}});
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  EXPECT_TRUE(loaded.config->clients[0].gateway_secret->hashed);
  EXPECT_EQ(loaded.config->clients[0].gateway_secret->value.reveal(), hash);
  EXPECT_TRUE(loaded.config->clients[1].gateway_secret->hashed);
  EXPECT_FALSE(loaded.config->clients[1].distribution_secret->hashed);
}

TEST_F(Secrets, OnlyTheControllerNeedsThem) {
  const std::string text = "cluster: {identityKey: {env: NOT_SET}}\n" + kRest;
  EXPECT_TRUE(load(text, {}, Program::Gateway).config);
  EXPECT_TRUE(load(text, {}, Program::Checker).config);
  EXPECT_FALSE(load(text, {}, Program::Controller).config);
}

// CF-3: the effective configuration is redacted. Every place that can hold a secret is filled.
TEST_F(Secrets, NeverAppearInWhatIsShown) {
  const auto loaded = load(R"yaml(
cluster: {identityKey: {env: S1}}
admin: {auth: {readToken: {env: S2}}}
clients: [{name: c, credentials: {gateway: {env: S3}, distribution: {env: S4}}}]
upstreams:
  - {id: list, provider: {type: static, proxies: ["http://hunter-u:hunter5@192.0.2.1:80"]}}
  - id: vendor
    provider:
      type: http
      secrets: {key: {env: S6}}
      request:
        url: "https://v.example/{{ secret.key }}"
        query: {key: "{{ secret.key }}"}
        headers: {Authorization: "Bearer {{ secret.key }}"}
      map: {as: "proxy(item, 'host:port')", username: secret.key, password: secret.key}
routings: [{id: all, upstreams: [{id: list}, {id: vendor}]}]
)yaml",
                           {{"S1", "hunter1"},
                            {"S2", "hunter2"},
                            {"S3", "hunter3"},
                            {"S4", "hunter4"},
                            {"S6", "hunter6"}});
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  const auto shown = redacted_yaml(*loaded.config);
  EXPECT_THAT(shown, Not(HasSubstr("hunter"))) << shown;
  EXPECT_THAT(shown, HasSubstr("http://***@192.0.2.1:80"));
  EXPECT_THAT(shown, HasSubstr("Bearer {{ secret.key }}"));
  const auto& request = loaded.config->upstreams[1].provider.request;
  EXPECT_EQ(request.headers[0].second.render(7).reveal(), "Bearer hunter6");
  EXPECT_EQ(request.url.render(7).reveal(), "https://v.example/hunter6");
}

TEST_F(Secrets, ChangeTheFingerprintWithoutStandingInIt) {
  const std::string text = "cluster: {identityKey: {env: K}}\n" + kRest;
  const auto keyed = [](const SecretString& secret) {
    return "d" + std::to_string(std::hash<std::string_view>{}(secret.reveal()));
  };
  const auto one = canonical_json(*load(text, {{"K", "hunter1"}}).config, keyed);
  const auto two = canonical_json(*load(text, {{"K", "hunter2"}}).config, keyed);
  EXPECT_NE(one, two);
  EXPECT_EQ(one, canonical_json(*load(text, {{"K", "hunter1"}}).config, keyed));
  EXPECT_THAT(one, Not(HasSubstr("hunter")));
}

}  // namespace
}  // namespace proxypool::config
