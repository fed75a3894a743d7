// What a client asks of its proxies: candidates under a filter (GW-13, GW-30, GW-33).
#include "gateway/dispatch/filtered.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "gateway/dispatch/dispatcher.hpp"
#include "unit/gateway/dispatch/snapshots.hpp"

namespace proxypool::gateway {
namespace {

using testing_support::kNow;
using testing_support::serve;
using testing_support::SnapshotBuilder;

class FilterTest : public testing::Test {
 protected:
  // Everything that one filter can get of a routing, and gives it back.
  std::set<std::uint64_t> reach(const View& view, const domain::ProxyFilter& filter,
                                std::uint32_t routing = 0) {
    const std::string key = filter.key();
    std::set<std::uint64_t> ids;
    std::vector<Allocation> held;
    for (;;) {
      auto got =
          dispatcher_.acquire(view, view.routing(routing), {}, kNow, random_, {&filter, key});
      if (got.outcome != Acquired::Ok) return ids;
      ids.insert(got.allocation.proxy().id.value());
      held.push_back(std::move(got.allocation));
    }
  }
  static domain::ProxyFilter country(const std::string& code) { return {{code, "", "", ""}, {}}; }

  ProxyRegistry registry_;
  Dispatcher dispatcher_{registry_, 0};
  SplitMix64 random_{11};
};

TEST_F(FilterTest, GetsExactlyTheProxiesThatFitUnderEveryBalancer) {
  SplitMix64 random(3);
  SnapshotBuilder s;
  s.upstream("a").upstream("b");
  const std::vector<std::string> countries{"", "US", "DE", "JP"};
  const std::vector<std::string> cities{"", "berlin", "new york"};
  std::uint64_t id = 1;
  for (const char* upstream : {"a", "b"}) {
    for (int i = 0; i < 300; ++i) {
      s.proxy(upstream, id++);
      auto& proxy = s.last_proxy();
      proxy.attributes.country = countries[random.below(countries.size())];
      proxy.attributes.city = cities[random.below(cities.size())];
      if (random.below(2) == 0) proxy.tags["tier"] = random.below(2) == 0 ? "gold" : "silver";
      proxy.suspect = random.below(4) == 0;
    }
  }
  for (const auto balancer : {domain::Balancer::LeastConn, domain::Balancer::RoundRobin,
                              domain::Balancer::Random, domain::Balancer::TwoRandomChoices,
                              domain::Balancer::LeastTime, domain::Balancer::ConsistentHash}) {
    s.routing(std::string(domain::spell(balancer)), {"a", "b"}, domain::Strategy::RoundRobin,
              balancer);
  }
  const auto view = serve(registry_, s);
  const std::vector<domain::ProxyFilter> filters{
      country("US"),
      country("FR"),
      {{"", "", "new_york", ""}, {}},
      {{}, {{"tier", "gold"}}},
      {{"DE", "", "berlin", ""}, {{"tier", "silver"}}},
  };
  for (std::uint32_t routing = 0; routing < 6; ++routing) {
    for (const auto& filter : filters) {
      std::set<std::uint64_t> wanted;
      for (const auto& proxy : s.get().proxies) {
        if (filter.admits(proxy.attributes, proxy.tags)) wanted.insert(proxy.id.value());
      }
      EXPECT_EQ(reach(*view, filter, routing), wanted) << routing << " " << filter.key();
    }
  }
  EXPECT_EQ(registry_.counts().size(), 0U);
}

// R2: a tag that chose the routing has done its work; no proxy has to carry it, too.
TEST_F(FilterTest, ATagThatChoosesTheRoutingIsNotAskedOfItsProxies) {
  SnapshotBuilder s;
  s.upstream("up").proxies("up", 1, 3);
  s.routing("gold", {"up"});
  s.last_routing().match.tags = {{"tier", "gold"}};
  s.routing("rest", {"up"});
  const auto view = serve(registry_, s);
  const domain::ProxyFilter gold{{}, {{"tier", "gold"}}};
  EXPECT_EQ(reach(*view, gold, 0).size(), 3U);
  EXPECT_EQ(reach(*view, gold, 1).size(), 0U);
  EXPECT_EQ(reach(*view, {{"US", "", "", ""}, {{"tier", "gold"}}}, 0).size(), 0U);
}

TEST_F(FilterTest, IsMadeOnceAViewAndForgottenWithIt) {
  SnapshotBuilder s;
  s.upstream("up").proxies("up", 1, 3).routing("all", {"up"});
  s.last_proxy().attributes.country = "US";
  const auto first = serve(registry_, s);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(reach(*first, country("US")).size(), 1U);
  EXPECT_EQ(dispatcher_.filter_misses(), 1U);
  Dispatcher other(registry_, 1);
  const auto us = country("US");
  const std::string key = us.key();
  EXPECT_EQ(first->filtered(first->routing(0), {&us, key}),
            first->filtered(first->routing(0), {&us, key}))
      << "one for all threads";
  s.get().proxies[0].attributes.country = "US";
  const auto second = serve(registry_, s);
  EXPECT_EQ(reach(*second, country("US")).size(), 2U);
  EXPECT_EQ(dispatcher_.filter_misses(), 2U);
}

TEST_F(FilterTest, KeepsTheListsThatAreUsedAndNoMoreThanItMay) {
  FilterCache cache;
  int made = 0;
  const auto find = [&](int number, std::size_t slots = 1) {
    (void)cache.find(1, 0, std::to_string(number), [&] {
      ++made;
      auto list = std::make_shared<FilteredRouting>();
      list->parts.emplace_back().available.resize(slots);
      return list;
    });
  };
  for (int i = 0; i < 1'024; ++i) find(i);
  find(0);
  find(1'024);  // 1 was not asked for the longest time
  find(0);
  EXPECT_EQ(made, 1'025);
  find(1);
  EXPECT_EQ(made, 1'026);
  EXPECT_EQ(cache.size(), 1'024U);
  constexpr std::size_t kMany = std::size_t{3} << 20U;  // 12 MiB
  for (int i = 2'000; i < 2'010; ++i) find(i, kMany);
  EXPECT_EQ(cache.size(), 2U) << "bytes count as well";
  find(2'009, kMany);
  EXPECT_EQ(made, 1'036);
}

}  // namespace
}  // namespace proxypool::gateway
