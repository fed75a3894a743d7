#include "controller/health.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/pool_decorator.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using contract::proxy_ids;
using domain::ProxyState;

class HealthServiceTest : public contract::PoolSteps<Stores> {
 protected:
  HealthServiceTest() {
    config_.upstreams.resize(1);
    config_.upstreams[0].id = UpstreamId("a");
    begin();
  }
  void begin() {
    HealthSettings settings;
    settings.cluster_id = "c";
    settings.environment = "e";
    service_ = std::make_unique<HealthService>(
        settings, std::make_shared<const config::Config>(config_),
        HealthDeps{fixture_.pool(), fixture_.registry(), fixture_.clock()});
  }
  void step() { service_->step(fixture_.clock().now()); }

  struct Checker {
    CheckerId name;
    SessionId session;
    std::shared_ptr<ports::Outbox<std::vector<domain::CheckTask>>> outbox;
  };
  static ports::RegisterCheckerRequest request(const std::string& name,
                                               std::uint32_t in_flight_max = 1'000) {
    ports::RegisterCheckerRequest request;
    request.cluster_id = "c";
    request.environment = "e";
    request.checker = CheckerId(name);
    request.instance = InstanceId("i");
    request.in_flight_max = in_flight_max;
    return request;
  }
  Checker enter(const std::string& name, std::uint32_t in_flight_max = 1'000) {
    const auto answer = service_->register_checker(request(name, in_flight_max), {}, Deadline{});
    EXPECT_TRUE(answer);
    Checker checker{CheckerId(name), answer->session, {}};
    open(checker);
    return checker;
  }
  void open(Checker& checker) {
    auto opened = service_->open_tasks(
        checker.name, checker.session, {}, [this] { ++wakes_; }, Deadline{});
    ASSERT_TRUE(opened);
    checker.outbox = *std::move(opened);
  }
  static std::vector<domain::CheckTask> tasks(Checker& checker) {
    std::vector<domain::CheckTask> all;
    for (;;) {
      auto message = checker.outbox->take();
      EXPECT_TRUE(message);
      if (!message || !*message) return all;
      EXPECT_LE((*message)->size(), 512U);
      all.insert(all.end(), (*message)->begin(), (*message)->end());
    }
  }
  Status answer(const Checker& checker, const std::vector<domain::CheckTask>& done, bool passed) {
    ports::ObservationReport report;
    report.checker = checker.name;
    report.session = checker.session;
    for (const domain::CheckTask& task : done) {
      domain::Observation seen;
      seen.task_id = task.task_id;
      seen.proxy = task.proxy;
      seen.passed = passed;
      seen.latency = milliseconds(20);
      if (!passed) seen.failure = {domain::Phase::Dial, domain::FailureKind::Refused};
      report.observations.push_back(seen);
    }
    return service_->report_observations(report, {}, Deadline{});
  }
  std::vector<ProxyId> ids_of(const std::vector<domain::CheckTask>& all) {
    std::vector<ProxyId> ids;
    for (const auto& task : all) ids.push_back(task.proxy);
    return ids;
  }

  config::Config config_;
  std::atomic<int> wakes_{0};
  std::unique_ptr<HealthService> service_;
};

// CT-2: a check policy counts for the next checks, and a shorter interval for those that were
// planned by the longer one.
TEST_F(HealthServiceTest, AShorterIntervalBringsPlannedChecksForward) {
  config_.upstreams[0].check.basic.interval = std::chrono::hours(1);
  begin();
  auto checker = enter("k");
  admit(contract::batch("a", proxy_ids(1, 40)));
  step();
  ASSERT_TRUE(answer(checker, tasks(checker), true));
  advance(seconds(100));
  step();
  EXPECT_TRUE(tasks(checker).empty());

  config_.upstreams[0].check.basic.interval = seconds(30);
  config_.upstreams[0].check.basic.target = {"198.51.100.9", 443};
  service_->configure(std::make_shared<const config::Config>(config_));
  std::size_t due = 0;
  std::size_t most = 0;
  for (int second = 0; second < 31; ++second) {
    step();
    const auto given = tasks(checker);
    for (const auto& task : given) EXPECT_EQ(task.target_host, "198.51.100.9");
    ASSERT_TRUE(answer(checker, given, true));
    due += given.size();
    most = std::max(most, given.size());
    advance(seconds(1));
  }
  EXPECT_GE(due, 40U);
  EXPECT_LT(most, 20U) << "not all at once";
}

