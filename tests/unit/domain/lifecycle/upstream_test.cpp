// Fetch classification (CT-12), empty streak (R3), backoff, refill (CT-11, C14), permits (C11).
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "proxypool/domain/upstream/backoff.hpp"
#include "proxypool/domain/upstream/classification.hpp"
#include "proxypool/domain/upstream/permits.hpp"
#include "proxypool/domain/upstream/refill.hpp"
#include "unit/domain/lifecycle/builders.hpp"

namespace proxypool::domain {
namespace {

using build::at;

FetchTally tally(std::uint32_t records, std::uint32_t invalid, std::uint32_t duplicates,
                 std::uint32_t admitted) {
  FetchTally t;
  t.records = records;
  t.invalid = invalid;
  t.duplicates = duplicates;
  t.admitted = admitted;
  return t;
}

TEST(Classification, AnAnswerIsWhatItBroughtCT12) {
  const auto of = [](const FetchTally& t) { return classify_fetch(t).kind; };
  EXPECT_EQ(of(tally(0, 0, 0, 0)), FetchClass::Empty);
  EXPECT_EQ(of(tally(5, 0, 0, 5)), FetchClass::Success);
  EXPECT_EQ(of(tally(5, 4, 0, 1)), FetchClass::Success);
  EXPECT_EQ(of(tally(5, 0, 4, 1)), FetchClass::Success);
  EXPECT_EQ(of(tally(5, 0, 5, 0)), FetchClass::DuplicateOnly);
  EXPECT_EQ(of(tally(5, 1, 4, 0)), FetchClass::DuplicateOnly);
}

TEST(Classification, RecordsOfWhichNoneIsValidAreAnErrorUnlessConfigured) {
  const auto outcome = classify_fetch(tally(5, 5, 0, 0));
  EXPECT_EQ(outcome.kind, FetchClass::Error);
  EXPECT_EQ(outcome.reason, FetchReason::Parse);
  EXPECT_EQ(classify_fetch(tally(5, 5, 0, 0), OnAllInvalid::Empty).kind, FetchClass::Empty);
}

TEST(Classification, ExpiredOnArrivalAndAFullPoolAreSuccess) {
  FetchTally t = tally(3, 0, 1, 0);
  t.expired_on_arrival = 2;
  EXPECT_EQ(classify_fetch(t).kind, FetchClass::Success);
  t.expired_on_arrival = 0;
  t.refused_full = 2;
  EXPECT_EQ(classify_fetch(t).kind, FetchClass::Success);
  EXPECT_EQ(t.valid(), 3U);
}

TEST(Classification, CountersAddUpPerClassAndReason) {
  FetchCounters counters;
  counters.add(classify_fetch(tally(5, 1, 1, 3)));
  counters.add(classify_fetch(tally(0, 0, 0, 0)));
  FetchOutcome failed;
  failed.reason = FetchReason::Quota;
  counters.add(failed);
  counters.add(failed);
  EXPECT_EQ(counters.of(FetchClass::Success), 1U);
  EXPECT_EQ(counters.of(FetchClass::Empty), 1U);
  EXPECT_EQ(counters.of(FetchClass::Error), 2U);
  EXPECT_EQ(counters.of(FetchClass::DuplicateOnly), 0U);
  EXPECT_EQ(counters.errors_by_reason[static_cast<std::size_t>(FetchReason::Quota)], 2U);
  EXPECT_EQ(counters.errors_by_reason[static_cast<std::size_t>(FetchReason::NoStock)], 0U);
  EXPECT_EQ(counters.records, 5U);
  EXPECT_EQ(counters.invalid + counters.duplicates + counters.admitted, 5U);
}

TEST(Classification, ReasonsAreReadFromTheWordsOfTheRules) {
  EXPECT_EQ(parse_fetch_reason("rateLimited"), FetchReason::RateLimited);
  EXPECT_EQ(parse_fetch_reason("noStock"), FetchReason::NoStock);
  EXPECT_EQ(parse_fetch_reason("quota"), FetchReason::Quota);
  EXPECT_EQ(parse_fetch_reason("whitelist"), FetchReason::Whitelist);
  EXPECT_EQ(parse_fetch_reason("gone fishing"), FetchReason::Vendor);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kFetchReasons; ++i)
    names.insert(to_string(static_cast<FetchReason>(i)));
  EXPECT_EQ(names.size(), kFetchReasons);
  EXPECT_EQ(to_string(FetchReason::Other), "other");
  EXPECT_EQ(to_string(FetchClass::DuplicateOnly), "duplicate_only");
}

TEST(EmptyStreak, OnlyEmptiesLengthenItAndOnlyAnErrorLeavesItAloneR3) {
  EmptyStreak streak;
  streak.add(FetchClass::Empty);
  streak.add(FetchClass::Error);
  streak.add(FetchClass::Empty);
  EXPECT_FALSE(streak.depleted(3));
  streak.add(FetchClass::Empty);
  EXPECT_TRUE(streak.depleted(3));
  streak.add(FetchClass::DuplicateOnly);
  EXPECT_EQ(streak.length, 0U);
  streak.add(FetchClass::Empty);
  streak.add(FetchClass::Success);
  EXPECT_EQ(streak.length, 0U);
}

TEST(Backoff, TheWaitDoublesUpToItsMaximum) {
  SplitMix64 random(1);
  const BackoffPolicy policy;
  for (std::uint32_t errors = 1; errors < 40; ++errors) {
    milliseconds least = milliseconds::max();
    milliseconds most{0};
    for (int i = 0; i < 300; ++i) {
      const auto wait = backoff_wait(policy, errors, FetchReason::Timeout, {}, random);
      least = std::min(least, wait);
      most = std::max(most, wait);
    }
    const auto ceiling = std::min<std::int64_t>(300'000, errors < 20 ? 1'000LL << errors : 300'000);
    EXPECT_GE(least, seconds(1));
    EXPECT_LE(most, milliseconds(ceiling));
    EXPECT_GE(most.count(), ceiling * 8 / 10);
  }
}

TEST(Backoff, WhatNeedsAPersonStartsAtAMinute) {
  SplitMix64 random(2);
  for (const auto reason : {FetchReason::Auth, FetchReason::Whitelist, FetchReason::Plan,
                            FetchReason::Account, FetchReason::Quota}) {
    const auto wait = backoff_wait({}, 1, reason, {}, random);
    EXPECT_GE(wait, seconds(60));
    EXPECT_LE(wait, seconds(120));
  }
  EXPECT_LE(backoff_wait({}, 1, FetchReason::RateLimited, {}, random), seconds(2));
}

TEST(Backoff, WhatTheVendorAsksForWinsWithinADay) {
  SplitMix64 random(3);
  EXPECT_EQ(backoff_wait({}, 9, FetchReason::Auth, seconds(2), random), seconds(2));
  EXPECT_EQ(backoff_wait({}, 1, FetchReason::Status, std::chrono::hours(999), random),
            kVendorWaitMax);
  EXPECT_EQ(backoff_wait({}, 1, FetchReason::Status, seconds(-5), random), seconds(0));
}

TEST(Backoff, AGoodAnswerEndsItAndAnErrorExtendsIt) {
  SplitMix64 random(4);
  Backoff backoff;
  FetchOutcome failed;
  failed.reason = FetchReason::Timeout;
  backoff.add(failed, {}, at(0), random);
  EXPECT_TRUE(backoff.waiting(at(0)));
  EXPECT_FALSE(backoff.waiting(at(3)));
  backoff.add(failed, {}, at(3), random);
  EXPECT_EQ(backoff.errors, 2U);
  backoff.add(classify_fetch(tally(1, 0, 0, 1)), {}, at(10), random);
  EXPECT_EQ(backoff.errors, 0U);
  FetchOutcome told_to_wait = classify_fetch(tally(0, 0, 0, 0));
  told_to_wait.retry_after = seconds(20);
  backoff.add(told_to_wait, {}, at(10), random);
  EXPECT_TRUE(backoff.waiting(at(29)));
  EXPECT_FALSE(backoff.waiting(at(30)));
}

RefillPolicy refill_policy() {
  RefillPolicy p;
  p.minimum = 10;
  p.target = 40;
  p.size_max = 100;
  p.expected_per_call = 5;
  p.slots_per_proxy = 2;
  p.in_flight_max = 3;
  return p;
}
RefillInput stock(std::uint64_t slots, std::uint64_t managed_count) {
  RefillInput input;
  input.managed = managed_count;
  input.slots.available = slots;
  return input;
}

TEST(Refill, BuyingBeginsUnderTheMinimumAndEndsAtTheTargetCT11) {
  const RefillPolicy p = refill_policy();
  EXPECT_FALSE(decide_refill(p, stock(10, 5), false).filling);
  EXPECT_TRUE(decide_refill(p, stock(9, 5), false).filling);
  EXPECT_TRUE(decide_refill(p, stock(39, 20), true).filling);
  const auto done = decide_refill(p, stock(40, 20), true);
  EXPECT_FALSE(done.filling);
  EXPECT_EQ(done.stop, RefillStop::Enough);
}

TEST(Refill, ItBuysWhatLacksToTheTarget) {
  const auto d = decide_refill(refill_policy(), stock(9, 5), false);
  EXPECT_EQ(d.proxies, 15U);  // 16 lack; three calls of five are allowed
  EXPECT_EQ(d.calls, 3U);
  const auto small = decide_refill(refill_policy(), stock(37, 20), true);
  EXPECT_EQ(small.proxies, 2U);
  EXPECT_EQ(small.calls, 1U);
}

TEST(Refill, PendingCallsCountAsDelivered) {
  RefillInput input = stock(0, 0);
  input.pending = 15;
  input.in_flight = 2;
  const auto d = decide_refill(refill_policy(), input, true);
  EXPECT_EQ(d.calls, 1U);
  input.pending = 20;
  EXPECT_EQ(decide_refill(refill_policy(), input, true).stop, RefillStop::Enough);
  input.pending = 10;
  input.in_flight = 3;
  EXPECT_EQ(decide_refill(refill_policy(), input, true).stop, RefillStop::InFlight);
}

TEST(Refill, UnknownSlotsHoldBuyingBackC14) {
  RefillInput input = stock(0, 20);
  EXPECT_GT(decide_refill(refill_policy(), input, false).calls, 0U);
  input.slots.unknown = 40;
  EXPECT_EQ(decide_refill(refill_policy(), input, false).calls, 0U);
  EXPECT_EQ(decide_refill(refill_policy(), input, true).calls, 0U);
  input.slots.unknown = 2;  // short whatever they are
  EXPECT_GT(decide_refill(refill_policy(), input, false).calls, 0U);
}

TEST(Refill, ThePoolsSizeAndTheTotalLimitIt) {
  EXPECT_EQ(decide_refill(refill_policy(), stock(0, 100), true).stop, RefillStop::PoolFull);
  EXPECT_EQ(decide_refill(refill_policy(), stock(0, 97), true).proxies, 3U);
  RefillInput input = stock(0, 0);
  input.total_left = 4;
  EXPECT_EQ(decide_refill(refill_policy(), input, true).proxies, 4U);
  input.total_left = 0;
  EXPECT_EQ(decide_refill(refill_policy(), input, true).stop, RefillStop::TotalUsed);
  input.total_left.reset();
  input.pending = 100;
  input.slots.unknown = 0;
  RefillPolicy huge = refill_policy();
  huge.target = 1'000;
  EXPECT_EQ(decide_refill(huge, input, true).stop, RefillStop::PoolFull);
}

TEST(Refill, NoDecisionExceedsItsLimits) {
  SplitMix64 random(5);
  for (int round = 0; round < 20'000; ++round) {
    RefillPolicy p;
    p.minimum = random.below(50);
    p.target = random.below(100);
    p.size_max = random.below(60);
    p.expected_per_call = static_cast<std::uint32_t>(random.below(12));
    p.slots_per_proxy = static_cast<std::uint32_t>(random.below(4));
    p.in_flight_max = static_cast<std::uint32_t>(random.below(4));
    RefillInput input = stock(random.below(100), random.below(70));
    input.pending = random.below(20);
    input.in_flight = static_cast<std::uint32_t>(random.below(4));
    if (random.below(2) != 0) input.total_left = random.below(30);
    const auto d = decide_refill(p, input, random.below(2) != 0);
    EXPECT_EQ(d.calls > 0, d.stop == RefillStop::None);
    EXPECT_EQ(d.calls > 0, d.proxies > 0);
    if (d.calls == 0) continue;
    EXPECT_LE(input.in_flight + d.calls, p.in_flight_max);
    EXPECT_LE(input.managed + input.pending + d.proxies, p.size_max);
    EXPECT_LE(d.proxies, input.total_left.value_or(d.proxies));
  }
}

PermitLimits limits() {
  PermitLimits l;
  l.request_interval = seconds(1);
  l.in_flight_max = 2;
  l.total_max = 100;
  l.permit_ttl = seconds(60);
  return l;
}

TEST(Permits, CallsKeepTheirDistanceAndTheirNumberCT11) {
  PermitBook book;
  const auto first = book.acquire(limits(), 10, at(0));
  EXPECT_GT(first.permit, 0U);
  const auto early = book.acquire(limits(), 10, at(0) + milliseconds(999));
  EXPECT_EQ(early.refusal, PermitRefusal::Interval);
  EXPECT_EQ(early.ask_again_at, at(1));
  EXPECT_GT(book.acquire(limits(), 10, at(1)).permit, first.permit);
  const auto third = book.acquire(limits(), 10, at(2));
  EXPECT_EQ(third.refusal, PermitRefusal::InFlight);
  EXPECT_EQ(third.permit, 0U);
  EXPECT_EQ(third.ask_again_at, at(60));
  EXPECT_EQ(book.settle(first.permit, 10), SettleVerdict::Settled);
  EXPECT_GT(book.acquire(limits(), 10, at(3)).permit, 0U);
}

TEST(Permits, SettlingBooksWhatCameAndTwiceChangesNothing) {
  PermitBook book;
  const auto a = book.acquire(limits(), 10, at(0));
  EXPECT_EQ(book.reserved(), 10U);
  EXPECT_EQ(book.settle(a.permit, 3), SettleVerdict::Settled);
  EXPECT_EQ(book.settle(a.permit, 9), SettleVerdict::Repeated);
  EXPECT_EQ(book.settle(a.permit, {}), SettleVerdict::Repeated);
  EXPECT_EQ(book.settle(77, 1), SettleVerdict::Unknown);
  EXPECT_EQ(book.total(), 3U);
  EXPECT_EQ(book.reserved(), 0U);
  EXPECT_EQ(book.in_flight(), 0U);
}

TEST(Permits, WhatIsUncertainCountsAsExpectedUntilTheTruthComes) {
  PermitBook book;
  const auto a = book.acquire(limits(), 10, at(0));
  EXPECT_EQ(book.settle(a.permit, {}), SettleVerdict::Settled);
  EXPECT_EQ(book.total(), 10U);
  EXPECT_EQ(book.settle(a.permit, {}), SettleVerdict::Repeated);
  EXPECT_EQ(book.settle(a.permit, 4), SettleVerdict::Settled);
  EXPECT_EQ(book.total(), 4U);
  const auto b = book.acquire(limits(), 10, at(5));
  book.expire(at(64));
  EXPECT_EQ(book.in_flight(), 1U);
  book.expire(at(65));
  EXPECT_EQ(book.in_flight(), 0U);
  EXPECT_EQ(book.total(), 14U);
  EXPECT_EQ(book.settle(b.permit, 25), SettleVerdict::Settled);
  EXPECT_EQ(book.total(), 29U);
}

TEST(Permits, TheTotalIsNeverKnowinglyExceededC11) {
  PermitBook book;
  PermitLimits l = limits();
  l.request_interval = seconds(0);
  l.in_flight_max = 100;
  for (int i = 0; i < 9; ++i) EXPECT_GT(book.acquire(l, 10, at(0)).permit, 0U);
  EXPECT_EQ(book.total_left(l), 10U);
  EXPECT_EQ(book.acquire(l, 11, at(0)).refusal, PermitRefusal::Total);
  EXPECT_GT(book.acquire(l, 10, at(0)).permit, 0U);
  EXPECT_EQ(book.acquire(l, 1, at(0)).refusal, PermitRefusal::Total);
  EXPECT_EQ(book.total_left(l), 0U);
  l.total_max.reset();
  EXPECT_FALSE(book.total_left(l).has_value());
  EXPECT_GT(book.acquire(l, 50, at(0)).permit, 0U);
}

TEST(Permits, AResetForgetsTheOldTotalAndARaiseKeepsTheLargerC11) {
  PermitBook book;
  const auto old = book.acquire(limits(), 10, at(0));
  book.settle(old.permit, {});
  const auto open = book.acquire(limits(), 10, at(5));
  book.reset_total();
  EXPECT_EQ(book.total(), 0U);
  EXPECT_EQ(book.settle(old.permit, 99), SettleVerdict::Repeated);
  EXPECT_EQ(book.settle(open.permit, 8), SettleVerdict::Settled);
  EXPECT_EQ(book.total(), 8U);
  book.raise_total(5);
  EXPECT_EQ(book.total(), 8U);
  book.raise_total(50);
  EXPECT_EQ(book.total(), 50U);
}

TEST(Permits, TheBookForgetsOnlySettledPermits) {
  PermitBook book;
  PermitLimits l = limits();
  l.request_interval = seconds(0);
  l.total_max.reset();
  l.permit_ttl = std::chrono::hours(1);
  const auto first = book.acquire(l, 1, at(0));
  book.settle(first.permit, 1);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < PermitBook::kRemembered; ++i) {
    last = book.acquire(l, 1, at(0)).permit;
    book.settle(last, 1);
  }
  EXPECT_EQ(book.settle(first.permit, 1), SettleVerdict::Unknown);
  EXPECT_EQ(book.settle(last, 1), SettleVerdict::Repeated);

  PermitBook slow;
  l.in_flight_max = 2;
  const auto open = slow.acquire(l, 5, at(0));
  for (std::size_t i = 0; i < 2 * PermitBook::kRemembered; ++i) {
    slow.settle(slow.acquire(l, 1, at(0)).permit, 1);
  }
  EXPECT_EQ(slow.settle(open.permit, 2), SettleVerdict::Settled);
  EXPECT_EQ(slow.total(), 2 * PermitBook::kRemembered + 2);
}

// Random schedules: the ledger always equals what a plain model says.
TEST(Permits, TheLedgerAgreesWithAPlainModel) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    SplitMix64 random(seed);
    PermitBook book;
    PermitLimits l = limits();
    l.in_flight_max = 4;
    std::map<std::uint64_t, std::pair<std::uint64_t, StoreTime>> open;  // expected, until
    std::map<std::uint64_t, std::uint64_t> booked;                      // charged
    std::set<std::uint64_t> settled;
    std::uint64_t total = 0;
    std::int64_t now = 0;
    for (int step = 0; step < 400; ++step) {
      now += static_cast<std::int64_t>(random.below(8));
      for (auto it = open.begin(); it != open.end();) {
        if (at(now) < it->second.second) {
          ++it;
          continue;
        }
        total += it->second.first;
        booked[it->first] = it->second.first;
        it = open.erase(it);
      }
      book.expire(at(now));
      if (random.below(2) == 0) {
        const auto expected = random.below(10);
        const auto answer = book.acquire(l, expected, at(now));
        if (answer.permit != 0) open[answer.permit] = {expected, at(now) + l.permit_ttl};
      } else {
        const auto id = 1 + random.below(40);
        std::optional<std::uint64_t> delivered;
        if (random.below(3) != 0) delivered = random.below(12);
        book.settle(id, delivered);
        if (open.count(id) != 0) {
          total += open[id].first;
          booked[id] = open[id].first;
          open.erase(id);
        }
        if (delivered && booked.count(id) != 0 && settled.insert(id).second) {
          total = total - booked[id] + *delivered;
        }
      }
      std::uint64_t reserved = 0;
      for (const auto& [id, permit] : open) reserved += permit.first;
      ASSERT_EQ(book.total(), total) << "step " << step;
      ASSERT_EQ(book.reserved(), reserved) << "step " << step;
      ASSERT_EQ(book.in_flight(), open.size()) << "step " << step;
      ASSERT_LE(open.size(), l.in_flight_max);
    }
  }
}

}  // namespace
}  // namespace proxypool::domain
