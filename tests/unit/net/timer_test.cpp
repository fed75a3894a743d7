#include "net/timer.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "proxypool/base/random.hpp"

namespace proxypool::net {
namespace {

class Probe final : public Timer {
 public:
  Probe(TimerQueue& queue, std::function<void()> action)
      : Timer(queue), action_(std::move(action)) {}

 private:
  void on_timer() override { action_(); }
  std::function<void()> action_;
};

TimePoint at(std::int64_t ms) {
  return TimePoint{milliseconds{ms}};
}

TEST(Timer, FiresOnceWhenItsTimeHasCome) {
  TimerQueue queue;
  int fired = 0;
  Probe timer(queue, [&] { ++fired; });
  timer.arm(at(10));
  queue.run_due(at(9));
  EXPECT_EQ(fired, 0);
  queue.run_due(at(10));
  queue.run_due(at(20));
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(timer.armed());
}

TEST(Timer, PushedBackItFiresAtTheLaterTimeOnly) {
  TimerQueue queue;
  int fired = 0;
  Probe timer(queue, [&] { ++fired; });
  timer.arm(at(10));
  timer.arm(at(30));
  queue.run_due(at(29));
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(queue.next_due(), at(30));
  queue.run_due(at(30));
  EXPECT_EQ(fired, 1);
}

TEST(Timer, MovedForwardItFiresAtTheEarlierTime) {
  TimerQueue queue;
  int fired = 0;
  Probe timer(queue, [&] { ++fired; });
  timer.arm(at(30));
  timer.arm(at(10));
  EXPECT_EQ(queue.next_due(), at(10));
  queue.run_due(at(10));
  queue.run_due(at(30));
  EXPECT_EQ(fired, 1);
}

TEST(Timer, CancelledItDoesNotFireAndDoesNotWakeTheLoop) {
  TimerQueue queue;
  int fired = 0;
  Probe timer(queue, [&] { ++fired; });
  timer.arm(at(10));
  timer.cancel();
  EXPECT_EQ(queue.next_due(), kNever);
  queue.run_due(at(100));
  EXPECT_EQ(fired, 0);
  timer.arm(at(200));
  queue.run_due(at(200));
  EXPECT_EQ(fired, 1);
}

TEST(Timer, ArmedForThePastInItsOwnCallItWaitsForTheNextTurn) {
  TimerQueue queue;
  int fired = 0;
  Probe timer(queue, [&] {
    ++fired;
    timer.arm(at(0));
  });
  timer.arm(at(1));
  queue.run_due(at(5));
  EXPECT_EQ(fired, 1);
  queue.run_due(at(5));
  EXPECT_EQ(fired, 2);
}

TEST(Timer, MayDestroyItselfAndOthersWhenItFires) {
  TimerQueue queue;
  std::vector<std::unique_ptr<Probe>> timers;
  int fired = 0;
  for (int i = 0; i < 3; ++i) {
    timers.push_back(std::make_unique<Probe>(queue, [&] {
      ++fired;
      timers.clear();
    }));
    timers.back()->arm(at(i));
  }
  queue.run_due(at(10));
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(queue.next_due(), kNever);
}

TEST(Timer, ManyTimersFireInOrderWhateverIsDoneToThem) {
  SplitMix64 random(7);
  TimerQueue queue;
  std::vector<std::unique_ptr<Probe>> timers(300);
  std::vector<std::int64_t> expected(timers.size(), -1);
  std::vector<std::size_t> fired;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    timers[i] = std::make_unique<Probe>(queue, [&fired, i] { fired.push_back(i); });
  }
  for (int round = 0; round < 5000; ++round) {
    const auto i = static_cast<std::size_t>(random.below(timers.size()));
    const auto due = static_cast<std::int64_t>(random.below(1000));
    switch (random.below(4)) {
      case 0:
        timers[i]->cancel();
        expected[i] = -1;
        break;
      case 1:
        timers[i] = std::make_unique<Probe>(queue, [&fired, i] { fired.push_back(i); });
        expected[i] = -1;
        break;
      default:
        timers[i]->arm(at(due));
        expected[i] = due;
    }
  }
  for (std::int64_t now = 0; now < 1000; ++now) {
    fired.clear();
    queue.run_due(at(now));
    for (const auto i : fired) {
      EXPECT_EQ(expected[i], now);
      expected[i] = -1;
    }
  }
  EXPECT_EQ(expected, std::vector<std::int64_t>(timers.size(), -1));
}

}  // namespace
}  // namespace proxypool::net
