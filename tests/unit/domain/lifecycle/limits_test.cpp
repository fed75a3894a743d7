// Limits of clients: shares, rate, requests at once (GW-12, R7).
#include "proxypool/domain/client/limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "proxypool/base/random.hpp"

namespace proxypool::domain {
namespace {

constexpr TimePoint kStart{seconds(1'000)};

TEST(ShareOf, IsEqualAndAtLeastOne) {
  EXPECT_EQ(share_of(0, 3), 0U) << "no limit stays none";
  EXPECT_EQ(share_of(10, 1), 10U);
  EXPECT_EQ(share_of(10, 3), 3U);
  EXPECT_EQ(share_of(2, 3), 1U);
  EXPECT_EQ(share_of(10, 0), 10U) << "who asks is live";
}

TEST(RateBucket, GivesItsBurstAtOnceAndThenItsRate) {
  RateBucket bucket;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(bucket.take(10, 5, kStart));
  EXPECT_EQ(bucket.take(10, 5, kStart), milliseconds(100));
  EXPECT_EQ(bucket.take(10, 5, kStart + milliseconds(99)), milliseconds(1));
  EXPECT_FALSE(bucket.take(10, 5, kStart + milliseconds(100)));
  EXPECT_TRUE(bucket.take(10, 5, kStart + milliseconds(100)));
  const TimePoint later = kStart + seconds(3'600);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(bucket.take(10, 5, later)) << "a pause fills it once";
  EXPECT_TRUE(bucket.take(10, 5, later));
  EXPECT_FALSE(RateBucket().take(1, 0, kStart)) << "a burst is at least one";
}

// The model refills a bucket of tokens step by step, in parts of a token that divide evenly.
TEST(RateBucket, IsABucketOfTokens) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SplitMix64 random(seed);
    constexpr std::uint32_t kRates[] = {1, 2, 5, 10, 50, 1'000};
    const std::uint32_t rate = kRates[random.below(6)];
    const auto burst = static_cast<std::uint32_t>(1 + random.below(20));
    const std::int64_t token = 1'000'000'000 / rate;  // nanoseconds' worth
    std::int64_t held = token * burst;
    RateBucket bucket;
    TimePoint now = kStart;
    for (int step = 0; step < 2'000; ++step) {
      const nanoseconds pause(static_cast<std::int64_t>(
          random.below(static_cast<std::uint64_t>(random.below(20) == 0 ? 10 * token : token))));
      now += pause;
      held = std::min(held + pause.count(), token * burst);
      const auto wait = bucket.take(rate, burst, now);
      ASSERT_EQ(!wait.has_value(), held >= token) << seed << ":" << step;
      if (wait) {
        EXPECT_EQ(wait->count(), token - held);
      } else {
        held -= token;
      }
    }
  }
}

TEST(RateBucket, GivesNoMoreToManyThreadsThanToOne) {
  RateBucket bucket;
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5'000; ++i) {
        if (!bucket.take(100, 1'000, kStart + milliseconds(i / 10))) ++taken;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  // The last moment that any thread saw is 499 ms: 49 tokens beside the burst.
  EXPECT_LE(taken, 1'049);
  EXPECT_GE(taken, 1'000);
}

TEST(ClientUse, CountsWhatIsUnderWay) {
  ClientUse use;
  EXPECT_TRUE(use.enter(2));
  EXPECT_TRUE(use.enter(2));
  EXPECT_FALSE(use.enter(2));
  EXPECT_FALSE(use.enter(1)) << "the limit has become smaller";
  use.leave();
  use.leave();
  EXPECT_TRUE(use.enter(1));
}

}  // namespace
}  // namespace proxypool::domain
