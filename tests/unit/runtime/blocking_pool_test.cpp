#include "runtime/blocking_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>

namespace proxypool::runtime {
namespace {

TEST(BlockingPoolTest, RefusesWhatDoesNotFit) {
  BlockingPool pool("test", 1, 2);
  std::latch started(1);
  std::latch go(1);
  std::atomic<int> done{0};
  ASSERT_TRUE(pool.try_run([&] {
    started.count_down();
    go.wait();
  }));
  started.wait();
  EXPECT_TRUE(pool.try_run([&] { ++done; }));
  EXPECT_TRUE(pool.try_run([&] { ++done; }));
  EXPECT_FALSE(pool.try_run([&] { ++done; }));
  EXPECT_EQ(pool.queued(), 2U);
  go.count_down();
  pool.stop();
  EXPECT_EQ(done, 2);
}

TEST(BlockingPoolTest, RunsJobsSideBySide) {
  std::latch all_here(3);  // outlives the pool's threads, which may still be waking in it
  BlockingPool pool("test", 3, 3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.try_run([&] { all_here.arrive_and_wait(); }));
  all_here.wait();
}

TEST(BlockingPoolTest, FinishesWhatIsQueuedAndThenRefuses) {
  std::atomic<int> done{0};
  BlockingPool pool("test", 2, 1000);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pool.try_run([&] { ++done; }));
  pool.stop();
  EXPECT_EQ(done, 1000);
  EXPECT_FALSE(pool.try_run([] {}));
  pool.stop();
}

TEST(BlockingPoolTest, TakesJobsThatCannotBeCopied) {
  int seen = 0;
  BlockingPool pool("test", 1, 1);
  ASSERT_TRUE(pool.try_run([value = std::make_unique<int>(7), &seen] { seen = *value; }));
  pool.stop();
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace proxypool::runtime
