// GW-30 to GW-34, R6, C4, C6, C9: route, choose, reserve, give back.
#include "gateway/dispatch/dispatcher.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "unit/gateway/dispatch/snapshots.hpp"

// Counts what this thread allocates, for the promise that dispatch allocates nothing.
namespace {
thread_local std::uint64_t allocations = 0;
}
// Not inline: GCC would see malloc() meet the operator delete that it knows, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace proxypool::gateway {
namespace {

using std::chrono::seconds;
using testing_support::kNow;
using testing_support::kStoreNow;
using testing_support::serve;
using testing_support::SnapshotBuilder;

constexpr domain::Failure kRefused{domain::Phase::Dial, domain::FailureKind::Refused};

class DispatcherTest : public testing::Test {
 protected:
  Acquisition acquire(const std::shared_ptr<const View>& view, const ExcludedProxies& tried = {},
                      TimePoint now = kNow) {
    return dispatcher_.acquire(*view, request_, tried, now, random_);
  }
  // Acquires until nothing is left; the ids in order.
  std::vector<std::uint64_t> drain(const std::shared_ptr<const View>& view) {
    std::vector<std::uint64_t> ids;
    for (auto got = acquire(view); got.outcome == Acquired::Ok; got = acquire(view)) {
      ids.push_back(got.allocation.proxy().id.value());
      held_.push_back(std::move(got.allocation));
    }
    return ids;
  }
  std::uint32_t in_flight() {
    std::uint32_t sum = 0;
    for (const auto& count : registry_.counts()) sum += count.active + count.reserved;
    return sum;
  }

  ProxyRegistry registry_;
  Dispatcher dispatcher_{registry_, 0};
  SplitMix64 random_{4};
  domain::RouteRequest request_{domain::RequestKind::Http,       "a.example", 80, "GET", "/",
                                domain::RouteRequest::kNoClient, {}};
  std::vector<Allocation> held_;
};

SnapshotBuilder one_upstream(std::uint64_t proxies, std::uint32_t limit = 1) {
  SnapshotBuilder s;
  s.upstream("up").routing("all", {"up"}).proxies("up", 1, proxies, limit);
  return s;
}

TEST_F(DispatcherTest, TheFirstMatchingRoutingServesAndNoneIsSaid) {  // GW-30
  SnapshotBuilder s;
  s.upstream("x").upstream("y").proxy("x", 1).proxy("y", 2);
  s.routing("special", {"x"});
  s.last_routing().match.hosts = {"*.example"};
  s.routing("rest", {"y"});
  s.last_routing().match.ports = {80};
  const auto view = serve(registry_, s);
  auto got = acquire(view);
  ASSERT_EQ(got.outcome, Acquired::Ok);
  EXPECT_EQ(got.routing->id, RoutingId("special"));
  EXPECT_EQ(got.allocation.proxy().id, ProxyId(1));
  request_.host = "b.org";
  EXPECT_EQ(acquire(view).allocation.proxy().id, ProxyId(2));
  request_.port = 81;
  got = acquire(view);
  EXPECT_EQ(got.outcome, Acquired::NoRouting);
  EXPECT_EQ(got.routing, nullptr);
  EXPECT_FALSE(got.allocation.held());
}

TEST_F(DispatcherTest, ReservedBecomesActiveAndIsGivenBackOnce) {  // GW-31
  const auto view = serve(registry_, one_upstream(1, 2));
  auto got = acquire(view);
  auto counts = registry_.counts();
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].reserved, 1U);
  EXPECT_EQ(counts[0].active, 0U);
  got.allocation.commit();
  counts = registry_.counts();
  EXPECT_EQ(counts[0].reserved, 0U);
  EXPECT_EQ(counts[0].active, 1U);
  EXPECT_FALSE(counts[0].draining);
  got.allocation.release({}, kNow);
  EXPECT_TRUE(registry_.counts().empty());
  EXPECT_EQ(got.allocation.proxy().id, ProxyId(1)) << "the entry stays for the log line";
}

