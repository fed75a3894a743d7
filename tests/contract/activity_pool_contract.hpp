// What every ActivityPool promises about supply, life cycle, checks and reading. The other halves
// of the port are in activity_pool_ownership_contract.hpp and
// activity_pool_extraction_contract.hpp.
#pragma once

#include <map>
#include <set>

#include "contract/pool_steps.hpp"
#include "proxypool/base/assert.hpp"

namespace proxypool::contract {

template <class Fixture>
class ActivityPoolContract : public PoolSteps<Fixture> {
 protected:
  // A proxy of upstream "a" in this state.
  void bring(ProxyId id, ProxyState state) {
    this->admit(batch("a", {id}));
    if (state == ProxyState::Fetched) return;
    this->take(10'000, false);
    if (state == ProxyState::Checking) return;
    if (state == ProxyState::Unhealthy) return this->move(id, {ProxyEvent::CheckExhausted});
    this->move(id, {ProxyEvent::BasicPassed});
    if (state == ProxyState::Suspect) this->move(id, {ProxyEvent::MeaningfulFailure});
    if (state == ProxyState::Draining) {
      this->apply({id}, ProxyEvent::OperatorDrain);
    }
    if (state == ProxyState::Extracted) this->extract(this->command(1));
    ASSERT_EQ(this->state(id), state);
  }
};

TYPED_TEST_SUITE_P(ActivityPoolContract);

// Supply -----------------------------------------------------------------------------------------

TYPED_TEST_P(ActivityPoolContract, ANewProxyIsAdmittedOnceWithEverythingThatIsKnownOfIt) {
  auto brought = batch("a", {ProxyId(1), ProxyId(2), ProxyId(1)});
  brought.tags = {{"from", "upstream"}, {"tier", "gold"}};
  brought.admissions[0].candidate.tags = {{"from", "vendor"}};
  brought.admissions[0].candidate.attributes = {"US", "ca", "fresno", "acme"};
  const auto result = this->admit(brought);
  EXPECT_EQ(result.admitted, 2U);
  EXPECT_EQ(result.duplicates, 1U);
  const auto proxy = this->proxy(ProxyId(1));
  EXPECT_EQ(proxy.state, ProxyState::Fetched);
  EXPECT_EQ(proxy.ownership, Ownership::Unowned);
  EXPECT_EQ(proxy.upstream, UpstreamId("a"));
  EXPECT_EQ(proxy.username, "user");
  EXPECT_EQ(proxy.max_concurrency, 10U);
  EXPECT_EQ(proxy.created_at, this->now());
  EXPECT_EQ(proxy.expires_at, this->now() + kTtl);
  EXPECT_EQ(proxy.usable_until, this->now() + kTtl - kSafetyMargin);  // CT-22
  EXPECT_EQ(proxy.attributes.city, "fresno");
  EXPECT_EQ(proxy.tags, (domain::Tags{{"from", "vendor"}, {"tier", "gold"}}));
}

// CT-21, C19: the first source keeps a proxy, and no other ever touches its life.
TYPED_TEST_P(ActivityPoolContract, AnotherUpstreamsSightingIsADuplicateAndChangesNothing) {
  this->admit(batch("a", {ProxyId(1)}));
  const auto before = this->proxy(ProxyId(1));
  this->advance(milliseconds{60'000});
  auto brought = batch("b", {ProxyId(1)});
  brought.admissions[0].candidate.expires_at = this->now() + 10 * kTtl;
  const auto result = this->admit(brought);
  EXPECT_EQ(result.admitted, 0U);
  EXPECT_EQ(result.duplicates, 1U);
  EXPECT_EQ(result.renewed, 0U);
  EXPECT_EQ(this->proxy(ProxyId(1)).upstream, UpstreamId("a"));
  EXPECT_EQ(this->proxy(ProxyId(1)).expires_at, before.expires_at);
  EXPECT_EQ(this->inventory("b").managed, 0U);
}

// C19: a default renews a default; a vendor's later expiry is taken over; nothing shortens a life.
TYPED_TEST_P(ActivityPoolContract, TheOwningUpstreamRenewsALife) {
  this->admit(batch("a", {ProxyId(1)}));
  this->advance(milliseconds{60'000});
  auto again = this->admit(batch("a", {ProxyId(1)}));
  EXPECT_EQ(again.renewed, 1U);
  EXPECT_EQ(again.duplicates, 1U);
  EXPECT_EQ(this->proxy(ProxyId(1)).expires_at, this->now() + kTtl);
  auto vendor = batch("a", {ProxyId(1)});
  vendor.admissions[0].candidate.expires_at = this->now() + 2 * kTtl;
  EXPECT_EQ(this->admit(vendor).renewed, 1U);
  EXPECT_TRUE(this->proxy(ProxyId(1)).vendor_expiry);
  EXPECT_EQ(this->proxy(ProxyId(1)).usable_until, this->now() + 2 * kTtl - kSafetyMargin);
  vendor.admissions[0].candidate.expires_at = this->now() + kTtl;
  EXPECT_EQ(this->admit(vendor).renewed, 0U);
  this->advance(kTtl);
  EXPECT_EQ(this->admit(batch("a", {ProxyId(1)})).renewed, 0U);
}

TYPED_TEST_P(ActivityPoolContract, NothingRenewsAnExtractedProxy) {
  this->bring(ProxyId(1), ProxyState::Extracted);
  this->advance(milliseconds{60'000});
  EXPECT_EQ(this->admit(batch("a", {ProxyId(1)})).renewed, 0U);
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Extracted);
}

// CT-22
TYPED_TEST_P(ActivityPoolContract, NoLifeIsLongerThanTheMaximumHoweverOftenItIsRenewed) {
  auto brought = batch("a", {ProxyId(1)});
  brought.ttl.max_ttl = kTtl + milliseconds{1'000};
  const StoreTime born = this->now();
  this->admit(brought);
  this->advance(milliseconds{60'000});
  EXPECT_EQ(this->admit(brought).renewed, 1U);
  EXPECT_EQ(this->proxy(ProxyId(1)).expires_at, born + kTtl + milliseconds{1'000});
  EXPECT_EQ(this->admit(brought).renewed, 0U);
}

TYPED_TEST_P(ActivityPoolContract, ACandidatePastItsMarginIsCountedAndStaysOut) {
  auto brought = batch("a", {ProxyId(1), ProxyId(2)});
  brought.admissions[0].candidate.expires_at = this->now() + kSafetyMargin;
  brought.admissions[1].candidate.expires_at = this->now() + kSafetyMargin + milliseconds{1};
  const auto result = this->admit(brought);
  EXPECT_EQ(result.expired, 1U);
  EXPECT_EQ(result.admitted, 1U);
  EXPECT_FALSE(this->find(ProxyId(1)));
}

TYPED_TEST_P(ActivityPoolContract, WhatExceedsTheMaximumSizeStaysOut) {
  auto brought = batch("a", proxy_ids(1, 5));
  brought.managed_max = 3;
  const auto result = this->admit(brought);
  EXPECT_EQ(result.admitted, 3U);
  EXPECT_EQ(result.over_size, 2U);
  EXPECT_EQ(this->inventory("a").managed, 3U);
}

// C19: lists have no default life and are authoritative.
TYPED_TEST_P(ActivityPoolContract, AListRemovesWhatItNamesNoLonger) {
  auto list = batch("a", proxy_ids(1, 3));
  list.ttl.default_ttl.reset();
  list.authoritative = true;
  this->admit(list);
  this->admit(batch("b", {ProxyId(9)}));
  this->pass_new();
  EXPECT_FALSE(this->proxy(ProxyId(1)).expires_at);
  ASSERT_EQ(this->assign(holder("w"), {ProxyId(2)}).size(), 1U);
  list.admissions = {admission(ProxyId(3))};
  EXPECT_EQ(this->admit(list).removed, 2U);
  EXPECT_FALSE(this->find(ProxyId(1)));
  EXPECT_EQ(this->state(ProxyId(2)), ProxyState::Draining);
  EXPECT_EQ(this->ownership(ProxyId(2)), Ownership::Revoking);
  EXPECT_EQ(this->state(ProxyId(3)), ProxyState::Available);
  EXPECT_EQ(this->state(ProxyId(9)), ProxyState::Available);
  EXPECT_EQ(this->report(holder("w"), {}, this->change()).size(), 1U);
  EXPECT_FALSE(this->find(ProxyId(2)));
}

TYPED_TEST_P(ActivityPoolContract, AnotherProxyUnderAKnownIdIsRefusedAndCountedAsABug) {
  this->admit(batch("a", {ProxyId(1)}));
  auto other = batch("a", {ProxyId(1)});
  other.admissions[0].candidate.endpoint.host = "elsewhere";
  const std::uint64_t bugs = bugs_counted();
  EXPECT_EQ(this->admit(other).collisions, 1U);
  EXPECT_EQ(bugs_counted(), bugs + 1);
  EXPECT_EQ(this->proxy(ProxyId(1)).endpoint.host, "host-1");
}

// CT-21: whether or not anybody has swept since.
TYPED_TEST_P(ActivityPoolContract, AfterItsHardExpiryAnotherSourceMayBringAProxyAgain) {
  this->supply("a", {ProxyId(1)});
  this->advance(kTtl);
  EXPECT_EQ(this->admit(batch("b", {ProxyId(1)})).admitted, 1U);
  EXPECT_EQ(this->proxy(ProxyId(1)).upstream, UpstreamId("b"));
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Fetched);
  EXPECT_EQ(this->inventory("a").managed, 0U);
}

// CT-23: everything managed is owned, unowned or revoking; slots only where they are known.
TYPED_TEST_P(ActivityPoolContract, TheInventoryLosesNothing) {
  this->supply("a", proxy_ids(1, 6));
  this->admit(batch("a", {ProxyId(7)}));
  this->move(ProxyId(6), {ProxyEvent::MeaningfulFailure});
  this->assign(holder("w"), {ProxyId(1), ProxyId(2), ProxyId(3)});
  this->revoke({ProxyId(3)});
  auto inventory = this->inventory("a");
  EXPECT_EQ(inventory.managed, 7U);
  EXPECT_EQ(inventory.owned, 2U);
  EXPECT_EQ(inventory.revoking, 1U);
  EXPECT_EQ(inventory.unowned, 4U);
  EXPECT_EQ(inventory.in_state(ProxyState::Available), 5U);
  EXPECT_EQ(inventory.slots.available, 20U);  // 4 and 5
  EXPECT_EQ(inventory.slots.unknown, 20U);    // 1 and 2: not reported yet (C14)
  this->report(holder("w"), {{ProxyId(1), Epoch(1), 3, 1, false}}, this->change() - 1);
  inventory = this->inventory("a");
  EXPECT_EQ(inventory.slots.available, 20U + 6U + 10U);
  EXPECT_EQ(inventory.slots.unknown, 0U);
  EXPECT_EQ(inventory.active, 3U);
  EXPECT_EQ(inventory.reserved, 1U);
  this->advance(ports::ActivityPool::kReportTtl);
  EXPECT_EQ(this->inventory("a").slots.unknown, 20U);
}

// Life cycle -------------------------------------------------------------------------------------

// C4: whatever its state, a proxy ends at its expiry.
TYPED_TEST_P(ActivityPoolContract, EveryStateEndsAtItsExpiry) {
  std::uint64_t id = 1;
  for (const ProxyState state :
       {ProxyState::Extracted, ProxyState::Fetched, ProxyState::Checking, ProxyState::Available,
        ProxyState::Suspect, ProxyState::Unhealthy, ProxyState::Draining}) {
    this->bring(ProxyId(id), state);
    this->advance(kTtl);
    EXPECT_GE(this->sweep().removed, 1U) << to_string(state);
    EXPECT_FALSE(this->find(ProxyId(id))) << to_string(state);
    ++id;
  }
}

TYPED_TEST_P(ActivityPoolContract, AnOwnedProxyDrainsAtItsMarginAndGoesOnceItsOwnerLetsGo) {
  this->supply("a", {ProxyId(1)});
  this->assign(holder("w"), {ProxyId(1)});
  this->advance(kTtl - kSafetyMargin - milliseconds{1});
  this->renew(holder("w"));
  EXPECT_EQ(this->sweep().drained, 0U);
  this->advance(milliseconds{1});
  EXPECT_EQ(this->sweep().drained, 1U);
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Draining);
  EXPECT_EQ(this->ownership(ProxyId(1)), Ownership::Revoking);
  this->advance(kSafetyMargin);
  EXPECT_EQ(this->sweep().expired, 1U);
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Expired);
  this->report(holder("w"), {{ProxyId(1), Epoch(1), 1, 0, false}}, this->change());
  EXPECT_TRUE(this->find(ProxyId(1)));
  this->report(holder("w"), {}, this->change());
  EXPECT_FALSE(this->find(ProxyId(1)));
}

// C5
TYPED_TEST_P(ActivityPoolContract, AnUnhealthyProxyIsADuplicateUntilItsRetentionIsOver) {
  ports::UpstreamRules rules;
  rules.unhealthy_retention = milliseconds{100'000};
  this->configure("a", rules);
  this->bring(ProxyId(1), ProxyState::Unhealthy);
  this->advance(milliseconds{99'999});
  EXPECT_EQ(this->sweep().removed, 0U);
  EXPECT_EQ(this->admit(batch("a", {ProxyId(1)})).duplicates, 1U);
  this->advance(milliseconds{1});
  EXPECT_EQ(this->sweep().removed, 1U);
  EXPECT_EQ(this->admit(batch("a", {ProxyId(1)})).admitted, 1U);
}

TYPED_TEST_P(ActivityPoolContract, ADisabledUpstreamDrainsAtOnceAndComesBackThroughAFreshCheck) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  this->supply("b", {ProxyId(3)});
  this->assign(holder("w"), {ProxyId(2)});
  ports::UpstreamRules rules;
  EXPECT_EQ(this->configure("a", rules), 0U);
  rules.enabled = false;
  EXPECT_EQ(this->configure("a", rules), 2U);
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Draining);
  EXPECT_EQ(this->ownership(ProxyId(2)), Ownership::Revoking);
  EXPECT_EQ(this->state(ProxyId(3)), ProxyState::Available);
  rules.enabled = true;
  EXPECT_EQ(this->configure("a", rules), 2U);
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Checking);
  this->pass_new();
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Available);
}

// CT-20: an operator's wish moves a proxy where the table has an edge, and nowhere else.
TYPED_TEST_P(ActivityPoolContract, AnOperatorMovesAProxyOnlyAlongTheTable) {
  std::uint64_t id = 1;
  for (const ProxyEvent event :
       {ProxyEvent::OperatorDrain, ProxyEvent::OperatorRemove, ProxyEvent::OperatorReset}) {
    for (const ProxyState from :
         {ProxyState::Extracted, ProxyState::Fetched, ProxyState::Checking, ProxyState::Available,
          ProxyState::Suspect, ProxyState::Unhealthy, ProxyState::Draining}) {
      this->bring(ProxyId(id), from);
      const auto to = domain::transition(from, event);
      const auto moved = this->apply({ProxyId(id), ProxyId(99)}, event);
      // Nobody uses it, so a removal is complete at once.
      const bool gone = event == ProxyEvent::OperatorRemove && from != ProxyState::Extracted;
      EXPECT_EQ(moved, to || gone ? 1U : 0U) << to_string(from) << " " << to_string(event);
      EXPECT_EQ(this->state(ProxyId(id)), gone ? ProxyState::Removed : to.value_or(from))
          << to_string(from) << " " << to_string(event);
      this->advance(2 * kTtl);
      this->sweep();
      ++id;
    }
  }
}

TYPED_TEST_P(ActivityPoolContract, ASweepDoesNoMoreThanItMayAndSaysWhenMoreIsDue) {
  this->supply("a", proxy_ids(1, 10));
  const auto first = this->sweep();
  EXPECT_EQ(first.next_due, this->now() + kTtl - kSafetyMargin);
  this->advance(kTtl);
  const auto some = this->pool().sweep(4, Deadline{});
  EXPECT_EQ(some->removed, 4U);
  EXPECT_LE(some->next_due, this->now());
  EXPECT_EQ(this->sweep().removed, 6U);
}

// The moment at which a lease ends for good is due as well (C16).
TYPED_TEST_P(ActivityPoolContract, ASweepCountsTheEndOfLeasesAmongWhatIsDue) {
  auto list = batch("a", {ProxyId(1)});
  list.ttl.default_ttl.reset();
  this->admit(list);
  this->pass_new();
  this->assign(holder("w"), {ProxyId(1)});
  EXPECT_EQ(this->sweep().next_due, this->now() + kLease + kMargin);
  // A drain that waits for its owner is not due at every moment.
  this->apply({ProxyId(1)}, ProxyEvent::OperatorDrain);
  this->advance(kLease);
  EXPECT_GT(this->sweep().next_due, this->now());
  // And then for the tunnels that its owner left.
  this->advance(kMargin);
  EXPECT_EQ(this->sweep().next_due, this->now() + kGrace);
}

// Health -----------------------------------------------------------------------------------------

// CT-30
TYPED_TEST_P(ActivityPoolContract, NewProxiesAreCheckedFirstThenSuspectOnesThenTheRest) {
  this->supply("a", proxy_ids(1, 3));
  this->move(ProxyId(2), {ProxyEvent::MeaningfulFailure});
  this->advance(milliseconds{60'000});
  this->admit(batch("a", {ProxyId(4)}));
  auto due = this->take(1, true);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].proxy.id, ProxyId(4));
  EXPECT_EQ(due[0].proxy.state, ProxyState::Checking);
  EXPECT_EQ(due[0].credential.password.reveal(), "pass-4");
  due = this->take(10, false);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].proxy.id, ProxyId(2));
  due = this->take(10, true);
  EXPECT_EQ(due.size(), 2U);
}

TYPED_TEST_P(ActivityPoolContract, ATaskThatIsNotAnsweredIsDueAgainAfterItsLease) {
  this->admit(batch("a", {ProxyId(1)}));
  const milliseconds lease{5'000};
  const auto first = this->take(10, true, lease);
  ASSERT_EQ(first.size(), 1U);
  this->advance(lease - milliseconds{1});
  EXPECT_TRUE(this->take(10, true, lease).empty());
  this->advance(milliseconds{1});
  const auto second = this->take(10, true, lease);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_NE(second[0].task_id, first[0].task_id);
  this->answer(first[0], true);  // late: says nothing
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Checking);
  this->answer(second[0], true);
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Available);
}

TYPED_TEST_P(ActivityPoolContract, AWriteOfAnOldRevisionIsRefusedAlone) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  auto rows = *this->pool().read_health({ProxyId(1), ProxyId(2), ProxyId(3)}, Deadline{});
  ASSERT_EQ(rows.size(), 2U);
  this->assign(holder("w"), {ProxyId(1)});
  std::vector<ports::HealthWrite> writes;
  for (const auto& row : rows) {
    writes.push_back({row.id, row.revision, row.record, {ProxyEvent::MeaningfulFailure}, {}});
    writes.back().failure = {domain::Phase::Dial, domain::FailureKind::Refused};
  }
  EXPECT_EQ(*this->pool().write_health(writes, Deadline{}), (std::vector<bool>{false, true}));
  EXPECT_EQ(this->state(ProxyId(1)), ProxyState::Available);
  EXPECT_EQ(this->state(ProxyId(2)), ProxyState::Suspect);
  EXPECT_EQ(this->find(ProxyId(2))->last_failure, writes[1].failure);
}

// Reading ----------------------------------------------------------------------------------------

TYPED_TEST_P(ActivityPoolContract, AListIsReadPageByPageInTheOrderOfIds) {
  this->supply("a", proxy_ids(1, 25));
  this->admit(batch("b", proxy_ids(26, 30)));
  std::set<ProxyId> seen;
  ports::ProxyQuery query;
  query.limit = 7;
  for (;;) {
    const auto page = *this->pool().list(query, Deadline{});
    if (page.empty()) break;
    EXPECT_LE(page.size(), 7U);
    for (const auto& row : page) {
      EXPECT_TRUE(!query.after || *query.after < row.leased.proxy.id);
      query.after = row.leased.proxy.id;
      EXPECT_TRUE(seen.insert(row.leased.proxy.id).second);
    }
  }
  EXPECT_EQ(seen.size(), 30U);
  query = {};
  query.upstreams = {UpstreamId("b")};
  query.states = {ProxyState::Fetched};
  EXPECT_EQ(this->pool().list(query, Deadline{})->size(), 5U);
  query.states = {ProxyState::Available};
  EXPECT_TRUE(this->pool().list(query, Deadline{})->empty());
}

TYPED_TEST_P(ActivityPoolContract, WhatASnapshotCouldShowMovesTheChangeCounter) {
  this->supply("a", {ProxyId(1), ProxyId(2)});
  std::uint64_t last = this->change();
  const auto moved = [&](const char* what) {
    EXPECT_GT(this->change(), last) << what;
    last = this->change();
  };
  this->supply("a", {ProxyId(3)});
  moved("a proxy that a worker may get");
  this->assign(holder("w"), {ProxyId(1), ProxyId(2)});
  moved("assigned");
  this->move(ProxyId(1), {ProxyEvent::MeaningfulFailure});
  moved("suspect");
  this->advance(milliseconds{1'000});
  this->admit(batch("a", {ProxyId(2)}));
  moved("renewed");
  this->revoke({ProxyId(1)});
  moved("revoked");
  this->report(holder("w"), {}, this->change());
  moved("freed");
  this->apply({ProxyId(2)}, ProxyEvent::OperatorDrain);
  moved("drained");
}

REGISTER_TYPED_TEST_SUITE_P(
    ActivityPoolContract, ANewProxyIsAdmittedOnceWithEverythingThatIsKnownOfIt,
    AnotherUpstreamsSightingIsADuplicateAndChangesNothing, TheOwningUpstreamRenewsALife,
    NothingRenewsAnExtractedProxy, NoLifeIsLongerThanTheMaximumHoweverOftenItIsRenewed,
    ACandidatePastItsMarginIsCountedAndStaysOut, WhatExceedsTheMaximumSizeStaysOut,
    AListRemovesWhatItNamesNoLonger, AnotherProxyUnderAKnownIdIsRefusedAndCountedAsABug,
    AfterItsHardExpiryAnotherSourceMayBringAProxyAgain, TheInventoryLosesNothing,
    EveryStateEndsAtItsExpiry, AnOwnedProxyDrainsAtItsMarginAndGoesOnceItsOwnerLetsGo,
    AnUnhealthyProxyIsADuplicateUntilItsRetentionIsOver,
    ADisabledUpstreamDrainsAtOnceAndComesBackThroughAFreshCheck,
    AnOperatorMovesAProxyOnlyAlongTheTable, ASweepDoesNoMoreThanItMayAndSaysWhenMoreIsDue,
    ASweepCountsTheEndOfLeasesAmongWhatIsDue, NewProxiesAreCheckedFirstThenSuspectOnesThenTheRest,
    ATaskThatIsNotAnsweredIsDueAgainAfterItsLease, AWriteOfAnOldRevisionIsRefusedAlone,
    AListIsReadPageByPageInTheOrderOfIds, WhatASnapshotCouldShowMovesTheChangeCounter);

}  // namespace proxypool::contract
