// Eligibility, reserve, order and idempotency of extractions (EX-1, EX-2, C6).
#include "proxypool/domain/extraction/eligibility.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "unit/domain/lifecycle/builders.hpp"

namespace proxypool::domain {
namespace {

using build::at;

Proxy rich() {
  Proxy p = build::proxy(1);
  p.attributes = {"US", "ca", "berlin", "acme-mobile"};
  p.tags = {{"tier", "gold"}, {"kind", "dc"}};
  p.expires_at = at(100);
  p.usable_until = at(90);
  p.last_checked_at = at(10);
  return p;
}

TEST(Filters, AnEmptyFilterDemandsNothing) {
  EXPECT_TRUE(matches({}, rich(), at(20)));
  EXPECT_TRUE(matches({}, build::proxy(2), at(20)));
}

TEST(Filters, FieldsAreAndedAndValuesAreOrdEX2) {
  ExtractionFilters f;
  f.protocols = {Scheme::Https, Scheme::Http};
  f.countries = {"DE", "US"};
  f.regions = {"CA"};
  f.cities = {"Berlin"};
  f.carriers = {"x", "ACME-mobile"};
  f.upstreams = {UpstreamId("acme")};
  f.tags = {{"tier", "gold"}};
  EXPECT_TRUE(matches(f, rich(), at(20)));
  const auto refused = [&](auto change) {
    ExtractionFilters g = f;
    change(g);
    return !matches(g, rich(), at(20));
  };
  EXPECT_TRUE(refused([](auto& g) { g.protocols = {Scheme::Https}; }));
  EXPECT_TRUE(refused([](auto& g) { g.countries = {"DE"}; }));
  EXPECT_TRUE(refused([](auto& g) { g.regions = {"ny"}; }));
  EXPECT_TRUE(refused([](auto& g) { g.cities = {"bern"}; }));
  EXPECT_TRUE(refused([](auto& g) { g.carriers = {"x"}; }));
  EXPECT_TRUE(refused([](auto& g) { g.upstreams = {UpstreamId("other")}; }));
  EXPECT_TRUE(refused([](auto& g) { g.tags = {{"tier", "silver"}}; }));
  EXPECT_TRUE(refused([](auto& g) { g.tags = {{"colour", "red"}}; }));
}

TEST(Filters, RemainingLifeIsMeasuredToTheHardEnd) {
  ExtractionFilters f;
  f.min_remaining_ttl = seconds(60);
  EXPECT_TRUE(matches(f, rich(), at(40)));
  EXPECT_FALSE(matches(f, rich(), at(41)));
  EXPECT_TRUE(matches(f, build::proxy(2), at(40))) << "no expiry at all";
}

TEST(Filters, TheAgeOfTheLastGoodWordCounts) {
  ExtractionFilters f;
  f.max_health_check_age = seconds(5);
  Proxy p = rich();
  EXPECT_TRUE(matches(f, p, at(15)));
  EXPECT_FALSE(matches(f, p, at(16)));
  p.last_success_at = at(14);
  EXPECT_TRUE(matches(f, p, at(16)));
  p.last_checked_at.reset();
  EXPECT_TRUE(matches(f, p, at(16)));
  p.last_success_at.reset();
  EXPECT_FALSE(matches(f, p, at(16)));
}

TEST(Extractable, OnlyAvailableUnownedIdleProxiesWithinTheirMarginC6) {
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    for (const auto ownership : {Ownership::Unowned, Ownership::Owned, Ownership::Revoking}) {
      for (const bool idle : {false, true}) {
        Proxy p = rich();
        p.state = static_cast<ProxyState>(s);
        p.ownership = ownership;
        EXPECT_EQ(extractable(p, idle, at(20)),
                  p.state == ProxyState::Available && ownership == Ownership::Unowned && idle);
        EXPECT_FALSE(extractable(p, idle, at(90)));
      }
    }
  }
}

TEST(Reserve, AnExtractionLeavesWhatTheGatewayNeedsEX2) {
  const auto policy = [](bool allowed, std::uint32_t reserve) {
    return ExtractionPolicy{UpstreamId("acme"), allowed, reserve};
  };
  EXPECT_EQ(takeable(policy(true, 3), 10), 7U);
  EXPECT_EQ(takeable(policy(true, 10), 10), 0U);
  EXPECT_EQ(takeable(policy(true, 11), 10), 0U);
  EXPECT_EQ(takeable(policy(false, 0), 10), 0U);
}

struct Shop {
  std::vector<Proxy> pool;
  ExtractionCommand command;
  std::vector<UpstreamAvailable> available;

