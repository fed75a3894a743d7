// GW-30, ruling R2: the first routing in order whose every field accepts the request.
#include "proxypool/domain/routing/matcher.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proxypool/base/host.hpp"
#include "proxypool/base/random.hpp"

namespace proxypool::domain {
namespace {

// Stands for the engine: a pattern matches the hosts that contain it.
class Containing final : public HostRegexSet {
 public:
  explicit Containing(std::span<const HostRegex> patterns)
      : patterns_(patterns.begin(), patterns.end()) {}
  void match(std::string_view host, std::vector<std::uint32_t>& rules) const override {
    for (const auto& pattern : patterns_) {
      if (host.find(pattern.pattern) != std::string_view::npos) rules.push_back(pattern.rule);
    }
  }

 private:
  std::vector<HostRegex> patterns_;
};

Result<std::unique_ptr<HostRegexSet>> compile_containing(std::span<const HostRegex> patterns) {
  for (const auto& pattern : patterns) {
    if (pattern.pattern == "(") {
      return Error(ErrorCode::InvalidArgument, Origin::Internal, "missing )");
    }
  }
  return std::unique_ptr<HostRegexSet>(std::make_unique<Containing>(patterns));
}

// A routing, field by field.
struct Rule : SnapshotRouting {
  using Texts = std::vector<std::string>;
  Rule& hosts(Texts texts) { return match.hosts = std::move(texts), *this; }
  Rule& host_regex(Texts texts) { return match.host_regex = std::move(texts), *this; }
  Rule& ports(std::vector<std::uint16_t> ports) { return match.ports = std::move(ports), *this; }
  Rule& methods(Texts texts) { return match.methods = std::move(texts), *this; }
  Rule& path_prefixes(Texts texts) { return match.path_prefixes = std::move(texts), *this; }
  Rule& clients(Texts texts) { return match.clients = std::move(texts), *this; }
  Rule& tags(Tags tags) { return match.tags = std::move(tags), *this; }
  Rule& disabled() { return enabled = false, *this; }
};
SnapshotClient client(std::string name, std::vector<std::string> groups = {}) {
  SnapshotClient c;
  c.name = ClientName(std::move(name));
  c.groups = std::move(groups);
  return c;
}
Matcher compiled(const std::vector<SnapshotRouting>& routings,
                 const std::vector<SnapshotClient>& clients = {}) {
  auto matcher = Matcher::compile(routings, clients, compile_containing);
  EXPECT_TRUE(matcher);
  return *std::move(matcher);
}
RouteRequest http(std::string_view host, std::string_view path = "/",
                  std::string_view method = "GET", std::uint16_t port = 80) {
  return {RequestKind::Http, host, port, method, path, RouteRequest::kNoClient, {}};
}
RouteRequest tunnel(std::string_view host, std::uint16_t port = 443) {
  return {RequestKind::Connect, host, port, {}, {}, RouteRequest::kNoClient, {}};
}
std::uint32_t matched(const Matcher& matcher, const RouteRequest& request) {
  HostVerdicts verdicts;
  return matcher.match(request, verdicts);
}

TEST(Matcher, TheFirstRoutingInOrderWins) {
  const auto matcher = compiled({Rule().hosts({"a.example"}), Rule(), Rule()});
  EXPECT_EQ(matched(matcher, http("a.example")), 0U);
  EXPECT_EQ(matched(matcher, http("b.example")), 1U);
}

TEST(Matcher, NoRoutingAcceptsWhatNoneNames) {
  EXPECT_EQ(matched(compiled({}), http("a.example")), Matcher::kNone);
  EXPECT_EQ(matched(compiled({Rule().hosts({"a.example"})}), http("b.example")), Matcher::kNone);
}

TEST(Matcher, ADisabledRoutingMatchesNothing) {
  const auto matcher =
      compiled({Rule().disabled(), Rule().tags({{"k", "v"}}).disabled(), Rule().ports({80})});
  EXPECT_EQ(matched(matcher, http("a.example")), 2U);
  EXPECT_EQ(matched(matcher, tunnel("a.example")), Matcher::kNone);
}

TEST(Matcher, ASuffixMatchesAnyDepthBelowItAndNotItself) {
  const auto matcher = compiled({Rule().hosts({"*.example.com"})});
  EXPECT_EQ(matched(matcher, http("a.example.com")), 0U);
  EXPECT_EQ(matched(matcher, http("a.b.c.example.com")), 0U);
  EXPECT_EQ(matched(matcher, http("example.com")), Matcher::kNone);
  EXPECT_EQ(matched(matcher, http("notexample.com")), Matcher::kNone);
  EXPECT_EQ(matched(matcher, http("example.com.evil")), Matcher::kNone);
}

TEST(Matcher, AShorterSuffixThatComesFirstWinsOverALongerOne) {
  const auto matcher =
      compiled({Rule().hosts({"*.com"}), Rule().hosts({"*.a.com"}), Rule().hosts({"x.a.com"})});
  EXPECT_EQ(matched(matcher, http("x.a.com")), 0U);
  EXPECT_EQ(matched(matcher, http("a.com")), 0U);
}

TEST(Matcher, MethodsAndPathsKeepTunnelsOut) {
  const auto matcher = compiled({Rule().methods({"GET"}), Rule().path_prefixes({"/"}), Rule()});
  EXPECT_EQ(matched(matcher, http("h", "/", "GET")), 0U);
  EXPECT_EQ(matched(matcher, http("h", "/", "POST")), 1U);
  EXPECT_EQ(matched(matcher, tunnel("h")), 2U);
}

TEST(Matcher, PathPrefixesNestAndShareNoFalseNeighbours) {
  const auto matcher =
      compiled({Rule().path_prefixes({"/api/v1/", "/z"}), Rule().path_prefixes({"/api/"}),
                Rule().path_prefixes({"/api/v0"})});
  EXPECT_EQ(matched(matcher, http("h", "/api/v1/x")), 0U);
  EXPECT_EQ(matched(matcher, http("h", "/api/v0")), 1U) << "inherited from /api/, which is first";
  EXPECT_EQ(matched(matcher, http("h", "/api/v9")), 1U);
  EXPECT_EQ(matched(matcher, http("h", "/api")), Matcher::kNone);
  EXPECT_EQ(matched(matcher, http("h", "/zebra")), 0U);
  EXPECT_EQ(matched(matcher, http("h", "")), Matcher::kNone);
}

TEST(Matcher, ClientsMatchByNameOrGroup) {
  const auto matcher =
      compiled({Rule().clients({"crawlers"}), Rule().clients({"bob"}), Rule()},
               {client("alice", {"crawlers", "day"}), client("bob"), client("carol")});
  auto request = http("h");
  request.client = 0;
  EXPECT_EQ(matched(matcher, request), 0U);
  request.client = 1;
  EXPECT_EQ(matched(matcher, request), 1U);
  request.client = 2;
  EXPECT_EQ(matched(matcher, request), 2U);
  request.client = RouteRequest::kNoClient;
  EXPECT_EQ(matched(matcher, request), 2U);
}

TEST(Matcher, EveryTagOfARoutingMustBeAskedFor) {
  const auto matcher = compiled(
      {Rule().tags({{"tier", "gold"}, {"use", "crawl"}}), Rule().tags({{"use", "crawl"}}), Rule()});
  const std::vector<RequestTag> both{{"use", "crawl"}, {"tier", "gold"}};
  const std::vector<RequestTag> one{{"use", "crawl"}, {"tier", "silver"}};
  auto request = http("h");
  request.tags = both;
  EXPECT_EQ(matched(matcher, request), 0U);
  request.tags = one;
  EXPECT_EQ(matched(matcher, request), 1U);
  request.tags = {};
  EXPECT_EQ(matched(matcher, request), 2U);
}

TEST(Matcher, AHostPatternAddsToTheNamesOfItsRouting) {
  const auto matcher =
      compiled({Rule().hosts({"b.example"}).host_regex({"shop"}).ports({80}), Rule()});
  EXPECT_EQ(matched(matcher, http("myshop.example")), 0U);
  EXPECT_EQ(matched(matcher, http("b.example")), 0U);
  EXPECT_EQ(matched(matcher, http("c.example")), 1U);
  EXPECT_EQ(matched(matcher, tunnel("myshop.example")), 1U) << "AND between fields";
}

TEST(Matcher, AWrongPatternIsTheCompilersError) {
  const std::vector<SnapshotRouting> routings{Rule().host_regex({"("})};
  const auto matcher = Matcher::compile(routings, {}, compile_containing);
  ASSERT_FALSE(matcher);
  EXPECT_EQ(matcher.error().message, "missing )");
}

TEST(Matcher, MoreRoutingsThanTheLimitAreRefused) {
  const std::vector<SnapshotRouting> routings(Matcher::kRulesMax + 1);
  EXPECT_FALSE(Matcher::compile(routings, {}, compile_containing));
}

TEST(HostVerdicts, AskTheEngineOnceAHostAndForgetTheLeastRecent) {
  const auto matcher = compiled({Rule().host_regex({"shop"})});
  HostVerdicts verdicts;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(matcher.match(http("shop.example"), verdicts), 0U);
    EXPECT_EQ(matcher.match(http("other.example"), verdicts), Matcher::kNone);
  }
  EXPECT_EQ(verdicts.misses(), 2U);
  for (std::size_t i = 0; i < HostVerdicts::kHostsMax - 1; ++i) {
    (void)matcher.match(http("h" + std::to_string(i)), verdicts);
    (void)matcher.match(http("shop.example"), verdicts);
  }
  EXPECT_EQ(verdicts.size(), HostVerdicts::kHostsMax);
  const auto misses = verdicts.misses();
  (void)matcher.match(http("shop.example"), verdicts);
  EXPECT_EQ(verdicts.misses(), misses) << "in use, so still known";
  (void)matcher.match(http("other.example"), verdicts);
  EXPECT_EQ(verdicts.misses(), misses + 1) << "the least recent made room";
}

TEST(HostVerdicts, ANewMatcherAsksAnew) {
  HostVerdicts verdicts;
  EXPECT_EQ(compiled({Rule().host_regex({"shop"})}).match(http("shop.example"), verdicts), 0U);
  EXPECT_EQ(compiled({Rule().host_regex({"bank"})}).match(http("shop.example"), verdicts),
            Matcher::kNone);
}

// The rule as written, one by one: what the compiled matcher must agree with.
bool accepts(const SnapshotRouting& r, const RouteRequest& q,
             const std::vector<SnapshotClient>& clients) {
  const auto& m = r.match;
  const auto any = [](const auto& list, auto&& test) {
    for (const auto& item : list) {
      if (test(item)) return true;
    }
    return false;
  };
  const bool is_http = q.kind == RequestKind::Http;
  const auto host =
      any(m.hosts, [&](const auto& h) { return host_matches(q.host, h); }) ||
      any(m.host_regex, [&](const auto& p) { return q.host.find(p) != std::string_view::npos; });
  const auto named = [&](const std::string& name) {
    if (q.client >= clients.size()) return false;
    const auto& c = clients[q.client];
    return c.name.str() == name || any(c.groups, [&](const auto& g) { return g == name; });
  };
  const auto asked = [&](const auto& tag) {
    return any(q.tags,
               [&](const RequestTag& t) { return t.key == tag.first && t.value == tag.second; });
  };
  return r.enabled && ((m.hosts.empty() && m.host_regex.empty()) || host) &&
         (m.ports.empty() || any(m.ports, [&](auto p) { return p == q.port; })) &&
         (m.kinds.empty() || any(m.kinds, [&](auto k) { return k == q.kind; })) &&
         (m.methods.empty() ||
          (is_http && any(m.methods, [&](const auto& x) { return x == q.method; }))) &&
         (m.path_prefixes.empty() ||
          (is_http &&
           any(m.path_prefixes, [&](const auto& p) { return q.path.starts_with(p); }))) &&
         (m.clients.empty() || any(m.clients, named)) &&
         !any(m.tags, [&](const auto& tag) { return !asked(tag); });
}

TEST(Matcher, AgreesWithTryingEveryRuleOnRandomConfigurations) {
  SplitMix64 random(7);
  const std::vector<std::string> hosts{"a.com",     "*.a.com", "b.a.com",  "*.com",
                                       "x.b.a.com", "c.org",   "*.b.a.com"};
  const std::vector<std::string> asked_hosts{"a.com", "b.a.com",     "x.b.a.com", "q.com",
                                             "c.org", "y.x.b.a.com", "192.0.2.1"};
  const std::vector<std::string> paths{"/", "/a", "/a/b", "/ab", "/b"};
  const std::vector<std::string> methods{"GET", "POST", "PUT"};
  const std::vector<std::string> people{"n0", "n1", "g0", "g1"};
  const auto pick = [&](const auto& from) { return from[random.below(from.size())]; };
  for (int round = 0; round < 60; ++round) {
    std::vector<SnapshotRouting> routings(1 + random.below(200));
    for (auto& r : routings) {
      r.enabled = random.below(10) != 0;
      auto& m = r.match;
      for (auto n = random.below(3); n > 0; --n) m.hosts.push_back(pick(hosts));
      if (random.below(6) == 0) m.host_regex.push_back("b.");
      if (random.below(3) == 0) m.ports.push_back(static_cast<std::uint16_t>(random.below(4)));
      if (random.below(4) == 0) m.kinds.push_back(static_cast<RequestKind>(random.below(2)));
      if (random.below(4) == 0) m.methods.push_back(pick(methods));
      if (random.below(3) == 0) m.path_prefixes.push_back(pick(paths));
      if (random.below(3) == 0) m.clients.push_back(pick(people));
      if (random.below(3) == 0) m.tags["t" + std::to_string(random.below(3))] = pick(people);
    }
    const std::vector<SnapshotClient> clients{client("n0", {"g0"}), client("n1", {"g0", "g1"}),
                                              client("n2")};
    const auto matcher = compiled(routings, clients);
    HostVerdicts verdicts;
    for (int i = 0; i < 300; ++i) {
      const std::vector<RequestTag> tags{{"t0", people[random.below(4)]},
                                         {"t1", people[random.below(4)]}};
      RouteRequest q;
      q.kind = static_cast<RequestKind>(random.below(2));
      const auto host = pick(asked_hosts);
      const auto path = pick(paths) + "/tail";
      const auto method = pick(methods);
      q.host = host;
      q.port = static_cast<std::uint16_t>(random.below(5));
      if (q.kind == RequestKind::Http) {
        q.path = path;
        q.method = method;
      }
      q.client = static_cast<std::uint32_t>(random.below(4));
      if (random.below(2) == 0) q.tags = tags;
      std::uint32_t expected = 0;
      while (expected < routings.size() && !accepts(routings[expected], q, clients)) ++expected;
      if (expected == routings.size()) expected = Matcher::kNone;
      ASSERT_EQ(matcher.match(q, verdicts), expected) << "round " << round << " request " << i;
    }
  }
}

TEST(RuleSet, FindsTheFirstCommonRuleAcrossWords) {
  RuleSet a(4'096);
  RuleSet b(4'096);
  for (const std::uint32_t rule : {5U, 64U, 700U, 4'095U}) a.add(rule);
  for (const std::uint32_t rule : {6U, 65U, 4'000U, 4'095U}) b.add(rule);
  const std::vector<const RuleSet*> sets{&a, &b};
  EXPECT_EQ(RuleSet::first_common(sets), 4'095U);
  a.add(4'000);
  EXPECT_EQ(RuleSet::first_common(sets), 4'000U);
  EXPECT_TRUE(a.contains(4'000));
  EXPECT_FALSE(a.contains(4'001));
}

}  // namespace
}  // namespace proxypool::domain
