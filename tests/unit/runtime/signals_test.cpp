#include "runtime/signals.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <semaphore>
#include <thread>

#include "proxypool/base/time.hpp"
#include "runtime/alarm.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::runtime {
namespace {

// Before gtest or anything else can start a thread.
const bool kBlocked = [] {
  block_signals();
  return true;
}();

TEST(SignalsTest, TerminateAsksToStop) {
  Signals signals([] {});
  EXPECT_FALSE(signals.stop_requested());
  ::kill(::getpid(), SIGTERM);
  signals.wait_for_stop();
  EXPECT_TRUE(signals.stop_requested());
}

TEST(SignalsTest, HangUpReloadsAndDoesNotStop) {
  std::counting_semaphore<> reloads(0);
  Signals signals([&] { reloads.release(); });
  for (int i = 0; i < 3; ++i) {
    ::kill(::getpid(), SIGHUP);
    reloads.acquire();
  }
  EXPECT_FALSE(signals.stop_requested());
}

TEST(SignalsTest, APartCanAskToStop) {
  Signals signals([] {});
  std::thread part([&] { signals.request_stop(); });
  signals.wait_for_stop();
  part.join();
}

TEST(SignalsTest, CtrlCThatArrivesTwiceIsOneRequest) {
  Signals signals([] {});
  ::kill(::getpid(), SIGINT);
  signals.wait_for_stop();
  ::kill(::getpid(), SIGTERM);  // would end the test program
  sigset_t pending;
  do {
    std::this_thread::yield();
    ASSERT_EQ(::sigpending(&pending), 0);
  } while (sigismember(&pending, SIGTERM) == 1);
}

TEST(SignalsTest, APeerThatHungUpDoesNotKill) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  ::close(ends[1]);
}

TEST(SignalsDeathTest, AskingAgainEndsTheProcessAtOnce) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        Signals signals([] {});
        ::kill(::getpid(), SIGTERM);
        signals.wait_for_stop();
        // What comes within half a second is the same press; then one is enough.
        Alarm alarm;
        alarm.wait_until(boot_now() + milliseconds{600});
        ::kill(::getpid(), SIGTERM);
        alarm.wait_until(kNever);  // the end comes from the other thread
      },
      testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace proxypool::runtime
