// Ruling R1: strategies choose the upstream; R6: what to fall back to, and that ties are random.
#include "proxypool/domain/routing/strategy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace proxypool::domain {
namespace {

using Weights = std::vector<std::uint32_t>;
constexpr auto kIdle = [](std::uint32_t) -> std::uint64_t { return 0; };

std::uint32_t first(const UpstreamOrder& order, StrategyTurn& turn, Random& random) {
  Preference preference;
  return order.next(preference, turn, random, kIdle);
}
std::string firsts(const UpstreamOrder& order, int count) {
  StrategyTurn turn;
  SplitMix64 random(1);
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>('a' + first(order, turn, random));
  return out;
}

TEST(UpstreamOrder, RoundRobinTakesTurns) {
  EXPECT_EQ(firsts(UpstreamOrder(Strategy::RoundRobin, Weights{1, 9, 1}), 7), "abcabca");
}

TEST(UpstreamOrder, WeightedRoundRobinIsSmooth) {
  EXPECT_EQ(firsts(UpstreamOrder(Strategy::WeightedRoundRobin, Weights{5, 1, 1}), 14),
            "aabacaaaabacaa");
  EXPECT_EQ(firsts(UpstreamOrder(Strategy::WeightedRoundRobin, Weights{20, 10}), 6), "abaaba");
}

TEST(UpstreamOrder, WeightedRoundRobinSkipsWeightZeroAndTakesAllZerosAsEqual) {
  EXPECT_EQ(firsts(UpstreamOrder(Strategy::WeightedRoundRobin, Weights{0, 1, 1}), 4), "bcbc");
  EXPECT_EQ(firsts(UpstreamOrder(Strategy::WeightedRoundRobin, Weights{0, 0}), 4), "abab");
}

TEST(UpstreamOrder, HugeWeightsAreScaledAndKeepTheirShare) {
  const UpstreamOrder order(Strategy::WeightedRoundRobin, Weights{3'000'001, 1'000'000, 1});
  StrategyTurn turn;
  SplitMix64 random(1);
  std::array<int, 3> seen{};
  for (int i = 0; i < 4'096; ++i) ++seen[first(order, turn, random)];
  EXPECT_NEAR(seen[0], 3'072, 4);
  EXPECT_NEAR(seen[1], 1'024, 4);
  EXPECT_GE(seen[2], 1);
}

TEST(UpstreamOrder, FirstKeepsTheConfiguredOrder) {
  EXPECT_EQ(firsts(UpstreamOrder(Strategy::First, Weights{1, 1}), 3), "aaa");
}

TEST(UpstreamOrder, RandomTakesEveryUpstream) {
  const auto seen = firsts(UpstreamOrder(Strategy::Random, Weights{1, 1, 1}), 300);
  for (const char c : {'a', 'b', 'c'}) EXPECT_GT(std::count(seen.begin(), seen.end(), c), 60);
}

TEST(UpstreamOrder, LeastConnTakesTheSmallestLoadForItsWeight) {
  const UpstreamOrder order(Strategy::LeastConn, Weights{1, 4, 1});
  StrategyTurn turn;
  SplitMix64 random(1);
  Preference preference;
  const std::vector<std::uint64_t> loads{2, 7, 3};  // 2, 1.75 and 3 for their weights
  const auto load = [&](std::uint32_t i) { return loads[i]; };
  EXPECT_EQ(order.next(preference, turn, random, load), 1U);
  EXPECT_EQ(order.next(preference, turn, random, load), 0U);
  EXPECT_EQ(order.next(preference, turn, random, load), 2U);
  EXPECT_EQ(order.next(preference, turn, random, load), UpstreamOrder::kNone);
}

TEST(UpstreamOrder, LeastConnBreaksTiesByChance) {
  const UpstreamOrder order(Strategy::LeastConn, Weights{1, 1, 1});
  StrategyTurn turn;
  SplitMix64 random(1);
  std::array<int, 3> seen{};
  for (int i = 0; i < 3'000; ++i) ++seen[first(order, turn, random)];
  for (const int count : seen) EXPECT_NEAR(count, 1'000, 150);
}

TEST(UpstreamOrder, FallsBackToEveryOtherUpstreamOnce) {
  for (const auto strategy : {Strategy::RoundRobin, Strategy::WeightedRoundRobin, Strategy::Random,
                              Strategy::LeastConn, Strategy::First}) {
    const UpstreamOrder order(strategy, Weights(64, 1));
    StrategyTurn turn;
    SplitMix64 random(5);
    Preference preference;
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 64; ++i) seen.insert(order.next(preference, turn, random, kIdle));
    EXPECT_EQ(seen.size(), 64U) << spell(strategy);
    EXPECT_EQ(order.next(preference, turn, random, kIdle), UpstreamOrder::kNone);
  }
}

TEST(UpstreamOrder, SequentialNeverCrossesToAnotherUpstream) {
  const UpstreamOrder order(Strategy::Sequential, Weights{1, 1, 1}, 1);
  StrategyTurn turn;
  SplitMix64 random(1);
  Preference preference;
  EXPECT_EQ(order.next(preference, turn, random, kIdle), 1U);
  EXPECT_EQ(order.next(preference, turn, random, kIdle), UpstreamOrder::kNone);
  const UpstreamOrder nowhere(Strategy::Sequential, Weights{1, 1});
  Preference fresh;
  EXPECT_EQ(nowhere.next(fresh, turn, random, kIdle), UpstreamOrder::kNone);
}

TEST(UpstreamOrder, NoUpstreamsNoChoice) {
  for (const auto strategy : {Strategy::RoundRobin, Strategy::WeightedRoundRobin, Strategy::Random,
                              Strategy::LeastConn, Strategy::First, Strategy::Sequential}) {
    StrategyTurn turn;
    SplitMix64 random(1);
    EXPECT_EQ(first(UpstreamOrder(strategy, Weights{}), turn, random), UpstreamOrder::kNone);
  }
}

TEST(UpstreamOrder, ThreadsShareOneRoundWithoutLosingATurn) {
  const UpstreamOrder order(Strategy::WeightedRoundRobin, Weights{3, 1});
  StrategyTurn turn;
  std::array<std::array<int, 2>, 4> seen{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      SplitMix64 random(t);
      for (int i = 0; i < 5'000; ++i) ++seen[t][first(order, turn, random)];
    });
  }
  for (auto& thread : threads) thread.join();
  int a = 0;
  for (const auto& counts : seen) a += counts[0];
  EXPECT_EQ(a, 15'000);
}

}  // namespace
}  // namespace proxypool::domain
