#include "controller/ownership.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/pool_decorator.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using contract::kGrace;
using contract::kLease;
using contract::kMargin;
using contract::proxy_ids;
using domain::Ownership;

class OwnershipServiceTest : public contract::PoolSteps<Stores> {
 protected:
  OwnershipServiceTest() { begin(); }
  void begin(OwnershipSettings settings = {}) {
    service_ = std::make_unique<OwnershipService>(
        settings, fixture_.pool(), fixture_.registry(), fixture_.coordination(), fixture_.clock(),
        [this] {
          ++plans_;
          return upstreams_;
        },
        [this](const UpstreamId&) { return shortage_; });
  }
  TimePoint clock_now() { return fixture_.clock().now(); }
  void step() { service_->step(clock_now()); }

  struct Worker {
    ports::LeaseHolder holder;
    std::uint64_t sequence = 0;
  };
  Worker enter(const std::string& name, const std::string& instance = "i1", bool draining = false) {
    ports::Registration registration;
    registration.worker = WorkerId(name);
    registration.instance = InstanceId(instance);
    registration.draining = draining;
    registration.session_ttl = kLease;
    const auto row = fixture_.registry().register_worker(registration, Deadline{});
    EXPECT_TRUE(row);
    return {{registration.worker, registration.instance, row->session}, 0};
  }
  // What the session service does with a report of a worker that carries nothing.
  void report(Worker& worker, bool draining = false) {
    ports::ReportFence fence;
    fence.sequence = ++worker.sequence;
    fence.draining = draining;
    EXPECT_TRUE(fixture_.registry().accept_report(worker.holder.worker, worker.holder.session,
                                                  fence, kLease, Deadline{}));
    renew(worker.holder);
    PoolSteps::report(worker.holder, {}, change());
  }
  std::set<ProxyId> held_by(const Worker& worker, Ownership ownership) {
    const auto held = pool().held_by(worker.holder, Deadline{});
    EXPECT_TRUE(held);
    std::set<ProxyId> ids;
    for (const auto& entry : *held) {
      if (entry.proxy.ownership == ownership) ids.insert(entry.proxy.id);
    }
    return ids;
  }
  std::set<ProxyId> owned_by(const Worker& worker) { return held_by(worker, Ownership::Owned); }
  // Steps and reports of both until nothing moves; answers every proxy that was asked back.
  std::set<ProxyId> settle(std::vector<Worker*> workers) {
    std::set<ProxyId> moved;
    for (int quiet = 0; quiet < 3; ++quiet) {
      const auto before = service_->counters();
      step();
      for (Worker* worker : workers) {
        moved.merge(held_by(*worker, Ownership::Revoking));
        report(*worker);
      }
      const auto after = service_->counters();
      if (after.assigned != before.assigned || after.revoked != before.revoked) quiet = 0;
      advance(milliseconds{100});
    }
    return moved;
  }

