#include "proxypool/base/thread_cells.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace proxypool {
namespace {

TEST(ThreadCellsTest, SumsWhatEveryThreadAdded) {
  ThreadCells cells;
  const auto count = cells.allocate(1).value();
  const auto total = cells.allocate(1).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        cells.add(count, 2);
        cells.add_double(total, 0.5);
        if (i % 100 == 0) (void)cells.sum(count);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cells.sum(count), 8000U);
  EXPECT_DOUBLE_EQ(cells.sum_double(total), 2000);
}

TEST(ThreadCellsTest, AThreadTakesOverTheBlockOfOneThatEnded) {
  ThreadCells cells;
  const auto cell = cells.allocate(1).value();
  for (int i = 0; i < 50; ++i) std::thread([&] { cells.add(cell, 1); }).join();
  EXPECT_EQ(cells.sum(cell), 50U);
  EXPECT_EQ(cells.blocks(), 1U);
}

TEST(ThreadCellsTest, AThreadKeepsOneBlockForEachSetOfCells) {
  ThreadCells one;
  ThreadCells two;
  const auto a = one.allocate(1).value();
  const auto b = two.allocate(1).value();
  for (int i = 0; i < 50; ++i) {
    one.add(a, 1);
    two.add(b, 2);
  }
  EXPECT_EQ(one.sum(a), 50U);
  EXPECT_EQ(two.sum(b), 100U);
  EXPECT_EQ(one.blocks(), 1U);
  EXPECT_EQ(two.blocks(), 1U);
}

TEST(ThreadCellsTest, ANewSetOfCellsStartsAtZero) {
  for (int i = 0; i < 20; ++i) {
    const auto cells = std::make_unique<ThreadCells>();
    const auto cell = cells->allocate(1).value();
    EXPECT_EQ(cells->sum(cell), 0U);
    cells->add(cell, 1);
    EXPECT_EQ(cells->sum(cell), 1U);
  }
}

TEST(ThreadCellsTest, AThreadMayOutliveTheCellsItUsed) {
  std::thread([] {
    ThreadCells cells;
    cells.add(cells.allocate(1).value(), 1);
  }).join();
}

TEST(ThreadCellsTest, RefusesWhatDoesNotFit) {
  ThreadCells cells;
  EXPECT_EQ(cells.allocate(ThreadCells::kCellsMax - 1), 0U);
  EXPECT_FALSE(cells.allocate(2));
  EXPECT_EQ(cells.allocate(1), ThreadCells::kCellsMax - 1);
  EXPECT_FALSE(cells.allocate(1));
  EXPECT_FALSE(cells.allocate(SIZE_MAX));
}

}  // namespace
}  // namespace proxypool
