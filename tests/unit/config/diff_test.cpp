#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using test::load;
using testing::ElementsAre;
using testing::IsEmpty;

Config config_of(const std::string& upstreams, const std::string& rest,
                 const std::string& secret = "x") {
  auto loaded = load("upstreams:\n" + upstreams + rest, {{"K", secret}});
  EXPECT_TRUE(loaded.config) << loaded.format_errors();
  return *std::move(loaded.config);
}

const std::string kA = "  - {id: a, provider: {type: static, proxies: [\"192.0.2.1:80\"]}}\n";
const std::string kB = "  - {id: b, provider: {type: static, proxies: [\"u:p@192.0.2.2:80\"]}}\n";
const std::string kBChanged =
    "  - {id: b, provider: {type: static, proxies: [\"u:q@192.0.2.2:80\"]}}\n";
const std::string kRoutes =
    "routings:\n  - {id: r, match: {ports: [80]}, upstreams: [{id: b}]}\n"
    "  - {id: s, upstreams: [{id: b}]}\n";

TEST(Diff, TheSameConfigurationHasNoChanges) {
  const auto result = diff(config_of(kA + kB, kRoutes), config_of(kA + kB, kRoutes), test::digest);
  EXPECT_THAT(result.sections, IsEmpty());
}

TEST(Diff, NamesWhatWasAddedRemovedAndChanged) {
  const auto result = diff(config_of(kA + kB, kRoutes),
                           config_of(kBChanged + "  - {id: c, provider: {type: static, proxies: "
                                                 "[\"192.0.2.3:80\"]}}\n",
                                     kRoutes + "clients: [{name: n}]\ngateway: {bench: 3s}\n"),
                           test::digest);
  EXPECT_THAT(result.sections, ElementsAre("gateway", "upstreams", "clients"));
  EXPECT_THAT(result.upstreams.added, ElementsAre("c"));
  EXPECT_THAT(result.upstreams.removed, ElementsAre("a"));
  EXPECT_THAT(result.upstreams.changed, ElementsAre("b"));  // a password alone
  EXPECT_THAT(result.routings.changed, IsEmpty());
  EXPECT_THAT(result.clients.added, ElementsAre("n"));
}

TEST(Diff, AnotherOrderOfRoutingsIsAChangeOfTheSection) {
  const std::string swapped =
      "routings:\n  - {id: s, upstreams: [{id: b}]}\n"
      "  - {id: r, match: {ports: [80]}, upstreams: [{id: b}]}\n";
  const auto result = diff(config_of(kB, kRoutes), config_of(kB, swapped), test::digest);
  EXPECT_THAT(result.sections, ElementsAre("routings"));
  EXPECT_THAT(result.routings.changed, IsEmpty());
}

TEST(Diff, ARotatedSecretIsAChange) {
  const std::string rest = kRoutes + "admin: {auth: {readToken: {env: K}}}\n";
  const auto result = diff(config_of(kB, rest, "one"), config_of(kB, rest, "two"), test::digest);
  EXPECT_THAT(result.sections, ElementsAre("admin"));
}

// CT-1: what a running program keeps is named, the innermost key that differs.
TEST(Diff, KeysThatWaitForARestartAreNamedWithTheirProgram) {
  const auto result = diff(
      config_of(kB, kRoutes),
      config_of(kB, kRoutes +
                        "storage: {stateDir: elsewhere}\n"
                        "gateway: {transport: {idle: 1m, orphanGrace: 5s}, useSuspect: never}\n"
                        "observability: {logLevel: debug}\n"
                        "admin: {auth: {readToken: {env: K}}}\n"),
      test::digest);
  EXPECT_THAT(result.restart,
              ElementsAre(RestartKey{"storage.stateDir", "controller"},
                          RestartKey{"gateway.transport.idle", "gateways"},
                          RestartKey{"gateway.transport.orphanGrace", "controller and gateways"},
                          RestartKey{"observability.logLevel", "every program"}));
}

TEST(Diff, ASourceIsTheSameWhateverElseAnUpstreamSays) {
  const std::string http =
      "provider: {type: http, request: {url: 'https://v.example/?k={{ secret.k "
      "}}'}, secrets: {k: {env: K}}}";
  const auto upstream = [&](const std::string& text, const std::string& secret = "x") {
    return config_of("  - {id: a, " + text + "}\n", "", secret).upstreams.at(0);
  };
  EXPECT_TRUE(same_source(upstream(http), upstream(http + ", pool: {minimum: 1}, tags: {a: b}")));
  EXPECT_FALSE(same_source(upstream(http), upstream(http, "another secret")));
  EXPECT_FALSE(same_source(upstream(http), upstream(http + ", allowPrivateAddresses: true")));
}

}  // namespace
}  // namespace proxypool::config
