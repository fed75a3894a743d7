// What every ActivityPool promises about ownership: one owner at a time, whatever is lost on the
// way (rulings C2, C9, C12, C16, C17, C18).
#pragma once

#include "contract/ownership_steps.hpp"

namespace proxypool::contract {

template <class Fixture>
class PoolOwnershipContract : public OwnershipSteps<Fixture> {};

TYPED_TEST_SUITE_P(PoolOwnershipContract);

TYPED_TEST_P(PoolOwnershipContract, AProxyIsGivenToOneWorkerAndToNobodyElse) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  this->admit(batch("a", {ProxyId(3)}));
  this->move(ProxyId(2), {ProxyEvent::MeaningfulFailure});
  // A new one has not passed its check, and an unknown one is not there.
  EXPECT_EQ(this->assign(holder("w1"), proxy_ids(1, 4), 7), proxy_ids(1, 2));
  EXPECT_TRUE(this->assign(holder("w2"), proxy_ids(1, 2), 8).empty());
  const auto row = *this->find(ProxyId(1));
  EXPECT_EQ(row.leased.holder, holder("w1"));
  EXPECT_EQ(row.leased.lease_epoch, Epoch(7));
  EXPECT_EQ(row.leased.lease_until, this->now() + kLease);
  const auto held = *this->pool().held_by(holder("w1"), Deadline{});
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[0].credential.password.reveal(), "pass-1");
  EXPECT_EQ(held[1].lease_epoch, Epoch(7));
  EXPECT_TRUE(this->pool().held_by(holder("w2"), Deadline{})->empty());
}

TYPED_TEST_P(PoolOwnershipContract, WhatAPlanDividesIsUsableWhoeverHoldsIt) {
  this->supply("a", proxy_ids(1, 4));
  this->supply("b", {ProxyId(9)});
  this->admit(batch("a", {ProxyId(5)}));
  this->move(ProxyId(2), {ProxyEvent::MeaningfulFailure});
  this->assign(holder("w"), {ProxyId(1)});
  this->apply({ProxyId(4)}, ProxyEvent::OperatorDrain);
  const auto rows = *this->pool().ownable(UpstreamId("a"), Deadline{});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].holder, holder("w"));
  EXPECT_TRUE(rows[1].holder.worker.empty());
  this->advance(kTtl - kSafetyMargin);
  EXPECT_TRUE(this->pool().ownable(UpstreamId("a"), Deadline{})->empty());
}

// C12: who has not learned of a lease says nothing about it.
TYPED_TEST_P(PoolOwnershipContract, ASilenceFromBeforeTheLeaseIsNoZero) {
  this->supply("a", {ProxyId(1)});
  const std::uint64_t before = this->change();
  this->assign(holder("w"), {ProxyId(1)});
  this->report(holder("w"), {}, before);
  EXPECT_EQ(this->inventory("a").slots, (domain::SlotCount{0, 10}));
  this->report(holder("w"), {}, this->change());
  EXPECT_EQ(this->inventory("a").slots, (domain::SlotCount{10, 0}));
}

// C2, C3, C13: a revoked proxy is not renewed, and comes back at zero or with its lease's end.
TYPED_TEST_P(PoolOwnershipContract, ARevokedProxyIsFreedWhenItsOwnerServesWithoutItAndIsIdle) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  const std::uint64_t before = this->change();
  EXPECT_EQ(this->revoke({ProxyId(1), ProxyId(9)}), 1U);
  EXPECT_EQ(this->revoke({ProxyId(1)}), 0U);
  EXPECT_EQ(this->renew(holder("w")), 1U);
  const std::uint64_t after = this->change();
  // Idle, but the worker may still serve a snapshot that names it.
  EXPECT_TRUE(this->report(holder("w"), {}, before).empty());
  // It serves without it, and a tunnel lives on.
  EXPECT_TRUE(this->report(holder("w"), {{ProxyId(1), Epoch(1), 1, 0, true}}, after).empty());
  EXPECT_EQ(this->find(ProxyId(1))->active, 1U);
  EXPECT_TRUE(this->report(holder("w"), {{ProxyId(1), Epoch(1), 0, 1, true}}, after).empty());
  EXPECT_EQ(this->report(holder("w"), {{ProxyId(1), Epoch(1), 0, 0, true}}, after),
            (std::vector<ProxyId>{ProxyId(1)}));
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Unowned);
  EXPECT_EQ(this->ownership(ProxyId(2)), Ownership::Owned);
}

