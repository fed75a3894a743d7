// What a snapshot becomes: entries ready for the transport, rejected ones named. CP-4, GW-52.
#include "gateway/dispatch/view.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "gateway/dispatch/dispatcher.hpp"
#include "unit/gateway/dispatch/snapshots.hpp"

namespace proxypool::gateway {
namespace {

using std::chrono::seconds;
using testing_support::build;
using testing_support::kNow;
using testing_support::kStoreNow;
using testing_support::serve;
using testing_support::SnapshotBuilder;

TEST(StoreMoment, TurnsStoreTimesIntoOurOwnAndSaturates) {
  const StoreMoment moment{kStoreNow, kNow};
  EXPECT_EQ(moment.to_local(kStoreNow + seconds(5)), kNow + seconds(5));
  EXPECT_EQ(moment.to_local(kStoreNow - seconds(5)), kNow - seconds(5));
  EXPECT_EQ(moment.to_local(StoreTime::max()), kNever);
  EXPECT_EQ(moment.to_local(StoreTime::min()), TimePoint::min());
}

TEST(View, HasWhatTheTransportNeedsReady) {
  ProxyRegistry registry;
  SnapshotBuilder s;
  s.upstream("up").routing("all", {"up"}).proxy("up", 7, 2);
  domain::SnapshotCredential credential;
  credential.username = "Aladdin";
  credential.password = SecretString("open sesame");
  s.get().credentials.push_back(credential);
  s.last_proxy().credential = 1;
  s.last_proxy().lease_epoch = Epoch(9);
  const auto view = serve(registry, s);
  Dispatcher dispatcher(registry, 0);
  SplitMix64 random(1);
  auto got = dispatcher.acquire(*view, {}, {}, kNow, random);
  ASSERT_EQ(got.outcome, Acquired::Ok);
  const ProxyEntry& proxy = got.allocation.proxy();
  EXPECT_EQ(proxy.id, ProxyId(7));
  EXPECT_EQ(proxy.lease_epoch, Epoch(9));
  EXPECT_EQ(*proxy.upstream, UpstreamId("up"));
  EXPECT_EQ(proxy.address, IpAddress::parse("192.0.0.7"));
  EXPECT_EQ(proxy.authorization(), "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n");
}

TEST(View, ANameIsNoLiteralAndNoCredentialIsNoHeader) {
  ProxyRegistry registry;
  SnapshotBuilder s;
  s.upstream("up").routing("all", {"up"}).proxy("up", 7);
  s.last_proxy().endpoint.host = "proxy.example";
  const auto view = serve(registry, s);
  const auto& upstream = *view->routing(0).upstreams[0];
  EXPECT_EQ(upstream.entry(0)->address, std::nullopt);
  EXPECT_EQ(upstream.entry(0)->authorization(), "");
}

TEST(View, FindsClientsByName) {
  ProxyRegistry registry;
  SnapshotBuilder s;
  for (const char* name : {"alice", "bob"}) {
    s.get().clients.emplace_back().name = ClientName(name);
  }
  const auto view = serve(registry, s);
  EXPECT_EQ(view->client("bob"), 1U);
  EXPECT_EQ(view->client("carol"), std::nullopt);
}

TEST(ViewBuilder, LeavesOutAndNamesWhatCannotBeServed) {
  ProxyRegistry registry;
  SnapshotBuilder s;
  s.upstream("up").upstream("two").routing("all", {"up"}).proxies("up", 1, 3).proxy("nowhere", 4);
  s.proxy("up", 2).proxy("two", 3).proxy("up", 5, 0);
  const auto built = build(registry, s);
  ASSERT_TRUE(built.view);
  EXPECT_EQ(built.view->proxies(), 3U);
  std::string named;
  for (const auto& entry : built.rejected) {
    named += std::to_string(entry.proxy.value()) + ": " + entry.reason + "; ";
  }
  EXPECT_EQ(named,
            "4: unknown upstream; 2: the same id came before; 3: the same id came before; "
            "5: no concurrency; ");
  EXPECT_EQ(registry.slots(), 3U);
}

TEST(ViewBuilder, RefusesASnapshotWhoseConfigurationIsWrong) {
  ProxyRegistry registry;
  SnapshotBuilder unknown;
  unknown.routing("all", {"nowhere"});
  EXPECT_FALSE(ViewBuilder(registry, unknown.share(), {kStoreNow, kNow}).begin());
  SnapshotBuilder pattern;
  pattern.routing("all", {});
  pattern.last_routing().match.host_regex = {"("};
  const auto begun = ViewBuilder(registry, pattern.share(), {kStoreNow, kNow}).begin();
  ASSERT_FALSE(begun);
  EXPECT_NE(begun.error().message.find("("), std::string::npos);
}

TEST(ViewBuilder, UnchangedProxiesKeepTheirEntryAndChangedOnesGetANewOne) {
  ProxyRegistry registry;
  SnapshotBuilder s;
  s.upstream("up").routing("all", {"up"}).proxies("up", 1, 3);
  const auto first = serve(registry, s);
  s.get().proxies[1].lease_epoch = Epoch(2);
  s.get().proxies[2].max_concurrency = 9;  // the slot's, not the entry's
  const auto second = serve(registry, s);
  const auto entry = [](const auto& view, std::uint32_t slot) {
    return view->routing(0).upstreams[0]->entry(slot);
  };
  EXPECT_EQ(entry(first, 0), entry(second, 0));
  EXPECT_NE(entry(first, 1), entry(second, 1));
  EXPECT_EQ(entry(second, 1)->lease_epoch, Epoch(2));
  EXPECT_EQ(entry(first, 2), entry(second, 2));
}

TEST(ViewBuilder, WorksInStepsOfAnySize) {
  for (const std::size_t step : {1U, 7U, 1'000'000U}) {
    ProxyRegistry registry;
    SnapshotBuilder s;
    s.upstream("up").routing("all", {"up"}).proxies("up", 1, 50);
    const auto built = build(registry, s, step);
    ASSERT_TRUE(built.view);
    EXPECT_EQ(built.view->proxies(), 50U);
  }
}

TEST(ViewBuilder, AnAbandonedOneLeavesNothingBehind) {
  ProxyRegistry registry;
  SnapshotBuilder s;
  s.upstream("up").routing("all", {"up"}).proxies("up", 1, 10);
  const auto view = serve(registry, s);
  SnapshotBuilder other;
  other.upstream("up").routing("all", {"up"}).proxies("up", 5, 500);
  {
    ViewBuilder abandoned(registry, other.share(), {kStoreNow, kNow});
    ASSERT_TRUE(abandoned.begin());
    ASSERT_TRUE(abandoned.step(700));
  }
  EXPECT_EQ(registry.slots(), 504U);
  const auto again = serve(registry, s);
  EXPECT_EQ(registry.slots(), 10U);
  Dispatcher dispatcher(registry, 0);
  SplitMix64 random(1);
  for (int i = 0; i < 10; ++i) {
    auto got = dispatcher.acquire(*again, {}, {}, kNow, random);
    ASSERT_EQ(got.outcome, Acquired::Ok);
    EXPECT_LE(got.allocation.proxy().id.value(), 10U);
    got.allocation.release({}, kNow);
  }
}

}  // namespace
}  // namespace proxypool::gateway