TEST_F(DispatcherTest, RepeatsAreCountedAndHarmless) {  // GW-31
  const auto view = serve(registry_, one_upstream(1, 5));
  auto got = acquire(view);
  auto other = acquire(view);
  const auto bugs = bugs_counted();
  got.allocation.commit();
  got.allocation.commit();
  EXPECT_EQ(bugs_counted(), bugs + 1);
  got.allocation.release({}, kNow);
  got.allocation.release({}, kNow);
  got.allocation.commit();
  EXPECT_EQ(bugs_counted(), bugs + 3);
  EXPECT_EQ(in_flight(), 1U);
  Allocation moved = std::move(other.allocation);
  other.allocation.release({}, kNow);
  EXPECT_EQ(bugs_counted(), bugs + 4);
  EXPECT_EQ(in_flight(), 1U);
}

TEST_F(DispatcherTest, AnAllocationThatIsForgottenGivesItsPlaceBack) {
  const auto view = serve(registry_, one_upstream(1));
  {
    auto got = acquire(view);
    EXPECT_EQ(acquire(view).outcome, Acquired::NoCandidate);
    got.allocation.commit();
  }
  EXPECT_EQ(in_flight(), 0U);
  auto got = acquire(view);
  ASSERT_EQ(got.outcome, Acquired::Ok);
  got.allocation = Allocation();
  EXPECT_EQ(in_flight(), 0U);
}

TEST_F(DispatcherTest, EveryPlaceOfEveryUpstreamIsUsedBeforeNoneIsSaid) {
  for (const auto strategy :
       {domain::Strategy::RoundRobin, domain::Strategy::WeightedRoundRobin,
        domain::Strategy::Random, domain::Strategy::LeastConn, domain::Strategy::First}) {
    ProxyRegistry registry;
    Dispatcher dispatcher(registry, 3);
    SnapshotBuilder s;
    s.upstream("x").upstream("y").upstream("off", false);
    s.proxies("x", 1, 3, 2).proxies("y", 4, 200, 1).proxies("off", 300, 9);
    s.routing("all", {"x", "off", "y"}, strategy);
    const auto view = serve(registry, s);
    std::vector<Allocation> held;
    for (int i = 0; i < 206; ++i) {
      auto got = dispatcher.acquire(*view, request_, {}, kNow, random_);
      ASSERT_EQ(got.outcome, Acquired::Ok) << domain::spell(strategy) << " " << i;
      EXPECT_LT(got.allocation.proxy().id.value(), 300U) << "a disabled upstream";
      held.push_back(std::move(got.allocation));
    }
    EXPECT_EQ(dispatcher.acquire(*view, request_, {}, kNow, random_).outcome,
              Acquired::NoCandidate);
  }
}

TEST_F(DispatcherTest, SequentialServesFromItsCursorAlone) {
  SnapshotBuilder s;
  s.upstream("x").upstream("y").upstream("z").proxies("x", 1, 2).proxies("y", 11, 2);
  s.proxies("z", 21, 2).routing("all", {"x", "y", "z"}, domain::Strategy::Sequential);
  EXPECT_EQ(drain(serve(registry_, s)).size(), 2U);
  EXPECT_LE(held_[0].proxy().id.value(), 2U) << "no cursor: the first";
  held_.clear();
  s.last_routing().current = UpstreamId("y");
  for (const auto id : drain(serve(registry_, s))) EXPECT_TRUE(id == 11 || id == 12);
  held_.clear();
  s.get().upstreams[1].enabled = false;
  EXPECT_TRUE(drain(serve(registry_, s)).empty()) << "its upstream is disabled";
}

