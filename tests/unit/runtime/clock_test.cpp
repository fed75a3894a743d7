#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "runtime/boot_clock.hpp"
#include "runtime/manual_clock.hpp"
#include "runtime/system.hpp"

namespace proxypool::runtime {
namespace {

TEST(ClockTest, BootTimeNeverGoesBack) {
  TimePoint last = boot_now();
  for (int i = 0; i < 10'000; ++i) {
    const TimePoint now = system_clock().now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, WallTimeIsInThisCentury) {
  const auto date =
      std::chrono::year_month_day{std::chrono::floor<std::chrono::days>(system_clock().wall_now())};
  EXPECT_GE(static_cast<int>(date.year()), 2024);
  EXPECT_LT(static_cast<int>(date.year()), 2100);
}

TEST(ManualClockTest, MovesOnlyWhenToldTo) {
  ManualClock clock;
  const TimePoint start = clock.now();
  const WallTime wall = clock.wall_now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(milliseconds{1500});
  EXPECT_EQ(clock.now() - start, milliseconds{1500});
  EXPECT_EQ(clock.wall_now() - wall, milliseconds{1500});
}

TEST(ManualClockTest, TheWallClockStepsAlone) {
  ManualClock clock;
  const TimePoint start = clock.now();
  const WallTime wall = clock.wall_now();
  clock.step_wall(-seconds{3600});
  EXPECT_EQ(clock.now(), start);
  EXPECT_EQ(clock.wall_now() - wall, -seconds{3600});
}

TEST(ThreadRandomTest, EachThreadHasItsOwnSequence) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      for (int k = 0; k < 100; ++k) seen.insert(thread_random().next());
    }).join();
  }
  EXPECT_EQ(seen.size(), 300U);
}

}  // namespace
}  // namespace proxypool::runtime
