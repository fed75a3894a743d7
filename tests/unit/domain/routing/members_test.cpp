// The runtime side of an upstream: exact loads, limits, ends, benches; GW-31, GW-32, GW-34, C4, C6.
#include "proxypool/domain/balance/members.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace proxypool::domain {
namespace {

using std::chrono::seconds;

constexpr TimePoint kNow{seconds(1'000)};
constexpr auto kAnybody = [](std::uint32_t) { return true; };
constexpr nanoseconds kBench = seconds(2);

// A pool of `count` open members with some limit, and what a test asks of it most.
class Pool {
 public:
  explicit Pool(std::uint32_t count, std::uint32_t limit = 1, bool exact = true) {
    if (exact) members.keep_exact();
    for (std::uint32_t i = 0; i < count; ++i) add(limit);
  }
  std::uint32_t add(std::uint32_t limit, bool suspect = false, TimePoint until = kNever) {
    const auto member = members.place(ProxyId(++ids_));
    mask.resize((members.size() + 63) / 64);
    mask[member / 64] |= std::uint64_t{1} << (member % 64);
    members.set(member, {limit, suspect, until});
    return member;
  }
  std::uint32_t least(Tier tier = Tier::Available, TimePoint now = kNow) {
    members.wake_benched(now);
    return members.reserve_least(tier, mask, now, random, kAnybody);
  }
  void release(std::uint32_t member, Verdict verdict = Verdict::Neutral, TimePoint now = kNow,
               nanoseconds bench = kBench) {
    EXPECT_TRUE(members.release(member, false, verdict, now, bench));
  }

  Members members;
  std::vector<std::uint64_t> mask;
  SplitMix64 random{11};

 private:
  std::uint64_t ids_ = 0;
};

// Both ways to look for the least loaded member: the scan of a small pool, the index of a large
// one.
class AnySize : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, AnySize, testing::Values(3, 16, 17, 64, 100, 1'000, 5'000));

TEST_P(AnySize, LeastConnIsExactAgainstAModel) {
  const std::uint32_t count = GetParam();
  Pool pool(count, 4);
  std::vector<std::uint32_t> load(count, 0);
  std::vector<std::uint32_t> held;
  SplitMix64 random(5);
  for (std::uint32_t i = 0; i < 20 * count; ++i) {
    if (held.size() < 3 * count && random.below(5) < 3) {
      const auto member = pool.least();
      ASSERT_NE(member, Members::kNone);
      ASSERT_EQ(load[member], *std::min_element(load.begin(), load.end()));
      ++load[member];
      held.push_back(member);
    } else if (!held.empty()) {
      const auto at = random.below(held.size());
      pool.release(held[at]);
      --load[held[at]];
      held[at] = held.back();
      held.pop_back();
    }
  }
  EXPECT_TRUE(pool.members.consistent());
}

TEST_P(AnySize, GivesEveryPlaceOnceAndThenNone) {
  const std::uint32_t count = GetParam();
  Pool pool(count, 2);
  std::vector<int> places(count, 0);
  for (std::uint32_t i = 0; i < 2 * count; ++i) ++places[pool.least()];
  EXPECT_EQ(std::count(places.begin(), places.end(), 2), count);
  EXPECT_EQ(pool.least(), Members::kNone);
  pool.release(count / 2);
  EXPECT_EQ(pool.least(), count / 2) << "the one place that came back";
}

TEST_P(AnySize, UnequalLimitsAreEachObeyed) {
  const std::uint32_t count = GetParam();
  Pool pool(0);
  std::uint32_t places = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    pool.add(1 + i % 5);
    places += 1 + i % 5;
  }
  std::vector<std::uint32_t> taken(count, 0);
  for (std::uint32_t i = 0; i < places; ++i) ++taken[pool.least()];
  EXPECT_EQ(pool.least(), Members::kNone);
  for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(taken[i], 1 + i % 5);
}

TEST_P(AnySize, TiesAreRandom) {
  const std::uint32_t count = GetParam();
  Pool pool(count);
  std::vector<int> seen(3, 0);
  for (int i = 0; i < 3'000; ++i) {
    const auto member = pool.least();
    ++seen[member * 3 / count];
    pool.release(member);
  }
  for (const int third : seen) EXPECT_NEAR(third, 1'000, 200);
}

TEST_P(AnySize, OnlyAdmittedMembersOfTheMaskAreTaken) {
  const std::uint32_t count = GetParam();
  Pool pool(count);
  const std::vector<std::uint64_t> first_two{0b11};
  const auto not_zero = [](std::uint32_t member) { return member != 0; };
  EXPECT_EQ(pool.members.reserve_least(Tier::Available, first_two, kNow, pool.random, not_zero),
            1U);
  EXPECT_EQ(pool.members.reserve_least(Tier::Available, first_two, kNow, pool.random, not_zero),
            Members::kNone);
}

TEST_P(AnySize, SuspectsServeOnlyWhenAskedForAndByTheirLoad) {  // C6
  const std::uint32_t count = GetParam();
  Pool pool(count);
  const auto one = pool.add(3, true);
  const auto two = pool.add(3, true);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto member = pool.least();
    EXPECT_TRUE(member != one && member != two);
  }
  EXPECT_EQ(pool.least(), Members::kNone);
  std::array<std::uint32_t, 2> loads{};
  for (int i = 0; i < 6; ++i) {
    const auto member = pool.least(Tier::Suspect);
    ASSERT_TRUE(member == one || member == two);
    ++loads[member == one ? 0 : 1];
    EXPECT_LE(std::max(loads[0], loads[1]) - std::min(loads[0], loads[1]), 1U);
  }
  EXPECT_EQ(pool.least(Tier::Suspect), Members::kNone);
  pool.members.set(one, {4, false, kNever});
  EXPECT_EQ(pool.least(), one) << "recovered";
  EXPECT_TRUE(pool.members.consistent());
}

TEST_P(AnySize, AMemberPastItsEndIsNeverTakenAndComesBackWithMoreTime) {  // C4
  const std::uint32_t count = GetParam();
  Pool pool(0);
  for (std::uint32_t i = 0; i < count; ++i) pool.add(1, false, kNow + seconds(i % 3));
  std::uint32_t taken = 0;
  const TimePoint later = kNow + seconds(1);  // the bound itself is past
  for (std::uint32_t m; (m = pool.least(Tier::Available, later)) != Members::kNone; ++taken) {
    ASSERT_EQ(m % 3, 2U);
  }
  EXPECT_EQ(taken, count / 3);
  EXPECT_FALSE(pool.members.still_usable(0, kNow));
  EXPECT_EQ(pool.members.load_of(0), count % 3 == 0 ? Members::kFull : pool.members.load_of(0));
  EXPECT_TRUE(pool.members.consistent());
  pool.members.set(0, {1, false, kNow + seconds(60)});
  EXPECT_TRUE(pool.members.still_usable(0, later));
  EXPECT_EQ(pool.least(Tier::Available, later), 0U);
}

TEST_P(AnySize, AnEndCountsToTheMomentThoughItIsLookedForAhead) {  // C4
  Pool pool(GetParam());
  Members& members = pool.members;
  const auto takes = [&](std::uint32_t member, TimePoint at) {
    const bool taken = members.try_reserve(member, Tier::Available, at);
    if (taken) pool.release(member);
    return taken;
  };
  const TimePoint end = kNow + seconds(5);
  members.set(1, {1, false, end});
  members.look_ahead(kNow);
  EXPECT_TRUE(takes(1, kNow));
  members.look_ahead(end - Members::kAhead / 4);
  EXPECT_TRUE(takes(1, end - nanoseconds(1)));
  EXPECT_FALSE(takes(1, end));
  const TimePoint next = end + Members::kAhead / 4;
  members.set(2, {1, false, next});
  EXPECT_TRUE(takes(2, next - nanoseconds(1)));
  EXPECT_FALSE(takes(2, next)) << "its end came after the look";
  EXPECT_TRUE(members.consistent());
  members.set(1, {1, false, kNow + seconds(20)});
  EXPECT_TRUE(takes(1, next));
}

TEST_P(AnySize, TwoFailuresInARowBenchAMemberForAWhile) {  // GW-34
  const std::uint32_t count = GetParam();
  Pool pool(count, 4);
  const auto fail = [&](std::uint32_t member, Verdict verdict) {
    ASSERT_TRUE(pool.members.try_reserve(member, Tier::Available, kNow));
    pool.release(member, verdict);
  };
  fail(1, Verdict::Bad);
  fail(1, Verdict::Good);
  fail(1, Verdict::Bad);
  fail(1, Verdict::Neutral);
  EXPECT_EQ(pool.members.load_of(1), 0U) << "not two in a row";
  fail(1, Verdict::Bad);
  EXPECT_EQ(pool.members.load_of(1), Members::kFull);
  EXPECT_FALSE(pool.members.try_reserve(1, Tier::Available, kNow));
  std::vector<std::uint32_t> held;
  for (std::uint32_t i = 0; i < 4 * (count - 1); ++i) {
    held.push_back(pool.least());
    ASSERT_NE(held.back(), 1U);
  }
  EXPECT_EQ(pool.least(Tier::Available, kNow + kBench - nanoseconds(1)), Members::kNone);
  EXPECT_EQ(pool.least(Tier::Available, kNow + kBench), 1U);
  EXPECT_TRUE(pool.members.consistent());
}

TEST_P(AnySize, ABenchOfZeroBenchesNobody) {
  Pool pool(GetParam());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pool.members.try_reserve(0, Tier::Available, kNow));
    pool.release(0, Verdict::Bad, kNow, nanoseconds(0));
  }
  EXPECT_EQ(pool.members.load_of(0), 0U);
}

