#include "proxypool/base/concurrent.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "proxypool/base/time.hpp"

namespace proxypool {
namespace {

TEST(GuardedTest, OneThreadAtATime) {
  Guarded<int> value(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) value.with([](int& v) { ++v; });
    });
  }
  for (auto& thread : threads) thread.join();
  const Guarded<int>& seen = value;
  EXPECT_EQ(seen.with([](const int& v) { return v; }), 4000);
}

TEST(BoundedQueueTest, RefusesAtItsMaximumAndKeepsTheOrder) {
  BoundedQueue<int> queue(2);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_TRUE(queue.try_push(2));
  EXPECT_FALSE(queue.try_push(3));
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.try_pop(), 1);
  EXPECT_TRUE(queue.try_push(4));
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 4);
}

TEST(BoundedQueueTest, AClosedQueueGivesWhatItHasAndTakesNothing) {
  BoundedQueue<std::unique_ptr<int>> queue(2);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  queue.close();
  EXPECT_FALSE(queue.try_push(std::make_unique<int>(2)));
  EXPECT_EQ(**queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_EQ(queue.pop_for(seconds{60}), std::nullopt);
}

TEST(BoundedQueueTest, ClosingWakesEveryoneWhoWaits) {
  BoundedQueue<int> queue(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] { EXPECT_EQ(queue.pop(), std::nullopt); });
  }
  threads.emplace_back([&] { EXPECT_EQ(queue.pop_for(nanoseconds::max()), std::nullopt); });
  queue.close();
  for (auto& thread : threads) thread.join();
}

TEST(BoundedQueueTest, WaitingWithALimitEnds) {
  BoundedQueue<int> queue(1);
  EXPECT_EQ(queue.pop_for(milliseconds{1}), std::nullopt);
  EXPECT_EQ(queue.pop_for(nanoseconds{-5}), std::nullopt);
  EXPECT_TRUE(queue.try_push(7));
  EXPECT_EQ(queue.pop_for(nanoseconds{0}), 7);
}

TEST(BoundedQueueTest, EveryItemComesOutOnce) {
  constexpr int kItems = 2000;
  BoundedQueue<int> queue(8);
  std::atomic<int> sum{0};
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (const auto item = queue.pop()) {
        sum += *item;
        ++taken;
      }
    });
  }
  std::vector<std::thread> producers;
  for (int t = 0; t < 2; ++t) {
    producers.emplace_back([&] {
      for (int i = 1; i <= kItems; ++i) {
        while (!queue.try_push(i)) std::this_thread::yield();
      }
    });
  }
  for (auto& thread : producers) thread.join();
  queue.close();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken, 2 * kItems);
  EXPECT_EQ(sum, kItems * (kItems + 1));
}

}  // namespace
}  // namespace proxypool
