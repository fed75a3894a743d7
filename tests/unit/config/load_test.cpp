#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using test::kRest;
using test::load;
using testing::HasSubstr;
using testing::IsEmpty;

// CF-2: six lines are a useful file.
TEST(Load, SixLinesAreEnough) {
  const auto loaded = load(R"yaml(upstreams:
  - id: my-list
    provider: {type: static, proxies: ["http://user:pass@192.0.2.10:8080"]}
routings:
  - id: everything
    upstreams: [{id: my-list}]
)yaml");
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  EXPECT_THAT(loaded.format_warnings(), IsEmpty());
  const Config& config = *loaded.config;
  ASSERT_EQ(config.upstreams.size(), 1U);
  EXPECT_EQ(config.upstreams[0].id.str(), "my-list");
  ASSERT_EQ(config.upstreams[0].provider.proxies.size(), 1U);
  const auto& proxy = config.upstreams[0].provider.proxies[0];
  EXPECT_EQ(proxy.endpoint.host, "192.0.2.10");
  EXPECT_EQ(proxy.endpoint.port, 8080);
  EXPECT_EQ(proxy.credential.username, "user");
  EXPECT_EQ(proxy.credential.password.reveal(), "pass");
  EXPECT_EQ(config.routings[0].strategy, domain::Strategy::RoundRobin);
  EXPECT_EQ(config.gateway.listen.str(), "127.0.0.1:8080");
}

// The issue's "must be shown": five different mistakes, all five with positions and hints.
TEST(Load, FiveMistakesAreShownAtOnceWithPlacesAndHints) {
  const auto loaded = load(R"yaml(gateway:
  listn: 127.0.0.1:8080
  bench: 2 seconds
upstreams:
  - id: acme
    provider: {type: static, proxies: ["192.0.2.1:80"]}
    pool: {minimum: 50, target: 10}
routings:
  - id: all
    strategy: round_robbin
    upstreams: [{id: acm}]
)yaml");
  EXPECT_FALSE(loaded.config);
  EXPECT_EQ(loaded.format_errors(),
            "test.yaml:2:3: error: gateway.listn: unknown key (did you mean listen?)\n"
            "test.yaml:3:10: error: gateway.bench: expected a duration, found \"2 seconds\" (a "
            "number and one of ms, s, m, h: 250ms, 30s, 5m, 2h)\n"
            "test.yaml:7:21: error: upstreams[0].pool.minimum: minimum must not be greater than "
            "target\n"
            "test.yaml:10:15: error: routings[0].strategy: unknown value \"round_robbin\" (did you "
            "mean round_robin?)\n"
            "test.yaml:11:22: error: routings[0].upstreams[0].id: there is no upstream named acm "
            "(did you mean acme?)\n");
}

TEST(Load, AnEmptyFileIsEveryDefault) {
  const auto loaded = load("", {}, Program::Gateway);
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  EXPECT_EQ(canonical_json(*loaded.config, test::digest), canonical_json(Config{}, test::digest));
}

TEST(Load, WhatIsShownCanBeReadBack) {
  const auto first = load(R"yaml(
check: {basic: {interval: 90s, target: "[2001:db8::1]:443"}}
gateway: {threads: 3, target: {denyCIDRs: [198.51.100.0/24], allowPorts: [80, 443]}}
upstreams:
  - id: acme
    provider:
      type: http
      request:
        url: "https://api.example:8443/x?y={{ batch }}"
        query: {num: 10, flag: true, name: "a: b"}
        headers: {Accept: text/plain}
      response: {format: json}
      records: {from: "body.a.b[*]"}
      map: {as: "proxy(item, 'user:pass@host:port')", country: "'DE'",
            expires: {epoch: item.at, unit: ms}, tags: {
  plan:
    item.plan}
}
    tags: {tier: "true"}
  - {id: list, provider: {type: static, proxies: ["[2001:db8::7]:80"]}}
  - {id: text, provider: {type: http, request: {url: "https://v.example/"}}}
routings:
  - {id: all, match: {hostRegex: ["a+\\.example"], methods: [GET], tags: {k: v}},
     upstreams: [{id: acme}, {id: list}, {id: text}]}
)yaml");
  ASSERT_TRUE(first.config) << first.format_errors();
  const auto shown = redacted_yaml(*first.config);
  const auto second = load(shown);
  ASSERT_TRUE(second.config) << second.format_errors() << shown;
  EXPECT_EQ(canonical_json(*first.config, test::digest),
            canonical_json(*second.config, test::digest));
}

