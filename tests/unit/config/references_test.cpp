#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using test::load;
using testing::HasSubstr;

const std::string kTwo = R"(
upstreams:
  - {id: acme, provider: {type: static, proxies: ["192.0.2.1:80"]}}
  - {id: other, provider: {type: static, proxies: ["192.0.2.2:80"]}}
)";

TEST(References, RoutingsNameUpstreamsAndClientsThatExist) {
  const auto loaded = load(kTwo + R"(
clients: [{name: crawler, groups: [team-a]}]
routings:
  - {id: r1, match: {clients: [crawler, team-a]}, upstreams: [{id: acme}]}
  - {id: r2, match: {clients: [crawlr]}, upstreams: [{id: othr}]}
)");
  EXPECT_EQ(loaded.errors.size(), 2U) << loaded.format_errors();
  EXPECT_THAT(loaded.format_errors(),
              HasSubstr("routings[1].match.clients[0]: there is no client or group named crawlr "
                        "(did you mean crawler?)"));
  EXPECT_THAT(loaded.format_errors(),
              HasSubstr("routings[1].upstreams[0].id: there is no upstream named othr (did you "
                        "mean other?)"));
}

TEST(References, ClientsNameUpstreamsThatExist) {
  const auto loaded = load(kTwo + R"(
routings: [{id: r, upstreams: [{id: acme}, {id: other}]}]
clients: [{name: c, allowedUpstreams: [acme, nowhere]}]
)");
  EXPECT_EQ(loaded.errors.size(), 1U) << loaded.format_errors();
  EXPECT_THAT(loaded.format_errors(), HasSubstr("clients[0].allowedUpstreams[1]: there is no"));
}

TEST(References, ABrokenNameDoesNotBlameThoseWhoUseIt) {
  const auto loaded = load(R"(
upstreams: [{id: "-acme", provider: {type: static, proxies: ["192.0.2.1:80"]}}]
routings: [{id: r, upstreams: [{id: acme}]}]
)");
  EXPECT_EQ(loaded.errors.size(), 1U) << loaded.format_errors();
}

TEST(References, NamesAreUnique) {
  const auto loaded = load(R"(
upstreams:
  - {id: a, provider: {type: static, proxies: ["192.0.2.1:80"]}}
  - {id: a, provider: {type: static, proxies: ["192.0.2.2:80"]}}
routings:
  - {id: r, match: {ports: [80]}, upstreams: [{id: a}, {id: a}]}
  - {id: r, upstreams: [{id: a}]}
clients: [{name: c}, {name: c}]
)");
  EXPECT_EQ(loaded.errors.size(), 4U) << loaded.format_errors();
  EXPECT_THAT(loaded.format_errors(), HasSubstr("upstreams[1].id: another upstream is named a"));
  EXPECT_THAT(loaded.format_errors(), HasSubstr("routings[0].upstreams[1].id: upstream a stands"));
  EXPECT_THAT(loaded.format_errors(), HasSubstr("routings[1].id: another routing is named r"));
  EXPECT_THAT(loaded.format_errors(), HasSubstr("clients[1].name: another client is named c"));
}

TEST(References, WeightsAndMatchFieldsThatDoNothingAreErrors) {
  const auto weights = load(kTwo + R"(
routings: [{id: r, upstreams: [{id: acme, weight: 3}, {id: other}]}]
)");
  EXPECT_THAT(weights.format_errors(), HasSubstr("weights have no effect under strategy "
                                                 "round_robin (set strategy: "
                                                 "weighted_round_robin)"));
  const auto match = load(kTwo + R"(
routings: [{id: r, match: {kinds: [connect], methods: [GET]}, upstreams: [{id: acme}]}]
)");
  EXPECT_THAT(match.format_errors(), HasSubstr("methods and pathPrefixes never match"));
}

TEST(References, OnlyWhatGoesDirectNeedsNoUpstream) {  // GW-34
  const auto direct = load(kTwo + R"(
routings:
  - {id: inside, match: {hosts: ["*.example"]}, upstreams: [], onUnavailable: direct}
  - {id: rest, upstreams: [{id: acme}, {id: other}], onUnavailable: direct}
)");
  ASSERT_TRUE(direct.config) << direct.format_errors();
  EXPECT_THAT(direct.format_warnings(), HasSubstr("routings[1].onUnavailable: while no proxy is"));
  EXPECT_THAT(direct.format_warnings(), testing::Not(HasSubstr("routings[0]")));
  const auto nowhere = load(kTwo + R"(
routings: [{id: r, upstreams: [], onUnavailable: wait}]
)");
  EXPECT_THAT(nowhere.format_errors(), HasSubstr("routings[0].upstreams: names no upstream (set "
                                                 "onUnavailable: direct"));
}

TEST(References, RegularExpressionsCompile) {
  const auto loaded = load(kTwo + R"(
routings:
  - {id: r, match: {hostRegex: ["a(b", "fine.*"]}, upstreams: [{id: acme}, {id: other}]}
)");
  EXPECT_EQ(loaded.errors.size(), 1U) << loaded.format_errors();
  EXPECT_THAT(loaded.format_errors(),
              HasSubstr("routings[0].match.hostRegex[0]: the expression does not compile"));
}

TEST(References, HostsAreKeptInTheirCanonicalSpelling) {  // R2
  const auto loaded = load(kTwo + R"(
gateway: {target: {denyHosts: ["*.Internal.Example."]}}
routings:
  - {id: r, match: {hosts: ["WWW.Example.COM.", "*.Example.org"]},
     upstreams: [{id: acme}, {id: other}]}
)");
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  EXPECT_THAT(loaded.config->routings[0].match.hosts,
              testing::ElementsAre("www.example.com", "*.example.org"));
  EXPECT_THAT(loaded.config->gateway.target.deny_hosts, testing::ElementsAre("*.internal.example"));
}

}  // namespace
}  // namespace proxypool::config
