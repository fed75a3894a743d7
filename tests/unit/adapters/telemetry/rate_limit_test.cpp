#include "adapters/telemetry/rate_limit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace proxypool::telemetry {
namespace {

using ports::Event;

constexpr TimePoint kStart{seconds{5000}};
constexpr Event kFive = Event::UpstreamFetchFailed;
static_assert(ports::row(kFive).per_second_max == 5);
static_assert(ports::row(Event::ProcessStarted).per_second_max == 0);

TEST(RateLimitTest, LetsTheMaximumThroughEachSecond) {
  RateLimit limit;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limit.take(kFive, kStart), 0U);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(limit.take(kFive, kStart + milliseconds{999}), std::nullopt);
  EXPECT_EQ(limit.take(kFive, kStart + seconds{1}), 3U);
  EXPECT_EQ(limit.take(kFive, kStart + seconds{1}), 0U);
}

TEST(RateLimitTest, EventsDoNotShareTheirLimits) {
  RateLimit limit;
  for (int i = 0; i < 6; ++i) (void)limit.take(kFive, kStart);
  EXPECT_EQ(limit.take(kFive, kStart), std::nullopt);
  EXPECT_EQ(limit.take(Event::ProxyBenched, kStart), 0U);
}

TEST(RateLimitTest, SomeEventsHaveNoLimit) {
  RateLimit limit;
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(limit.take(Event::ProcessStarted, kStart), 0U);
}

TEST(RateLimitTest, ManyThreadsTogetherStayWithinIt) {
  RateLimit limit;
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) passed += limit.take(kFive, kStart) ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(passed, 5);
  EXPECT_EQ(limit.take(kFive, kStart + seconds{2}), 3995U);
}

}  // namespace
}  // namespace proxypool::telemetry
