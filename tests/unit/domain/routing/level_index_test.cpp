// The bitmaps under least_conn: what is set is found, at the lowest level, and nothing else is.
#include "proxypool/domain/balance/level_index.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace proxypool::domain {
namespace {

constexpr std::uint32_t kMany = 100'000;

struct Found {
  unsigned level;
  std::uint32_t member;
  friend bool operator==(const Found&, const Found&) = default;
};

std::vector<std::uint64_t> everybody(std::uint32_t members) {
  return std::vector<std::uint64_t>((members + 63) / 64, ~std::uint64_t{0});
}
std::optional<Found> first(LevelIndex& index, Random& random, unsigned from = 0,
                           unsigned end = LevelIndex::kLevels) {
  std::optional<Found> found;
  index.search(from, end, everybody(kMany), random, [&](unsigned level, std::uint32_t member) {
    found = Found{level, member};
    return true;
  });
  return found;
}

class LevelIndexTest : public testing::Test {
 protected:
  LevelIndexTest() {
    index_.grow(kMany);
    for (unsigned level = 0; level < LevelIndex::kLevels; ++level) index_.open_level(level);
  }
  SplitMix64 random_{3};
  LevelIndex index_;
};

TEST_F(LevelIndexTest, FindsTheOnlyMemberWhereverItIs) {
  for (const std::uint32_t member : {0U, 63U, 64U, 4'095U, 4'096U, 65'535U, 99'999U}) {
    for (const unsigned level : {0U, 63U, 64U, 130U, 255U}) {
      EXPECT_EQ(first(index_, random_), std::nullopt);
      index_.set(level, member);
      EXPECT_TRUE(index_.contains(level, member));
      EXPECT_EQ(first(index_, random_), (Found{level, member}));
      index_.clear(level, member);
    }
  }
}

TEST_F(LevelIndexTest, OffersTheLowestLevelFirstAndEveryMemberOnce) {
  const std::map<std::uint32_t, unsigned> where{{5, 2}, {70, 2}, {90'000, 1}, {6, 200}, {4'100, 2}};
  for (const auto& [member, level] : where) index_.set(level, member);
  std::vector<unsigned> levels;
  std::set<std::uint32_t> members;
  index_.search(0, LevelIndex::kLevels, everybody(kMany), random_,
                [&](unsigned level, std::uint32_t member) {
                  EXPECT_EQ(where.at(member), level);
                  levels.push_back(level);
                  members.insert(member);
                  return false;
                });
  EXPECT_EQ(levels, (std::vector<unsigned>{1, 2, 2, 2, 200}));
  EXPECT_EQ(members.size(), where.size());
}

TEST_F(LevelIndexTest, KeepsToTheRangeOfLevelsAndToTheMask) {
  index_.set(10, 1);
  index_.set(64, 2);
  EXPECT_EQ(first(index_, random_, 11, 64), std::nullopt);
  EXPECT_EQ(first(index_, random_, 10, 11), (Found{10, 1}));
  EXPECT_EQ(first(index_, random_, 11, 65), (Found{64, 2}));
  const std::vector<std::uint64_t> only_two{0b100};
  std::vector<std::uint32_t> offered;
  index_.search(0, LevelIndex::kLevels, only_two, random_, [&](unsigned, std::uint32_t member) {
    offered.push_back(member);
    return false;
  });
  EXPECT_EQ(offered, std::vector<std::uint32_t>{2});
}

TEST_F(LevelIndexTest, AgreesWithAModelOverRandomMoves) {
  std::map<std::uint32_t, unsigned> model;
  for (int i = 0; i < 20'000; ++i) {
    const auto member = static_cast<std::uint32_t>(random_.below(kMany) / (1 + random_.below(999)));
    const auto known = model.find(member);
    if (known != model.end()) {
      index_.clear(known->second, member);
      model.erase(known);
    }
    if (random_.below(3) != 0) {
      const auto level = static_cast<unsigned>(random_.below(5));
      index_.set(level, member);
      model[member] = level;
    }
    unsigned lowest = 99;
    if (i % 50 == 0) {
      for (const auto& [m, level] : model) lowest = std::min(lowest, level);
      const auto found = first(index_, random_);
      ASSERT_EQ(found.has_value(), !model.empty());
      if (found) {
        ASSERT_EQ(found->level, lowest);
        ASSERT_EQ(model.at(found->member), found->level);
      }
    }
  }
}

TEST_F(LevelIndexTest, BeginsAtARandomPlaceSoThatTiesAreEven) {
  constexpr std::uint32_t kFew = 5'000;  // crosses the 4,096 of one middle word
  LevelIndex index;
  index.grow(kFew);
  index.open_level(0);
  for (std::uint32_t m = 0; m < kFew; ++m) index.set(0, m);
  std::array<int, 5> thousands{};
  for (int i = 0; i < 20'000; ++i) ++thousands[first(index, random_)->member / 1'000];
  for (const int count : thousands) EXPECT_NEAR(count, 4'000, 300);
}

TEST_F(LevelIndexTest, ThreadsThatMoveDifferentMembersLoseNone) {
  constexpr std::uint32_t kThreads = 4;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      SplitMix64 random(t);
      // All four work on the same 8 words, each on members of its own.
      std::array<unsigned, 128> at{};
      for (std::uint32_t m = 0; m < 128; ++m) index_.set(0, m * kThreads + t);
      for (int i = 0; i < 20'000; ++i) {
        const auto m = static_cast<std::uint32_t>(random.below(128));
        const unsigned next = (at[m] + 1) % 3;
        index_.set(next, m * kThreads + t);
        index_.clear(at[m], m * kThreads + t);
        at[m] = next;
        index_.search(0, 3, everybody(512), random,
                      [&](unsigned, std::uint32_t found) { return found < 512; });
      }
      for (std::uint32_t m = 0; m < 128; ++m) index_.clear(at[m], m * kThreads + t);
      index_.set(t % 3, t);
    });
  }
  for (auto& thread : threads) thread.join();
  std::map<std::uint32_t, unsigned> left;
  index_.search(0, LevelIndex::kLevels, everybody(kMany), random_,
                [&](unsigned level, std::uint32_t member) {
                  left[member] = level;
                  return false;
                });
  EXPECT_EQ(left, (std::map<std::uint32_t, unsigned>{{0, 0}, {1, 1}, {2, 2}, {3, 0}}));
}

}  // namespace
}  // namespace proxypool::domain
