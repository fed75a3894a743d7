// RS-6: what least_time knows of a target.
#include "proxypool/domain/balance/latency.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "proxypool/base/random.hpp"

namespace proxypool::domain {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr TimePoint kNow{seconds(1'000)};
constexpr float kMedian = 200'000;  // 200 ms

float ms(float milliseconds) {
  return milliseconds * 1'000;
}

TEST(Latency, WithoutASampleIsLikeTheOthers) {
  Latency latency;
  EXPECT_EQ(latency.cost(kNow, kMedian), kMedian);
  latency.succeeded(kNow, milliseconds(50), kMedian);
  EXPECT_FLOAT_EQ(latency.cost(kNow, kMedian), ms(50)) << "the first sample is all there is";
  latency.forget();
  EXPECT_EQ(latency.cost(kNow, kMedian), kMedian);
}

TEST(Latency, ASlowAnswerCountsAtOnceAndAFastOneByTheTimeThatPassed) {
  Latency latency;
  latency.succeeded(kNow, milliseconds(100), kMedian);
  latency.succeeded(kNow, milliseconds(900), kMedian);
  EXPECT_FLOAT_EQ(latency.cost(kNow, kMedian), ms(900));
  latency.succeeded(kNow, milliseconds(100), kMedian);
  EXPECT_FLOAT_EQ(latency.cost(kNow, kMedian), ms(900)) << "no time has passed";
  const TimePoint later = kNow + seconds(5);
  latency.succeeded(later, milliseconds(100), kMedian);
  EXPECT_NEAR(latency.cost(later, kMedian), ms(100) + ms(800) * std::exp(-.5F), ms(2));
}

TEST(Latency, DoesNotDependOnHowManySamplesCame) {
  const auto after = [](int samples) {
    Latency latency;
    latency.succeeded(kNow, seconds(1), kMedian);
    for (int i = 1; i <= samples; ++i) {
      latency.succeeded(kNow + seconds(5) * i / samples, milliseconds(100), kMedian);
    }
    return latency.cost(kNow + seconds(5), kMedian);
  };
  EXPECT_NEAR(after(10), after(5'000), ms(10));
}

TEST(Latency, DriftsTowardsTheMedianAndIsThereAfterItsMemory) {
  for (const int sample : {20, 5'000}) {
    Latency latency;
    latency.succeeded(kNow, milliseconds(sample), kMedian);
    const float first = latency.cost(kNow, kMedian);
    float before = first;
    for (int s = 1; s < 10; ++s) {
      const float cost = latency.cost(kNow + seconds(s), kMedian);
      EXPECT_NEAR(cost, kMedian + (first - kMedian) * std::exp(-static_cast<float>(s) / 10),
                  std::abs(first - kMedian) * .002F);
      EXPECT_LT(std::abs(cost - kMedian), std::abs(before - kMedian));
      before = cost;
    }
    EXPECT_EQ(latency.cost(kNow + Latency::kMemory, kMedian), kMedian);
    EXPECT_EQ(latency.cost(kNow + hours(5), kMedian), kMedian);
  }
}

TEST(Latency, AFailureNeverMakesATargetLookBetter) {
  SplitMix64 random(7);
  for (int i = 0; i < 2'000; ++i) {
    Latency latency;
    TimePoint now = kNow;
    for (std::uint64_t n = random.below(5); n > 0; --n) {
      now += milliseconds(random.below(12'000));
      latency.succeeded(now, milliseconds(random.below(20'000)), kMedian);
    }
    now += milliseconds(random.below(12'000));
    const float before = latency.cost(now, kMedian);
    const nanoseconds penalty = milliseconds(random.below(10'000));
    const float after = latency.failed(now, penalty, kMedian);
    ASSERT_GE(after, before);
    ASSERT_GE(after * 1.001F, static_cast<float>(penalty.count()) / 1'000);
    ASSERT_EQ(latency.cost(now, kMedian), after);
  }
}

TEST(Latency, WhatWasGivenUpTookAtLeastSoLong) {
  Latency latency;
  latency.succeeded(kNow, milliseconds(300), kMedian);
  latency.lasted(kNow, milliseconds(100), kMedian);
  EXPECT_FLOAT_EQ(latency.cost(kNow, kMedian), ms(300));
  latency.lasted(kNow, milliseconds(700), kMedian);
  EXPECT_FLOAT_EQ(latency.cost(kNow, kMedian), ms(700));
}

TEST(Latency, GoesOnWhenItsTicksBeginAnew) {
  const TimePoint turn{nanoseconds(std::int64_t{1} << 52)};
  Latency latency;
  latency.succeeded(turn - seconds(2), milliseconds(900), kMedian);
  latency.succeeded(turn + seconds(3), milliseconds(100), kMedian);
  EXPECT_NEAR(latency.cost(turn + seconds(3), kMedian), ms(100) + ms(800) * std::exp(-.5F), ms(2));
  EXPECT_EQ(latency.cost(turn + hours(24 * 30), kMedian), kMedian) << "half the way round again";
}

TEST(Latency, AThreadWhoseClockIsBehindIsHeard) {
  Latency latency;
  latency.succeeded(kNow, milliseconds(100), kMedian);
  EXPECT_FLOAT_EQ(latency.cost(kNow - milliseconds(50), kMedian), ms(100));
  latency.succeeded(kNow - milliseconds(50), milliseconds(400), kMedian);
  EXPECT_NEAR(latency.cost(kNow, kMedian), ms(400), ms(2));
}

TEST(Latency, ThreadsLoseNoPeak) {
  Latency latency;
  std::vector<std::thread> threads;
  std::atomic<bool> go{false};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      while (!go) std::this_thread::yield();
      for (int i = 0; i < 5'000; ++i) latency.succeeded(kNow, milliseconds(i + t), kMedian);
    });
  }
  go = true;
  for (auto& thread : threads) thread.join();
  EXPECT_FLOAT_EQ(latency.cost(kNow, kMedian), ms(5'002));
}

TEST(MedianLatency, IsTheMiddleOfWhatWasHeard) {
  MedianLatency median;
  EXPECT_EQ(median.value(), 0);
  median.learn(0, ms(900), kNow);
  EXPECT_EQ(median.value(), ms(900)) << "better than nothing";
  median.learn(1, ms(100), kNow);
  median.learn(2, ms(120), kNow);
  EXPECT_EQ(median.value(), ms(900)) << "once a second";
  median.learn(3, ms(110), kNow + MedianLatency::kRenewed);
  EXPECT_EQ(median.value(), ms(110));
}

TEST(MedianLatency, OfManyIsThatOfTheLastOnes) {
  MedianLatency median;
  SplitMix64 random(3);
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const auto cost = static_cast<float>(100'000 + random.below(100'000));
    median.learn(static_cast<std::uint32_t>(random.below(100'000)), cost, kNow + milliseconds(i));
  }
  EXPECT_NEAR(median.value(), ms(150), ms(25));
}

TEST(LoadStep, CountsWhatIsInFlightAndTheWeight) {
  EXPECT_GT(load_step(ms(100), 1), load_step(ms(100), 0));
  EXPECT_EQ(load_step(ms(100), 1), load_step(ms(200), 0));
  EXPECT_EQ(load_step(ms(100), 3, 4), load_step(ms(100), 0));
  EXPECT_EQ(load_step(ms(100), 0), load_step(ms(103), 0)) << "noise makes no difference";
  EXPECT_LT(load_step(ms(100), 0), load_step(ms(113), 0));
  EXPECT_EQ(load_step(0, 0), load_step(0, 5)) << "nothing is known of anybody";
}

}  // namespace
}  // namespace proxypool::domain
