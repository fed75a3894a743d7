// From a snapshot to the view that serves: GW-32, GW-51, GW-52, CP-4, CP-6, C9, C16.
#include <gtest/gtest.h>

#include "unit/gateway/snapshot/publisher_rig.hpp"

namespace proxypool::gateway {
namespace {

using namespace testing_support;

class Publisher : public PublisherTest {};

TEST_F(Publisher, HoldsNothingBeforeTheFirstSnapshot) {
  EXPECT_FALSE(publisher_.held());
  EXPECT_TRUE(publisher_.counts().empty());
  EXPECT_EQ(views_.load(), nullptr);
  EXPECT_FALSE(registry_.valid(clock_.now()));
  publisher_.tick(clock_.now());
  EXPECT_TRUE(ended_.empty());
}

TEST_F(Publisher, AnAppliedSnapshotServesUntilItsValidityEnds) {  // GW-51, C9
  ASSERT_TRUE(apply(version(1, 1, 3)));
  const TimePoint end = clock_.now() + seconds(60);
  const auto held = publisher_.held();
  ASSERT_TRUE(held);
  EXPECT_EQ(held->version, (domain::SnapshotVersion{7, 1}));
  EXPECT_EQ(held->valid_until, end);
  EXPECT_EQ(held->proxies.size(), 3U);
  clock_.set(end - nanoseconds(1));
  EXPECT_EQ(acquire().outcome, Acquired::Ok);
  clock_.set(end);
  EXPECT_EQ(acquire().outcome, Acquired::NotValid);
  EXPECT_EQ(publisher_.held()->proxies.size(), 3U) << "told at the next registration (C18)";
}

TEST_F(Publisher, WhatWasReservedBeforeTheEndIsNotDialledAfterIt) {  // CP-9
  ASSERT_TRUE(apply(version(1, 1, 3)));
  const auto got = acquire();
  EXPECT_TRUE(got.allocation.still_usable(clock_.now()));
  clock_.advance(seconds(60));
  EXPECT_FALSE(got.allocation.still_usable(clock_.now()));
}

TEST_F(Publisher, AnExtensionMovesTheEndAndAnOlderOneDoesNot) {  // CP-9
  ASSERT_TRUE(apply(version(1, 1, 3)));
  const Validity first = minute();
  clock_.advance(seconds(20));
  const Validity second = minute();
  publisher_.extend(second, {});
  EXPECT_EQ(registry_.valid_until(), second.until);
  publisher_.extend(first, {});
  EXPECT_EQ(registry_.valid_until(), second.until);
  EXPECT_EQ(publisher_.held()->valid_until, second.until);
}

TEST_F(Publisher, ALargeSnapshotIsCompiledInPieces) {  // GW-52
  auto s = version(1, 1, 2'500);
  s.last_proxy().max_concurrency = 0;
  const auto applied = apply(s);
  ASSERT_TRUE(applied);
  ASSERT_EQ(applied->size(), 1U);
  EXPECT_EQ((*applied)[0].proxy, ProxyId(2'500));
  EXPECT_EQ((*applied)[0].reason, "no concurrency");
  EXPECT_EQ(publisher_.held()->proxies.size(), 2'499U);
  EXPECT_EQ(views_.load()->proxies(), 2'499U);
}

TEST_F(Publisher, AnswersOnceEveryReaderHasTakenTheView) {  // CP-4, GW-52
  ASSERT_TRUE(apply(version(1, 1, 3)));
  Views::Reader one(views_);
  Views::Reader two(views_);
  Views::Reader asleep(views_);
  asleep.offline();
  while_waiting_ = [&] {
    if (pauses_ == 2) (void)one.get();
    if (pauses_ == 4) (void)two.get();
  };
  ASSERT_TRUE(apply(version(2, 1, 3)));
  EXPECT_EQ(one.get()->version().counter, 2U);
  EXPECT_EQ(pauses_, 4) << "the one that sleeps is not waited for";
  EXPECT_EQ(refreshes_, 2) << "idle threads are asked to look";
  asleep.online();
  EXPECT_EQ(asleep.get()->version().counter, 2U);
}

TEST_F(Publisher, AReaderThatHangsRefusesTheVersionAndTheOldViewStands) {  // CP-4
  ASSERT_TRUE(apply(version(1, 1, 4)));
  const TimePoint until = registry_.valid_until();
  const auto old = views_.load();
  Views::Reader hangs(views_);
  Views::Reader looks(views_);
  while_waiting_ = [&] {
    (void)looks.get();
    clock_.advance(seconds(1));
  };
  const auto applied = apply(version(2, 3, 4));
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(pauses_, 10);
  EXPECT_EQ(looks.get(), old.get()) << "who had the new one goes back";
  EXPECT_EQ(registry_.valid_until(), until);
  EXPECT_EQ(publisher_.held()->version.counter, 1U);
  EXPECT_TRUE(ended_.empty());
  std::vector<Allocation> all;
  for (int i = 0; i < 8; ++i) all.push_back(acquire().allocation);
  for (const auto& allocation : all) EXPECT_LE(allocation.proxy().id, ProxyId(4));
}

TEST_F(Publisher, ASnapshotThatIsWrongAsAWholeChangesNothing) {  // CP-4
  ASSERT_TRUE(apply(version(1, 1, 3)));
  const auto old = views_.load();
  auto s = version(2, 1, 3);
  s.last_routing().upstreams[0].id = UpstreamId("nobody");
  const auto applied = apply(s);
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(views_.load(), old);
  EXPECT_EQ(acquire().outcome, Acquired::Ok);
  EXPECT_EQ(publisher_.held()->version.counter, 1U);
}

TEST_F(Publisher, ReservationsLiveThroughASwap) {  // GW-32
  ASSERT_TRUE(apply(version(1, 1, 1)));
  auto reserved = acquire();
  auto active = acquire();
  active.allocation.commit();
  ASSERT_TRUE(apply(version(2, 1, 1)));
  ASSERT_EQ(publisher_.counts().size(), 1U);
  EXPECT_EQ(publisher_.counts()[0].reserved, 1U);
  EXPECT_EQ(publisher_.counts()[0].active, 1U);
  EXPECT_EQ(acquire().outcome, Acquired::NoCandidate) << "both places are taken";
  reserved.allocation.release({}, clock_.now());
  EXPECT_EQ(acquire().outcome, Acquired::Ok);
  active.allocation.release({}, clock_.now());
  EXPECT_TRUE(publisher_.counts().empty());
}

TEST_F(Publisher, AProxyThatWentTakesNoNewWorkAndIsReportedUntilItsWorkHasEnded) {  // GW-32
  ASSERT_TRUE(apply(version(1, 1, 4)));
  const auto old = views_.load();
  auto held = acquire();
  while (held.allocation.proxy().id != ProxyId(1)) held = acquire();
  held.allocation.commit();
  ASSERT_TRUE(apply(version(2, 2, 3)));
  ASSERT_EQ(publisher_.counts().size(), 1U);
  EXPECT_EQ(publisher_.counts()[0].id, ProxyId(1));
  EXPECT_TRUE(publisher_.counts()[0].draining);
  std::vector<Allocation> all;
  for (auto got = acquire(*old); got.outcome == Acquired::Ok; got = acquire(*old)) {
    EXPECT_NE(got.allocation.proxy().id, ProxyId(1));
    all.push_back(std::move(got.allocation));
  }
  EXPECT_EQ(all.size(), 6U) << "what the old view still shares with the new one";
  all.clear();
  held.allocation.release({}, clock_.now());
  EXPECT_TRUE(publisher_.counts().empty());
  EXPECT_EQ(registry_.slots(), 3U);
}

// A request that chose its view before the leases ended may look for another proxy after they came
// back without the one that it knows.
TEST_F(Publisher, AnOldViewCannotBeginOnALostProxyWhenTheValidityComesBack) {  // C9, CP-9
  ASSERT_TRUE(apply(version(1, 1, 3)));
  const auto pinned = views_.load();
  clock_.advance(seconds(61));
  Views::Reader busy(views_);
  int begun = 0;
  while_waiting_ = [&] {
    if (acquire(*pinned).outcome == Acquired::Ok) ++begun;
    if (pauses_ == 3) (void)busy.get();
  };
  ASSERT_TRUE(apply(version(2, 11, 3)));
  EXPECT_EQ(pauses_, 3);
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(acquire(*pinned).outcome, Acquired::NoCandidate);
  EXPECT_EQ(acquire().outcome, Acquired::Ok);
}

TEST_F(Publisher, TunnelsOfALostProxyEndWithItsLastLeaseAndTheGrace) {  // C16
  ASSERT_TRUE(apply(version(1, 1, 4)));
  EXPECT_TRUE(ended_.empty());
  const TimePoint first_end = clock_.now() + seconds(90);
  clock_.advance(seconds(10));
  ASSERT_TRUE(apply(version(2, 2, 4)));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].proxies, std::vector{ProxyId(1)});
  EXPECT_EQ(ended_[0].at, first_end) << "the second version did not renew it";
}

TEST_F(Publisher, TunnelsOfARevokedProxyEndWithItsLastLeaseAndTheGrace) {  // C13, C16
  ASSERT_TRUE(apply(version(1, 1, 4)));
  const TimePoint last_lease = clock_.now() + seconds(90);
  clock_.advance(seconds(20));
  publisher_.extend(minute(), {ProxyId(2)});
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].proxies, std::vector{ProxyId(2)});
  EXPECT_EQ(ended_[0].at, last_lease) << "this extension renews the others' leases, not its own";
  ASSERT_TRUE(apply(version(2, 3, 2)));
  EXPECT_EQ(ended_.back().proxies, std::vector{ProxyId(1)});
}

TEST_F(Publisher, ARevokedProxyTakesNothingUntilANewerLeaseBringsItBack) {  // C13
  ASSERT_TRUE(apply(version(1, 1, 1)));
  auto held = acquire();
  publisher_.revoke({ProxyId(1)});
  EXPECT_FALSE(held.allocation.still_usable(clock_.now()));
  EXPECT_EQ(acquire().outcome, Acquired::NoCandidate);
  EXPECT_TRUE(publisher_.held()->proxies.empty());
  const auto same_lease = apply(version(2, 1, 1));
  ASSERT_TRUE(same_lease);
  EXPECT_EQ(same_lease->size(), 1U);
  EXPECT_EQ(acquire().outcome, Acquired::NoCandidate);
  auto renewed = version(3, 1, 1);
  renewed.last_proxy().lease_epoch = Epoch(2);
  ASSERT_TRUE(apply(renewed));
  EXPECT_EQ(acquire().outcome, Acquired::Ok);
}

TEST_F(Publisher, AllTunnelsEndOnceWhenTheWholeLeaseHasEnded) {  // C16
  ASSERT_TRUE(apply(version(1, 1, 3)));
  const TimePoint end = clock_.now() + seconds(90);
  publisher_.tick(end - nanoseconds(1));
  EXPECT_TRUE(ended_.empty());
  publisher_.tick(end);
  publisher_.tick(end + seconds(1));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_TRUE(ended_[0].proxies.empty());
  EXPECT_EQ(ended_[0].at, end);
  clock_.set(end + seconds(2));
  publisher_.extend(minute(), {});
  publisher_.tick(clock_.now() + seconds(89));
  EXPECT_EQ(ended_.size(), 1U);
  publisher_.tick(clock_.now() + seconds(90));
  EXPECT_EQ(ended_.size(), 2U) << "the next lease has an end of its own";
}

TEST_F(Publisher, AnUnexplainedLossOfMoreThanHalfIsRefusedWhileTheLeasesStand) {  // CP-6
  ASSERT_TRUE(apply(version(1, 1, 10)));
  const auto applied = apply(version(2, 7, 4));
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, ErrorCode::Conflict);
  EXPECT_EQ(publisher_.held()->proxies.size(), 10U);
  EXPECT_TRUE(ended_.empty());
  ASSERT_TRUE(apply(version(3, 6, 5))) << "half may go";
  clock_.advance(seconds(60));
  ASSERT_TRUE(apply(version(4, 10, 1))) << "their leases have ended";
  auto meant = version(5, 20, 1);
  meant.get().intentional_loss = true;
  ASSERT_TRUE(apply(meant));
}

TEST_F(Publisher, OldViewsAreFreedWhenNobodyHoldsThem) {  // GW-52
  ASSERT_TRUE(apply(version(1, 1, 3)));
  Views::Reader reader(views_);
  std::weak_ptr<const View> first = views_.load();
  auto pin = reader.pin();
  while_waiting_ = [&] { (void)reader.get(); };
  ASSERT_TRUE(apply(version(2, 1, 3)));
  std::weak_ptr<const View> second = views_.load();
  EXPECT_FALSE(first.expired()) << "a request still works with it";
  pin.reset();
  ASSERT_TRUE(apply(version(3, 1, 3)));
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(second.expired()) << "every reader had passed on before apply() answered";
}

}  // namespace
}  // namespace proxypool::gateway