TEST(Members, ManyBenchedMembersComeBackAFewARequest) {
  Pool pool(1'000);
  for (std::uint32_t m = 0; m < 1'000; ++m) {
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(pool.members.try_reserve(m, Tier::Available, kNow));
      pool.release(m, Verdict::Bad, kNow + nanoseconds(m));
    }
  }
  EXPECT_EQ(pool.least(), Members::kNone);
  const TimePoint later = kNow + kBench + seconds(1);
  for (int i = 0; i < 1'000; ++i) ASSERT_NE(pool.least(Tier::Available, later), Members::kNone);
  EXPECT_TRUE(pool.members.consistent());
}

TEST_P(AnySize, AClosedMemberKeepsItsWorkAndIsFreedWhenIdle) {  // GW-32
  Pool pool(GetParam(), 2);
  ASSERT_TRUE(pool.members.try_reserve(2, Tier::Available, kNow));
  ASSERT_TRUE(pool.members.commit(2));
  pool.members.close(2);
  EXPECT_FALSE(pool.members.try_reserve(2, Tier::Available, kNow));
  EXPECT_FALSE(pool.members.still_usable(2, kNow));
  EXPECT_FALSE(pool.members.reclaim(2));
  EXPECT_EQ(pool.members.counts(2), (Counts{0, 1}));
  EXPECT_TRUE(pool.members.release(2, true, Verdict::Bad, kNow, kBench));
  EXPECT_TRUE(pool.members.reclaim(2));
  EXPECT_EQ(pool.members.id(2), ProxyId());
  EXPECT_EQ(pool.members.place(ProxyId(777)), 2U) << "the position serves again";
  EXPECT_FALSE(pool.members.try_reserve(2, Tier::Available, kNow)) << "closed until it is set";
  pool.members.set(2, {1, false, kNever});
  EXPECT_TRUE(pool.members.try_reserve(2, Tier::Available, kNow));
  EXPECT_TRUE(pool.members.consistent());
}

TEST(Members, ASecondReleaseIsCountedAndChangesNothing) {  // GW-31
  Pool pool(1);
  ASSERT_EQ(pool.least(), 0U);
  pool.release(0);
  const auto before = bugs_counted();
  EXPECT_FALSE(pool.members.release(0, false, Verdict::Neutral, kNow, kBench));
  EXPECT_FALSE(pool.members.release(0, true, Verdict::Bad, kNow, kBench));
  EXPECT_FALSE(pool.members.commit(0));
  EXPECT_EQ(bugs_counted(), before + 3);
  EXPECT_EQ(pool.members.counts(0), Counts{});
}

TEST(Members, GrowingPastTheScanKeepsEveryCount) {
  Pool pool(Members::kScanMax, 3);
  for (std::uint32_t i = 0; i < 2 * Members::kScanMax; ++i) ASSERT_NE(pool.least(), Members::kNone);
  const auto late = pool.add(3);
  EXPECT_TRUE(pool.members.consistent());
  EXPECT_EQ(pool.least(), late);
  for (std::uint32_t i = 0; i < Members::kScanMax + 2; ++i) {
    ASSERT_NE(pool.least(), Members::kNone);
  }
  EXPECT_EQ(pool.least(), Members::kNone);
}

TEST(Members, WhereNobodyAsksForTheLeastAnyFreePlaceIsFound) {
  constexpr std::uint32_t kCount = 1'000;
  Pool pool(kCount, 3, false);
  for (std::uint32_t i = 0; i < 3 * kCount; ++i) ASSERT_NE(pool.least(), Members::kNone);
  EXPECT_EQ(pool.least(), Members::kNone);
  EXPECT_TRUE(pool.members.consistent());
  pool.release(17);
  EXPECT_EQ(pool.least(), 17U);
}

TEST(Members, WhoAsksForTheLeastGetsItFromThenOn) {
  constexpr std::uint32_t kCount = 1'000;
  Pool pool(kCount, 50, false);
  for (std::uint32_t i = 0; i < 5 * kCount; ++i) ASSERT_NE(pool.least(), Members::kNone);
  pool.members.keep_exact();
  EXPECT_TRUE(pool.members.consistent());
  const auto load = [&](std::uint32_t m) { return pool.members.counts(m).total(); };
  for (std::uint32_t i = 0; i < kCount; ++i) {
    std::uint32_t least = UINT32_MAX;
    for (std::uint32_t m = 0; m < kCount; ++m) least = std::min(least, load(m));
    const auto member = pool.least();
    ASSERT_EQ(load(member), least + 1);
  }
  pool.add(50);
  EXPECT_EQ(pool.least(), kCount) << "the new one carries nothing";
}

TEST(Members, LoadsBeyondTheLastLevelStillServeUpToTheLimit) {
  Pool pool(200, 300);
  for (int i = 0; i < 200 * 300; ++i) ASSERT_NE(pool.least(), Members::kNone);
  EXPECT_EQ(pool.least(), Members::kNone);
  EXPECT_TRUE(pool.members.consistent());
}

TEST(Members, ALargerLimitOpensTheLevelsItNeeds) {
  Pool pool(200, 1);
  for (int i = 0; i < 200; ++i) ASSERT_NE(pool.least(), Members::kNone);
  for (std::uint32_t m = 0; m < 200; ++m) pool.members.set(m, {5, false, kNever});
  for (int i = 0; i < 800; ++i) ASSERT_NE(pool.least(), Members::kNone);
  EXPECT_EQ(pool.least(), Members::kNone);
  EXPECT_TRUE(pool.members.consistent());
}

// What many threads do to one pool while its owner opens, closes, benches and ends members.
void stress(std::uint32_t count, std::uint32_t limit, bool exact = true) {
  Pool pool(count, limit, exact);
  std::vector<std::atomic<std::uint32_t>> held(count);
  std::atomic<std::uint32_t> over{0};
  std::atomic<bool> stop{false};
  const auto bugs = bugs_counted();
  const auto serve = [&](std::uint64_t seed) {
    SplitMix64 random(seed);
    std::vector<std::uint32_t> mine;
    while (!stop.load()) {
      if (mine.size() < count / 2 + 2 && random.below(5) < 3) {
        pool.members.wake_benched(kNow);
        const auto member =
            pool.members.reserve_least(Tier::Available, pool.mask, kNow, random, kAnybody);
        if (member == Members::kNone) continue;
        if (held[member].fetch_add(1) >= limit) over.fetch_add(1);
        mine.push_back(member);
      } else if (!mine.empty()) {
        const auto member = mine.back();
        mine.pop_back();
        held[member].fetch_sub(1);
        const auto verdict = static_cast<Verdict>(random.below(3));
        pool.members.release(member, false, verdict, kNow, nanoseconds(random.below(2)));
      }
    }
    for (const auto member : mine) {
      held[member].fetch_sub(1);
      pool.members.release(member, false, Verdict::Good, kNow, kBench);
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) threads.emplace_back(serve, t);
  SplitMix64 random(99);
  for (int i = 0; i < 4'000; ++i) {
    const auto member = static_cast<std::uint32_t>(random.below(count));
    if (i % 2 == 0) pool.members.close(member);
    const TimePoint until = random.below(4) == 0 ? kNow : kNever;
    if (i % 2 == 1) pool.members.set(member, {limit, random.below(8) == 0, until});
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(over.load(), 0U) << "a limit was passed";
  EXPECT_EQ(bugs_counted(), bugs);
  EXPECT_TRUE(pool.members.consistent());
  for (std::uint32_t m = 0; m < count; ++m) {
    EXPECT_EQ(pool.members.counts(m), Counts{});
    pool.members.set(m, {limit, false, kNever});
  }
  // Nothing was lost: every place can be taken again.
  const TimePoint later = kNow + seconds(10);
  for (std::uint32_t i = 0; i < count * limit; ++i) {
    ASSERT_NE(pool.least(Tier::Available, later), Members::kNone);
  }
  EXPECT_EQ(pool.least(Tier::Available, later), Members::kNone);
}

TEST(MembersStress, ASmallPoolPassesNoLimitAndLosesNoPlace) {
  stress(5, 2);
}
TEST(MembersStress, AnIndexedPoolPassesNoLimitAndLosesNoPlace) {
  stress(200, 2);
}
TEST(MembersStress, APoolIndexedByFreePlacesPassesNoLimitAndLosesNoPlace) {
  stress(200, 2, false);
}
TEST(MembersStress, SingleUseMembersIndexedByFreePlacesLoseNone) {
  stress(300, 1, false);
}
TEST(MembersStress, SingleUseMembersPassNoLimitAndLoseNoPlace) {
  stress(300, 1);
}

TEST(MembersStress, TwoThreadsKeepLeastConnEven) {
  constexpr std::uint32_t kCount = 1'000;
  Pool pool(kCount, 100);
  std::atomic<std::uint32_t> load_max{0};
  const auto serve = [&](std::uint64_t seed) {
    SplitMix64 random(seed);
    std::vector<std::uint32_t> mine;
    for (int i = 0; i < 30'000; ++i) {
      mine.push_back(
          pool.members.reserve_least(Tier::Available, pool.mask, kNow, random, kAnybody));
      const auto load = pool.members.counts(mine.back()).total();
      for (auto seen = load_max.load(); load > seen;) {
        if (load_max.compare_exchange_weak(seen, load)) break;
      }
      if (mine.size() < kCount) continue;  // together a mean of two
      const auto at = random.below(mine.size());
      pool.members.release(mine[at], false, Verdict::Neutral, kNow, kBench);
      mine[at] = mine.back();
      mine.pop_back();
    }
  };
  std::thread other(serve, 1);
  serve(2);
  other.join();
  EXPECT_LE(load_max.load(), 4U) << "mean 2; exact least connections reaches 3";
  EXPECT_TRUE(pool.members.consistent());
}

}  // namespace
}  // namespace proxypool::domain
