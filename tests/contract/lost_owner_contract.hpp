// What every ActivityPool promises about a worker that is lost, or has lost a proxy, while it still
// works on it: what may go to others, when, and how much of it (rulings C14, C16, C17, C18).
#pragma once

#include "contract/ownership_steps.hpp"

namespace proxypool::contract {

template <class Fixture>
class LostOwnerContract : public OwnershipSteps<Fixture> {};

TYPED_TEST_SUITE_P(LostOwnerContract);

// C9, C17: nobody else gets the proxy before lease and margin have passed.
TYPED_TEST_P(LostOwnerContract, ALostWorkersProxyIsFreeAfterLeaseAndMargin) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->advance(kLease / 3);
  EXPECT_EQ(this->renew(holder("w")), 1U);
  this->report(holder("w"), {}, this->change());
  this->advance(kLease + kMargin - milliseconds{1});
  EXPECT_EQ(this->sweep().freed, 0U);
  EXPECT_TRUE(this->assign(holder("x"), {ProxyId(1)}).empty());
  this->advance(milliseconds{1});
  EXPECT_EQ(this->sweep().freed, 1U);
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Unowned);
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Available);  // C2
  EXPECT_EQ(this->assign(holder("x"), {ProxyId(1)}).size(), 1U);
}

// C16: its tunnels may live on, so nobody extracts the proxy before the grace has passed too.
TYPED_TEST_P(LostOwnerContract, ALostWorkersProxyIsExtractedOnlyAfterTheGraceToo) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->report(holder("w"), {}, this->change());
  this->advance(kLease + kMargin + kGrace - milliseconds{1});
  this->sweep();
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Unowned);
  EXPECT_TRUE(this->extract(this->command(1)).proxies.empty());
  this->advance(milliseconds{1});
  this->sweep();
  EXPECT_EQ(this->extract(this->command(1)).proxies.size(), 1U);
}

// C16: what the lost owner last reported still takes slots from the next one.
TYPED_TEST_P(LostOwnerContract, TheTunnelsOfALostWorkerTakeSlotsFromItsSuccessor) {
  this->supply("a", proxy_ids(1, 3));  // of ten slots each
  this->assign(holder("w"), proxy_ids(1, 3));
  this->report(holder("w"), {{ProxyId(1), Epoch(1), 3, 1, false}}, this->change());
  this->advance(kLease + kMargin);
  this->sweep();
  ASSERT_EQ(this->assign(holder("x"), {ProxyId(1)}).size(), 1U);
  EXPECT_EQ(this->pool().held_by(holder("x"), Deadline{})->front().proxy.max_concurrency, 6U);
  EXPECT_EQ(this->proxy(ProxyId(1)).max_concurrency, 10U);
  const std::uint64_t before = this->change();
  this->advance(kGrace);
  this->sweep();
  EXPECT_EQ(this->pool().held_by(holder("x"), Deadline{})->front().proxy.max_concurrency, 10U);
  EXPECT_GT(this->change(), before);  // a snapshot shows it
}

// C14: what is not known is no free slot.
TYPED_TEST_P(LostOwnerContract, AWorkerLostWithoutAReportMayUseEverySlotUntilTheGraceIsOver) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->advance(kLease + kMargin);
  this->sweep();
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Unowned);
  EXPECT_TRUE(this->assign(holder("x"), {ProxyId(1)}).empty());
  // The process itself knows what it runs.
  EXPECT_EQ(this->assign(holder("w", "i1", "s2"), {ProxyId(1)}).size(), 1U);
  EXPECT_EQ(
      this->pool().held_by(holder("w", "i1", "s2"), Deadline{})->front().proxy.max_concurrency,
      10U);
}

TYPED_TEST_P(LostOwnerContract, TheLastWordOfALostWorkerClearsItsTunnels) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->advance(kLease + kMargin);
  this->sweep();
  EXPECT_TRUE(this->extract(this->command(1)).proxies.empty());
  this->report(holder("w"), {}, this->change(), true);
  EXPECT_EQ(this->extract(this->command(1)).proxies.size(), 1U);
}

