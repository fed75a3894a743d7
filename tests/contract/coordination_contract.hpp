// What every Coordination promises. A fixture offers `ports::Coordination& store()` and
// `void advance(milliseconds)`.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proxypool/ports/coordination.hpp"

namespace proxypool::contract {

template <class Fixture>
class CoordinationContract : public ::testing::Test {
 protected:
  ports::Coordination& store() { return fixture_.store(); }
  void advance(milliseconds duration) { fixture_.advance(duration); }
  std::optional<ports::LeaderTerm> lead(const std::string& holder, const std::string& name = "n") {
    return *store().lead(name, InstanceId(holder), milliseconds{10'000}, Deadline{});
  }
  // A request of the leader of "n", which this makes us.
  ports::PermitRequest request(std::uint32_t expected) {
    ports::PermitRequest wanted;
    wanted.upstream = up_;
    wanted.leader = "n";
    wanted.term = lead("me").value_or(ports::LeaderTerm{});
    wanted.expected = expected;
    return wanted;
  }
  ports::PermitAnswer acquire(const ports::PermitRequest& wanted) {
    return *store().acquire_permit(wanted, Deadline{});
  }
  void settle(const ports::Permit& permit, std::optional<std::uint32_t> actual) {
    EXPECT_TRUE(store().settle_permit(up_, permit, actual, Deadline{}));
  }
  ports::FetchLedger ledger() { return *store().ledger(up_, Deadline{}); }

  Fixture fixture_;
  const UpstreamId up_{"a"};
};

TYPED_TEST_SUITE_P(CoordinationContract);

TYPED_TEST_P(CoordinationContract, OneLeadsUntilItsTermEnds) {
  const auto first = this->lead("one");
  ASSERT_TRUE(first);
  EXPECT_FALSE(this->lead("two"));
  EXPECT_TRUE(this->lead("two", "another name"));
  this->advance(milliseconds{9'000});
  const auto renewed = this->lead("one");
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->fence, first->fence);
  EXPECT_EQ(renewed->until, first->until + milliseconds{9'000});
  this->advance(milliseconds{9'999});
  EXPECT_FALSE(this->lead("two"));
  this->advance(milliseconds{1});
  const auto second = this->lead("two");
  ASSERT_TRUE(second);
  EXPECT_GT(second->fence, first->fence);
  EXPECT_EQ(second->generation, first->generation);
}

TYPED_TEST_P(CoordinationContract, WhoResignsLeavesTheNameAndEveryTermHasItsOwnFence) {
  const auto first = this->lead("one");
  ASSERT_TRUE(this->store().resign("n", InstanceId("two"), Deadline{}));  // not its own
  EXPECT_FALSE(this->lead("two"));
  ASSERT_TRUE(this->store().resign("n", InstanceId("one"), Deadline{}));
  EXPECT_GT(this->lead("one")->fence, first->fence);
}

// CT-11: fails closed.
TYPED_TEST_P(CoordinationContract, OnlyTheLeaderOfTheRunningTermGetsAPermit) {
  auto wanted = this->request(1);
  auto wrong = wanted;
  wrong.leader = "another name";
  EXPECT_FALSE(this->acquire(wrong).permit);
  wrong = wanted;
  ++wrong.term.fence;
  EXPECT_FALSE(this->acquire(wrong).permit);
  wrong = wanted;
  ++wrong.term.generation;
  EXPECT_EQ(this->acquire(wrong).refusal, ports::PermitRefusal::NotLeader);
  this->advance(milliseconds{10'000});
  EXPECT_FALSE(this->acquire(wanted).permit);
  EXPECT_TRUE(this->acquire(this->request(1)).permit);
}

TYPED_TEST_P(CoordinationContract, AnIntervalLiesBetweenTwoCalls) {
  auto wanted = this->request(1);
  wanted.request_interval = milliseconds{5'000};
  wanted.in_flight_max = 10;
  ASSERT_TRUE(this->acquire(wanted).permit);
  this->advance(milliseconds{4'000});
  const auto refused = this->acquire(wanted);
  EXPECT_FALSE(refused.permit);
  EXPECT_EQ(refused.refusal, ports::PermitRefusal::Interval);
  EXPECT_EQ(refused.retry_after, milliseconds{1'000});
  this->advance(milliseconds{1'000});
  EXPECT_TRUE(this->acquire(wanted).permit);
}

TYPED_TEST_P(CoordinationContract, NoMoreCallsThanAllowedAreInFlight) {
  auto wanted = this->request(2);
  wanted.in_flight_max = 2;
  const auto first = this->acquire(wanted);
  ASSERT_TRUE(first.permit && this->acquire(wanted).permit);
  const auto refused = this->acquire(wanted);
  EXPECT_EQ(refused.refusal, ports::PermitRefusal::InFlight);
  EXPECT_GT(refused.retry_after, milliseconds{0});
  EXPECT_EQ(this->ledger().in_flight, 2U);
  this->settle(*first.permit, 1);
  EXPECT_TRUE(this->acquire(wanted).permit);
}

// CT-11, C11: reserved until settled, and conservatively where nothing is known.
TYPED_TEST_P(CoordinationContract, WhatIsExpectedCountsUntilTheTruthIsKnown) {
  auto wanted = this->request(4);
  wanted.in_flight_max = 10;
  wanted.total_max = 10;
  wanted.lifetime = milliseconds{3'000};
  const auto first = this->acquire(wanted);
  const auto second = this->acquire(wanted);
  ASSERT_TRUE(first.permit && second.permit);
  EXPECT_EQ(this->acquire(wanted).refusal, ports::PermitRefusal::TotalSpent);
  EXPECT_EQ(this->ledger().total_reserved, 8U);
  this->settle(*first.permit, 1);
  this->settle(*first.permit, 9);  // once only
  EXPECT_EQ(this->ledger().total_spent, 1U);
  EXPECT_EQ(this->ledger().total_reserved, 4U);
  this->advance(milliseconds{3'000});
  EXPECT_EQ(this->ledger().total_spent, 5U);  // the second was lost
  EXPECT_EQ(this->ledger().in_flight, 0U);
  const auto third = this->acquire(wanted);
  ASSERT_TRUE(third.permit);
  this->settle(*third.permit, std::nullopt);
  EXPECT_EQ(this->ledger().total_spent, 9U);
  EXPECT_EQ(this->acquire(wanted).refusal, ports::PermitRefusal::TotalSpent);
}

TYPED_TEST_P(CoordinationContract, TheLargerTotalCountsUntilAnOperatorsReset) {
  ASSERT_TRUE(this->store().raise_total(this->up_, 70, Deadline{}));
  ASSERT_TRUE(this->store().raise_total(this->up_, 50, Deadline{}));
  EXPECT_EQ(this->ledger().total_spent, 70U);
  EXPECT_EQ(this->store().ledger(UpstreamId("b"), Deadline{})->total_spent, 0U);
  ASSERT_TRUE(this->store().reset_total(this->up_, Deadline{}));
  EXPECT_EQ(this->ledger().total_spent, 0U);
}

// CT-40
TYPED_TEST_P(CoordinationContract, EmptyAnswersAreCountedInARowAndByUpstream) {
  EXPECT_EQ(*this->store().count_empty(this->up_, Deadline{}), 1U);
  EXPECT_EQ(*this->store().count_empty(this->up_, Deadline{}), 2U);
  EXPECT_EQ(*this->store().count_empty(UpstreamId("b"), Deadline{}), 1U);
  ASSERT_TRUE(this->store().clear_empty(this->up_, Deadline{}));
  EXPECT_EQ(*this->store().count_empty(this->up_, Deadline{}), 1U);
}

// C12
TYPED_TEST_P(CoordinationContract, NoEpochIsGivenTwice) {
  std::vector<std::vector<Epoch>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) mine.push_back(*this->store().next_epoch(Deadline{}));
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<Epoch> all;
  for (const auto& mine : got) {
    for (std::size_t i = 1; i < mine.size(); ++i) EXPECT_LT(mine[i - 1], mine[i]);
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), 400U);
}

REGISTER_TYPED_TEST_SUITE_P(CoordinationContract, OneLeadsUntilItsTermEnds,
                            WhoResignsLeavesTheNameAndEveryTermHasItsOwnFence,
                            OnlyTheLeaderOfTheRunningTermGetsAPermit, AnIntervalLiesBetweenTwoCalls,
                            NoMoreCallsThanAllowedAreInFlight,
                            WhatIsExpectedCountsUntilTheTruthIsKnown,
                            TheLargerTotalCountsUntilAnOperatorsReset,
                            EmptyAnswersAreCountedInARowAndByUpstream, NoEpochIsGivenTwice);

}  // namespace proxypool::contract