TEST_F(HealthServiceTest, ARegistrationThatDoesNotFitIsRefused) {
  const auto code = [&](const ports::RegisterCheckerRequest& wrong) {
    const auto answer = service_->register_checker(wrong, {}, Deadline{});
    EXPECT_FALSE(answer);
    return answer ? ErrorCode::Internal : answer.error().code;
  };
  auto wrong = request("k");
  wrong.protocol_version = 99;
  EXPECT_EQ(code(wrong), ErrorCode::InvalidArgument);
  wrong = request("k");
  wrong.cluster_id = "other";
  EXPECT_EQ(code(wrong), ErrorCode::Forbidden);
  wrong = request("k");
  wrong.environment = "other";
  EXPECT_EQ(code(wrong), ErrorCode::Forbidden);
  EXPECT_EQ(code(request("")), ErrorCode::InvalidArgument);
  EXPECT_EQ(code(request("k", 0)), ErrorCode::InvalidArgument);
}

// CT-31: BASIC is a CONNECT through the proxy, with its credential, as its upstream's check says.
TEST_F(HealthServiceTest, ANewProxyIsCheckedAsItsUpstreamSays) {
  config_.upstreams[0].check.basic.target = {"judge.example", 8443};
  config_.upstreams[0].check.basic.timeout = seconds(3);
  begin();
  Checker checker = enter("k");
  admit(contract::batch("a", proxy_ids(1, 1)));
  admit(contract::batch("not-configured", proxy_ids(2, 2)));
  step();
  EXPECT_GT(wakes_, 0);
  const auto given = tasks(checker);
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(given[0].proxy, ProxyId(1));
  EXPECT_EQ(given[0].level, domain::CheckLevel::Basic);
  EXPECT_EQ(given[0].endpoint.host, "host-1");
  EXPECT_EQ(given[0].credential.password.reveal(), "pass-1");
  EXPECT_EQ(given[0].target_host, "judge.example");
  EXPECT_EQ(given[0].target_port, 8443);
  EXPECT_EQ(given[0].timeout, seconds(3));
  EXPECT_EQ(given[1].target_host, config_.check.basic.target.host);
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Checking);
  EXPECT_EQ(service_->counters().in_flight, 2U);

  ASSERT_TRUE(answer(checker, given, true));
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
  EXPECT_EQ(proxy(ProxyId(1)).latency, milliseconds(20));
  EXPECT_EQ(service_->counters().in_flight, 0U);
  EXPECT_EQ(service_->counters().passed, 2U);
}

// Rulings, "Health defaults": three failures in a row, each rechecked sooner than the routine.
TEST_F(HealthServiceTest, AProxyThatFailsThreeTimesInARowIsUnhealthy) {
  Checker checker = enter("k");
  admit(contract::batch("a", proxy_ids(1, 1)));
  for (int failure = 1; failure <= 3; ++failure) {
    step();
    const auto given = tasks(checker);
    ASSERT_EQ(given.size(), 1U) << failure;
    EXPECT_EQ(state(ProxyId(1)), ProxyState::Checking);
    ASSERT_TRUE(answer(checker, given, false));
    advance(seconds(7));
  }
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Unhealthy);
  EXPECT_EQ(find(ProxyId(1))->last_failure.kind, domain::FailureKind::Refused);
  advance(seconds(60));
  step();
  EXPECT_TRUE(tasks(checker).empty());  // nobody asks it any more
}

TEST_F(HealthServiceTest, AWorkingProxyThatFailsIsSuspectUntilItPassesAgain) {
  Checker checker = enter("k");
  supply("a", proxy_ids(1, 1));
  advance(seconds(37));
  step();
  ASSERT_TRUE(answer(checker, tasks(checker), false));
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Suspect);
  advance(seconds(7));
  step();
  ASSERT_TRUE(answer(checker, tasks(checker), true));
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
}