TEST_F(DispatcherTest, LeastConnChoosesTheUpstreamWithLessInFlight) {
  SnapshotBuilder s;
  s.upstream("x").upstream("y").proxies("x", 1, 1, 100).proxies("y", 2, 1, 100);
  s.routing("all", {"x", "y"}, domain::Strategy::LeastConn);
  const auto view = serve(registry_, s);
  std::map<std::uint64_t, int> loads;
  for (int i = 0; i < 20; ++i) {
    held_.push_back(acquire(view).allocation);
    ++loads[held_.back().proxy().id.value()];
    EXPECT_LE(std::abs(loads[1] - loads[2]), 1);
  }
  std::erase_if(held_, [](const Allocation& a) { return a.proxy().id == ProxyId(1); });
  for (int i = 0; i < 10; ++i) {
    held_.push_back(acquire(view).allocation);
    EXPECT_EQ(held_.back().proxy().id, ProxyId(1));
  }
}

TEST_F(DispatcherTest, ARetryTakesAnotherProxyAndMayCrossUpstreams) {  // R6
  SnapshotBuilder s;
  s.upstream("x").upstream("y").proxies("x", 1, 2, 9).proxies("y", 3, 2, 9);
  s.routing("all", {"x", "y"}, domain::Strategy::First);
  const auto view = serve(registry_, s);
  ExcludedProxies tried;
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    auto got = acquire(view, tried);
    ASSERT_EQ(got.outcome, Acquired::Ok);
    ids.insert(got.allocation.proxy().id.value());
    ASSERT_TRUE(tried.add(got.allocation.proxy().id));
  }
  EXPECT_EQ(ids.size(), 4U);
  EXPECT_EQ(acquire(view, tried).outcome, Acquired::NoCandidate);
}

TEST(ExcludedProxies, SayWhenARequestHasHadItsAttempts) {
  ExcludedProxies tried;
  for (std::uint64_t i = 1; i <= ExcludedProxies::kMax; ++i) EXPECT_TRUE(tried.add(ProxyId(i)));
  EXPECT_FALSE(tried.add(ProxyId(99)));
  EXPECT_TRUE(tried.contains(ProxyId(16)));
  EXPECT_FALSE(tried.contains(ProxyId(99)));
}