TYPED_TEST_P(PoolOwnershipContract, ARevokedProxyWhoseOwnerIsSilentIsFreedByTime) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->revoke({ProxyId(1)});
  this->advance(kLease);
  EXPECT_EQ(this->renew(holder("w")), 0U);
  this->advance(kMargin - milliseconds{1});
  EXPECT_EQ(this->sweep().freed, 0U);
  this->advance(milliseconds{1});
  EXPECT_EQ(this->sweep().freed, 1U);
}

// C12: a count for another lease says nothing about this one.
TYPED_TEST_P(PoolOwnershipContract, ACountForAnotherLeaseIsIgnoredAndFreesNothing) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)}, 5);
  EXPECT_EQ(this->inventory("a").slots.unknown, 10U);
  this->report(holder("w"), {{ProxyId(1), Epoch(4), 3, 0, false}}, this->change());
  EXPECT_EQ(this->find(ProxyId(1))->active, 0U);
  EXPECT_EQ(this->inventory("a").slots.unknown, 10U);  // still not known
  this->revoke({ProxyId(1)});
  EXPECT_TRUE(
      this->report(holder("w"), {{ProxyId(1), Epoch(4), 0, 0, false}}, this->change()).empty());
  EXPECT_EQ(this->report(holder("w"), {}, this->change()).size(), 1U);
}

TYPED_TEST_P(PoolOwnershipContract, AReportOfAnotherSessionMovesNothing) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->revoke({ProxyId(1)});
  EXPECT_TRUE(this->report(holder("w", "i1", "s2"), {}, this->change(), true).empty());
  EXPECT_TRUE(this->report(holder("x"), {}, this->change(), true).empty());
  EXPECT_EQ(this->renew(holder("w", "i1", "s2")), 0U);
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Revoking);
}

TYPED_TEST_P(PoolOwnershipContract, AFinalReportFreesEverythingOfTheSession) {
  this->supply("a", proxy_ids(1, 3));
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  this->assign(holder("x"), {ProxyId(3)});
  this->revoke({ProxyId(2)});
  EXPECT_EQ(this->report(holder("w"), {}, 0, true), proxy_ids(1, 2));
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Unowned);
  EXPECT_EQ(this->ownership(ProxyId(2)), Ownership::Unowned);
  EXPECT_EQ(this->ownership(ProxyId(3)), Ownership::Owned);
}

// An owned proxy that may not be used any longer is revoked by itself.
TYPED_TEST_P(PoolOwnershipContract, AnOwnedProxyThatFailsBecomesRevoking) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->move(ProxyId(1), {ProxyEvent::MeaningfulFailure});
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Owned);
  this->move(ProxyId(1), {ProxyEvent::ConsecutiveFailures});
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Revoking);
}

// C17: a reconnect of the process takes its leases along, a restart does not.
TYPED_TEST_P(PoolOwnershipContract, LeasesFollowTheProcessAndNotItsSuccessor) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)}, 3);
  this->revoke({ProxyId(2)});
  const auto again = holder("w", "i1", "s2");
  EXPECT_EQ(this->adopt(again, {ProxyId(1)}), 0U);
  EXPECT_TRUE(this->owned_by(ProxyId(1), again));
  EXPECT_EQ(this->ownership(ProxyId(2)), Ownership::Revoking);
  EXPECT_EQ(this->find(ProxyId(1))->leased.lease_epoch, Epoch(3));
  const auto successor = holder("w", "i2", "s3");
  EXPECT_EQ(this->adopt(successor, {ProxyId(1)}), 0U);
  EXPECT_TRUE(this->owned_by(ProxyId(1), again));
  EXPECT_TRUE(this->assign(successor, {ProxyId(1)}).empty());
  this->report(again, {}, 0, true);
  EXPECT_EQ(this->assign(successor, {ProxyId(1)}).size(), 1U);
}

// A young generation (C18) ------------------------------------------------------------------------

