// Inventory (CT-23, C14), leases (C9, C16-C18, CP-9), ownership (C10, CT-50), sessions (C12, CP-7).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "proxypool/domain/activitypool/inventory.hpp"
#include "proxypool/domain/activitypool/lease.hpp"
#include "proxypool/domain/activitypool/ownership.hpp"
#include "proxypool/domain/activitypool/session.hpp"
#include "unit/domain/lifecycle/builders.hpp"

namespace proxypool::domain {
namespace {

using build::at;
using S = ProxyState;

InventoryItem item(S state, Ownership ownership, std::optional<InFlight> in_flight = {}) {
  return {state, ownership, at(100), 5, in_flight};
}

TEST(Inventory, SlotsAreWhatIsKnownToBeFreeCT23) {
  const auto slots = [](const InventoryItem& i, StoreTime now = at(1)) {
    return count_slots(i, now);
  };
  EXPECT_EQ(slots(item(S::Available, Ownership::Unowned)), (SlotCount{5, 0}));
  EXPECT_EQ(slots(item(S::Available, Ownership::Owned, InFlight{1, 2})), (SlotCount{2, 0}));
  EXPECT_EQ(slots(item(S::Available, Ownership::Owned, InFlight{4, 2})), (SlotCount{0, 0}));
  EXPECT_EQ(slots(item(S::Available, Ownership::Revoking, InFlight{0, 0})), (SlotCount{0, 0}));
  EXPECT_EQ(slots(item(S::Available, Ownership::Unowned), at(100)), (SlotCount{0, 0}));
  EXPECT_EQ(slots(item(S::Available, Ownership::Unowned), at(99)), (SlotCount{5, 0}));
}

TEST(Inventory, UnknownCountsAreNoSlotsButAreRememberedC14) {
  EXPECT_EQ(count_slots(item(S::Available, Ownership::Owned), at(1)), (SlotCount{0, 5}));
  EXPECT_EQ(count_slots(item(S::Available, Ownership::Owned), at(100)), (SlotCount{0, 0}));
}

TEST(Inventory, WhatALostOwnerMayUseIsUnknownC14) {
  auto orphaned = item(S::Available, Ownership::Unowned);
  orphaned.orphaned = 2;
  EXPECT_EQ(count_slots(orphaned, at(1)), (SlotCount{3, 2}));
  orphaned.ownership = Ownership::Owned;
  EXPECT_EQ(count_slots(orphaned, at(1)), (SlotCount{0, 5}));
  orphaned.in_flight = InFlight{1, 1};
  EXPECT_EQ(count_slots(orphaned, at(1)), (SlotCount{1, 2}));
}

TEST(Inventory, OnlyAvailableProxiesHaveSlots) {
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    const auto state = static_cast<S>(s);
    EXPECT_EQ(count_slots(item(state, Ownership::Unowned), at(1)).available,
              state == S::Available ? 5U : 0U);
  }
}

TEST(Inventory, OwnedUnownedAndRevokingAddUpToManaged) {
  SplitMix64 random(3);
  for (int round = 0; round < 200; ++round) {
    Inventory inventory;
    std::uint64_t managed_count = 0;
    std::uint64_t active = 0;
    const auto items = random.below(60);
    for (std::uint64_t i = 0; i < items; ++i) {
      auto one =
          item(static_cast<S>(random.below(kProxyStates)), static_cast<Ownership>(random.below(3)));
      if (random.below(2) != 0) one.in_flight = InFlight{static_cast<std::uint32_t>(i), 1};
      inventory.add(one, at(static_cast<std::int64_t>(random.below(150))));
      managed_count += managed(one.state) ? 1U : 0U;
      active += one.in_flight ? one.in_flight->active : 0U;
    }
    EXPECT_EQ(inventory.managed, managed_count);
    EXPECT_EQ(inventory.owned + inventory.unowned + inventory.revoking, inventory.managed);
    EXPECT_EQ(inventory.active, active);
    std::uint64_t all = 0;
    for (std::size_t s = 0; s < kProxyStates; ++s) all += inventory.in_state(static_cast<S>(s));
    EXPECT_EQ(all, items);
  }
}

constexpr LeaseTimes kTimes{};  // 2 s, 30 s
constexpr milliseconds kLease{60'000};

TEST(Lease, ItsEndFreesAProxyAfterMarginAndForExtractionAfterTheGraceC16C17) {
  EXPECT_EQ(free_at(at(60), Handover::ToWorker, kTimes), at(62));
  EXPECT_EQ(free_at(at(60), Handover::ToExtraction, kTimes), at(92));
}

TEST(Lease, AYoungGenerationWaitsUntilNoOlderLeaseCanLiveC18) {
  EXPECT_EQ(settled_at(at(0), std::nullopt, kTimes), at(0));
  EXPECT_EQ(settled_at(at(0), at(10), kTimes), at(42));
  EXPECT_EQ(settled_at(at(100), at(10), kTimes), at(100));
}

TEST(WorkerLease, WorkStopsAMarginBeforeItsEndAndTunnelsAGraceAfterItC9C16) {
  const TimePoint sent{seconds(1'000)};
  const WorkerLease lease = worker_lease(sent, kLease, kTimes);
  EXPECT_EQ(lease.work_until, sent + seconds(58));
  EXPECT_EQ(lease.tunnels_until, sent + seconds(90));
  EXPECT_EQ(worker_lease(sent, milliseconds{500}, kTimes).work_until, sent);
}

// Random delays and clock rates: the worker's last moment comes before the controller's first.
TEST(WorkerLease, TheOwnerStopsBeforeAnybodyElseMayStartCP9) {
  SplitMix64 random(17);
  int handed_over = 0;
  for (int round = 0; round < 10'000; ++round) {
    const auto ms = [&](std::uint64_t bound) {
      return milliseconds(static_cast<std::int64_t>(random.below(bound)));
    };
    const auto sent = ms(1'000'000);
    const auto processed = sent + ms(120'000);
    const StoreTime until = StoreTime(processed) + kLease;
    // The worker's clock is up to one per cent slow, and began anywhere.
    const auto origin = ms(1'000'000);
    const double rate = 1.0 - 0.01 * random.unit();
    const auto on_worker = [&](milliseconds real) {
      return TimePoint(origin + milliseconds(static_cast<std::int64_t>(
                                    static_cast<double>((real - sent).count()) * rate)));
    };
    const WorkerLease lease = worker_lease(on_worker(sent), kLease, kTimes);
    const auto t = processed + ms(200'000);
    if (StoreTime(t) >= free_at(until, Handover::ToWorker, kTimes)) {
      EXPECT_GE(on_worker(t), lease.work_until);
      ++handed_over;
    }
    if (StoreTime(t) >= free_at(until, Handover::ToExtraction, kTimes)) {
      EXPECT_GE(on_worker(t), lease.tunnels_until);
    }
  }
  EXPECT_GT(handed_over, 1'000);
}

std::vector<LiveWorker> workers(std::size_t n) {
  std::vector<LiveWorker> list;
  for (std::size_t i = 0; i < n; ++i) list.push_back({WorkerId("worker-" + std::to_string(i))});
  return list;
}
std::vector<OwnableProxy> proxies(std::size_t n) {
  std::vector<OwnableProxy> list;
  for (std::size_t i = 0; i < n; ++i) list.push_back({ProxyId(1'000 + i)});
  return list;
}

// Applies a plan as if every revocation were answered at once.
void apply(const OwnershipPlan& plan, std::vector<OwnableProxy>& pool,
           std::vector<LiveWorker>& live) {
  for (OwnableProxy& proxy : pool) {
    for (const Assignment& a : plan.assign) {
      if (a.proxy == proxy.id) {
        proxy.ownership = Ownership::Owned;
        proxy.owner = a.worker;
      }
    }
    if (std::count(plan.revoke.begin(), plan.revoke.end(), proxy.id) > 0) {
      --live[*proxy.owner].owned;
      proxy.ownership = Ownership::Unowned;
      proxy.owner.reset();
    }
  }
}
std::size_t settle(std::vector<OwnableProxy>& pool, std::vector<LiveWorker>& live,
                   std::size_t reserve) {
  for (std::size_t round = 0; round < 50; ++round) {
    const auto plan = plan_ownership(pool, live, reserve, 1'000);
    if (plan.assign.empty() && plan.revoke.empty()) return plan.unplaced;
    apply(plan, pool, live);
  }
  ADD_FAILURE() << "the plan does not settle";
  return 0;
}

TEST(Ownership, WorkersShareByTheirWeight) {
  auto live = workers(3);
  live[2].weight = 2;
  auto pool = proxies(4'000);
  const auto plan = plan_ownership(pool, live, 0, 0);
  EXPECT_EQ(plan.assign.size(), 4'000U);
  EXPECT_NEAR(live[0].owned, 1'000, 120);
  EXPECT_NEAR(live[1].owned, 1'000, 120);
  EXPECT_NEAR(live[2].owned, 2'000, 150);
}

TEST(Ownership, ANewWorkerTakesOnlyWhatItWinsAndNothingElseMovesCT50) {
  auto live = workers(4);
  auto pool = proxies(1'000);
  settle(pool, live, 0);
  const auto before = pool;
  live.push_back({WorkerId("worker-new")});
  settle(pool, live, 0);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    if (pool[i].owner == before[i].owner) continue;
    EXPECT_EQ(pool[i].owner, 4U);
    ++moved;
  }
  EXPECT_NEAR(static_cast<double>(moved), 200, 60);
}

TEST(Ownership, WhenAWorkerGoesOnlyItsProxiesMove) {
  auto live = workers(5);
  auto pool = proxies(1'000);
  settle(pool, live, 0);
  const auto before = pool;
  live.pop_back();
  for (OwnableProxy& proxy : pool) {
    if (proxy.owner == 4U) proxy = {proxy.id};  // its lease has ended
  }
  settle(pool, live, 0);
  for (std::size_t i = 0; i < pool.size(); ++i) {
    if (before[i].owner != 4U) {
      EXPECT_EQ(pool[i].owner, before[i].owner);
    }
  }
}

TEST(Ownership, TheReserveStaysUnownedAndIsReclaimedWhenItLacks) {
  auto live = workers(2);
  auto pool = proxies(100);
  settle(pool, live, 10);
  const auto unowned = [&] {
    std::set<ProxyId> ids;
    for (const auto& p : pool) {
      if (p.ownership == Ownership::Unowned) ids.insert(p.id);
    }
    return ids;
  };
  const auto first = unowned();
  EXPECT_EQ(first.size(), 10U);
  settle(pool, live, 25);
  EXPECT_EQ(unowned().size(), 25U);
  settle(pool, live, 10);
  EXPECT_EQ(unowned(), first);  // the reserve does not wander
}

TEST(Ownership, WhatIsBeingRevokedCountsTowardsTheReserve) {
  auto live = workers(1);
  auto pool = proxies(4);
  for (auto& p : pool) p = {p.id, Ownership::Owned, 0};
  pool[0].ownership = Ownership::Revoking;
  live[0].owned = 4;
  EXPECT_EQ(plan_ownership(pool, live, 2, 0).revoke.size(), 1U);
  EXPECT_TRUE(plan_ownership(pool, live, 1, 0).revoke.empty());
}

// C16: nobody can extract it, so it is given away and does not pass for the reserve.
TEST(Ownership, WhatALostOwnerLeftBehindIsNoReserve) {
  auto live = workers(1);
  auto pool = proxies(6);
  for (std::size_t i = 0; i < 4; ++i) pool[i].orphaned = true;
  for (std::size_t i = 4; i < 6; ++i) pool[i] = {pool[i].id, Ownership::Owned, 0};
  live[0].owned = 2;
  const auto plan = plan_ownership(pool, live, 2, 0);
  EXPECT_EQ(plan.assign.size(), 4U);
  EXPECT_EQ(plan.revoke.size(), 2U);
}

TEST(Ownership, WhatDoesNotFitStaysUnownedAndIsCountedC10) {
  auto live = workers(3);
  for (auto& w : live) w.owned_max = 10;
  auto pool = proxies(50);
  EXPECT_EQ(settle(pool, live, 0), 20U);
  for (const auto& w : live) EXPECT_EQ(w.owned, 10U);
}

TEST(Ownership, AWorkerOfWeightZeroLosesWhatItHasAndALostOwnerIsLeftAlone) {
  auto live = workers(2);
  auto pool = proxies(40);
  settle(pool, live, 0);
  live[0].weight = 0;
  settle(pool, live, 0);
  EXPECT_EQ(live[0].owned, 0U);
  EXPECT_EQ(live[1].owned, 40U);
  for (auto& p : pool) p.owner.reset();  // owned by somebody who is not live
  const auto plan = plan_ownership(pool, live, 5, 100);
  EXPECT_TRUE(plan.assign.empty());
  EXPECT_TRUE(plan.revoke.empty());
  std::vector<LiveWorker> nobody;
  EXPECT_EQ(plan_ownership(proxies(3), nobody, 1, 100).unplaced, 2U);
}

TEST(Ownership, MovesAreBounded) {
  auto live = workers(2);
  auto pool = proxies(200);
  settle(pool, live, 0);
  live.push_back({WorkerId("worker-new")});
  EXPECT_EQ(plan_ownership(pool, live, 0, 7).revoke.size(), 7U);
}

TEST(Ownership, TheDefaultReserveIsATenthAtLeastOneAndNeverTheOnlyProxy) {
  EXPECT_EQ(unowned_target({}, 0, 0), 0U);
  EXPECT_EQ(unowned_target({}, 1, 0), 0U);
  EXPECT_EQ(unowned_target({}, 2, 0), 1U);
  EXPECT_EQ(unowned_target({}, 11, 0), 2U);
  EXPECT_EQ(unowned_target({}, 100, 0), 10U);
  EXPECT_EQ(unowned_target({}, 100, 7), 17U) << "C3: a shortage raises it";
  EXPECT_EQ(unowned_target({true, 3}, 2, 0), 2U);
  EXPECT_EQ(unowned_target({true, 0}, 50, 0), 0U);
  EXPECT_EQ(unowned_target({false, 9}, 50, 9), 0U);
}

SnapshotRef ref(std::uint64_t counter, std::uint64_t epoch = 1) {
  SnapshotRef r{{1, counter}, Epoch(epoch), {}};
  r.digest[0] = static_cast<std::uint8_t>(counter);
  return r;
}
WorkerSession session() {
  return {WorkerId("w"), InstanceId("i"), SessionId("s"), at(0), SessionTimes{}};
}
ReportHeader header(std::uint64_t sequence, std::uint8_t content, const SnapshotRef& base) {
  ReportHeader h{sequence, {}, base.version, base.epoch};
  h.digest[0] = content;
  return h;
}

TEST(Session, OnlyAnIssuedReferenceIsAcknowledgedCP7) {
  WorkerSession s = session();
  EXPECT_EQ(s.acknowledge(ref(1), AckStatus::Applied), AckVerdict::NotIssued);
  ASSERT_TRUE(s.issue(ref(1)));
  EXPECT_FALSE(s.issue(ref(2))) << "one push outstanding";
  SnapshotRef wrong = ref(1);
  wrong.digest[5] = 1;
  EXPECT_EQ(s.acknowledge(wrong, AckStatus::Applied), AckVerdict::NotIssued);
  wrong = ref(1, 2);
  EXPECT_EQ(s.acknowledge(wrong, AckStatus::Applied), AckVerdict::NotIssued);
  EXPECT_FALSE(s.acknowledged().has_value());
  EXPECT_EQ(s.acknowledge(ref(1), AckStatus::Applied), AckVerdict::Accepted);
  EXPECT_EQ(s.acknowledge(ref(1), AckStatus::Applied), AckVerdict::Replayed);
  EXPECT_EQ(s.acknowledge(ref(1), AckStatus::Rejected), AckVerdict::NotIssued);
  EXPECT_FALSE(s.issue(ref(1))) << "it holds this one";
  EXPECT_TRUE(s.issue(ref(2)));
}

TEST(Session, ARefusedVersionIsParkedAndTheLastGoodOneStaysInForceC13) {
  WorkerSession s = session();
  ASSERT_TRUE(s.issue(ref(1)));
  s.acknowledge(ref(1), AckStatus::Applied);
  ASSERT_TRUE(s.issue(ref(2)));
  EXPECT_EQ(s.acknowledge(ref(2), AckStatus::Rejected), AckVerdict::Parked);
  EXPECT_EQ(s.acknowledge(ref(2), AckStatus::Rejected), AckVerdict::Replayed);
  EXPECT_EQ(s.acknowledged(), ref(1));
  EXPECT_EQ(s.parked(), ref(2));
  EXPECT_FALSE(s.issue(ref(2)));
  EXPECT_EQ(s.report(header(1, 1, ref(1)), at(1), {}), ReportVerdict::Accept);
  EXPECT_TRUE(s.issue(ref(3)));
}

TEST(Session, ABusyWorkerIsAskedAgainLater) {
  WorkerSession s = session();
  ASSERT_TRUE(s.issue(ref(1)));
  EXPECT_EQ(s.acknowledge(ref(1), AckStatus::Busy), AckVerdict::Deferred);
  EXPECT_FALSE(s.outstanding().has_value());
  EXPECT_TRUE(s.issue(ref(1)));
}

TEST(Session, ReportsCountOnlyInOrderAndOnTheAcknowledgedBaseC12) {
  WorkerSession s = session();
  EXPECT_EQ(s.report(header(1, 1, ref(1)), at(1), {}), ReportVerdict::WrongBase);
  ASSERT_TRUE(s.issue(ref(1)));
  EXPECT_EQ(s.report(header(1, 1, ref(1)), at(1), {}), ReportVerdict::WrongBase);
  s.acknowledge(ref(1), AckStatus::Applied);
  EXPECT_FALSE(s.report_valid_until().has_value());
  EXPECT_EQ(s.report(header(0, 1, ref(1)), at(1), {}), ReportVerdict::Stale);
  EXPECT_EQ(s.report(header(5, 1, ref(1)), at(1), {}), ReportVerdict::Accept);
  EXPECT_EQ(s.report_valid_until(), at(11));
  EXPECT_EQ(s.report(header(5, 1, ref(1)), at(2), {}), ReportVerdict::Replay);
  EXPECT_EQ(s.report_valid_until(), at(11));
  EXPECT_EQ(s.report(header(5, 2, ref(1)), at(2), {}), ReportVerdict::Conflict);
  EXPECT_EQ(s.report(header(4, 1, ref(1)), at(2), {}), ReportVerdict::Stale);
  EXPECT_EQ(s.report(header(6, 1, ref(2)), at(2), {}), ReportVerdict::WrongBase) << "ahead";
  EXPECT_EQ(s.report(header(6, 1, ref(1, 2)), at(2), {}), ReportVerdict::WrongBase);
  EXPECT_EQ(s.last_report(), 5U);
}

TEST(Session, AnAcceptedReportRenewsTheSession) {
  WorkerSession s = session();
  EXPECT_FALSE(s.expired(at(59)));
  EXPECT_TRUE(s.expired(at(60)));
  ASSERT_TRUE(s.issue(ref(1)));
  s.acknowledge(ref(1), AckStatus::Applied);
  s.report(header(1, 1, ref(1)), at(30), {});
  EXPECT_EQ(s.expires_at(), at(90));
  EXPECT_EQ(s.worker(), WorkerId("w"));
  EXPECT_EQ(s.instance(), InstanceId("i"));
  EXPECT_EQ(s.session(), SessionId("s"));
}

TEST(Session, RegisteringAgainForgetsEverythingOfTheOldSessionCP7) {
  WorkerSession s = session();
  ASSERT_TRUE(s.issue(ref(1)));
  s.acknowledge(ref(1), AckStatus::Applied);
  s = WorkerSession(WorkerId("w"), InstanceId("i2"), SessionId("s2"), at(5), SessionTimes{});
  EXPECT_EQ(s.acknowledge(ref(1), AckStatus::Applied), AckVerdict::NotIssued);
  EXPECT_EQ(s.report(header(1, 1, ref(1)), at(6), {}), ReportVerdict::WrongBase);
}

TEST(Session, OutcomeBatchesHaveTheirOwnFence) {
  WorkerSession s = session();
  ContentDigest digest{};
  EXPECT_EQ(s.outcomes().judge(1, digest), SequenceVerdict::Accept);
  s.outcomes().accept(1, digest);
  EXPECT_EQ(s.outcomes().judge(1, digest), SequenceVerdict::Replay);
  digest[0] = 1;
  EXPECT_EQ(s.outcomes().judge(1, digest), SequenceVerdict::Conflict);
  EXPECT_EQ(s.outcomes().last(), 1U);
}

}  // namespace
}  // namespace proxypool::domain
