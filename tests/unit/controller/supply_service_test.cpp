#include "controller/supply.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit/controller/supply_fixture.hpp"

namespace proxypool::controller {
namespace {

using domain::FetchClass;

// CT-11: below `minimum` slots it buys, up to `target`, and then not before `minimum` again.
TEST_F(SupplyServiceTest, ItFillsUpToTheTargetAndWaitsForTheMinimum) {
  vendor_.answer = [this] { return fresh(10); };
  begin();
  run(milliseconds{10'000});
  ASSERT_EQ(vendor_.calls.size(), 1U);  // ten proxies of ten slots: the target
  EXPECT_EQ(vendor_.calls[0].wanted, 10U);
  pass_new();
  run(milliseconds{10'000});
  EXPECT_EQ(reading().inventory.slots.available, 100U);
  EXPECT_EQ(vendor_.calls.size(), 1U);

  keep(2);  // twenty slots are not below twenty
  run(milliseconds{10'000});
  EXPECT_EQ(vendor_.calls.size(), 1U);
  EXPECT_EQ(reading().stop, domain::RefillStop::Enough);
  keep(1);
  run(milliseconds{10'000});
  ASSERT_EQ(vendor_.calls.size(), 2U);
  EXPECT_EQ(vendor_.calls[1].wanted, 9U);
}

// CT-11, seed 000 §8: fetch.requestInterval between two calls, fetch.estimatedIPsPerCall a call.
TEST_F(SupplyServiceTest, CallsKeepTheIntervalThatTheVendorDemands) {
  config_.fetch.request_interval = seconds(3);
  config_.fetch.estimated_ips_per_call = 4;
  vendor_.answer = [this] { return fresh(4); };
  begin();
  run(milliseconds{60'000});
  ASSERT_EQ(vendor_.calls.size(), 3U);
  for (std::size_t i = 1; i < vendor_.calls.size(); ++i) {
    EXPECT_GE(vendor_.calls[i].at - vendor_.calls[i - 1].at, seconds(3));
    EXPECT_LT(vendor_.calls[i].at - vendor_.calls[i - 1].at, seconds(4));
  }
  EXPECT_EQ(vendor_.calls[2].wanted, 2U);
}

// Another thread or controller holds the permit: fetch.maxInFlight is for all of them.
TEST_F(SupplyServiceTest, NoMoreCallsThanAllowedAreUnderWay) {
  config_.fetch.request_interval = milliseconds(1);
  vendor_.answer = [this] { return fresh(10); };
  auto& coordination = fixture_.coordination();
  ports::PermitRequest other;
  other.upstream = config_.id;
  other.leader = "upstream/a";
  const auto term = coordination.lead(other.leader, InstanceId("me"), seconds(15), Deadline{});
  other.term = **term;
  other.lifetime = seconds(30);
  ASSERT_TRUE(coordination.acquire_permit(other, Deadline{})->permit);
  begin();
  run(milliseconds{29'000});
  EXPECT_TRUE(vendor_.calls.empty());
  EXPECT_EQ(reading().stop, domain::RefillStop::InFlight);
  run(milliseconds{5'000});  // nobody settled it: its time has passed
  EXPECT_EQ(vendor_.calls.size(), 1U);
}

// C14: an owner that is not heard of is no reason to buy.
class SupplyForASilentOwner : public SupplyServiceTest {
 protected:
  SupplyForASilentOwner() {
    vendor_.answer = [this] { return fresh(10); };
    begin();
    run(milliseconds{1'000});
    pass_new();
    std::vector<ProxyId> ids;
    for (const auto& row : rows()) ids.push_back(row.leased.proxy.id);
    assign(contract::holder("w"), ids);
  }
};

TEST_F(SupplyForASilentOwner, SlotsOfWhichNothingIsKnownAreNotBoughtAgain) {
  EXPECT_EQ(inventory("a").slots.available, 0U);
  run(milliseconds{20'000});
  EXPECT_EQ(vendor_.calls.size(), 1U);
}

TEST_F(SupplyForASilentOwner, IsNoReasonToBuyWhenItIsLostEither) {
  run(contract::kLease + contract::kMargin - milliseconds{2'000});
  sweep();
  run(milliseconds{1'000});
  EXPECT_EQ(vendor_.calls.size(), 1U);
  advance(milliseconds{1'500});
  sweep();
  run(milliseconds{1'000});
  EXPECT_EQ(vendor_.calls.size(), 1U);
}

TEST_F(SupplyServiceTest, ThePoolGrowsNoFurtherThanItsSize) {
  config_.pool.size_max = 4;
  vendor_.answer = [this] { return fresh(10); };  // more than it was asked for
  begin();
  run(milliseconds{5'000});
  ASSERT_EQ(vendor_.calls.size(), 1U);
  EXPECT_EQ(vendor_.calls[0].wanted, 4U);
  EXPECT_EQ(rows().size(), 4U);
  EXPECT_EQ(reading().last.tally.refused_full, 6U);
  EXPECT_EQ(reading().stop, domain::RefillStop::PoolFull);
}

// CT-22: usable_until = expires_at − margin; defaults and the maximum come from the pool.
TEST_F(SupplyServiceTest, LivesComeFromTheVendorOrTheDefaultAndEndAtTheMaximum) {
  config_.pool.default_ttl = seconds(300);
  config_.pool.ttl_max = seconds(1'000);
  config_.pool.allocation_safety_margin = seconds(10);
  const StoreTime start = now();
  vendor_.answer = [&] {
    FetchAnswer answer = proxies(1, 4);
    answer.candidates[1].expires_at = start + seconds(60);
    answer.candidates[2].expires_at = start + seconds(5'000);
    answer.candidates[3].expires_at = start + seconds(10);  // its margin has come already
    return answer;
  };
  begin();
  service_->step(fixture_.clock().now());
  ASSERT_EQ(rows().size(), 3U);
  for (const auto& row : rows()) {
    const domain::Proxy& proxy = row.leased.proxy;
    const seconds life = proxy.endpoint.host == "198.51.100.1"   ? seconds(300)
                         : proxy.endpoint.host == "198.51.100.2" ? seconds(60)
                                                                 : seconds(1'000);
    EXPECT_EQ(proxy.expires_at, start + life);
    EXPECT_EQ(proxy.usable_until, start + life - seconds(10));
  }
  EXPECT_EQ(reading().last.kind, FetchClass::Success);
  EXPECT_EQ(reading().last.tally.expired_on_arrival, 1U);
  EXPECT_EQ(reading().last.tally.admitted, 3U);
}

// CT-21: the first source keeps it; a later one counts a duplicate and prolongs nothing.
TEST_F(SupplyServiceTest, AProxyThatIsKnownStaysWithItsFirstSource) {
  vendor_.answer = [] {
    FetchAnswer answer = proxies(1, 3);
    answer.candidates.push_back(candidate(3));  // twice in one answer
    answer.records = 4;
    return answer;
  };
  begin();
  service_->step(fixture_.clock().now());
  EXPECT_EQ(reading().last.tally.admitted, 3U);
  EXPECT_EQ(reading().last.tally.duplicates, 1U);
  const auto before = rows();

  advance(seconds(5));
  Vendor late;
  late.answer = [] { return proxies(1, 3); };
  config_.id = UpstreamId("b");
  const auto other = make(config_, late);
  other->step(fixture_.clock().now());
  EXPECT_EQ(other->reading().last.kind, FetchClass::DuplicateOnly);
  EXPECT_EQ(other->reading().last.tally.duplicates, 3U);
  ASSERT_EQ(rows().size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows()[i].leased.proxy.upstream, UpstreamId("a"));
    EXPECT_EQ(rows()[i].leased.proxy.expires_at, before[i].leased.proxy.expires_at);
  }
}

TEST_F(SupplyServiceTest, AnotherPasswordMakesAnotherProxy) {
  vendor_.answer = [] {
    FetchAnswer answer = proxies(1, 1);
    answer.candidates.push_back(candidate(1, "another"));
    answer.records = 2;
    return answer;
  };
  begin();
  service_->step(fixture_.clock().now());
  EXPECT_EQ(rows().size(), 2U);
  // What is listed names the secret and does not hold it.
  EXPECT_NE(rows()[0].leased.proxy.credential_version, rows()[1].leased.proxy.credential_version);
}

TEST_F(SupplyServiceTest, TheTimeThatCallsTakeIsSummedUp) {
  vendor_.answer = [this] {
    EXPECT_TRUE(reading().fetching);
    advance(milliseconds(150));
    return FetchAnswer{};
  };
  begin();
  service_->step(fixture_.clock().now());
  advance(seconds(1));
  service_->step(fixture_.clock().now());
  EXPECT_EQ(reading().fetch_time, milliseconds(300));
  EXPECT_FALSE(reading().fetching);
}

// CT-12: empty counts towards moving on, only duplicates and success end it, an error says nothing.
TEST_F(SupplyServiceTest, EmptyIsNotBroken) {
  begin();
  run(milliseconds{2'500});  // an empty vendor is asked again at its interval
  EXPECT_EQ(vendor_.calls.size(), 3U);
  EXPECT_EQ(reading().last.kind, FetchClass::Empty);
  EXPECT_EQ(reading().empty_in_a_row, 3U);
  EXPECT_EQ(reading().errors_in_a_row, 0U);

  vendor_.answer = [] { return failed(FetchReason::Timeout); };
  run(milliseconds{1'000});
  EXPECT_EQ(reading().last.kind, FetchClass::Error);
  EXPECT_EQ(reading().empty_in_a_row, 3U);
  EXPECT_EQ(reading().errors_in_a_row, 1U);
  EXPECT_EQ(reading().last_detail, "the vendor said no");

  vendor_.answer = [] { return proxies(1, 10); };
  run(milliseconds{10'000});
  EXPECT_EQ(reading().last.kind, FetchClass::Success);
  EXPECT_EQ(reading().empty_in_a_row, 0U);
  EXPECT_EQ(reading().errors_in_a_row, 0U);
  EXPECT_EQ(reading().counters.of(FetchClass::Empty), 3U);
  EXPECT_EQ(reading().counters.of(FetchClass::Error), 1U);
  EXPECT_EQ(reported_, static_cast<int>(vendor_.calls.size()));
}

// Records that are no proxies are a changed format, not an empty stock.
TEST_F(SupplyServiceTest, OnlyInvalidRecordsAreAnError) {
  vendor_.answer = [] {
    FetchAnswer answer;
    answer.records = 5;
    answer.invalid = 5;
    return answer;
  };
  begin();
  service_->step(fixture_.clock().now());
  EXPECT_EQ(reading().last.kind, FetchClass::Error);
  EXPECT_EQ(reading().last.reason, FetchReason::Parse);
}

// R "Providers": from a second to five minutes; Retry-After wins; an account starts at a minute.
TEST_F(SupplyServiceTest, AFailingVendorIsLeftAloneLongerEachTime) {
  vendor_.answer = [] { return failed(FetchReason::Connect); };
  begin();
  run(std::chrono::hours(2));
  ASSERT_GT(vendor_.calls.size(), 24U);
  ASSERT_LT(vendor_.calls.size(), 2'000U);
  const auto gap = [&](std::size_t i) { return vendor_.calls[i].at - vendor_.calls[i - 1].at; };
  EXPECT_GE(gap(1), seconds(1));
  EXPECT_LE(gap(1), seconds(3));
  for (std::size_t i = 1; i < vendor_.calls.size(); ++i) EXPECT_LE(gap(i), seconds(301));
  const auto half = vendor_.calls.size() / 2;
  EXPECT_GT(vendor_.calls.back().at - vendor_.calls[half].at,
            vendor_.calls[half].at - vendor_.calls[0].at);
}

TEST_F(SupplyServiceTest, TheVendorsOwnWaitWins) {
  vendor_.answer = [] {
    FetchAnswer answer = failed(FetchReason::RateLimited);
    answer.retry_after = seconds(42);
    return answer;
  };
  begin();
  run(milliseconds{43'000});
  ASSERT_EQ(vendor_.calls.size(), 2U);
  EXPECT_EQ(vendor_.calls[1].at - vendor_.calls[0].at, seconds(42));
  EXPECT_EQ(reading().backoff_left, seconds(41));
}

TEST_F(SupplyServiceTest, AnAccountThatNeedsAPersonIsAskedOnceAMinuteAtMost) {
  vendor_.answer = [] { return failed(FetchReason::Quota); };
  begin();
  run(milliseconds{59'000});
  EXPECT_EQ(vendor_.calls.size(), 1U);
}

// C11: what may be spent is spent once, over restarts; what a failed call took is not known, so it
// counts as expected.
TEST_F(SupplyServiceTest, TheTotalIsNeverExceededNotEvenByARestart) {
  config_.fetch.total_max = 25;
  vendor_.answer = [this] { return fresh(10); };
  begin();
  for (int round = 0; round < 4; ++round) {
    run(milliseconds{10'000});
    keep(0);  // used up at once
  }
  EXPECT_EQ(vendor_.calls.size(), 2U);
  EXPECT_EQ(reading().total_spent, 20U);
  EXPECT_EQ(reading().stop, domain::RefillStop::TotalUsed);  // five are left, and ten may come

  fixture_.restart();
  vendor_.calls.clear();
  config_.fetch.estimated_ips_per_call = 5;
  vendor_.answer = [] { return failed(FetchReason::Timeout); };
  begin();
  run(std::chrono::hours(1));
  EXPECT_EQ(vendor_.calls.size(), 1U);
  EXPECT_EQ(reading().total_spent, 25U);
  EXPECT_EQ(reading().stop, domain::RefillStop::TotalUsed);
}

// One controller fetches; another one takes over when the first is gone.
TEST_F(SupplyServiceTest, OnlyTheLeaderFetches) {
  begin();
  run(milliseconds{1'500});
  EXPECT_TRUE(reading().leader);
  Vendor seen_by_other;
  const auto other = make(config_, seen_by_other, "another");
  run(*other, milliseconds{13'000});
  EXPECT_TRUE(seen_by_other.calls.empty());
  EXPECT_FALSE(other->reading().leader);
  run(*other, milliseconds{5'000});
  EXPECT_TRUE(other->reading().leader);
  EXPECT_FALSE(seen_by_other.calls.empty());
  // The first comes back from its sleep and is leader no more.
  const auto calls = vendor_.calls.size();
  run(milliseconds{1'000});
  EXPECT_EQ(vendor_.calls.size(), calls);
}

// CT-2: what an operator disables takes no new work, is not fetched, and comes back to be checked.
TEST_F(SupplyServiceTest, ADisabledUpstreamDrainsAndIsNotFetched) {
  vendor_.answer = [this] { return fresh(10); };
  begin();
  run(milliseconds{1'000});
  pass_new();
  auto state = *fixture_.management().upstream_state(config_.id, Deadline{});
  state.enabled = false;
  ASSERT_TRUE(fixture_.management().put_upstream_state(state, std::nullopt, Deadline{}));
  run(milliseconds{10'000});
  EXPECT_FALSE(reading().enabled);
  EXPECT_EQ(reading().inventory.in_state(domain::ProxyState::Draining), 10U);
  EXPECT_EQ(vendor_.calls.size(), 1U);

  state = *fixture_.management().upstream_state(config_.id, Deadline{});
  state.enabled = true;
  ASSERT_TRUE(fixture_.management().put_upstream_state(state, std::nullopt, Deadline{}));
  run(milliseconds{2'000});
  EXPECT_EQ(reading().inventory.in_state(domain::ProxyState::Checking), 10U);
}

class ListSupplyTest : public SupplyServiceTest {
 protected:
  ListSupplyTest() {
    vendor_.list = true;
    vendor_.answer = [] { return proxies(1, 3); };
    config_.provider.type = config::ProviderType::File;
    config_.pool.default_ttl = nanoseconds{0};
    config_.pool.ttl_max = nanoseconds{0};
  }
};

// C19: a list is the truth; it is read when it changed, and once a minute anyway.
TEST_F(ListSupplyTest, AListIsReadWhenItChanged) {
  begin();
  run(milliseconds{10'000});
  EXPECT_EQ(vendor_.calls.size(), 1U);
  EXPECT_EQ(rows().size(), 3U);
  EXPECT_FALSE(rows()[0].leased.proxy.expires_at);
  vendor_.version = 1;
  vendor_.answer = [] { return proxies(2, 5); };
  run(milliseconds{1'000});
  EXPECT_EQ(vendor_.calls.size(), 2U);
  EXPECT_EQ(rows().size(), 4U);
  for (const auto& row : rows()) EXPECT_NE(row.leased.proxy.endpoint.host, "198.51.100.1");
  run(milliseconds{60'000});
  EXPECT_EQ(vendor_.calls.size(), 3U);
}

TEST_F(ListSupplyTest, AListThatCannotBeReadRemovesNothingAndIsTriedAgain) {
  begin();
  run(milliseconds{1'000});
  vendor_.version = 1;
  vendor_.answer = [] { return failed(FetchReason::Other); };
  run(milliseconds{2'900});
  EXPECT_EQ(vendor_.calls.size(), 4U);
  EXPECT_EQ(rows().size(), 3U);
  vendor_.answer = [] {  // lines, and not one of them a proxy: half written, or another format
    FetchAnswer answer;
    answer.records = 3;
    answer.invalid = 3;
    return answer;
  };
  run(milliseconds{2'000});
  EXPECT_EQ(rows().size(), 3U);
  EXPECT_EQ(reading().last.reason, FetchReason::Parse);
  vendor_.answer = [] { return FetchAnswer{}; };  // an empty list is a list
  run(milliseconds{2'000});
  EXPECT_EQ(rows().size(), 0U);
}

}  // namespace
}  // namespace proxypool::controller
