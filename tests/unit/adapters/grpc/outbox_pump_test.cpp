// The pump between an outbox and a stream, over a transport in memory: gRPC itself cannot run under
// ThreadSanitizer, so everything that could race is here.
#include "adapters/grpc/outbox_pump.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "adapters/grpc/guarded_job.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::rpc {
namespace {

struct Piece {
  int value = 0;
  bool last = false;
};

// A message is a number; it travels in three pieces. A negative one cannot be encoded.
class PieceEncoder {
 public:
  using Wire = Piece;
  explicit PieceEncoder(int value) : value_(value) {}
  Result<bool> next(Piece& piece) {
    if (value_ < 0) return Error{ErrorCode::Internal, Origin::Internal, "cannot be encoded"};
    if (given_ == 3) return false;
    piece = {value_, ++given_ == 3};
    return true;
  }

 private:
  int value_;
  int given_ = 0;
};

using Pump = OutboxPump<int, PieceEncoder>;

// One message at most, latest wins, like the controller's.
class Mailbox final : public ports::Outbox<int> {
 public:
  void put(int value) {
    const auto wake = state_.with([&](State& state) {
      state.value = value;
      return state.wake;
    });
    if (wake) wake();
  }
  void fail(Error error) {
    const auto wake = state_.with([&](State& state) {
      state.error = std::move(error);
      return state.wake;
    });
    if (wake) wake();
  }
  void on_put(std::function<void()> wake) {
    state_.with([&](State& state) { state.wake = std::move(wake); });
  }
  Result<std::optional<int>> take() override {
    EXPECT_EQ(takers_.fetch_add(1), 0) << "take() twice at once";
    auto taken = state_.with([](State& state) -> Result<std::optional<int>> {
      if (state.error) return *state.error;
      return std::exchange(state.value, std::nullopt);
    });
    takers_.fetch_sub(1);
    return taken;
  }
  void closed() override {
    EXPECT_EQ(takers_.load(), 0);
    on_put(nullptr);
    ++closings;
  }

  std::atomic<int> closings{0};

 private:
  struct State {
    std::optional<int> value;
    std::optional<Error> error;
    std::function<void()> wake;
  };
  Guarded<State> state_;
  std::atomic<int> takers_{0};
};

class Threads {
 public:
  explicit Threads(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        while (auto job = jobs_.pop()) (*job)();
      });
    }
  }
  ~Threads() {
    jobs_.close();
    for (auto& thread : threads_) thread.join();
  }
  bool run(std::function<void()> job) { return jobs_.try_push(std::move(job)); }

 private:
  BoundedQueue<std::function<void()>> jobs_{1024};
  std::vector<std::thread> threads_;
};

// Completes each write on another thread; refuses every `refuse_every`-th turn once.
class MemoryTransport final : public Pump::Transport {
 public:
  explicit MemoryTransport(int refuse_every = 0) : refuse_every_(refuse_every) {}

  void write(const Piece& piece) override {
    EXPECT_EQ(writes_.fetch_add(1), 0) << "two writes in flight";
    EXPECT_FALSE(finished_.load());
    if (piece.last) delivered.store(piece.value);
    EXPECT_TRUE(threads_.run([this] {
      writes_.fetch_sub(1);
      pump->written(!gone.load());
    }));
  }
  void finish(const Error& reason) override {
    EXPECT_FALSE(finished_.exchange(true)) << "finished twice";
    EXPECT_EQ(writes_.load(), 0);
    end = reason;
    EXPECT_TRUE(threads_.run([this] {
      pump->closed();
      done.count_down();
    }));
  }
  void run(std::function<void()> turn) override {
    const Executor executor = [this](std::function<void()> job) {
      if (refuse_every_ != 0 && ++turns_ % refuse_every_ == 0) return false;
      return threads_.run(std::move(job));
    };
    submit(executor, turn, [this, turn] { run(turn); });
  }

  std::shared_ptr<Pump> pump = std::make_shared<Pump>(*this);
  std::atomic<int> delivered{-1};
  std::atomic<bool> gone{false};
  std::latch done{1};
  Error end;  // read after `done`

 private:
  const int refuse_every_;
  std::atomic<int> turns_{0};
  std::atomic<int> writes_{0};
  std::atomic<bool> finished_{false};
  Threads threads_{3};
};

Pump::Open opening(const std::shared_ptr<Mailbox>& mailbox) {
  return [mailbox](std::function<void()> wake) -> Result<Pump::OutboxPtr> {
    mailbox->on_put(std::move(wake));
    return Pump::OutboxPtr(mailbox);
  };
}