// A removed proxy stays as long as something may run on it: it must not come back as a new one.
TYPED_TEST_P(LostOwnerContract, ARemovedProxyStaysUntilTheTunnelsOfItsLostWorkerAreOver) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->apply({ProxyId(1)}, ProxyEvent::OperatorRemove);
  this->advance(kLease + kMargin);
  this->sweep();
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Unowned);
  EXPECT_EQ(this->admit(batch("a", {ProxyId(1)})).admitted, 0U);
  this->advance(kGrace);
  this->sweep();
  EXPECT_FALSE(this->find(ProxyId(1)));
  EXPECT_EQ(this->admit(batch("a", {ProxyId(1)})).admitted, 1U);
}

// The same when it was nobody's when it was removed.
TYPED_TEST_P(LostOwnerContract, ARemovedProxyGoesWithTheLastWordOfItsLostWorker) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->move(ProxyId(1), {ProxyEvent::MeaningfulFailure, ProxyEvent::ConsecutiveFailures});
  this->advance(kLease + kMargin);
  this->sweep();
  this->apply({ProxyId(1)}, ProxyEvent::OperatorRemove);
  ASSERT_TRUE(this->find(ProxyId(1)));
  this->report(holder("w", "i1", "s2"), {}, this->change(), true);
  EXPECT_FALSE(this->find(ProxyId(1)));
}

// C14: slots that a lost worker may still use are not known to be free, and no reason to buy.
TYPED_TEST_P(LostOwnerContract, TheEndOfALeaseLosesNoSlotThatMayBeFree) {
  this->supply("a", proxy_ids(1, 10));
  this->assign(holder("w"), proxy_ids(1, 10));
  const auto sum = [&] {
    const auto slots = this->inventory("a").slots;
    return slots.available + slots.unknown;
  };
  EXPECT_EQ(sum(), 100U);
  this->advance(kLease + kMargin);
  EXPECT_EQ(this->sweep().freed, 10U);
  EXPECT_EQ(this->inventory("a").slots, (domain::SlotCount{0, 100}));
  this->advance(kGrace);
  this->sweep();
  EXPECT_EQ(this->inventory("a").slots, (domain::SlotCount{100, 0}));
}

// C16: whoever plans sees what may be given away, and until when it is not extracted.
TYPED_TEST_P(LostOwnerContract, APlanSeesWhatALostWorkerMayStillUse) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  this->report(holder("w"), {{ProxyId(1), Epoch(1), 4, 6, false}}, this->change());
  this->advance(kLease + kMargin);
  this->sweep();
  const auto rows = *this->pool().ownable(UpstreamId("a"), Deadline{});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].orphaned_slots, 10U);
  EXPECT_EQ(rows[1].orphaned_slots, 0U);
  EXPECT_EQ(rows[1].orphaned_until, this->now() + kGrace);
  this->advance(kGrace);
  this->sweep();
  EXPECT_FALSE(this->find(ProxyId(1))->leased.orphaned_until);
}

// C17: zero is what frees, not the word "final".
TYPED_TEST_P(LostOwnerContract, AFinalReportWithWorkLeavesOrphans) {
  this->supply("a", proxy_ids(1, 2));
  this->assign(holder("w"), proxy_ids(1, 2));
  this->report(holder("w"), {{ProxyId(1), Epoch(1), 3, 0, false}}, this->change(), true);
  const auto taken = this->extract(this->command(2)).proxies;
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].proxy.id, ProxyId(2));
  EXPECT_EQ(this->assign(holder("x"), {ProxyId(1)}).size(), 1U);
  EXPECT_EQ(this->pool().held_by(holder("x"), Deadline{})->front().proxy.max_concurrency, 7U);
}

