// R1, RS-6, GW-32: what the balancers by time and by key get from the gateway.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "gateway/dispatch/dispatcher.hpp"
#include "unit/gateway/dispatch/snapshots.hpp"

namespace proxypool::gateway {
namespace {

using std::chrono::seconds;
using testing_support::kNow;
using testing_support::serve;
using testing_support::SnapshotBuilder;

constexpr domain::Failure kCutOff{domain::Phase::ResponseHeaders, domain::FailureKind::Reset};

class BalancerTest : public testing::Test {
 protected:
  static SnapshotBuilder pool(domain::Balancer balancer, std::uint64_t count = 1) {
    SnapshotBuilder s;
    s.upstream("up").proxies("up", 1, count, 10);
    s.routing("all", {"up"}, domain::Strategy::RoundRobin, balancer);
    return s;
  }
  void use(const SnapshotBuilder& snapshot) { view_ = serve(registry_, snapshot); }
  Allocation take(std::uint64_t affinity = 0, const ExcludedProxies& tried = {}) {
    Wanted wanted;
    wanted.affinity = affinity;
    return dispatcher_.acquire(*view_, view_->routing(0), tried, kNow, random_, wanted).allocation;
  }
  // In milliseconds; of the first proxy.
  float cost(TimePoint now = kNow) {
    return view_->routing(0).upstreams[0]->runtime->members.cost(0, now) / 1'000;
  }

  ProxyRegistry registry_;
  Dispatcher dispatcher_{registry_, 0};
  SplitMix64 random_{11};
  std::shared_ptr<const View> view_;
};

TEST_F(BalancerTest, AnAnswerIsTimedOnceFromWhenThePlaceWasTaken) {
  use(pool(domain::Balancer::LeastTime));
  const TimePoint then = kNow + milliseconds(300);
  Allocation allocation = take();
  allocation.commit();
  EXPECT_EQ(cost(then), 0) << "nothing yet";
  allocation.answered(true, then);
  EXPECT_FLOAT_EQ(cost(then), 300);
  allocation.answered(true, then + seconds(4));
  allocation.release({}, then + seconds(5));
  EXPECT_FLOAT_EQ(cost(then), 300) << "a tunnel's life is no latency";
}

TEST_F(BalancerTest, AFailureCountsAsThePenaltyHoweverFast) {
  for (const bool refused_late : {false, true}) {
    ProxyRegistry registry;
    Dispatcher dispatcher(registry, 0);
    const auto view = serve(registry, pool(domain::Balancer::LeastTime));
    auto got = dispatcher.acquire(*view, view->routing(0), {}, kNow, random_).allocation;
    const TimePoint then = kNow + milliseconds(2);
    if (refused_late) got.answered(false, then);
    got.release(refused_late ? domain::Failure{} : kCutOff, then);
    EXPECT_FLOAT_EQ(view->routing(0).upstreams[0]->runtime->members.cost(0, then), 5e6F);
  }
}

TEST_F(BalancerTest, WhoDoesNotWaitForTheAnswerSaysHowLongItTookAtLeast) {
  use(pool(domain::Balancer::LeastTime));
  take().release({}, kNow + seconds(3));
  EXPECT_FLOAT_EQ(cost(kNow + seconds(3)), 3'000);
  take().release({}, kNow + milliseconds(1));
  EXPECT_GT(cost(kNow + milliseconds(1)), 2'900);
}

TEST_F(BalancerTest, ARequestWithABodyIsNotTimedButItsFailureCounts) {
  use(pool(domain::Balancer::LeastTime));
  const TimePoint then = kNow + seconds(8);
  Allocation upload = take();
  upload.leave_untimed();
  upload.answered(true, then);
  upload.release({}, then);
  EXPECT_EQ(cost(then), 0);
  Allocation lost = take();
  lost.leave_untimed();
  lost.release(kCutOff, kNow);
  EXPECT_FLOAT_EQ(cost(), 5'000);
}

TEST_F(BalancerTest, NothingIsTimedWhereNoRoutingAsksForIt) {
  use(pool(domain::Balancer::LeastConn));
  Allocation allocation = take();
  allocation.answered(true, kNow + seconds(1));
  allocation.release(kCutOff, kNow + seconds(1));
  EXPECT_EQ(cost(kNow + seconds(1)), 0);
}

TEST_F(BalancerTest, WhatIsKnownOfAProxyLivesThroughASwapAndEndsWithIt) {
  SnapshotBuilder s = pool(domain::Balancer::LeastTime, 2);
  use(s);
  Allocation first = take();
  while (first.proxy().id != ProxyId(1)) first = take();
  first.answered(true, kNow + seconds(1));
  first.release({}, kNow + seconds(1));
  s.get().version.counter = 2;
  use(s);
  EXPECT_FLOAT_EQ(cost(kNow + seconds(1)), 1'000);
  std::erase_if(s.get().proxies, [](const auto& proxy) { return proxy.id == ProxyId(1); });
  use(s);
  s.proxy("up", 7, 10);
  use(s);
  const auto& upstream = *view_->routing(0).upstreams[0];
  ASSERT_EQ(upstream.entry(0)->id, ProxyId(7)) << "in the place that became free";
  Allocation other = take();
  while (other.proxy().id != ProxyId(2)) other = take();
  other.answered(true, kNow + seconds(3));
  EXPECT_NE(cost(kNow + seconds(3)), 1'000) << "another proxy, of which nothing is known";
}

TEST_F(BalancerTest, OneAffinityOneProxyAndOnePlaceToGoWhenThatFails) {
  use(pool(domain::Balancer::ConsistentHash, 50));
  std::set<ProxyId> homes;
  for (std::uint64_t affinity = 1; affinity <= 200; ++affinity) {
    const ProxyId home = take(affinity).proxy().id;
    homes.insert(home);
    ExcludedProxies tried;
    ASSERT_TRUE(tried.add(home));
    const ProxyId next = take(affinity, tried).proxy().id;
    EXPECT_NE(next, home);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(take(affinity).proxy().id, home);
      ASSERT_EQ(take(affinity, tried).proxy().id, next);
    }
  }
  EXPECT_GT(homes.size(), 40U);
}

}  // namespace
}  // namespace proxypool::gateway