  // Time passes, and only this worker reports.
  void pass(Worker& alive, milliseconds duration) {
    for (milliseconds gone{0}; gone < duration; gone += milliseconds{1'000}) {
      advance(milliseconds{1'000});
      report(alive);
      sweep();
      step();
    }
  }

  std::vector<OwnedUpstream> upstreams_{{UpstreamId("a"), {}}};
  std::size_t shortage_ = 0;
  int plans_ = 0;
  std::unique_ptr<OwnershipService> service_;
};

TEST_F(OwnershipServiceTest, WhatIsBeyondTheReserveGoesToTheLiveWorkers) {
  const Worker one = enter("w1");
  const Worker two = enter("w2");
  supply("a", proxy_ids(1, 100));
  step();
  const auto first = owned_by(one);
  const auto second = owned_by(two);
  EXPECT_EQ(first.size() + second.size(), 90U);  // a tenth stays for extraction
  EXPECT_GT(first.size(), 20U);
  EXPECT_GT(second.size(), 20U);
  for (const ProxyId id : first) EXPECT_FALSE(second.contains(id));
  EXPECT_EQ(service_->counters().assigned, 90U);
  // Each gift has an epoch of its own (C12).
  EXPECT_NE(find(*first.begin())->leased.lease_epoch, find(*second.begin())->leased.lease_epoch);
}

TEST_F(OwnershipServiceTest, AnUpstreamThatIsNotExtractableKeepsNoReserve) {
  upstreams_[0].reserve.extractable = false;
  const Worker one = enter("w1");
  supply("a", proxy_ids(1, 20));
  step();
  EXPECT_EQ(owned_by(one).size(), 20U);
}

TEST_F(OwnershipServiceTest, EachUpstreamHasItsOwnReserve) {
  upstreams_ = {{UpstreamId("a"), {true, 5}}, {UpstreamId("b"), {true, 0}}};
  enter("w1");
  supply("a", proxy_ids(1, 20));
  supply("b", proxy_ids(101, 120));
  step();
  EXPECT_EQ(inventory("a").unowned, 5U);
  EXPECT_EQ(inventory("b").unowned, 0U);
}

TEST_F(OwnershipServiceTest, AProxyThatPassedItsFirstCheckIsGivenAwayAtTheNextLook) {
  const Worker one = enter("w1");
  supply("a", proxy_ids(1, 10));
  step();
  step();
  admit(contract::batch("a", proxy_ids(11, 20)));
  step();
  EXPECT_EQ(owned_by(one).size(), 9U);
  pass_new();
  step();
  EXPECT_EQ(owned_by(one).size(), 18U);
}

// C3: the call that found too little is not served later; the next one is.
TEST_F(OwnershipServiceTest, WhatExtractionsLackedIsTakenBackFromWorkers) {
  Worker one = enter("w1");
  supply("a", proxy_ids(1, 20));
  step();
  EXPECT_EQ(inventory("a").unowned, 2U);
  shortage_ = 6;
  step();
  EXPECT_EQ(inventory("a").revoking, 6U);
  step();  // those that are on their way count
  EXPECT_EQ(inventory("a").revoking, 6U);
  report(one);
  step();
  EXPECT_EQ(inventory("a").unowned, 8U);
  EXPECT_EQ(owned_by(one).size(), 12U);
}

// C17: a worker that is not heard of may serve until its lease ends.
TEST_F(OwnershipServiceTest, NothingOfALostWorkerIsGivenAwayBeforeLeaseAndMarginHavePassed) {
  Worker lost = enter("w1");
  supply("a", proxy_ids(1, 20));
  step();
  const auto had = owned_by(lost);
  ASSERT_EQ(had.size(), 18U);
  report(lost);
  Worker other = enter("w2");
  for (milliseconds gone{0}; gone < kLease + kMargin - milliseconds{1'000};
       gone += milliseconds{1'000}) {
    advance(milliseconds{1'000});
    report(other);
    sweep();
    step();
    for (const ProxyId id : had) ASSERT_FALSE(owned_by(other).contains(id)) << gone.count();
  }
  advance(milliseconds{999});
  sweep();
  step();
  EXPECT_EQ(owned_by(lost).size() + inventory("a").revoking, 18U);
  advance(milliseconds{1});
  EXPECT_EQ(sweep().freed, 18U);
  report(other);
  step();
  EXPECT_EQ(owned_by(other).size(), 18U);
}

// C16: its tunnels may live on meanwhile: what had work waits or is given with fewer slots.
TEST_F(OwnershipServiceTest, WhatALostWorkerWasFullyUsingIsGivenAwayAfterTheGrace) {
  const Worker lost = enter("w1");
  supply("a", proxy_ids(1, 20));
  step();
  ASSERT_EQ(owned_by(lost).size(), 18U);
  Worker other = enter("w2");
  pass(other, kLease + kMargin + kGrace - milliseconds{1'000});
  EXPECT_EQ(inventory("a").unowned, 20U - owned_by(other).size());
  const auto before = owned_by(other);
  pass(other, milliseconds{2'000});
  EXPECT_EQ(owned_by(other).size(), 18U);
  EXPECT_LT(before.size(), 18U);
}

// C3: proxies that nobody can extract do not pass for what extractions lacked.
TEST_F(OwnershipServiceTest, AShortageIsServedThoughALostWorkersProxiesAreNotExtractable) {
  Worker one = enter("w1");
  Worker two = enter("w2");
  supply("a", proxy_ids(1, 100));
  step();
  report(two);
  // w1 is lost with everything in use.
  std::vector<ports::RuntimeCount> busy;
  for (const ProxyId id : owned_by(one)) {
    busy.push_back({id, find(id)->leased.lease_epoch, 10, 0, false});
  }
  PoolSteps::report(one.holder, busy, change());
  pass(two, kLease + kMargin + milliseconds{1'000});
  EXPECT_EQ(extract(command(10)).proxies.size(), 10U);  // the reserve
  shortage_ = 10;
  pass(two, milliseconds{5'000});
  EXPECT_EQ(extract(command(10)).proxies.size(), 10U) << "C3: the next call can be served";
}

// Rendezvous hashing: a newcomer takes what it wins, and nothing moves between the others.
TEST_F(OwnershipServiceTest, AsFewProxiesMoveAsCan) {
  upstreams_[0].reserve = {true, 0};
  Worker one = enter("w1");
  Worker two = enter("w2");
  supply("a", proxy_ids(1, 300));
  settle({&one, &two});
  const auto first = owned_by(one);
  const auto second = owned_by(two);
  Worker three = enter("w3");
  step();
  // A tenth at a time: what moves is not in use while it moves.
  EXPECT_EQ(inventory("a").revoking, 30U);
  settle({&one, &two, &three});
  const auto third = owned_by(three);
  EXPECT_GT(third.size(), 70U);
  EXPECT_LT(third.size(), 130U);
  for (const ProxyId id : owned_by(one)) EXPECT_TRUE(first.contains(id));
  for (const ProxyId id : owned_by(two)) EXPECT_TRUE(second.contains(id));
  // It goes: everybody has again what they had.
  PoolSteps::report(three.holder, {}, change(), true);
  ASSERT_TRUE(fixture_.registry().leave(three.holder.worker, three.holder.session, Deadline{}));
  EXPECT_TRUE(settle({&one, &two}).empty());
  EXPECT_EQ(owned_by(one), first);
  EXPECT_EQ(owned_by(two), second);
}

TEST_F(OwnershipServiceTest, ADrainingWorkerGetsNothingNewAndGivesBackWhatOthersCanTake) {
  upstreams_[0].reserve = {true, 0};
  Worker leaving = enter("w1");
  supply("a", proxy_ids(1, 20));
  step();
  report(leaving, true);
  supply("a", proxy_ids(21, 30));
  advance(OwnershipSettings{}.refresh);
  step();
  EXPECT_EQ(owned_by(leaving).size(), 20U);  // nobody else could take it
  Worker other = enter("w2");
  settle({&other});
  for (int round = 0; round < 5; ++round) {
    report(leaving, true);
    step();
  }
  EXPECT_EQ(owned_by(leaving).size(), 0U);
  EXPECT_EQ(owned_by(other).size(), 30U);
}

// C10: what does not fit stays unowned, and is counted.
TEST_F(OwnershipServiceTest, WhatNoWorkerHasRoomForStaysUnowned) {
  OwnershipSettings settings;
  settings.proxies_per_worker_max = 5;
  begin(settings);
  const Worker one = enter("w1");
  supply("a", proxy_ids(1, 20));
  step();
  EXPECT_EQ(owned_by(one).size(), 5U);
  EXPECT_EQ(service_->counters().unplaced, 13U);  // two are the reserve
  enter("w2");
  step();
  EXPECT_EQ(service_->counters().unplaced, 8U);
}

// C18: a restarted store knows who may still serve; only the claimers get what they hold.
TEST_F(OwnershipServiceTest, AfterARestartAWorkerGetsBackWhatItHoldsAndNobodyElseDoes) {
  upstreams_[0].reserve = {true, 0};
  const Worker before = enter("w1");
  supply("a", proxy_ids(1, 20));
  step();
  ASSERT_EQ(owned_by(before).size(), 20U);
  fixture_.restart();
  begin();
  const Worker stranger = enter("w2");
  supply("a", proxy_ids(1, 30));
  step();
  EXPECT_EQ(owned_by(stranger).size(), 0U);  // a young generation gives nothing away

  const Worker back = enter("w1");
  EXPECT_EQ(adopt(back.holder, proxy_ids(1, 20)), 0U);
  for (const ProxyId id : proxy_ids(1, 20)) EXPECT_TRUE(owned_by(back).contains(id));
  advance(OwnershipSettings{}.refresh);
  step();
  // Everybody is back, so the rest may be given away: what nobody claimed.
  EXPECT_EQ(owned_by(back).size() + owned_by(stranger).size() + inventory("a").revoking, 30U);
  for (const ProxyId id : owned_by(stranger)) EXPECT_GT(id.value(), 20U);
}

// C17: another instance of the same worker is another holder.
TEST_F(OwnershipServiceTest, ARestartedWorkerGetsNothingOfItsPredecessorBeforeThatLeaseHasEnded) {
  const Worker before = enter("w1", "i1");
  supply("a", proxy_ids(1, 20));
  step();
  const Worker after = enter("w1", "i2");
  advance(OwnershipSettings{}.refresh);
  step();
  EXPECT_EQ(owned_by(before).size(), 18U);
  EXPECT_EQ(owned_by(after).size(), 0U);
}

TEST_F(OwnershipServiceTest, APlanThatTheStoreDidNotTakeIsTriedAgain) {
  struct Away : test::PoolDecorator {
    using PoolDecorator::PoolDecorator;
    Result<std::vector<ProxyId>> assign(const ports::LeaseHolder& holder,
                                        const std::vector<ProxyId>& ids, Epoch epoch,
                                        milliseconds lease, Deadline deadline) override {
      if (away) return test::pool_is_away();
      return PoolDecorator::assign(holder, ids, epoch, lease, deadline);
    }
    bool away = true;
  } pool(fixture_.pool());
  OwnershipService service(
      {}, pool, fixture_.registry(), fixture_.coordination(), fixture_.clock(),
      [this] { return upstreams_; }, [](const UpstreamId&) { return 0U; });
  const Worker one = enter("w1");
  supply("a", proxy_ids(1, 10));
  EXPECT_EQ(service.step(clock_now()), clock_now() + OwnershipSettings{}.refresh);
  EXPECT_EQ(service.counters().failures, 1U);
  EXPECT_EQ(service.counters().assigned, 0U);
  pool.away = false;
  advance(OwnershipSettings{}.refresh);
  service.step(clock_now());
  EXPECT_EQ(owned_by(one).size(), 9U);
}

TEST_F(OwnershipServiceTest, APlanIsMadeWhenSomethingChangedAndOtherwiseEveryFewSeconds) {
  Worker one = enter("w1");
  supply("a", proxy_ids(1, 5));
  step();
  step();  // what the first plan changed costs another one
  EXPECT_EQ(plans_, 2);
  EXPECT_EQ(service_->step(clock_now()), clock_now() + OwnershipSettings{}.poll);
  EXPECT_EQ(plans_, 2);
  enter("w2");
  step();
  EXPECT_EQ(plans_, 3);
  step();
  step();
  const int quiet = plans_;
  advance(OwnershipSettings{}.refresh - milliseconds{1});
  step();
  EXPECT_EQ(plans_, quiet);
  advance(milliseconds{1});
  step();
  EXPECT_EQ(plans_, quiet + 1);
  report(one);
}

}  // namespace
}  // namespace proxypool::controller