Error left() {
  return {ErrorCode::Unavailable, Origin::Client, "left"};
}

// Waits for what another thread does next; the test's own time limit ends a wait in vain.
template <class Condition>
void await(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

TEST(OutboxPump, EveryWakeUpLeadsToTheNewestMessage) {
  for (const int refuse_every : {0, 3}) {
    auto mailbox = std::make_shared<Mailbox>();
    MemoryTransport transport(refuse_every);
    transport.pump->start(opening(mailbox));
    for (int value = 1; value <= 2'000; ++value) {
      mailbox->put(value);
      if (value % 5 == 0) await([&] { return transport.delivered.load() == value; });
    }
    transport.pump->end(left());
    transport.done.wait();
    EXPECT_EQ(mailbox->closings.load(), 1);
  }
}

// Has its message only after take() has looked: the wake-up comes while the turn is held.
class LateBox final : public ports::Outbox<int> {
 public:
  explicit LateBox(std::function<void()> wake) : wake_(std::move(wake)) {}
  Result<std::optional<int>> take() override {
    if (++takes_ == 2) return std::optional<int>(5);
    if (takes_ == 1) wake_();
    return std::optional<int>();
  }
  void closed() override {}

 private:
  std::function<void()> wake_;
  int takes_ = 0;
};

TEST(OutboxPump, AWakeUpDuringATakeIsNotLost) {
  MemoryTransport transport;
  transport.pump->start([](std::function<void()> wake) -> Result<Pump::OutboxPtr> {
    return Pump::OutboxPtr(std::make_shared<LateBox>(std::move(wake)));
  });
  await([&] { return transport.delivered.load() == 5; });
  transport.pump->end(left());
  transport.done.wait();
}

TEST(OutboxPump, EndsOnceHoweverItsEndsMeet) {
  for (int round = 0; round < 300; ++round) {
    auto mailbox = std::make_shared<Mailbox>();
    MemoryTransport transport;
    std::latch go(3);
    std::thread producer([&] {
      go.arrive_and_wait();
      for (int value = 0; value < 20; ++value) mailbox->put(value);
      if (round % 3 == 0) mailbox->fail({ErrorCode::Stale, Origin::Client, "replaced"});
    });
    std::thread canceller([&] {
      go.arrive_and_wait();
      if (round % 2 == 0) transport.gone = true;
      transport.pump->end(left());
    });
    go.arrive_and_wait();
    transport.pump->start(opening(mailbox));
    transport.done.wait();
    producer.join();
    canceller.join();
    EXPECT_LE(mailbox->closings.load(), 1);  // none: it ended before it was opened
  }
}

TEST(OutboxPump, AnErrorOfTheOutboxIsTheEndOfTheStream) {
  auto mailbox = std::make_shared<Mailbox>();
  MemoryTransport transport;
  transport.pump->start(opening(mailbox));
  mailbox->put(7);
  await([&] { return transport.delivered.load() == 7; });
  mailbox->fail({ErrorCode::Stale, Origin::Client, "replaced"});
  transport.done.wait();
  EXPECT_EQ(transport.end.code, ErrorCode::Stale);
  EXPECT_EQ(mailbox->closings.load(), 1);
}

TEST(OutboxPump, AMessageThatCannotBeEncodedIsTheEndOfTheStream) {
  auto mailbox = std::make_shared<Mailbox>();
  MemoryTransport transport;
  mailbox->put(-1);
  transport.pump->start(opening(mailbox));
  transport.done.wait();
  EXPECT_EQ(transport.end.message, "cannot be encoded");
  EXPECT_EQ(mailbox->closings.load(), 1);
}

TEST(OutboxPump, WhatCannotBeOpenedIsNotClosed) {
  MemoryTransport transport;
  transport.pump->start([](auto) -> Result<Pump::OutboxPtr> {
    return Error{ErrorCode::Stale, Origin::Client, "register again"};
  });
  transport.done.wait();
  EXPECT_EQ(transport.end.code, ErrorCode::Stale);
}

TEST(OutboxPump, AWakeUpAfterTheEndDoesNothing) {
  std::function<void()> wake;
  {
    auto mailbox = std::make_shared<Mailbox>();
    MemoryTransport transport;
    std::latch opened(1);
    transport.pump->start([&](std::function<void()> given) -> Result<Pump::OutboxPtr> {
      wake = std::move(given);
      opened.count_down();
      return Pump::OutboxPtr(mailbox);
    });
    opened.wait();
    transport.pump->end(left());
    transport.done.wait();
    wake();
  }
  wake();  // the pump itself is gone
}

}  // namespace
}  // namespace proxypool::rpc