TEST_F(DispatcherTest, SuspectsServeOnlyWhenNoAvailableProxyHasAPlace) {  // C6
  SnapshotBuilder s;
  s.upstream("x").upstream("y").proxies("x", 1, 1).proxies("y", 2, 1).proxy("x", 3);
  s.last_proxy().suspect = true;
  s.routing("all", {"x", "y"}, domain::Strategy::First);
  EXPECT_EQ(drain(serve(registry_, s)), (std::vector<std::uint64_t>{1, 2, 3}))
      << "the other upstream's AVAILABLE proxy comes before the SUSPECT one";
  held_.clear();
  s.get().policy.use_suspect = domain::UseSuspect::Never;
  EXPECT_EQ(drain(serve(registry_, s)), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(DispatcherTest, ARoutingsOwnMaximumIsObeyed) {  // R7
  auto s = one_upstream(5, 5);
  s.last_routing().in_flight_max = 2;
  const auto view = serve(registry_, s);
  auto one = acquire(view);
  auto two = acquire(view);
  auto three = acquire(view);
  EXPECT_EQ(three.outcome, Acquired::RoutingFull);
  EXPECT_NE(three.routing, nullptr);
  one.allocation.release({}, kNow);
  EXPECT_EQ(acquire(view).outcome, Acquired::Ok) << "and given back at once";
  EXPECT_EQ(acquire(view).outcome, Acquired::Ok);
}

TEST_F(DispatcherTest, NothingBeginsOnceTheLeasesHaveEnded) {  // C9
  const auto view = serve(registry_, one_upstream(2));
  const auto end = kNow + seconds(60);
  auto got = acquire(view, {}, end - nanoseconds(1));
  ASSERT_EQ(got.outcome, Acquired::Ok);
  EXPECT_TRUE(got.allocation.still_usable(end - nanoseconds(1)));
  EXPECT_FALSE(got.allocation.still_usable(end));
  EXPECT_EQ(acquire(view, {}, end).outcome, Acquired::NotValid);
  registry_.extend(end + seconds(60));
  EXPECT_TRUE(got.allocation.still_usable(end));
  EXPECT_EQ(acquire(view, {}, end).outcome, Acquired::Ok);
}

TEST_F(DispatcherTest, BeforeTheFirstExtensionNothingBegins) {
  const auto view = testing_support::build(registry_, one_upstream(2)).view;
  EXPECT_EQ(acquire(view).outcome, Acquired::NotValid);
}

TEST_F(DispatcherTest, AProxyPastItsMarginIsNeitherChosenNorDialled) {  // C4
  auto s = one_upstream(1, 9);
  s.last_proxy().usable_until = kStoreNow + seconds(10);
  const auto view = serve(registry_, s);
  auto got = acquire(view, {}, kNow + seconds(9));
  ASSERT_EQ(got.outcome, Acquired::Ok);
  EXPECT_TRUE(got.allocation.still_usable(kNow + seconds(9)));
  EXPECT_FALSE(got.allocation.still_usable(kNow + seconds(10)));
  EXPECT_EQ(acquire(view, {}, kNow + seconds(10)).outcome, Acquired::NoCandidate);
  s.last_proxy().usable_until = kStoreNow + seconds(50);
  const auto renewed = serve(registry_, s);
  EXPECT_EQ(acquire(renewed, {}, kNow + seconds(10)).outcome, Acquired::Ok);
}

TEST_F(DispatcherTest, ARevokedProxyIsOutAtOnceUntilANewerLeaseBringsIt) {  // C13
  auto s = one_upstream(2, 9);
  const auto view = serve(registry_, s);
  auto got = acquire(view);
  const std::vector<ProxyId> ids{got.allocation.proxy().id, ProxyId(99)};
  EXPECT_EQ(registry_.revoke(ids), 1U);
  EXPECT_FALSE(got.allocation.still_usable(kNow));
  EXPECT_TRUE(registry_.counts()[0].draining);
  for (int i = 0; i < 9; ++i) {
    held_.push_back(acquire(view).allocation);
    EXPECT_NE(held_.back().proxy().id, ids[0]);
  }
  EXPECT_EQ(acquire(view).outcome, Acquired::NoCandidate);
  const auto built = testing_support::build(registry_, s);
  ASSERT_EQ(built.rejected.size(), 1U) << "the same lease";
  EXPECT_EQ(built.rejected[0].proxy, ids[0]);
  EXPECT_EQ(acquire(built.view).outcome, Acquired::NoCandidate);
  for (auto& proxy : s.get().proxies) proxy.lease_epoch = Epoch(2);
  const auto renewed = serve(registry_, s);
  EXPECT_EQ(acquire(renewed).outcome, Acquired::Ok);
}

TEST_F(DispatcherTest, TwoFailuresToDialBenchAProxyForTwoSeconds) {  // GW-34
  const auto view = serve(registry_, one_upstream(1, 9));
  const domain::Failure late{domain::Phase::ResponseHeaders, domain::FailureKind::Timeout};
  for (const auto failure : {kRefused, domain::Failure{}, kRefused, late, late}) {
    auto got = acquire(view);
    ASSERT_EQ(got.outcome, Acquired::Ok);
    got.allocation.release(failure, kNow);
  }
  auto got = acquire(view);
  got.allocation.release({domain::Phase::ProxyHandshake, domain::FailureKind::AuthRejected}, kNow);
  EXPECT_EQ(acquire(view).outcome, Acquired::NoCandidate);
  EXPECT_EQ(acquire(view, {}, kNow + seconds(2) - nanoseconds(1)).outcome, Acquired::NoCandidate);
  EXPECT_EQ(acquire(view, {}, kNow + seconds(2)).outcome, Acquired::Ok);
}

TEST_F(DispatcherTest, AReleaseWakesWhoWaitsForThisUpstream) {  // R8, the hook
  struct Listener final : PlaceListener {
    void place_free(const UpstreamRuntime& upstream) noexcept override {
      ++calls;
      last = &upstream.id;
    }
    int calls = 0;
    const UpstreamId* last = nullptr;
  } listener;
  ProxyRegistry registry({seconds(2), &listener});
  Dispatcher dispatcher(registry, 0);
  const auto view = serve(registry, one_upstream(1));
  dispatcher.acquire(*view, request_, {}, kNow, random_).allocation.release({}, kNow);
  EXPECT_EQ(listener.calls, 0) << "nobody waits";
  view->routing(0).upstreams[0]->runtime->waiters.fetch_add(1);
  dispatcher.acquire(*view, request_, {}, kNow, random_).allocation.release({}, kNow);
  EXPECT_EQ(listener.calls, 1);
  EXPECT_EQ(*listener.last, UpstreamId("up"));
}

TEST_F(DispatcherTest, AllocatesNothingOnceAHostWasSeen) {  // GW-33
  SnapshotBuilder s;
  s.upstream("x").upstream("y").upstream("s");
  s.proxies("x", 1, 100, 2).proxies("y", 1'001, 1'000, 2).proxies("s", 5'001, 200, 2);
  for (auto& proxy : s.get().proxies) proxy.suspect = proxy.upstream == UpstreamId("s");
  s.routing("pattern", {"x"});
  s.last_routing().match.host_regex = {"never[0-9]"};
  for (const auto balancer : {domain::Balancer::LeastConn, domain::Balancer::RoundRobin,
                              domain::Balancer::Random, domain::Balancer::TwoRandomChoices,
                              domain::Balancer::LeastTime, domain::Balancer::ConsistentHash}) {
    s.routing(std::string(domain::spell(balancer)), {"x", "y", "s"}, domain::Strategy::LeastConn,
              balancer);
    s.last_routing().match.methods = {std::string(domain::spell(balancer))};
  }
  const auto view = serve(registry_, s);
  (void)dispatcher_.route(*view, request_);
  held_.reserve(3'000);
  for (const auto& routing : view->routings()) {
    if (routing.id == RoutingId("pattern")) continue;
    request_.method = routing.id.str();
    const auto before = allocations;
    for (auto got = acquire(view); got.outcome == Acquired::Ok; got = acquire(view)) {
      got.allocation.commit();
      held_.push_back(std::move(got.allocation));
    }
    ASSERT_EQ(held_.size(), 2'600U);
    for (auto& allocation : held_) allocation.release(kRefused, kNow);
    held_.clear();
    for (int i = 0; i < 100; ++i) (void)acquire(view, {}, kNow + seconds(i));
    EXPECT_EQ(allocations, before) << routing.id.str();
  }
  EXPECT_EQ(dispatcher_.regex_misses(), 1U);
}

TEST_F(DispatcherTest, AllocatesNothingOnceAFilterWasSeen) {  // GW-33
  SnapshotBuilder s = one_upstream(500, 2);
  for (auto& proxy : s.get().proxies) proxy.attributes.country = "US";
  const auto view = serve(registry_, s);
  const domain::ProxyFilter filter{{"US", "", "", ""}, {}};
  const std::string key = filter.key();
  const auto once = [&](const domain::ProxyFilter& wanted, const std::string& name) {
    return dispatcher_.acquire(*view, view->routing(0), {}, kNow, random_, {&wanted, name}).outcome;
  };
  EXPECT_EQ(once(filter, key), Acquired::Ok);
  const auto before = allocations;
  for (int i = 0; i < 100; ++i) (void)once(filter, key);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(dispatcher_.filter_misses(), 1U);
}

}  // namespace
}  // namespace proxypool::gateway
