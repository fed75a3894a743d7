#include "net/event_loop.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/boot_clock.hpp"

namespace proxypool::net {
namespace {

struct Pair {
  UniqueFd a;
  UniqueFd b;
};

Pair make_pair() {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void write_byte(int fd) {
  ASSERT_EQ(::write(fd, "x", 1), 1);
}

class Reader final : public IoHandler {
 public:
  explicit Reader(std::function<void(std::uint32_t)> action) : action_(std::move(action)) {}
  void on_io(std::uint32_t events) override { action_(events); }

 private:
  std::function<void(std::uint32_t)> action_;
};

TEST(EventLoop, LevelTriggeredTellsUntilItIsRead) {
  EventLoop loop;
  const Pair pair = make_pair();
  int calls = 0;
  Reader reader([&](std::uint32_t) { ++calls; });
  ASSERT_TRUE(loop.add(pair.a.get(), EPOLLIN, reader));
  write_byte(pair.b.get());
  loop.turn(seconds{5});
  loop.turn(seconds{5});
  EXPECT_EQ(calls, 2);
  loop.remove(pair.a.get(), reader);
  loop.turn(nanoseconds{0});
  EXPECT_EQ(calls, 2);
}

TEST(EventLoop, EdgeTriggeredTellsOncePerArrival) {
  EventLoop loop;
  const Pair pair = make_pair();
  std::vector<std::uint32_t> calls;
  Reader reader([&](std::uint32_t events) { calls.push_back(events); });
  ASSERT_TRUE(loop.add(pair.a.get(), EPOLLIN | EPOLLRDHUP | EPOLLET, reader));
  write_byte(pair.b.get());
  loop.turn(seconds{5});
  loop.turn(nanoseconds{0});
  EXPECT_EQ(calls.size(), 1U);
  ::shutdown(pair.b.get(), SHUT_WR);
  loop.turn(seconds{5});
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_NE(calls[1] & EPOLLRDHUP, 0U);
}

TEST(EventLoop, AHandlerDestroyedInATurnGetsNoStaleEventOfThatTurn) {
  EventLoop loop;
  const Pair first = make_pair();
  const Pair second = make_pair();
  std::array<std::unique_ptr<Reader>, 2> readers;
  int calls = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    readers[i] = std::make_unique<Reader>([&, i](std::uint32_t) {
      ++calls;
      loop.forget(*readers[1 - i]);
      readers[1 - i].reset();
    });
  }
  ASSERT_TRUE(loop.add(first.a.get(), EPOLLIN | EPOLLET, *readers[0]));
  ASSERT_TRUE(loop.add(second.a.get(), EPOLLIN | EPOLLET, *readers[1]));
  write_byte(first.b.get());
  write_byte(second.b.get());
  loop.turn(seconds{5});
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, RunsPostedFunctionsInOrderAndEndsOnStop) {
  EventLoop loop;
  std::vector<int> order;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.post([&order, i] { order.push_back(i); });
    loop.stop();
  });
  loop.run();
  other.join();
  loop.turn(nanoseconds{0});
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(EventLoop, WhatIsPostedByAPostedFunctionRunsInTheNextTurn) {
  EventLoop loop;
  int runs = 0;
  loop.post([&] {
    ++runs;
    loop.post([&] { ++runs; });
  });
  loop.turn(seconds{5});
  EXPECT_EQ(runs, 1);
  loop.turn(seconds{5});
  EXPECT_EQ(runs, 2);
}

TEST(EventLoop, ManyThreadsPostWithoutLosingAny) {
  EventLoop loop;
  int sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        loop.post([&] {
          if (++sum == 20'000) loop.stop();
        });
      }
    });
  }
  loop.run();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, 20'000);
}

TEST(EventLoop, ATimerFiresNotBeforeItsTime) {
  class Stopper final : public Timer {
   public:
    explicit Stopper(EventLoop& loop) : Timer(loop.timers()), loop_(loop) {}

   private:
    void on_timer() override { loop_.stop(); }
    EventLoop& loop_;
  };
  EventLoop loop;
  Stopper timer(loop);
  const TimePoint due = loop.now() + milliseconds{20};
  timer.arm(due);
  loop.run();
  EXPECT_GE(runtime::boot_now(), due);
  EXPECT_GE(loop.now(), due);
}

TEST(EventLoop, DeferredWorkRunsOnceATurn) {
  class Work final : public Deferred {
   public:
    explicit Work(EventLoop& loop) : loop_(loop) {}
    int runs = 0;

   private:
    void on_turn() override {
      ++runs;
      loop_.defer(*this);
    }
    EventLoop& loop_;
  };
  EventLoop loop;
  Work work(loop);
  auto gone = std::make_unique<Work>(loop);
  loop.defer(*gone);
  loop.defer(work);
  loop.defer(work);
  gone.reset();
  loop.turn(seconds{5});
  EXPECT_EQ(work.runs, 1);
  loop.turn(seconds{5});
  EXPECT_EQ(work.runs, 2);
}

}  // namespace
}  // namespace proxypool::net