// CT-30: every 30 s ± 20 %, spread over the proxies.
TEST_F(HealthServiceTest, RoutineChecksComeAtTheirIntervalAndNotTogether) {
  Checker checker = enter("k");
  admit(contract::batch("a", proxy_ids(1, 100)));
  step();
  ASSERT_TRUE(answer(checker, tasks(checker), true));
  std::map<ProxyId, milliseconds> due;
  std::size_t most = 0;
  for (milliseconds gone{500}; gone <= seconds(37); gone += milliseconds{500}) {
    advance(milliseconds{500});
    step();
    const auto given = tasks(checker);
    most = std::max(most, given.size());
    for (const auto& task : given) due.emplace(task.proxy, gone);
  }
  ASSERT_EQ(due.size(), 100U);
  for (const auto& [id, at] : due) {
    EXPECT_GE(at, seconds(24));
    EXPECT_LE(at, milliseconds(36'500));
  }
  EXPECT_LT(most, 25U);
}

// CT-30: new before suspect before the rest, when there is not room for all.
TEST_F(HealthServiceTest, WithLittleRoomNewProxiesComeFirstAndThenThoseInDoubt) {
  Checker checker = enter("k", 1);
  supply("a", proxy_ids(1, 3));
  advance(seconds(40));  // all three are due
  move(ProxyId(2), {domain::ProxyEvent::MeaningfulFailure});
  admit(contract::batch("a", proxy_ids(4, 4)));
  std::vector<ProxyId> order;
  for (int turn = 0; turn < 3; ++turn) {
    step();
    const auto given = tasks(checker);
    ASSERT_EQ(given.size(), 1U);
    order.push_back(given[0].proxy);
    ASSERT_TRUE(answer(checker, given, true));
  }
  EXPECT_EQ(order[0], ProxyId(4));
  EXPECT_EQ(order[1], ProxyId(2));
  EXPECT_TRUE(order[2] == ProxyId(1) || order[2] == ProxyId(3));
}

TEST_F(HealthServiceTest, NoCheckerGetsMoreThanItCanCarryAndAllOfThemNoMoreThanConfigured) {
  config_.check.in_flight_max = 12;
  begin();
  Checker small = enter("small", 3);
  Checker large = enter("large", 100);
  admit(contract::batch("a", proxy_ids(1, 50)));
  step();
  const auto few = tasks(small);
  const auto many = tasks(large);
  EXPECT_EQ(few.size(), 3U);
  EXPECT_EQ(many.size(), 9U);
  step();
  EXPECT_TRUE(tasks(small).empty());
  EXPECT_TRUE(tasks(large).empty());
  ASSERT_TRUE(answer(small, few, true));
  step();
  EXPECT_EQ(tasks(small).size() + tasks(large).size(), 3U);
}

TEST_F(HealthServiceTest, ManyTasksTravelInSeveralMessages) {
  Checker checker = enter("k");
  admit(contract::batch("a", proxy_ids(1, 600)));
  step();
  EXPECT_EQ((*checker.outbox->take())->size(), 512U);
  EXPECT_EQ((*checker.outbox->take())->size(), 88U);
  EXPECT_FALSE(*checker.outbox->take());
}

// A checker that died with its tasks is no proxy's fault: they are given out again, uncounted.
TEST_F(HealthServiceTest, ATaskThatIsNotAnsweredIsGivenToAnother) {
  Checker lost = enter("lost");
  admit(contract::batch("a", proxy_ids(1, 5)));
  step();
  const auto taken = tasks(lost);
  ASSERT_EQ(taken.size(), 5U);
  lost.outbox->closed();
  Checker other = enter("other");
  advance(milliseconds(14'999));
  step();
  EXPECT_TRUE(tasks(other).empty());
  advance(milliseconds(1));
  step();
  EXPECT_EQ(service_->counters().lost, 5U);
  const auto again = tasks(other);
  EXPECT_EQ(ids_of(again), ids_of(taken));
  // What comes too late says nothing.
  ASSERT_TRUE(answer(lost, taken, false));
  EXPECT_EQ(service_->counters().ignored, 5U);
  ASSERT_TRUE(answer(other, again, true));
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
}

// A probe may take as long as it is configured to: its answer is waited for.
TEST_F(HealthServiceTest, TheLeaseOfATaskLeavesTheLongestProbeItsTime) {
  config_.upstreams[0].check.basic.timeout = seconds(60);
  begin();
  Checker checker = enter("k");
  admit(contract::batch("a", proxy_ids(1, 1)));
  step();
  const auto given = tasks(checker);
  ASSERT_EQ(given.size(), 1U);
  advance(seconds(61));
  step();
  EXPECT_EQ(service_->counters().lost, 0U);
  ASSERT_TRUE(answer(checker, given, true));
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
}

// CT-32: an observation counts once, and only from whom it was asked.
TEST_F(HealthServiceTest, AnObservationThatNobodyAwaitsSaysNothing) {
  Checker checker = enter("k");
  Checker other = enter("other");
  admit(contract::batch("a", proxy_ids(1, 1)));
  step();
  auto given = tasks(checker);
  if (given.empty()) {
    given = tasks(other);
    std::swap(checker, other);
  }
  ASSERT_EQ(given.size(), 1U);
  ASSERT_TRUE(answer(other, given, false));
  EXPECT_EQ(service_->counters().ignored, 1U);
  ASSERT_TRUE(answer(checker, given, true));
  ASSERT_TRUE(answer(checker, given, false));
  EXPECT_EQ(service_->counters().ignored, 2U);
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
}

TEST_F(HealthServiceTest, ANewSessionEndsTheOldOne) {
  Checker before = enter("k");
  admit(contract::batch("a", proxy_ids(1, 1)));
  step();
  const auto given = tasks(before);
  Checker after = enter("k");
  const auto taken = before.outbox->take();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::Stale);
  const Status late = answer(before, given, true);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::Stale);
  EXPECT_EQ(service_->counters().checkers, 1U);
  // It takes no room from the new one either.
  EXPECT_EQ(service_->counters().in_flight, 1U);
  advance(seconds(15));
  step();
  EXPECT_EQ(tasks(after).size(), 1U);
}

TEST_F(HealthServiceTest, AStreamThatWasOpenedAgainGetsNothingOfTheOldOne) {
  Checker checker = enter("k");
  const auto old = checker.outbox;
  admit(contract::batch("a", proxy_ids(1, 1)));
  step();
  open(checker);
  EXPECT_FALSE(old->take());
  old->closed();  // comes late and closes nothing
  EXPECT_EQ(service_->counters().checkers, 1U);
  EXPECT_TRUE(tasks(checker).empty());
  advance(seconds(15));
  step();
  EXPECT_EQ(tasks(checker).size(), 1U);
}

// The pool takes a verdict only for the row that was read; then it is reached anew.
TEST_F(HealthServiceTest, AProxyThatChangesMeanwhileIsJudgedAgain) {
  struct Meddler : test::PoolDecorator {
    using PoolDecorator::PoolDecorator;
    Result<std::vector<bool>> write_health(const std::vector<ports::HealthWrite>& writes,
                                           Deadline deadline) override {
      if (times > 0) {
        --times;
        between();
      }
      return PoolDecorator::write_health(writes, deadline);
    }
    int times = 0;
    std::function<void()> between;
  } meddler(fixture_.pool());
  HealthSettings settings;
  settings.cluster_id = "c";
  settings.environment = "e";
  service_ =
      std::make_unique<HealthService>(settings, std::make_shared<const config::Config>(config_),
                                      HealthDeps{meddler, fixture_.registry(), fixture_.clock()});
  Checker checker = enter("k");
  admit(contract::batch("a", proxy_ids(1, 2)));
  step();
  meddler.times = 2;
  meddler.between = [&] {  // the vendor brings one of them again
    advance(milliseconds(1));
    EXPECT_EQ(admit(contract::batch("a", proxy_ids(1, 1))).renewed, 1U);
  };
  ASSERT_TRUE(answer(checker, tasks(checker), true));
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
  EXPECT_EQ(state(ProxyId(2)), ProxyState::Available);
  EXPECT_EQ(service_->counters().conflicts, 2U);
}

TEST_F(HealthServiceTest, WithoutACheckerNothingIsTaken) {
  admit(contract::batch("a", proxy_ids(1, 1)));
  step();
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Fetched);
  EXPECT_EQ(service_->counters().tasks, 0U);
}

// Reports of several checkers, new tasks and other changes of the same proxies at once.
TEST_F(HealthServiceTest, EveryCheckersAnswersCountWhileOthersChangeTheSameProxies) {
  constexpr std::uint64_t kProxies = 400;
  std::vector<Checker> checkers;
  for (int i = 0; i < 3; ++i) checkers.push_back(enter("k" + std::to_string(i)));
  admit(contract::batch("a", proxy_ids(1, kProxies)));
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (Checker& checker : checkers) {
    threads.emplace_back([&] {
      while (!done) {
        const auto given = tasks(checker);
        EXPECT_TRUE(answer(checker, given, true));
        std::this_thread::yield();
      }
    });
  }
  threads.emplace_back([&] {  // moves revisions, as ownership does
    const auto to = contract::holder("w");
    while (!done) {
      std::vector<ProxyId> ids;
      const auto ownable = pool().ownable(UpstreamId("a"), Deadline{});
      for (const auto& row : *ownable) {
        if (row.proxy.ownership == domain::Ownership::Unowned) ids.push_back(row.proxy.id);
      }
      EXPECT_TRUE(pool().assign(to, ids, Epoch(1), contract::kLease, Deadline{}));
      std::this_thread::yield();
    }
  });
  const auto available = [&] { return inventory("a").in_state(ProxyState::Available); };
  for (int turn = 0; turn < 100'000 && available() < kProxies; ++turn) {
    step();
    std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(available(), kProxies);
  EXPECT_EQ(service_->counters().in_flight, 0U);
  EXPECT_EQ(service_->counters().passed, kProxies);
}

}  // namespace
}  // namespace proxypool::controller