// C16, C18: after a loss, what a worker still works on without a claim is nobody's to extract.
TYPED_TEST_P(LostOwnerContract, WhatAWorkerStillWorksOnAfterALossIsNotExtracted) {
  this->supply("a", proxy_ids(1, 3));
  this->assign(holder("w"), proxy_ids(1, 3));
  this->revoke({ProxyId(1), ProxyId(2)});
  this->fixture_.restart();
  this->supply("a", {ProxyId(1)});
  const auto back = holder("w", "i1", "s2");
  this->adopt_all(back, {{ProxyId(3)}, {{ProxyId(1), 4}, {ProxyId(2), 1}}});
  EXPECT_TRUE(this->exclusive());
  this->supply("a", proxy_ids(2, 3));
  EXPECT_TRUE(this->owned_by(ProxyId(3), back));
  EXPECT_TRUE(this->extract(this->command(3)).proxies.empty());
  EXPECT_EQ(this->assign(holder("x"), {ProxyId(1)}).size(), 1U);
  EXPECT_EQ(this->pool().held_by(holder("x"), Deadline{})->front().proxy.max_concurrency, 6U);
  this->advance(kLease + kMargin + kGrace);
  this->sweep();
  EXPECT_EQ(this->extract(this->command(3)).proxies.size(), 3U);
}

// A worker that reconnects again and again says the same, and it counts once.
TYPED_TEST_P(LostOwnerContract, WhatAWorkerWorksOnCountsOnceHoweverOftenItSaysSo) {
  this->supply("a", proxy_ids(1, 3));
  this->assign(holder("w"), proxy_ids(1, 2));
  this->assign(holder("v"), {ProxyId(3)});  // never comes back: the generation stays young
  this->fixture_.restart();
  this->supply("a", {ProxyId(1)});
  for (const char* session : {"s2", "s3", "s4"}) {
    this->adopt_all(holder("w", "i1", session), {{}, {{ProxyId(1), 4}, {ProxyId(2), 3}}});
  }
  this->supply("a", {ProxyId(2)});
  EXPECT_EQ(this->find(ProxyId(1))->leased.orphaned_slots, 4U);
  EXPECT_EQ(this->find(ProxyId(2))->leased.orphaned_slots, 3U);
}

TYPED_TEST_P(LostOwnerContract, ASweepFreesNoMoreThanItIsAskedTo) {
  this->supply("a", proxy_ids(1, 10));
  this->assign(holder("w"), proxy_ids(1, 10));
  this->advance(kLease + kMargin);
  const auto first = *this->pool().sweep(4, Deadline{});
  EXPECT_EQ(first.freed, 4U);
  EXPECT_LE(first.next_due, this->now());
  EXPECT_EQ(this->sweep().freed, 6U);
}

REGISTER_TYPED_TEST_SUITE_P(LostOwnerContract, ALostWorkersProxyIsFreeAfterLeaseAndMargin,
                            ALostWorkersProxyIsExtractedOnlyAfterTheGraceToo,
                            TheTunnelsOfALostWorkerTakeSlotsFromItsSuccessor,
                            AWorkerLostWithoutAReportMayUseEverySlotUntilTheGraceIsOver,
                            TheLastWordOfALostWorkerClearsItsTunnels,
                            ARemovedProxyStaysUntilTheTunnelsOfItsLostWorkerAreOver,
                            ARemovedProxyGoesWithTheLastWordOfItsLostWorker,
                            TheEndOfALeaseLosesNoSlotThatMayBeFree,
                            APlanSeesWhatALostWorkerMayStillUse, AFinalReportWithWorkLeavesOrphans,
                            WhatAWorkerStillWorksOnAfterALossIsNotExtracted,
                            ASweepFreesNoMoreThanItIsAskedTo,
                            WhatAWorkerWorksOnCountsOnceHoweverOftenItSaysSo);

}  // namespace proxypool::contract
