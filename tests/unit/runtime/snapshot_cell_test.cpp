#include "runtime/snapshot_cell.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace proxypool::runtime {
namespace {

using Cell = SnapshotCell<int>;

TEST(SnapshotCellTest, AReaderSeesEachPublishAtItsNextRead) {
  Cell cell(std::make_shared<int>(1));
  Cell::Reader reader(cell);
  EXPECT_EQ(*reader.get(), 1);
  EXPECT_EQ(cell.publish(std::make_shared<int>(2)), 2U);
  EXPECT_EQ(*reader.get(), 2);
  EXPECT_EQ(*cell.load(), 2);
  cell.publish(nullptr);
  EXPECT_EQ(reader.get(), nullptr);
}

TEST(SnapshotCellTest, AValueInUseOutlivesItsReplacement) {
  Cell cell(std::make_shared<int>(1));
  Cell::Reader reader(cell);
  const int* in_use = reader.get();
  cell.publish(std::make_shared<int>(2));
  cell.publish(std::make_shared<int>(3));
  EXPECT_EQ(*in_use, 1);  // the address sanitizer watches
}

TEST(SnapshotCellTest, AVersionIsReachedWhenEveryReaderHasReadAgain) {
  Cell cell(std::make_shared<int>(1));
  Cell::Reader a(cell);
  Cell::Reader b(cell);
  const auto version = cell.publish(std::make_shared<int>(2));
  EXPECT_FALSE(cell.all_readers_at_least(version));
  (void)a.get();
  EXPECT_FALSE(cell.all_readers_at_least(version));
  (void)b.get();
  EXPECT_TRUE(cell.all_readers_at_least(version));
}

TEST(SnapshotCellTest, ASleepingReaderHoldsNobodyUp) {
  Cell cell(std::make_shared<int>(1));
  Cell::Reader reader(cell);
  reader.offline();
  const auto version = cell.publish(std::make_shared<int>(2));
  EXPECT_TRUE(cell.all_readers_at_least(version));
  reader.online();
  EXPECT_FALSE(cell.all_readers_at_least(version));  // until it has read
  EXPECT_EQ(*reader.get(), 2);
  EXPECT_TRUE(cell.all_readers_at_least(version));
}

TEST(SnapshotCellTest, AReaderThatEndedIsNotWaitedFor) {
  Cell cell(std::make_shared<int>(1));
  auto reader = std::make_unique<Cell::Reader>(cell);
  const auto version = cell.publish(std::make_shared<int>(2));
  reader.reset();
  EXPECT_TRUE(cell.all_readers_at_least(version));
}

struct Tracked {
  explicit Tracked(std::atomic<std::thread::id>& end) : ended_on(end) {}
  ~Tracked() { ended_on = std::this_thread::get_id(); }
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;
  std::atomic<std::thread::id>& ended_on;
};

// GW-52: the last holder is a serving thread, yet the value dies on the publisher's thread.
TEST(SnapshotCellTest, AReplacedValueDiesWhereItIsReclaimed) {
  std::atomic<std::thread::id> ended_on{};
  SnapshotCell<Tracked> cell(std::make_shared<Tracked>(ended_on));
  std::thread serving([&] {
    SnapshotCell<Tracked>::Reader reader(cell);
    auto pinned = reader.pin();
    cell.publish(nullptr);
    EXPECT_EQ(cell.reclaim(), 1U);
    (void)reader.get();
    EXPECT_EQ(cell.reclaim(), 1U);
    pinned.reset();
    EXPECT_EQ(ended_on.load(), std::thread::id{});
  });
  serving.join();
  EXPECT_EQ(cell.reclaim(), 0U);
  EXPECT_EQ(ended_on.load(), std::this_thread::get_id());
}

// Two halves that belong together: a torn or a dead value would show.
struct Pair {
  explicit Pair(std::uint64_t n) : value(n), twin(~n) {}
  ~Pair() { value = twin = 0; }
  Pair(const Pair&) = default;
  Pair& operator=(const Pair&) = default;
  std::uint64_t value;
  std::uint64_t twin;
};

TEST(SnapshotCellTest, ReadersNeverSeeATornAnOldOrADeadValue) {
  constexpr std::uint64_t kPublishes = 2'000;
  SnapshotCell<Pair> cell(std::make_shared<Pair>(0));
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      SnapshotCell<Pair>::Reader reader(cell);
      std::uint64_t last = 0;
      for (std::uint64_t i = 0; !done || last < kPublishes; ++i) {
        if (t == 0 && i % 64 == 0) {
          reader.offline();
          std::this_thread::yield();
          reader.online();
        }
        const Pair* pair = reader.get();
        ASSERT_EQ(pair->value, ~pair->twin);
        ASSERT_GE(pair->value, last);
        last = pair->value;
      }
    });
  }
  for (std::uint64_t i = 1; i <= kPublishes; ++i) {
    const auto version = cell.publish(std::make_shared<Pair>(i));
    if (i % 100 == 0) {
      while (!cell.all_readers_at_least(version)) std::this_thread::yield();
    }
  }
  done = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cell.reclaim(), 0U);
}

// What a version's acknowledgement promises: whoever was online has stopped using what came before.
TEST(SnapshotCellTest, AnAcknowledgedVersionMeansThatNobodyUsesTheOneBefore) {
  constexpr int kRounds = 2'000;
  SnapshotCell<std::atomic<bool>> cell(std::make_shared<std::atomic<bool>>(true));
  std::atomic<bool> done{false};
  std::thread serving([&] {
    SnapshotCell<std::atomic<bool>>::Reader reader(cell);
    while (!done) {
      reader.online();
      const auto* valid = reader.get();
      ASSERT_TRUE(valid->load());
      reader.offline();
    }
  });
  auto before = std::make_shared<std::atomic<bool>>(true);
  cell.publish(before);
  for (int i = 0; i < kRounds; ++i) {
    auto next = std::make_shared<std::atomic<bool>>(true);
    const auto version = cell.publish(next);
    while (!cell.all_readers_at_least(version)) std::this_thread::yield();
    before->store(false);
    before = std::move(next);
  }
  done = true;
  serving.join();
}

TEST(SnapshotCellDeathTest, TheCellMustOutliveItsReaders) {
  EXPECT_DEATH(
      {
        auto cell = std::make_unique<Cell>();
        const Cell::Reader reader(*cell);
        cell.reset();
      },
      "readers.empty");
}

}  // namespace
}  // namespace proxypool::runtime
