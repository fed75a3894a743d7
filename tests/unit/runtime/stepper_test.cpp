#include "runtime/stepper.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <semaphore>
#include <vector>

#include "runtime/boot_clock.hpp"

namespace proxypool::runtime {
namespace {

TEST(StepperTest, StepsAgainWhenItAskedTo) {
  std::latch third(3);
  std::vector<TimePoint> at;
  Stepper stepper("test", [&](TimePoint now) {
    if (at.size() < 3) {
      at.push_back(now);
      third.count_down();
    }
    return at.size() < 3 ? now + milliseconds{5} : kNever;
  });
  third.wait();
  stepper.stop();
  ASSERT_EQ(at.size(), 3U);
  EXPECT_GE(at[1] - at[0], milliseconds{5});
  EXPECT_GE(at[2] - at[1], milliseconds{5});
}

TEST(StepperTest, AWakeBringsAStepForward) {
  std::counting_semaphore<> steps(0);
  Stepper stepper("test", [&](TimePoint) {
    steps.release();
    return kNever;
  });
  for (int i = 0; i < 5; ++i) {
    steps.acquire();  // hangs when a wake is lost
    stepper.wake();
  }
  steps.acquire();
}

TEST(StepperTest, AWakeDuringAStepBringsAnotherStep) {
  std::binary_semaphore inside(0);
  std::binary_semaphore go_on(0);
  std::latch second(2);
  Stepper stepper("test", [&](TimePoint) {
    if (!second.try_wait()) second.count_down();
    inside.release();
    go_on.acquire();
    return kNever;
  });
  inside.acquire();
  stepper.wake();
  go_on.release();
  second.wait();
  go_on.release();
}

TEST(StepperTest, AskingForThePastDoesNotSpin) {
  constexpr int kSteps = 20;
  std::latch enough(kSteps);
  const TimePoint start = boot_now();
  Stepper stepper("test", [&](TimePoint) {
    if (!enough.try_wait()) enough.count_down();
    return TimePoint::min();
  });
  enough.wait();
  EXPECT_GE(boot_now() - start, milliseconds{kSteps - 1});
}

TEST(StepperTest, StopWaitsForTheStepThatIsGoingOn) {
  std::latch inside(1);
  std::atomic<bool> finished{false};
  Stepper stepper("test", [&](TimePoint) {
    inside.count_down();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    finished = true;
    return kNever;
  });
  inside.wait();
  stepper.stop();
  EXPECT_TRUE(finished);
  stepper.stop();
}

}  // namespace
}  // namespace proxypool::runtime
