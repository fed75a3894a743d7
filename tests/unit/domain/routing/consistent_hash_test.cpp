// RS-5, R1: a key stays where it is, whoever comes and goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

#include "proxypool/domain/balance/consistent.hpp"
#include "proxypool/domain/balance/reserve.hpp"

namespace proxypool::domain {
namespace {

constexpr TimePoint kNow{std::chrono::seconds(1'000)};
constexpr std::uint32_t kKeys = 20'000;

std::uint64_t key_of(std::uint64_t n) {
  return mix64(n + 1);
}

// Positions of one upstream, some of them in use.
class Pool {
 public:
  explicit Pool(std::uint32_t count, std::uint32_t limit = 1'000) {
    for (std::uint32_t i = 0; i < count; ++i) (void)join(limit);
  }
  std::uint32_t join(std::uint32_t limit = 1'000) {
    const auto member = members_.place(ProxyId(++ids_));
    members_.set(member, {limit, false, kNever});
    mask_.resize((members_.size() + 63) / 64);
    mask_[member / 64] ^= std::uint64_t{1} << (member % 64);
    here_.insert(member);
    return member;
  }
  void leave(std::uint32_t member) {
    members_.close(member);
    ASSERT_TRUE(members_.reclaim(member));
    mask_[member / 64] ^= std::uint64_t{1} << (member % 64);
    here_.erase(member);
  }
  template <class Admit>
  std::uint32_t take(std::uint64_t key, Admit&& admit) {
    const std::vector<std::uint32_t> available(here_.begin(), here_.end());
    return reserve_by(Balancer::ConsistentHash, Tier::Available, members_, {available, mask_}, kNow,
                      random_, admit, key);
  }
  std::uint32_t take(std::uint64_t key) {
    return take(key, [](std::uint32_t) { return true; });
  }
  void give(std::uint32_t member) {
    members_.release(member, false, Verdict::Neutral, kNow, nanoseconds(0));
  }
  // Where each key goes now.
  std::vector<std::uint32_t> homes(std::uint32_t keys = kKeys) {
    const std::vector<std::uint32_t> available(here_.begin(), here_.end());
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < keys; ++i) {
      out.push_back(reserve_by(
          Balancer::ConsistentHash, Tier::Available, members_, {available, mask_}, kNow, random_,
          [](std::uint32_t) { return true; }, key_of(i)));
      give(out.back());
    }
    return out;
  }

 private:
  Members members_;
  std::set<std::uint32_t> here_;
  std::vector<std::uint64_t> mask_;
  SplitMix64 random_{17};
  std::uint64_t ids_ = 0;
};

TEST(PlaceOf, EveryPlaceIsAsLikely) {
  for (const std::uint32_t size : {1U, 2U, 3U, 5U, 7U, 64U, 65U, 100U}) {
    std::vector<int> seen(size, 0);
    for (std::uint32_t i = 0; i < 1'000 * size; ++i) ++seen[place_of(key_of(i), size)];
    for (const int count : seen) EXPECT_NEAR(count, 1'000, 150) << size;
  }
}

TEST(PlaceOf, OneMorePlaceTakesKeysAndMovesNoOther) {
  for (std::uint32_t i = 0; i < 2'000; ++i) {
    std::uint32_t home = 0;
    for (std::uint32_t size = 1; size <= 600; ++size) {
      const auto now = place_of(key_of(i), size);
      ASSERT_TRUE(now == home || now == size - 1) << size;
      home = now;
    }
  }
}

TEST(ConsistentHash, SharesAreEven) {
  Pool pool(100);
  std::vector<int> shares(100, 0);
  for (const auto home : pool.homes(200'000)) ++shares[home];
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  EXPECT_LE(static_cast<double>(*most) / *least, 1.3);
}

TEST(ConsistentHash, WhoLeavesMovesOnlyItsOwnKeysAndGetsThemBack) {
  Pool pool(50);
  const auto before = pool.homes();
  for (const std::uint32_t gone : {0U, 17U, 49U}) {
    pool.leave(gone);
    const auto without = pool.homes();
    std::vector<int> heirs(50, 0);
    for (std::uint32_t i = 0; i < kKeys; ++i) {
      if (before[i] != gone) {
        ASSERT_EQ(without[i], before[i]);
      } else {
        ++heirs[without[i]];
      }
    }
    EXPECT_LT(*std::max_element(heirs.begin(), heirs.end()), 30) << "all share what is left: 400";
    EXPECT_EQ(pool.join(), gone) << "the next new one takes the place that is free";
    EXPECT_EQ(pool.homes(), before);
  }
}

TEST(ConsistentHash, WhoComesTakesItsShareFromAllAndMovesNothingElse) {
  Pool pool(63);
  auto before = pool.homes();
  for (std::uint32_t i = 0; i < 4; ++i) {  // over the end of a word and of a level
    const auto fresh = pool.join();
    const auto now = pool.homes();
    std::uint32_t moved = 0;
    for (std::uint32_t k = 0; k < kKeys; ++k) {
      if (now[k] == before[k]) continue;
      ASSERT_EQ(now[k], fresh);
      ++moved;
    }
    EXPECT_NEAR(moved, kKeys / (64 + i), 100);
    before = now;
  }
}

TEST(ConsistentHash, AFullMemberIsPassedOverAndComesBack) {
  Pool pool(20, 2);
  const std::uint64_t key = key_of(5);
  const auto home = pool.take(key);
  EXPECT_EQ(pool.take(key), home);
  const auto next = pool.take(key);
  EXPECT_NE(next, home);
  pool.give(home);
  EXPECT_EQ(pool.take(key), home);
  EXPECT_EQ(pool.take(key), next) << "the second choice is as lasting as the first";
}

TEST(ConsistentHash, WhatIsNotAdmittedIsPassedOver) {
  Pool pool(20);
  const std::uint64_t key = key_of(9);
  const auto home = pool.take(key);
  const auto other = pool.take(key, [&](std::uint32_t member) { return member != home; });
  EXPECT_NE(other, home);
  EXPECT_NE(other, Members::kNone);
}

TEST(ConsistentHash, WithoutAKeyAnybodyWillDo) {
  Pool pool(10);
  std::vector<int> shares(10, 0);
  for (int i = 0; i < 10'000; ++i) {
    const auto member = pool.take(0);
    ++shares[member];
    pool.give(member);
  }
  for (const int share : shares) EXPECT_NEAR(share, 1'000, 150);
}

TEST(ConsistentHash, FewOfManyPositionsAreFoundAndKeepTheirKeys) {
  Pool pool(1'000);
  for (std::uint32_t member = 0; member < 1'000; ++member) {
    if (member % 250 != 7) pool.leave(member);
  }
  const auto before = pool.homes();
  EXPECT_EQ(std::set<std::uint32_t>(before.begin(), before.end()),
            (std::set<std::uint32_t>{7, 257, 507, 757}));
  pool.leave(507);
  const auto now = pool.homes();
  for (std::uint32_t k = 0; k < kKeys; ++k) {
    if (before[k] != 507) {
      ASSERT_EQ(now[k], before[k]);
    }
  }
}

}  // namespace
}  // namespace proxypool::domain
