// GW-31: reserved and active in one word; nothing overshoots, a repeat is counted and harmless.
#include "proxypool/domain/proxy/capacity.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace proxypool::domain {
namespace {

TEST(Capacity, ReservesUpToTheLimitAndNotOnceMore) {
  Capacity capacity;
  EXPECT_FALSE(capacity.try_reserve()) << "a proxy without a limit takes nothing";
  capacity.set_limit(2);
  EXPECT_TRUE(capacity.try_reserve());
  EXPECT_TRUE(capacity.try_reserve());
  EXPECT_FALSE(capacity.try_reserve());
  EXPECT_EQ(capacity.counts(), (Counts{2, 0}));
}

TEST(Capacity, CommitTurnsOneReservedPlaceIntoAnActiveOneThatStillCounts) {
  Capacity capacity;
  capacity.set_limit(1);
  ASSERT_TRUE(capacity.try_reserve());
  EXPECT_TRUE(capacity.commit());
  EXPECT_EQ(capacity.counts(), (Counts{0, 1}));
  EXPECT_FALSE(capacity.try_reserve());
  EXPECT_TRUE(capacity.finish());
  EXPECT_EQ(capacity.counts(), (Counts{0, 0}));
}

TEST(Capacity, StepsWithoutTheirPlaceAreCountedAndChangeNothing) {
  Capacity capacity;
  capacity.set_limit(3);
  const auto before = bugs_counted();
  EXPECT_FALSE(capacity.commit());
  EXPECT_FALSE(capacity.cancel());
  EXPECT_FALSE(capacity.finish());
  EXPECT_EQ(bugs_counted(), before + 3);
  ASSERT_TRUE(capacity.try_reserve());
  EXPECT_FALSE(capacity.finish()) << "reserved, not active";
  ASSERT_TRUE(capacity.commit());
  EXPECT_FALSE(capacity.cancel()) << "active, not reserved";
  EXPECT_EQ(bugs_counted(), before + 5);
  EXPECT_EQ(capacity.counts(), (Counts{0, 1}));
}

TEST(Capacity, ASmallerLimitLetsWorkEndAndTakesNothingNew) {
  Capacity capacity;
  capacity.set_limit(3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(capacity.try_reserve());
  capacity.set_limit(1);
  EXPECT_FALSE(capacity.try_reserve());
  EXPECT_TRUE(capacity.cancel());
  EXPECT_TRUE(capacity.cancel());
  EXPECT_FALSE(capacity.try_reserve());
  EXPECT_TRUE(capacity.cancel());
  EXPECT_TRUE(capacity.try_reserve());
}

TEST(Capacity, KeepsTheNoteAndTheLimitThroughEveryStep) {
  Capacity capacity;
  capacity.set_limit(1'000'000);
  (void)capacity.update([](Capacity::Word& word) { return word.set_note(0xabcd), true; });
  for (int i = 0; i < 65'535; ++i) ASSERT_TRUE(capacity.try_reserve());
  EXPECT_FALSE(capacity.try_reserve()) << "sixteen bits are full";
  for (int i = 0; i < 65'535; ++i) ASSERT_TRUE(capacity.commit());
  EXPECT_EQ(capacity.counts(), (Counts{0, 65'535}));
  EXPECT_EQ(capacity.load().note(), 0xabcdU);
  EXPECT_EQ(capacity.load().limit(), limits::kProxyConcurrencyMax);
  for (int i = 0; i < 65'535; ++i) ASSERT_TRUE(capacity.finish());
  EXPECT_EQ(capacity.load().note(), 0xabcdU);
}

TEST(Capacity, ManyThreadsNeverHoldMoreThanTheLimit) {
  constexpr std::uint32_t kLimit = 3;
  Capacity capacity;
  capacity.set_limit(kLimit);
  std::atomic<std::uint32_t> held{0};
  std::atomic<std::uint32_t> held_max{0};
  std::atomic<std::uint64_t> refused{0};
  const auto before = bugs_counted();
  const auto work = [&](unsigned seed) {
    for (unsigned i = 0; i < 20'000; ++i) {
      if (!capacity.try_reserve()) {
        refused.fetch_add(1);
        continue;
      }
      const auto now = held.fetch_add(1) + 1;
      for (auto seen = held_max.load(); now > seen && !held_max.compare_exchange_weak(seen, now);) {
      }
      if ((i + seed) % 8 == 0) std::this_thread::yield();
      const bool active = (i + seed) % 3 != 0;
      if (active) capacity.commit();
      held.fetch_sub(1);
      active ? capacity.finish() : capacity.cancel();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
  EXPECT_LE(held_max.load(), kLimit);
  EXPECT_GT(refused.load(), 0U);
  EXPECT_EQ(capacity.counts(), (Counts{0, 0}));
  EXPECT_EQ(bugs_counted(), before);
}

}  // namespace
}  // namespace proxypool::domain