TYPED_TEST_P(PoolOwnershipContract, AFirstGenerationIsExclusiveFromItsStart) {
  EXPECT_TRUE(this->exclusive());
}

TYPED_TEST_P(PoolOwnershipContract, AfterALossNothingIsGivenAwayBeforeTheOldLeasesHaveEnded) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  const auto before = this->pool().generation(Deadline{})->id;
  this->advance(milliseconds{1'000});
  this->fixture_.restart();
  EXPECT_NE(this->pool().generation(Deadline{})->id, before);
  EXPECT_FALSE(this->exclusive());
  this->supply("a", {ProxyId(1), ProxyId(2)});
  EXPECT_TRUE(this->assign(holder("x"), {ProxyId(1), ProxyId(2)}).empty());
  EXPECT_EQ(this->extract(this->command(1)).outcome, domain::ExtractionOutcome::NotYet);
  EXPECT_EQ(this->pool().preview(this->command(1), Deadline{})->outcome,
            domain::ExtractionOutcome::NotYet);
  // Until the lease that was outstanding, its tunnels and the margin are over.
  this->advance(kLease + kMargin + kGrace - milliseconds{1'001});
  EXPECT_TRUE(this->assign(holder("x"), {ProxyId(1)}).empty());
  const auto generation = *this->pool().generation(Deadline{});
  this->advance(std::max(generation.exclusive_from - generation.now, milliseconds{0}));
  EXPECT_EQ(this->assign(holder("x"), {ProxyId(1)}).size(), 1U);
}

TYPED_TEST_P(PoolOwnershipContract, AWorkerThatComesBackKeepsWhatItHolds) {
  this->supply("a", proxy_ids(1, 3));
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  this->fixture_.restart();
  this->supply("a", {ProxyId(1), ProxyId(3)});
  const auto back = holder("w", "i1", "s2");
  // 1 is there and good, 2 has not been brought yet.
  EXPECT_EQ(this->adopt(back, {ProxyId(1), ProxyId(2)}), 1U);
  EXPECT_TRUE(this->owned_by(ProxyId(1), back));
  EXPECT_EQ(this->open_claims(back), 1U);
  // Everybody who could hold leases is back: the generation is young no more.
  EXPECT_TRUE(this->exclusive());
  EXPECT_EQ(this->assign(holder("x"), {ProxyId(3)}).size(), 1U);
  this->admit(batch("a", {ProxyId(2)}));
  EXPECT_TRUE(this->owned_by(ProxyId(2), back));
  EXPECT_EQ(this->open_claims(back), 1U);  // not through its first check
  this->pass_new();
  EXPECT_EQ(this->open_claims(back), 0U);
  EXPECT_TRUE(this->assign(holder("x"), {ProxyId(2)}).empty());
}

// The worker counts on its claim for a whole lease, however early supply brings the proxy.
TYPED_TEST_P(PoolOwnershipContract, AClaimLastsAsLongAsTheLeaseThatItClaims) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->fixture_.restart();
  this->adopt(holder("w", "i1", "s2"), {ProxyId(1)});
  this->supply("a", {ProxyId(1)});
  this->advance(kLease + kMargin + kGrace - milliseconds{1});
  this->sweep();
  EXPECT_TRUE(this->assign(holder("x"), {ProxyId(1)}).empty());
  this->advance(milliseconds{1});
  this->sweep();
  EXPECT_EQ(this->assign(holder("x"), {ProxyId(1)}).size(), 1U);
}

TYPED_TEST_P(PoolOwnershipContract, AClaimWaitsForSupplyUntilItsLeaseAndGraceAreOver) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  this->fixture_.restart();
  const auto back = holder("w", "i1", "s2");
  EXPECT_EQ(this->adopt(back, {ProxyId(1), ProxyId(2)}), 2U);
  this->advance(kLease + kMargin + kGrace - milliseconds{1});
  this->sweep();
  this->admit(batch("a", {ProxyId(1)}));
  EXPECT_TRUE(this->owned_by(ProxyId(1), back));
  this->advance(milliseconds{1});
  this->sweep();
  this->admit(batch("a", {ProxyId(2)}));
  EXPECT_FALSE(this->owned_by(ProxyId(2), back));
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Unowned);
}

