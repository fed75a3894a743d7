// Ruling R1: the balancers choose the proxy, and each finds a free place if there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "proxypool/domain/balance/reserve.hpp"

namespace proxypool::domain {
namespace {

constexpr TimePoint kNow{std::chrono::seconds(1'000)};
constexpr auto kAnybody = [](std::uint32_t) { return true; };
constexpr Balancer kBalancers[] = {Balancer::LeastConn, Balancer::RoundRobin,
                                   Balancer::Random,    Balancer::TwoRandomChoices,
                                   Balancer::LeastTime, Balancer::ConsistentHash};
constexpr std::uint64_t kKey = 99;

struct Pool {
  explicit Pool(std::uint32_t count, std::uint32_t limit, bool exact = false)
      : mask((count + 63) / 64) {
    if (exact) members.keep_exact();
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto member = members.place(ProxyId(i + 1));
      members.set(member, {limit, false, kNever});
      available.push_back(member);
      mask[member / 64] |= std::uint64_t{1} << (member % 64);
    }
  }
  template <class Admit>
  std::uint32_t reserve(Balancer balancer, Admit&& admit, Tier tier = Tier::Available) {
    return reserve_by(balancer, tier, members, {available, mask}, kNow, random, admit, kKey);
  }
  std::uint32_t reserve(Balancer balancer) { return reserve(balancer, kAnybody); }

  Members members;
  std::vector<std::uint32_t> available;
  std::vector<std::uint64_t> mask;
  SplitMix64 random{17};
};

TEST(Balancers, EachTakesEveryPlaceBeforeItSaysNone) {
  for (const auto balancer : kBalancers) {
    for (const std::uint32_t count : {1U, 2U, 100U, 1'000U}) {
      Pool pool(count, 3);
      for (std::uint32_t i = 0; i < 3 * count; ++i) {
        ASSERT_NE(pool.reserve(balancer), Members::kNone) << spell(balancer) << " " << count;
      }
      EXPECT_EQ(pool.reserve(balancer), Members::kNone);
    }
  }
}

TEST(Balancers, EachLeavesOutWhatIsNotAdmitted) {
  for (const auto balancer : kBalancers) {
    Pool pool(200, 1);
    const auto odd = [](std::uint32_t member) { return member % 2 == 1; };
    for (int i = 0; i < 100; ++i) ASSERT_EQ(pool.reserve(balancer, odd) % 2, 1U);
    EXPECT_EQ(pool.reserve(balancer, odd), Members::kNone) << spell(balancer);
  }
}

TEST(Balancers, NoCandidatesNoChoice) {
  for (const auto balancer : kBalancers) {
    Pool pool(0, 1);
    EXPECT_EQ(pool.reserve(balancer), Members::kNone);
    EXPECT_EQ(pool.reserve(balancer, kAnybody, Tier::Suspect), Members::kNone);
  }
}

TEST(Balancers, RoundRobinTakesTurnsAndSkipsTheFull) {
  Pool pool(4, 2);
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 8; ++i) order.push_back(pool.reserve(Balancer::RoundRobin));
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  pool.members.release(2, false, Verdict::Neutral, kNow, nanoseconds(0));
  EXPECT_EQ(pool.reserve(Balancer::RoundRobin), 2U);
}

TEST(Balancers, RandomIsEven) {
  Pool pool(10, 1);
  std::vector<int> seen(10, 0);
  for (int i = 0; i < 10'000; ++i) {
    const auto member = pool.reserve(Balancer::Random);
    ++seen[member];
    pool.members.release(member, false, Verdict::Neutral, kNow, nanoseconds(0));
  }
  for (const int count : seen) EXPECT_NEAR(count, 1'000, 150);
}

std::uint32_t load_max(Balancer balancer) {
  constexpr std::uint32_t kCount = 1'000;
  Pool pool(kCount, 1'000, balancer == Balancer::LeastConn);
  for (std::uint32_t i = 0; i < 4 * kCount; ++i) (void)pool.reserve(balancer);
  std::uint32_t most = 0;
  for (std::uint32_t m = 0; m < kCount; ++m) {
    most = std::max(most, pool.members.counts(m).total());
  }
  return most;
}

TEST(Balancers, TwoRandomChoicesIsNearlyAsEvenAsLeastConn) {
  EXPECT_EQ(load_max(Balancer::LeastConn), 4U);
  EXPECT_LE(load_max(Balancer::TwoRandomChoices), 7U);
  EXPECT_GE(load_max(Balancer::Random), 9U) << "the test could not tell them apart";
}

}  // namespace
}  // namespace proxypool::domain
