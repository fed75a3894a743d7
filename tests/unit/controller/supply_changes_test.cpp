// What a vendor's end and another configuration mean for the supply of one upstream (CT-40, CT-2).
#include "controller/supply.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit/controller/supply_fixture.hpp"

namespace proxypool::controller {
namespace {

// CT-40: so many empty answers in a row are one fact, errors between them are none, and the next
// one takes as many again.
TEST_F(SupplyServiceTest, AVendorIsUsedUpAfterSoManyEmptyAnswers) {
  config_.fetch.empty_threshold = 3;
  begin();
  run(milliseconds{1'500});
  EXPECT_EQ(reading().empty_in_a_row, 2U);
  vendor_.answer = [] { return failed(FetchReason::Timeout); };
  run(std::chrono::minutes(10));
  EXPECT_EQ(depletions_, 0);
  vendor_.answer = [] { return FetchAnswer{}; };
  run(std::chrono::minutes(6));
  EXPECT_GT(depletions_, 1);
  EXPECT_EQ(static_cast<std::uint32_t>(depletions_), reading().empty_in_a_row / 3);
}

TEST_F(SupplyServiceTest, SomethingInBetweenMeansThatItIsNotUsedUp) {
  begin();
  int call = 0;
  vendor_.answer = [&] { return ++call % 3 == 0 ? proxies(1, 1) : FetchAnswer{}; };
  run(std::chrono::minutes(1));
  EXPECT_GT(call, 30);
  EXPECT_EQ(depletions_, 0);
}

TEST_F(SupplyServiceTest, ADepletionThatNobodyTookIsToldAgain) {
  deaf_ = true;
  begin();
  run(milliseconds{2'500});
  const int told = depletions_;
  EXPECT_GT(told, 0);
  deaf_ = false;
  run(milliseconds{400});
  EXPECT_EQ(depletions_, told + 1);
}

// CT-2: other water marks and sizes count from the next step on; nothing is taken back.
TEST_F(SupplyServiceTest, ASmallerPoolShrinksByItselfAndIsNotRefilled) {
  vendor_.answer = [this] { return fresh(10); };
  begin();
  run(milliseconds{1'000});
  pass_new();
  config_.pool.size_max = 4;
  service_->configure(config_, nullptr);
  keep(8);  // lives that end
  run(milliseconds{10'000});
  EXPECT_EQ(reading().size_max, 4U);
  EXPECT_EQ(reading().inventory.managed, 8U);
  keep(1);
  run(milliseconds{10'000});
  EXPECT_EQ(reading().inventory.managed, 4U);
}

// CT-2: another address or credential is another source. What was known of the one before, that it
// was empty or that it failed, says nothing about it.
TEST_F(SupplyServiceTest, AnotherSourceIsAskedAtOnceAndItsPredecessorForgotten) {
  vendor_.answer = [] { return failed(FetchReason::Auth); };
  begin();
  run(milliseconds{1'000});
  EXPECT_GT(reading().backoff_left, seconds(30));
  Vendor other;
  service_->configure(config_, std::make_unique<VendorApi>(other, fixture_.clock()));
  run(milliseconds{1'500});
  EXPECT_EQ(other.calls.size(), 2U);
  EXPECT_EQ(vendor_.calls.size(), 1U);
  EXPECT_EQ(reading().empty_in_a_row, 2U);

  Vendor third;
  service_->configure(config_, std::make_unique<VendorApi>(third, fixture_.clock()));
  run(milliseconds{1'000});
  EXPECT_EQ(reading().empty_in_a_row, 1U);
  EXPECT_EQ(depletions_, 0);
}

TEST_F(SupplyServiceTest, TheSameSourceKeepsItsPauseWhenSomethingElseChanges) {
  vendor_.answer = [] { return failed(FetchReason::Auth); };
  begin();
  run(milliseconds{1'000});
  config_.pool.minimum = 30;
  service_->configure(config_, nullptr);
  run(milliseconds{20'000});
  EXPECT_EQ(vendor_.calls.size(), 1U);
  EXPECT_EQ(reading().minimum, 30U);
}

// CT-2: the configuration no longer names it.
TEST_F(SupplyServiceTest, ARetiredUpstreamDrainsAndIsGoneWithItsLastProxy) {
  vendor_.answer = [this] { return fresh(10); };
  begin();
  run(milliseconds{1'000});
  pass_new();
  int wakes = 0;
  service_->on_work([&] { ++wakes; });
  service_->retire();
  EXPECT_EQ(wakes, 1);
  EXPECT_FALSE(service_->gone());
  keep(2);
  run(milliseconds{10'000});
  EXPECT_EQ(vendor_.calls.size(), 1U);
  EXPECT_FALSE(reading().enabled);
  EXPECT_EQ(reading().inventory.in_state(domain::ProxyState::Draining), 2U);
  EXPECT_FALSE(service_->gone());
  keep(0);
  run(milliseconds{2'000});
  EXPECT_TRUE(service_->gone());
  // It is named again.
  service_->configure(config_, nullptr);
  EXPECT_FALSE(service_->gone());
  service_->step(fixture_.clock().now());
  EXPECT_EQ(vendor_.calls.size(), 2U);
}

}  // namespace
}  // namespace proxypool::controller