  ExtractionChoice choose_with(std::uint64_t seed) const {
    std::vector<const Proxy*> candidates;
    for (const Proxy& p : pool) candidates.push_back(&p);
    SplitMix64 random(seed);
    return choose(command, candidates, available, random);
  }
};

Shop shop(std::size_t count_of_acme, std::size_t count_of_zenith) {
  Shop s;
  for (std::size_t i = 0; i < count_of_acme; ++i) s.pool.push_back(build::proxy(i));
  for (std::size_t i = 0; i < count_of_zenith; ++i) {
    s.pool.push_back(build::proxy(1'000 + i, ProxyState::Available, "zenith"));
  }
  s.available = {{UpstreamId("acme"), count_of_acme}, {UpstreamId("zenith"), count_of_zenith}};
  s.command.policies = {{UpstreamId("acme"), true, 0}, {UpstreamId("zenith"), true, 0}};
  s.command.count = 4;
  return s;
}

TEST(Choice, TheLongestRemainingLifeGoesFirstEX2) {
  Shop s = shop(6, 0);
  for (std::size_t i = 0; i < 6; ++i) s.pool[i].expires_at = at(static_cast<std::int64_t>(i * 10));
  s.pool[0].expires_at.reset();  // endless
  const auto choice = s.choose_with(1);
  std::vector<std::uint64_t> ids;
  for (const Proxy* p : choice.proxies) ids.push_back(p->id.value());
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{0, 5, 4, 3}));
}

TEST(Choice, TiesAreRandom) {
  const Shop s = shop(8, 0);
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    first.insert(s.choose_with(seed).proxies.front()->id.value());
  }
  EXPECT_EQ(first.size(), 8U);
}

TEST(Choice, TheReserveOfEachUpstreamStays) {
  Shop s = shop(3, 3);
  s.command.count = 99;
  s.command.policies[0].reserve_for_gateway = 2;
  s.command.policies[1].extractable = false;
  const auto choice = s.choose_with(1);
  EXPECT_EQ(choice.available, 1U);
  ASSERT_EQ(choice.proxies.size(), 1U);
  EXPECT_EQ(choice.proxies[0]->upstream, UpstreamId("acme"));
  s.command.policies.pop_back();  // zenith is not listed at all
  EXPECT_EQ(s.choose_with(1).available, 1U);
}

TEST(Choice, OwnedProxiesCountAsLeftForTheGateway) {
  Shop s = shop(3, 0);
  s.available[0].available = 5;  // two more are owned
  s.command.policies[0].reserve_for_gateway = 3;
  EXPECT_EQ(s.choose_with(1).available, 2U);
}

TEST(Choice, PartialTakesWhatThereIsAndAllOrNothingTakesNothing) {
  Shop s = shop(3, 0);
  EXPECT_EQ(s.choose_with(1).proxies.size(), 3U);
  EXPECT_EQ(s.choose_with(1).outcome, ExtractionOutcome::Done);
  s.command.fulfillment = Fulfillment::AllOrNothing;
  const auto refused = s.choose_with(1);
  EXPECT_EQ(refused.outcome, ExtractionOutcome::Insufficient);
  EXPECT_EQ(refused.available, 3U);
  EXPECT_TRUE(refused.proxies.empty());
  s.command.count = 3;
  EXPECT_EQ(s.choose_with(1).proxies.size(), 3U);
}

TEST(Choice, NeverMoreThanAskedForAndNeverOneTwice) {
  SplitMix64 random(9);
  for (std::uint64_t round = 0; round < 500; ++round) {
    Shop s = shop(random.below(12), random.below(12));
    s.command.count = static_cast<std::uint32_t>(random.below(15));
    for (auto& policy : s.command.policies) {
      policy.reserve_for_gateway = static_cast<std::uint32_t>(random.below(6));
    }
    for (auto& p : s.pool) p.expires_at = at(static_cast<std::int64_t>(random.below(3)));
    const auto choice = s.choose_with(round);
    const std::set<const Proxy*> distinct(choice.proxies.begin(), choice.proxies.end());
    EXPECT_EQ(distinct.size(), choice.proxies.size());
    EXPECT_LE(choice.proxies.size(), s.command.count);
    for (std::size_t u = 0; u < 2; ++u) {
      const auto taken =
          std::count_if(choice.proxies.begin(), choice.proxies.end(),
                        [&](const Proxy* p) { return p->upstream == s.available[u].upstream; });
      EXPECT_LE(static_cast<std::size_t>(taken),
                takeable(s.command.policies[u], s.available[u].available));
    }
  }
}

TEST(Idempotency, AKeyGivesItsFirstAnswerToTheSameBodyOnlyEX1) {
  using D = IdempotencyDecision;
  IdempotencyRecord record{"body", true, at(100)};
  EXPECT_EQ(decide_idempotency({}, "body", at(1)), D::Fresh);
  EXPECT_EQ(decide_idempotency(record, "body", at(99)), D::Replay);
  EXPECT_EQ(decide_idempotency(record, "other", at(99)), D::Mismatch);
  EXPECT_EQ(decide_idempotency(record, "other", at(100)), D::Fresh);
  record.finished = false;
  EXPECT_EQ(decide_idempotency(record, "body", at(99)), D::InProgress);
  EXPECT_EQ(decide_idempotency(record, "other", at(99)), D::Mismatch);
}

TEST(Idempotency, OnlyAnAnswerThatGaveSomethingIsRememberedEX1) {
  ExtractionResult result;
  EXPECT_FALSE(worth_remembering(result));
  result.proxies.emplace_back();
  EXPECT_TRUE(worth_remembering(result));
  result.outcome = ExtractionOutcome::Insufficient;
  EXPECT_FALSE(worth_remembering(result));
}

}  // namespace
}  // namespace proxypool::domain
