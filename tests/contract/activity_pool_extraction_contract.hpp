// What every ActivityPool promises about extraction: exclusive, final, whole, and repeatable under
// its idempotency key (CT-60, EX-1, EX-2).
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "contract/pool_steps.hpp"

namespace proxypool::contract {

using domain::ExtractionOutcome;

template <class Fixture>
class PoolExtractionContract : public PoolSteps<Fixture> {
 protected:
  static std::vector<ProxyId> ids_of(const domain::ExtractionResult& result) {
    std::vector<ProxyId> ids;
    for (const auto& entry : result.proxies) ids.push_back(entry.proxy.id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  // What a command with these filters would get.
  std::uint32_t available(const std::function<void(domain::ExtractionFilters&)>& set) {
    auto wanted = this->command(100);
    wanted.policies.push_back({UpstreamId("b"), true, 0});
    set(wanted.filters);
    const auto preview = *this->pool().preview(wanted, Deadline{});
    EXPECT_EQ(preview.outcome, ExtractionOutcome::Done);
    EXPECT_TRUE(preview.proxies.empty());
    return preview.available;
  }
};

TYPED_TEST_SUITE_P(PoolExtractionContract);

TYPED_TEST_P(PoolExtractionContract, WhatIsExtractedComesWithItsCredentialAndIsGone) {
  this->supply("a", proxy_ids(1, 3));
  const auto result = this->extract(this->command(2));
  EXPECT_EQ(result.outcome, ExtractionOutcome::Done);
  EXPECT_EQ(result.available, 2U);
  EXPECT_EQ(result.now, this->now());
  ASSERT_EQ(result.proxies.size(), 2U);
  for (const auto& entry : result.proxies) {
    EXPECT_EQ(entry.proxy.state, ProxyState::Extracted);
    EXPECT_EQ(entry.credential.password.reveal(), "pass-" + std::to_string(entry.proxy.id.value()));
    EXPECT_EQ(this->state(entry.proxy.id), ProxyState::Extracted);
    EXPECT_TRUE(this->assign(holder("w"), {entry.proxy.id}).empty());
  }
  EXPECT_EQ(this->inventory("a").managed, 1U);
  const auto rest = this->extract(this->command(2));
  EXPECT_EQ(rest.outcome, ExtractionOutcome::Done);  // partial
  EXPECT_EQ(rest.proxies.size(), 1U);
  EXPECT_TRUE(this->extract(this->command(1)).proxies.empty());
}

TYPED_TEST_P(PoolExtractionContract, AllOrNothingTakesNothingWhenOneIsMissing) {
  this->supply("a", proxy_ids(1, 3));
  auto wanted = this->command(4);
  wanted.fulfillment = domain::Fulfillment::AllOrNothing;
  const auto lacking = this->extract(wanted);
  EXPECT_EQ(lacking.outcome, ExtractionOutcome::Insufficient);
  EXPECT_EQ(lacking.available, 3U);
  EXPECT_TRUE(lacking.proxies.empty());
  EXPECT_EQ(this->inventory("a").in_state(ProxyState::Available), 3U);
  wanted.count = 3;
  EXPECT_EQ(this->extract(wanted).proxies.size(), 3U);
}

// C2, C3, C6: owned, revoking, suspect, new and leaving proxies are never taken.
TYPED_TEST_P(PoolExtractionContract, OnlyAvailableProxiesThatNobodyOwnsAreTaken) {
  this->supply("a", proxy_ids(1, 5));
  this->admit(batch("a", {ProxyId(6)}));
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  this->revoke({ProxyId(2)});
  this->move(ProxyId(3), {ProxyEvent::MeaningfulFailure});
  this->apply({ProxyId(4)}, ProxyEvent::OperatorDrain);
  EXPECT_EQ(this->ids_of(this->extract(this->command(10))), (std::vector<ProxyId>{ProxyId(5)}));
  this->report(holder("w"), {}, this->change());
  EXPECT_EQ(this->ids_of(this->extract(this->command(10))), (std::vector<ProxyId>{ProxyId(2)}));
}

TYPED_TEST_P(PoolExtractionContract, AnUpstreamThatIsNotListedOrNotExtractableGivesNothing) {
  this->supply("a", {ProxyId(1)});
  this->supply("b", {ProxyId(2)});
  auto wanted = this->command(10);
  wanted.policies[0].extractable = false;
  EXPECT_TRUE(this->extract(wanted).proxies.empty());
  EXPECT_EQ(this->ids_of(this->extract(this->command(10))), (std::vector<ProxyId>{ProxyId(1)}));
}

TYPED_TEST_P(PoolExtractionContract, EveryFilterLeavesOutWhatItDoesNotName) {
  auto brought = batch("a", proxy_ids(1, 4));
  brought.admissions[0].candidate.attributes = {"US", "ca", "fresno", "acme"};
  brought.admissions[1].candidate.attributes = {"DE", "be", "berlin", "other"};
  brought.admissions[2].candidate.endpoint.scheme = domain::Scheme::Https;
  brought.admissions[3].candidate.tags = {{"tier", "gold"}, {"kind", "mobile"}};
  this->admit(brought);
  this->admit(batch("b", {ProxyId(5)}));
  this->pass_new();
  using Filters = domain::ExtractionFilters;
  EXPECT_EQ(this->available([](Filters&) {}), 5U);
  EXPECT_EQ(this->available([](Filters& f) { f.countries = {"US", "DE"}; }), 2U);
  EXPECT_EQ(this->available([](Filters& f) { f.regions = {"ca"}; }), 1U);
  EXPECT_EQ(this->available([](Filters& f) { f.cities = {"Berlin"}; }), 1U);
  EXPECT_EQ(this->available([](Filters& f) { f.carriers = {"ACME"}; }), 1U);
  EXPECT_EQ(this->available([](Filters& f) { f.protocols = {domain::Scheme::Https}; }), 1U);
  EXPECT_EQ(this->available([](Filters& f) { f.upstreams = {UpstreamId("b")}; }), 1U);
  EXPECT_EQ(this->available([](Filters& f) { f.tags = {{"tier", "gold"}}; }), 1U);
  EXPECT_EQ(this->available([](Filters& f) { f.tags = {{"tier", "gold"}, {"kind", "x"}}; }), 0U);
  EXPECT_EQ(this->available([](Filters& f) {
    f.countries = {"US"};
    f.cities = {"berlin"};
  }),
            0U);
}

TYPED_TEST_P(PoolExtractionContract, TheHealthAgeFilterWantsARecentGoodWord) {
  this->supply("a", {ProxyId(1)});
  using Filters = domain::ExtractionFilters;
  const auto fresh = [](Filters& f) { f.max_health_check_age = milliseconds{5'000}; };
  EXPECT_EQ(this->available(fresh), 1U);
  this->advance(milliseconds{5'001});
  EXPECT_EQ(this->available(fresh), 0U);
  // Traffic that went well is as good a word as a probe.
  auto row = this->pool().read_health({ProxyId(1)}, Deadline{})->front();
  row.record.last_success_at = this->now();
  ASSERT_TRUE(
      this->pool().write_health({{row.id, row.revision, row.record, {}, {}}}, Deadline{})->front());
  EXPECT_EQ(this->available(fresh), 1U);
}

TYPED_TEST_P(PoolExtractionContract, TheRemainingLifeIsCountedToTheExpiry) {
  this->supply("a", {ProxyId(1)});
  using Filters = domain::ExtractionFilters;
  EXPECT_EQ(this->available([](Filters& f) { f.min_remaining_ttl = kTtl; }), 1U);
  EXPECT_EQ(this->available([](Filters& f) { f.min_remaining_ttl = kTtl + milliseconds{1}; }), 0U);
  this->advance(kTtl - kSafetyMargin);
  EXPECT_EQ(this->available([](Filters&) {}), 0U);  // past its margin, swept or not
}

// EX-2
TYPED_TEST_P(PoolExtractionContract, TheLongestLifeGoesFirst) {
  for (std::uint64_t id = 1; id <= 6; ++id) {
    auto brought = batch(id % 2 ? "a" : "b", {ProxyId(id)});
    brought.admissions[0].candidate.attributes.country = id % 3 ? "US" : "DE";
    brought.admissions[0].candidate.expires_at =
        this->now() + kTtl + milliseconds{static_cast<int>(id * 7 % 5)};  // 2 4 1 3 0 2
    this->admit(brought);
  }
  auto list = batch("a", {ProxyId(7)});
  list.ttl.default_ttl.reset();
  this->admit(list);
  this->pass_new();
  auto wanted = this->command(1);
  wanted.policies.push_back({UpstreamId("b"), true, 0});
  std::vector<StoreTime> ends;
  for (int i = 0; i < 7; ++i) {
    const auto result = this->extract(wanted);
    ASSERT_EQ(result.proxies.size(), 1U);
    ends.push_back(result.proxies[0].proxy.expires_at.value_or(StoreTime::max()));
  }
  EXPECT_TRUE(std::is_sorted(ends.rbegin(), ends.rend()));
  EXPECT_EQ(ends[0], StoreTime::max());
}

// Rulings, "Water marks and reserves": owned and unowned AVAILABLE ones count.
TYPED_TEST_P(PoolExtractionContract, TheGatewaysReserveStays) {
  this->supply("a", proxy_ids(1, 6));
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  auto wanted = this->command(10);
  wanted.policies[0].reserve_for_gateway = 3;
  EXPECT_EQ(this->pool().preview(wanted, Deadline{})->available, 3U);
  EXPECT_EQ(this->extract(wanted).proxies.size(), 3U);
  EXPECT_EQ(this->extract(wanted).proxies.size(), 0U);
  EXPECT_EQ(this->inventory("a").in_state(ProxyState::Available), 3U);
}

// CT-60: nobody gets what another one got, and the reserve holds under any interleaving.
TYPED_TEST_P(PoolExtractionContract, EightThreadsNeverGetTheSameProxy) {
  this->supply("a", proxy_ids(1, 200));
  std::mutex mutex;
  std::set<ProxyId> given;
  std::atomic<int> twice{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      auto wanted = this->command(static_cast<std::uint32_t>(1 + t));
      wanted.policies[0].reserve_for_gateway = 50;
      for (int round = 0; round < 10; ++round) {
        const auto result = this->pool().extract(wanted, Deadline{});
        ASSERT_TRUE(result);
        const std::lock_guard lock(mutex);
        for (const auto& entry : result->proxies) {
          if (!given.insert(entry.proxy.id).second) ++twice;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(twice, 0);
  EXPECT_EQ(given.size(), 150U);
  EXPECT_EQ(this->inventory("a").in_state(ProxyState::Available), 50U);
}

// EX-1
TYPED_TEST_P(PoolExtractionContract, TheSameKeyAndBodyGetTheFirstAnswerAgain) {
  this->supply("a", proxy_ids(1, 4));
  auto wanted = this->command(2);
  wanted.idempotency_key = "key";
  wanted.request_digest = "body";
  const auto first = this->extract(wanted);
  ASSERT_EQ(first.proxies.size(), 2U);
  this->advance(milliseconds{1'000});
  const auto again = this->extract(wanted);
  EXPECT_EQ(again.outcome, ExtractionOutcome::Replayed);
  EXPECT_EQ(again.now, first.now);
  EXPECT_EQ(again.available, first.available);
  EXPECT_EQ(this->ids_of(again), this->ids_of(first));
  EXPECT_EQ(again.proxies[0].credential, first.proxies[0].credential);
  // Another client's key is another key; another body is refused.
  auto other = wanted;
  other.request_digest = "other body";
  EXPECT_EQ(this->extract(other).outcome, ExtractionOutcome::Mismatch);
  other = wanted;
  other.client = ClientName("other");
  EXPECT_EQ(this->extract(other).outcome, ExtractionOutcome::Done);
  EXPECT_EQ(this->inventory("a").in_state(ProxyState::Extracted), 4U);
}

TYPED_TEST_P(PoolExtractionContract, AKeyIsFreeAgainAfterItsTime) {
  this->supply("a", proxy_ids(1, 2));
  auto wanted = this->command(1);
  wanted.idempotency_key = "key";
  wanted.idempotency_ttl = milliseconds{10'000};
  const auto first = this->extract(wanted);
  this->advance(milliseconds{9'999});
  EXPECT_EQ(this->extract(wanted).outcome, ExtractionOutcome::Replayed);
  this->advance(milliseconds{1});
  const auto next = this->extract(wanted);
  EXPECT_EQ(next.outcome, ExtractionOutcome::Done);
  EXPECT_NE(this->ids_of(next), this->ids_of(first));
}

// Only an answer that handed something out is remembered.
TYPED_TEST_P(PoolExtractionContract, AnEmptyAnswerIsNotRemembered) {
  auto wanted = this->command(1);
  wanted.idempotency_key = "key";
  EXPECT_TRUE(this->extract(wanted).proxies.empty());
  this->supply("a", {ProxyId(1)});
  EXPECT_EQ(this->extract(wanted).outcome, ExtractionOutcome::Done);
}

TYPED_TEST_P(PoolExtractionContract, HandOutsAndAnswersSurviveARestart) {
  this->supply("a", proxy_ids(1, 2));
  auto wanted = this->command(1);
  wanted.idempotency_key = "key";
  wanted.request_digest = "body";
  const auto first = this->extract(wanted);
  const ProxyId taken = first.proxies.at(0).proxy.id;
  this->fixture_.restart();
  const auto again = this->extract(wanted);
  EXPECT_EQ(again.outcome, ExtractionOutcome::Replayed);
  ASSERT_EQ(again.proxies.size(), 1U);
  EXPECT_EQ(again.proxies[0].proxy.id, taken);
  EXPECT_EQ(again.proxies[0].credential, first.proxies[0].credential);
  // Supply brings both again: the one that is somebody's stays out until it has ended.
  this->supply("a", proxy_ids(1, 2));
  EXPECT_EQ(this->state(taken), ProxyState::Extracted);
  EXPECT_EQ(this->extract(this->command(10)).proxies.size(), 1U);
  this->advance(kTtl);
  this->sweep();
  EXPECT_EQ(this->admit(batch("a", {taken})).admitted, 1U);
}

REGISTER_TYPED_TEST_SUITE_P(PoolExtractionContract, WhatIsExtractedComesWithItsCredentialAndIsGone,
                            AllOrNothingTakesNothingWhenOneIsMissing,
                            OnlyAvailableProxiesThatNobodyOwnsAreTaken,
                            AnUpstreamThatIsNotListedOrNotExtractableGivesNothing,
                            EveryFilterLeavesOutWhatItDoesNotName,
                            TheHealthAgeFilterWantsARecentGoodWord,
                            TheRemainingLifeIsCountedToTheExpiry, TheLongestLifeGoesFirst,
                            TheGatewaysReserveStays, EightThreadsNeverGetTheSameProxy,
                            TheSameKeyAndBodyGetTheFirstAnswerAgain, AKeyIsFreeAgainAfterItsTime,
                            AnEmptyAnswerIsNotRemembered, HandOutsAndAnswersSurviveARestart);

}  // namespace proxypool::contract
