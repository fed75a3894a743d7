#include "runtime/alarm.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/boot_clock.hpp"

namespace proxypool::runtime {
namespace {

TEST(AlarmTest, SleepsUntilTheMoment) {
  Alarm alarm;
  const TimePoint at = boot_now() + milliseconds{5};
  alarm.wait_until(at);
  EXPECT_GE(boot_now(), at);
}

TEST(AlarmTest, AMomentInThePastDoesNotSleep) {
  Alarm alarm;
  alarm.wait_until(boot_now() - seconds{1});
  alarm.wait_until(TimePoint{});
  alarm.wait_until(TimePoint::min());
}

TEST(AlarmTest, AWakeBeforeTheSleepIsNotLost) {
  Alarm alarm;
  alarm.wake();
  alarm.wake();
  alarm.wait_until(kNever);  // would hang
  const TimePoint at = boot_now() + milliseconds{5};
  alarm.wait_until(at);  // both wakes were used up by the sleep before
  EXPECT_GE(boot_now(), at);
}

TEST(AlarmTest, AnotherThreadWakes) {
  Alarm alarm;
  std::thread waker([&] { alarm.wake(); });
  alarm.wait_until(kNever);
  waker.join();
}

}  // namespace
}  // namespace proxypool::runtime