TEST(Load, ListsGetTheDefaultsOfLists) {  // C19, C20
  const auto loaded = load(R"yaml(
upstreams:
  - {id: a, provider: {type: static, proxies: ["10.0.0.1:80"]}}
  - {id: b, provider: {type: http, request: {url: "https://v.example/"}}}
routings: [{id: all, upstreams: [{id: a}, {id: b}]}]
)yaml");
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  const auto& list = loaded.config->upstreams[0];
  const auto& vendor = loaded.config->upstreams[1];
  EXPECT_FALSE(list.extraction.extractable);
  EXPECT_TRUE(vendor.extraction.extractable);
  EXPECT_TRUE(list.allow_private_addresses);
  EXPECT_FALSE(vendor.allow_private_addresses);
  EXPECT_EQ(list.pool.default_ttl, nanoseconds{0});
  EXPECT_EQ(vendor.pool.default_ttl, minutes(5));
  EXPECT_EQ(list.pool.size_max, 100'000U);
}

TEST(Load, AnUpstreamInheritsTheCheckPolicyAndOverridesParts) {
  const auto loaded = load(R"yaml(
upstreams:
  - {id: a, provider: {type: static, proxies: ["192.0.2.1:80"]}, check: {basic: {timeout: 2s}}}
routings: [{id: all, upstreams: [{id: a}]}]
check: {basic: {interval: 1m, failureThreshold: 7}}
)yaml");
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  const auto& check = loaded.config->upstreams[0].check.basic;
  EXPECT_EQ(check.interval, minutes(1));
  EXPECT_EQ(check.failure_threshold, 7U);
  EXPECT_EQ(check.timeout, seconds(2));
}

// GW-11: the strict start rule.
TEST(Load, AnOpenListenerNeedsAuthenticationOrRanges) {
  const auto refused = load("gateway: {listen: 0.0.0.0:8080}\n" + kRest);
  EXPECT_FALSE(refused.config);
  EXPECT_THAT(refused.format_errors(), HasSubstr("test.yaml:1:19: error: gateway.listen: listens"));
  const auto distribution = load("distribution: {listen: \"[::]:8081\"}\n" + kRest);
  EXPECT_FALSE(distribution.config);
  EXPECT_THAT(distribution.format_errors(), HasSubstr("distribution.listen: listens on [::]:8081"));

  EXPECT_TRUE(
      load("gateway: {listen: 0.0.0.0:8080, access: {allowCIDRs: [10.0.0.0/8]}}\n" + kRest).config);
  EXPECT_TRUE(
      load("gateway: {listen: 0.0.0.0:8080, auth: {mode: usernamePassword}}\n" + kRest).config);
  EXPECT_TRUE(load("gateway: {listen: 127.9.9.9:8080}\n" + kRest).config);
  EXPECT_TRUE(load("gateway: {listen: \"[::1]:8080\"}\n" + kRest).config);

  const auto lax = load("cluster: {strict: false}\ngateway: {listen: 0.0.0.0:8080}\n" + kRest);
  EXPECT_TRUE(lax.config);
  EXPECT_THAT(lax.format_warnings(), HasSubstr("2:19: warning: gateway.listen: listens on"));
}

TEST(Load, AnotherMistakeBesideDoesNotHideTheOpenListener) {
  const auto loaded = load("gateway: {listen: 0.0.0.0:8080, bench: never}\n" + kRest);
  EXPECT_EQ(loaded.errors.size(), 2U) << loaded.format_errors();
}

TEST(Load, AdminAndControlPlaneAreNotOpenedByAccident) {
  EXPECT_THAT(load("admin: {listen: 0.0.0.0:8082}\n" + kRest).format_errors(),
              HasSubstr("admin.listen: listens on 0.0.0.0:8082 without a token"));
  EXPECT_TRUE(
      load("admin: {listen: 0.0.0.0:8082, auth: {readToken: {env: T}}}\n" + kRest, {{"T", "t"}})
          .config);
  EXPECT_THAT(load("controlPlane: {listen: 0.0.0.0:9443}\n" + kRest).format_errors(),
              HasSubstr("controlPlane.listen"));
  EXPECT_THAT(load("checker: {controlPlane: \"192.0.2.1:9443\"}\n" + kRest).format_errors(),
              HasSubstr("no loopback address"));
}

TEST(Load, TwoListenersOfOneProgramCannotShareAnAddress) {
  const auto loaded = load("admin: {listen: 127.0.0.1:8081}\n" + kRest);
  EXPECT_EQ(loaded.format_errors(),
            "test.yaml:1:17: error: admin.listen: 127.0.0.1:8081 is also distribution.listen\n");
  EXPECT_TRUE(
      load("admin: {listen: 127.0.0.1:0}\ndistribution: {listen: 127.0.0.1:0}\n" + kRest).config);
  EXPECT_TRUE(load("checker: {metrics: {listen: 127.0.0.1:8081}}\n" + kRest).config);
}

struct Contradiction {
  std::string text;
  std::string message;
};
class Contradictions : public testing::TestWithParam<Contradiction> {};

TEST_P(Contradictions, AreErrorsAtTheKeyThatWasWritten) {
  const auto loaded = load(GetParam().text);
  EXPECT_FALSE(loaded.config);
  EXPECT_EQ(loaded.errors.size(), 1U) << loaded.format_errors();
  EXPECT_THAT(loaded.format_errors(), HasSubstr(GetParam().message));
}

std::string upstream(const std::string& extra, const std::string& provider = "") {
  const std::string http = "{type: http, request: {url: \"https://v.example/\"}}";
  return "routings: [{id: all, upstreams: [{id: u}]}]\nupstreams:\n  - {id: u, provider: " +
         (provider.empty() ? http : provider) + extra + "}\n";
}
std::string http(const std::string& request, const std::string& rest = "") {
  return upstream("", "{type: http, request: {" + request + "}" + rest + "}");
}
const std::string kUrl = "url: \"https://v.example/\"";

INSTANTIATE_TEST_SUITE_P(
    Load, Contradictions,
    testing::Values(
        Contradiction{"controlPlane: {lease: 5s, reportInterval: 2s}\n" + kRest,
                      "1:23: error: controlPlane.lease: lease must be at least"},
        Contradiction{"check: {basic: {interval: 2s}}\n" + kRest,
                      "check.basic.interval: timeout must not be greater than interval"},
        Contradiction{"gateway: {transport: {total: 5s}}\n" + kRest,
                      "gateway.transport.total: firstByte must not be greater than total"},
        Contradiction{upstream(", pool: {minimum: 101}"), "pool.minimum: minimum must not"},
        Contradiction{upstream(", pool: {maxSize: 5, maxConcurrency: 2}"),
                      "pool.maxSize: target 100 can never be reached"},
        Contradiction{upstream(", pool: {defaultTTL: 5s}"),
                      "pool.defaultTTL: allocationSafetyMargin must not be greater"},
        Contradiction{upstream(", pool: {defaultTTL: 2h, maxTTL: 1h}"),
                      "pool.defaultTTL: defaultTTL must not be greater than maxTTL"},
        Contradiction{upstream(", extraction: {reserveForGateway: 2000}"), "reserveForGateway"},
        Contradiction{upstream(", fetch: {backoff: {initial: 10m}}"), "backoff.initial"},
        Contradiction{
            upstream(", fetch: {timeout: 1s}", "{type: static, proxies: [\"192.0.2.1:80\"]}"),
            "upstreams[0].fetch: applies to provider type http alone"},
        Contradiction{upstream(", allowPrivateAddresses: false",
                               "{type: static, proxies: [\"192.0.2.1:80\", \"10.1.2.3:80\"]}"),
                      "provider.proxies[1]: is a private address"},
        Contradiction{http(kUrl, ", map: {host: item.ip}"), "host and port belong together"},
        Contradiction{http(kUrl, ", map: {as: \"proxy(item, 'url')\", host: item.ip, port: 1}"),
                      "as and host or port exclude each other"},
        Contradiction{http(kUrl, ", response: {format: json}"), "needs map.as, or map.host"},
        Contradiction{http(kUrl, ", records: {from: \"body[*]\"}"), "format json alone"},
        Contradiction{http(kUrl, ", map: {expires: {unit: s}}"), "exactly one of after and epoch"},
        Contradiction{http(kUrl, ", proxies: [\"192.0.2.1:80\"]"),
                      "provider.proxies: does not apply to type http"},
        Contradiction{http(kUrl + ", headers: {Authorization: \"Bearer abc\"}"),
                      "a credential must not stand in the file"},
        Contradiction{http(kUrl + ", query: {apiKey: abc}"),
                      "a credential must not stand in the file"},
        Contradiction{http("url: \"https://u:p@v.example/\""),
                      "a user name or password must not stand in the URL"},
        Contradiction{http("url: \"ftp://v.example/\""), "must begin with http:// or https://"},
        Contradiction{http("url: \"https://{{ batch }}.example/\""),
                      "the host must be written out"},
        Contradiction{http("url: \"https://v.example{{ batch }}\""), "a / must follow it"},
        Contradiction{http("url: \"https://v.example:0/\""), "port is not a number"},
        Contradiction{http(kUrl + ", query: {n: \"{{ secret.k }}\"}"),
                      "there is no secret named k (declare it under provider.secrets)"},
        Contradiction{http(kUrl + ", query: {n: \"{{ nonce }}\"}"),
                      "{{ nonce }} is not known ({{ secret.NAME }} or {{ batch }})"},
        Contradiction{http(kUrl + ", query: {n: \"{{ batch\"}"), "{{ without }}"},
        Contradiction{http(kUrl + ", headers: {Host: x}"), "set by the client itself"},
        Contradiction{http(kUrl + ", headers: {A: x, a: y}"), "stands here twice"},
        Contradiction{http(kUrl + ", method: POST"), "POST is not supported in this version"},
        Contradiction{http(kUrl, ", map: {as: \"proxy(item, 'port:host')\"}"), "the form of the"},
        Contradiction{http(kUrl, ", map: {as: \"lookup(item)\"}"),
                      "expected a proxy(…) expression"},
        Contradiction{http(kUrl, ", map: {country: \"upper(item.cc)\"}"),
                      "is no expression that this version knows"}));

struct Refused {
  std::string text;
  std::string word;
};
class NotBuiltYet : public testing::TestWithParam<Refused> {};

TEST_P(NotBuiltYet, IsNamedInsteadOfBeingIgnored) {
  const auto loaded = load(GetParam().text);
  EXPECT_FALSE(loaded.config);
  EXPECT_THAT(loaded.format_errors(),
              HasSubstr(GetParam().word + " is not supported in this version (supported: "));
}

INSTANTIATE_TEST_SUITE_P(
    Load, NotBuiltYet,
    testing::Values(Refused{"storage: {mode: external}\n" + kRest, "external"},
                    Refused{"controlPlane: {tls: {mode: mtls}}\n" + kRest, "mtls"},
                    Refused{"distribution: {auth: {mode: bearer}}\n" + kRest, "bearer"},
                    Refused{upstream("", "{type: gateway}"), "gateway"},
                    Refused{http(kUrl, ", response: {format: csv}"), "csv"}));

TEST(Load, ASequentialRoutingHasItsOrderAndItsEnd) {  // R3
  const auto loaded = load(R"(
upstreams:
  - {id: a, provider: {type: static, proxies: ["192.0.2.1:80"]}}
  - {id: b, provider: {type: static, proxies: ["192.0.2.2:80"]}}
routings:
  - {id: r, strategy: sequential, exhaustion: stayLast, upstreams: [{id: b}, {id: a}]}
  - {id: s, strategy: sequential, match: {ports: [1]}, upstreams: [{id: a}, {id: b}]}
)");
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  EXPECT_EQ(loaded.config->routings[0].exhaustion, domain::Exhaustion::StayLast);
  EXPECT_EQ(loaded.config->routings[0].upstreams[0].id, UpstreamId("b"));
  EXPECT_EQ(loaded.config->routings[1].exhaustion, domain::Exhaustion::Stop);

  const auto alone = load(kRest.substr(0, kRest.find("routings")) +
                          "routings:\n  - {id: r, strategy: sequential, upstreams: [{id: list}]}\n"
                          "  - {id: s, exhaustion: loop, upstreams: [{id: list}]}\n");
  EXPECT_EQ(alone.errors.size(), 2U) << alone.format_errors();
  EXPECT_THAT(alone.format_errors(),
              HasSubstr("routings[0].upstreams: strategy sequential needs at least two upstreams"));
  EXPECT_THAT(alone.format_errors(),
              HasSubstr("routings[1].exhaustion: applies to strategy sequential alone"));
}

TEST(Load, SocksIsRefusedWithAClearWord) {
  const auto loaded =
      load(upstream("", "{type: static, proxies: [\"socks5://user:hunter2@192.0.2.1:1080\"]}"));
  EXPECT_FALSE(loaded.config);
  EXPECT_THAT(loaded.format_errors(), HasSubstr("SOCKS proxies are not supported"));
  EXPECT_THAT(loaded.format_errors(), testing::Not(HasSubstr("hunter2")));
}

TEST(Load, ProxiesSpeakHttpOrHttps) {  // GW-40
  const auto loaded = load(R"(
upstreams: [{id: u, provider: {type: static, proxies: ["https://u:p@proxy.example:443",
  "http://192.0.2.1:80", "192.0.2.2:80"]}}]
routings: [{id: r, upstreams: [{id: u}]}]
)");
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  const auto& proxies = loaded.config->upstreams[0].provider.proxies;
  ASSERT_EQ(proxies.size(), 3U);
  EXPECT_EQ(proxies[0].endpoint.scheme, domain::Scheme::Https);
  EXPECT_EQ(proxies[1].endpoint.scheme, domain::Scheme::Http);
  EXPECT_EQ(proxies[2].endpoint.scheme, domain::Scheme::Http);
}

TEST(Load, WhoIsTrustedIsNamed) {  // GW-3
  const auto good =
      load("gateway: {access: {proxyProtocol: required, trustedProxies: [10.0.0.1]}}");
  ASSERT_TRUE(good.config) << good.format_errors();
  EXPECT_EQ(good.config->gateway.access.proxy_protocol, ProxyProtocol::Required);
  EXPECT_EQ(good.config->gateway.access.trusted_proxies.size(), 1U);
  EXPECT_THAT(load("gateway: {access: {proxyProtocol: required}}").format_errors(),
              HasSubstr("gateway.access.proxyProtocol: required, but of nobody"));
  for (const char* everybody : {"0.0.0.0/0", "\"::/0\""}) {
    const auto bad = load(std::string("gateway: {access: {trustedProxies: [") + everybody + "]}}");
    EXPECT_THAT(bad.format_errors(), HasSubstr("anybody could claim any address"));
  }
}

TEST(Load, ACertificateNeedsItsKey) {  // GW-2
  EXPECT_FALSE(load("gateway: {tls: {cert: a.pem}}").config);
  const auto good = load("gateway: {tls: {cert: a.pem, key: a.key, minVersion: TLS1.3}}");
  ASSERT_TRUE(good.config) << good.format_errors();
  ASSERT_TRUE(good.config->gateway.tls);
  EXPECT_EQ(good.config->gateway.tls->version_min, TlsMinimum::Tls13);
  EXPECT_FALSE(load("").config->gateway.tls);
}

TEST(Load, DangerousButLegalSettingsAreWarnings) {
  const auto loaded = load(R"yaml(cluster: {strict: false}
gateway:
  target: {allowCIDRs: [127.0.0.1]}
  retry: {unsafeBeforeSend: true}
  auth: {mode: usernamePassword}
distribution: {auth: {mode: usernamePassword}}
upstreams:
  - {id: list, provider: {type: static, proxies: ["192.0.2.1:80", "192.0.2.1:80"]}}
  - {id: unused, provider: {type: file, path: /no/such/file}}
routings:
  - {id: all, upstreams: [{id: list}]}
  - {id: late, upstreams: [{id: list}]}
)yaml");
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  EXPECT_EQ(loaded.format_warnings(),
            "test.yaml:1:19: warning: cluster.strict: dangerous combinations are not refused\n"
            "test.yaml:3:24: warning: gateway.target.allowCIDRs: clients may reach these ranges "
            "although they are denied otherwise\n"
            "test.yaml:4:29: warning: gateway.retry.unsafeBeforeSend: a POST may be sent to a "
            "second proxy when the first could not be reached\n"
            "test.yaml:5:16: warning: gateway.auth.mode: no client has credentials.gateway: nobody "
            "gets in\n"
            "test.yaml:6:29: warning: distribution.auth.mode: no client has "
            "credentials.distribution: nobody gets in\n"
            "test.yaml:8:67: warning: upstreams[0].provider.proxies[1]: this proxy stands here "
            "twice\n"
            "test.yaml:9:5: warning: upstreams[1]: no routing uses it, and it is not extractable\n"
            "test.yaml:9:47: warning: upstreams[1].provider.path: there is no file /no/such/file "
            "yet\n"
            "test.yaml:12:5: warning: routings[1]: is never reached: routing all matches "
            "everything\n");
}

}  // namespace
}  // namespace proxypool::config