// The stream breaks again before supply has brought everything.
TYPED_TEST_P(PoolOwnershipContract, ASecondReconnectKeepsTheClaimsThatItNamesAgain) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  this->fixture_.restart();
  EXPECT_EQ(this->adopt(holder("w", "i1", "s2"), {ProxyId(1), ProxyId(2)}), 2U);
  EXPECT_TRUE(this->exclusive());
  const auto third = holder("w", "i1", "s3");
  EXPECT_EQ(this->adopt(third, {ProxyId(1)}), 1U);
  this->supply("a", {ProxyId(1), ProxyId(2)});
  EXPECT_TRUE(this->owned_by(ProxyId(1), third));
  EXPECT_EQ(this->ownership(ProxyId(2)), Ownership::Unowned);
}

// C17: the successor of a process that may still serve takes nothing away from it.
TYPED_TEST_P(PoolOwnershipContract, ASuccessorDoesNotTakeTheClaimsOfItsPredecessor) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->fixture_.restart();
  const auto old = holder("w", "i1", "s2");
  EXPECT_EQ(this->adopt(old, {ProxyId(1)}), 1U);
  EXPECT_EQ(this->adopt(holder("w", "i2", "s3"), {}), 0U);
  EXPECT_EQ(this->open_claims(old), 1U);
  this->supply("a", {ProxyId(1)});
  EXPECT_TRUE(this->owned_by(ProxyId(1), old));
}

TYPED_TEST_P(PoolOwnershipContract, AFinalReportGivesTheClaimsUp) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->fixture_.restart();
  const auto back = holder("w", "i1", "s2");
  this->adopt(back, {ProxyId(1)});
  this->report(back, {}, 0, true);
  this->supply("a", {ProxyId(1)});
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Unowned);
}

// A claimed proxy that fails its first check is let go like any other.
TYPED_TEST_P(PoolOwnershipContract, AClaimedProxyThatFailsItsFirstCheckIsRevoked) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->fixture_.restart();
  const auto back = holder("w", "i1", "s2");
  this->adopt(back, {ProxyId(1)});
  this->admit(batch("a", {ProxyId(1)}));
  this->take(10, false);
  this->move(ProxyId(1), {ProxyEvent::CheckExhausted});
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Revoking);
  EXPECT_EQ(this->open_claims(back), 0U);
  EXPECT_EQ(this->report(back, {}, this->change()).size(), 1U);
}

TYPED_TEST_P(PoolOwnershipContract, AProcessThatLeftHoldsNothingUpAfterALoss) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->report(holder("w"), {}, 0, true);
  this->fixture_.restart();
  EXPECT_TRUE(this->exclusive());
}

REGISTER_TYPED_TEST_SUITE_P(
    PoolOwnershipContract, AProxyIsGivenToOneWorkerAndToNobodyElse,
    WhatAPlanDividesIsUsableWhoeverHoldsIt, ASilenceFromBeforeTheLeaseIsNoZero,
    ARevokedProxyIsFreedWhenItsOwnerServesWithoutItAndIsIdle,
    ARevokedProxyWhoseOwnerIsSilentIsFreedByTime, ACountForAnotherLeaseIsIgnoredAndFreesNothing,
    AReportOfAnotherSessionMovesNothing, AFinalReportFreesEverythingOfTheSession,
    AnOwnedProxyThatFailsBecomesRevoking, LeasesFollowTheProcessAndNotItsSuccessor,
    AFirstGenerationIsExclusiveFromItsStart,
    AfterALossNothingIsGivenAwayBeforeTheOldLeasesHaveEnded, AWorkerThatComesBackKeepsWhatItHolds,
    AClaimLastsAsLongAsTheLeaseThatItClaims, AClaimWaitsForSupplyUntilItsLeaseAndGraceAreOver,
    ASecondReconnectKeepsTheClaimsThatItNamesAgain, ASuccessorDoesNotTakeTheClaimsOfItsPredecessor,
    AFinalReportGivesTheClaimsUp, AClaimedProxyThatFailsItsFirstCheckIsRevoked,
    AProcessThatLeftHoldsNothingUpAfterALoss);

}  // namespace proxypool::contract
