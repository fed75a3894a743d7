// The reducer (CT-32, rulings "Health defaults") and the planning of probes (CT-30).
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "proxypool/domain/health/planning.hpp"
#include "proxypool/domain/health/policy.hpp"
#include "proxypool/domain/health/reducer.hpp"
#include "unit/domain/lifecycle/builders.hpp"

namespace proxypool::domain {
namespace {

using build::at;
using S = ProxyState;
using E = ProxyEvent;

// One proxy, its record, and a clock that the test moves.
class Patient {
 public:
  explicit Patient(S initial, HealthPolicy rules = {}) : state(initial), policy(rules) {
    record = fresh_record(at(0));
  }

  Reduction take(const Reduction& r) {
    S replayed = state;
    for (std::size_t i = 0; i < r.event_count; ++i) {
      const auto to = transition(replayed, r.events[i]);
      EXPECT_TRUE(to.has_value()) << to_string(replayed) << " on " << to_string(r.events[i]);
      if (to) replayed = *to;
    }
    EXPECT_EQ(replayed, r.state);
    state = r.state;
    record = r.record;
    return r;
  }
  Reduction begin() { return take(begin_check(state, record, ++task, policy, now)); }
  Reduction answer(bool passed, std::uint64_t task_id, CheckLevel level = CheckLevel::Basic) {
    Observation o;
    o.task_id = task_id;
    o.proxy = ProxyId(7);
    o.level = level;
    o.passed = passed;
    o.latency = milliseconds(120);
    return take(reduce(state, record, o, policy, now));
  }
  // A whole probe.
  Reduction probe(bool passed) {
    begin();
    now += milliseconds(200);
    return answer(passed, task);
  }
  Reduction traffic(bool passed, StoreTime happened_at) {
    TrafficOutcome o;
    o.proxy = ProxyId(7);
    o.failure = passed ? Failure{} : Failure{Phase::Dial, FailureKind::Refused};
    o.status = passed ? 200 : 0;
    return take(reduce(state, record, o, policy, happened_at));
  }

  S state;
  HealthPolicy policy;
  HealthRecord record;
  StoreTime now = at(0);
  std::uint64_t task = 0;
};

TEST(Reducer, ANewProxyServesAfterItsFirstPassedProbe) {
  Patient p(S::Fetched);
  EXPECT_EQ(p.begin().state, S::Checking);
  const auto passed = p.answer(true, p.task);
  EXPECT_EQ(passed.events[0], E::BasicPassed);
  EXPECT_EQ(p.state, S::Available);
  EXPECT_EQ(p.record.latency, milliseconds(120));
  EXPECT_EQ(p.record.last_success_at, p.now);
}

TEST(Reducer, ANewProxyThatFailsThreeProbesIsUnhealthy) {
  Patient p(S::Fetched);
  p.probe(false);
  p.probe(false);
  EXPECT_EQ(p.state, S::Checking);
  EXPECT_EQ(p.probe(false).events[0], E::CheckExhausted);
  EXPECT_EQ(p.state, S::Unhealthy);
}

TEST(Reducer, TheFirstFailureMakesASuspectAndTheThirdAnUnhealthyProxy) {
  Patient p(S::Available);
  EXPECT_EQ(p.probe(false).events[0], E::MeaningfulFailure);
  EXPECT_EQ(p.state, S::Suspect);
  p.probe(false);
  EXPECT_EQ(p.state, S::Suspect);
  EXPECT_EQ(p.probe(false).events[0], E::ConsecutiveFailures);
  EXPECT_EQ(p.state, S::Unhealthy);
}

TEST(Reducer, APassedRecheckClearsASuspect) {
  Patient p(S::Available);
  p.probe(false);
  p.probe(false);
  EXPECT_EQ(p.probe(true).events[0], E::RecheckPassed);
  EXPECT_EQ(p.state, S::Available);
  p.probe(false);
  p.probe(false);
  EXPECT_EQ(p.state, S::Suspect) << "failures are counted in a row";
}

TEST(Reducer, ThresholdsAreThoseOfThePolicy) {
  HealthPolicy strict;
  strict.failure_threshold = 1;
  strict.success_threshold = 2;
  Patient p(S::Available, strict);
  const auto failed = p.probe(false);
  EXPECT_EQ(failed.event_count, 2U);
  EXPECT_EQ(p.state, S::Unhealthy);
  Patient q(S::Fetched, strict);
  q.probe(true);
  EXPECT_EQ(q.state, S::Checking);
  q.probe(true);
  EXPECT_EQ(q.state, S::Available);
}

TEST(Reducer, AnAnswerCountsOnceAndOnlyForTheProbeThatIsAwaited) {
  Patient p(S::Available);
  p.begin();
  const auto first = p.task;
  EXPECT_FALSE(p.answer(false, first).ignored);
  const HealthRecord after = p.record;
  EXPECT_TRUE(p.answer(false, first).ignored) << "double";
  EXPECT_TRUE(p.answer(true, first).ignored) << "double and contradictory";
  EXPECT_TRUE(p.answer(false, 0).ignored);
  EXPECT_EQ(p.record, after);
  p.begin();
  EXPECT_TRUE(p.answer(false, first).ignored) << "of an older probe";
  EXPECT_EQ(p.record.open_task, p.task);
}

TEST(Reducer, AnAnswerAfterTheTasksLeaseIsTooLateAndALostProbeIsNobodysFault) {
  Patient p(S::Available);
  p.begin();
  p.now += p.policy.task_lease;
  EXPECT_TRUE(p.answer(false, p.task).ignored);
  EXPECT_TRUE(expire_check(p.record, p.now));
  EXPECT_FALSE(expire_check(p.record, p.now));
  EXPECT_EQ(p.record.next_check_at, p.now);
  EXPECT_EQ(p.record.failures, 0U);
  p.begin();
  EXPECT_FALSE(expire_check(p.record, p.now));
}

TEST(Reducer, ProxiesThatAreLeavingAreNotMovedByTheirLastProbe) {
  for (const S state : {S::Unhealthy, S::Draining, S::Extracted, S::Expired, S::Removed}) {
    Patient p(S::Available);
    p.begin();
    p.state = state;
    EXPECT_TRUE(p.answer(true, p.task).ignored);
    EXPECT_EQ(p.state, state);
    EXPECT_EQ(p.record.open_task, 0U);
    EXPECT_TRUE(p.traffic(false, p.now).ignored);
    EXPECT_FALSE(checkable(state));
  }
}

TEST(Reducer, OtherLevelsMoveNothingCT31) {
  Patient p(S::Available);
  p.begin();
  EXPECT_TRUE(p.answer(false, p.task, CheckLevel::Target).ignored);
  EXPECT_TRUE(p.answer(false, p.task, CheckLevel::Egress).ignored);
  EXPECT_EQ(p.state, S::Available);
}

TEST(Reducer, TrafficCountsWhereAProxyServesGW41) {
  Patient p(S::Available);
  EXPECT_EQ(p.traffic(false, at(1)).events[0], E::MeaningfulFailure);
  EXPECT_EQ(p.traffic(true, at(2)).events[0], E::RecheckPassed);
  for (const S state : {S::Fetched, S::Checking}) {
    Patient fresh(state);
    EXPECT_TRUE(fresh.traffic(true, at(1)).ignored);
  }
  TrafficOutcome neutral;
  neutral.status = 503;
  EXPECT_TRUE(reduce(S::Available, p.record, neutral, p.policy, at(9)).ignored);
}

TEST(Reducer, RequestsThatFailTogetherAreOneFact) {
  Patient p(S::Available);
  for (int i = 0; i < 50; ++i) p.traffic(false, at(1) + milliseconds(i));
  EXPECT_EQ(p.state, S::Suspect);
  EXPECT_EQ(p.record.failures, 1U);
  p.traffic(false, at(2));
  p.traffic(false, at(3));
  EXPECT_EQ(p.state, S::Unhealthy);
}

TEST(Reducer, EvidenceOlderThanTheNewestSaysNothing) {
  Patient p(S::Available);
  p.traffic(true, at(10));
  EXPECT_TRUE(p.traffic(false, at(9)).ignored);
  p.traffic(false, at(11));
  EXPECT_TRUE(p.traffic(true, at(10)).ignored);
  EXPECT_EQ(p.state, S::Suspect);
}

TEST(Reducer, ASuccessOfTrafficMakesTheNextProbeWait) {
  Patient p(S::Available);
  p.traffic(true, at(100));
  EXPECT_GE(p.record.next_check_at, at(124));
  EXPECT_LE(p.record.next_check_at, at(136));
  p.record.next_check_at = at(500);
  p.traffic(true, at(100));
  EXPECT_EQ(p.record.next_check_at, at(500)) << "good news only puts it off";
  p.traffic(false, at(101));
  EXPECT_LE(p.record.next_check_at, at(107)) << "doubt brings it forward";
}

TEST(Reducer, ProbesOfAProxyComeAtTheIntervalPlusMinusJitter) {
  Patient p(S::Available);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) {
    p.now = p.record.next_check_at;
    p.probe(true);
    const auto wait = p.record.next_check_at - p.now;
    EXPECT_GE(wait, seconds(24));
    EXPECT_LE(wait, seconds(36));
    seen.insert(wait.count());
  }
  EXPECT_GT(seen.size(), 150U);
  HealthPolicy still;
  still.jitter_percent = 0;
  Patient q(S::Available, still);
  q.probe(true);
  EXPECT_EQ(q.record.next_check_at, q.now + seconds(30));
}

// Random sequences of everything at once, answers late, double, swapped and contradictory. take()
// proves that no event is outside the table; the rest is proved at the end of each sequence.
TEST(Reducer, NoSequenceLeavesTheTableAndEveryOneConvergesCT32) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SplitMix64 random(seed);
    HealthPolicy policy;
    policy.failure_threshold = static_cast<std::uint32_t>(1 + random.below(4));
    policy.success_threshold = static_cast<std::uint32_t>(1 + random.below(3));
    Patient p(S::Fetched, policy);
    for (int step = 0; step < 120; ++step) {
      p.now += milliseconds(static_cast<std::int64_t>(random.below(4'000)));
      switch (random.below(5)) {
        case 0:
          if (checkable(p.state)) p.begin();
          break;
        case 1: {
          const auto task = p.task - std::min(p.task, random.below(3));
          const bool passed = random.below(3) != 0;
          p.answer(passed, task);
          const auto state = p.state;
          const auto record = p.record;
          EXPECT_TRUE(p.answer(random.below(2) != 0, task).ignored);
          EXPECT_EQ(p.state, state);
          EXPECT_EQ(p.record, record);
          break;
        }
        case 2:
          p.traffic(random.below(3) != 0,
                    p.now - milliseconds(static_cast<std::int64_t>(random.below(3'000))));
          break;
        case 3:
          expire_check(p.record, p.now);
          break;
        default:
          if (random.below(30) == 0 && transition(p.state, E::UpstreamDisabled)) {
            p.state = S::Draining;
          } else if (p.state == S::Draining && random.below(2) == 0) {
            p.state = *transition(p.state, E::UpstreamEnabled);
            p.record = fresh_record(p.now);
          }
      }
      EXPECT_LE(p.record.failures, policy.failure_threshold);
      EXPECT_LE(p.record.successes, policy.success_threshold);
      EXPECT_TRUE(p.state != S::Available || p.record.failures == 0);
    }
    if (!checkable(p.state)) continue;
    const bool well = random.below(2) != 0;
    for (std::uint32_t i = 0; i < 5; ++i) {
      if (checkable(p.state)) p.probe(well);
    }
    EXPECT_EQ(p.state, well ? S::Available : S::Unhealthy);
  }
}

TEST(Planning, NewProxiesComeFirstThenSuspectsThenTheRestByTheirWaitCT30) {
  const std::vector<CheckCandidate> candidates = {
      {ProxyId(1), CheckPriority::Routine, at(0)}, {ProxyId(2), CheckPriority::Suspect, at(9)},
      {ProxyId(3), CheckPriority::New, at(9)},     {ProxyId(4), CheckPriority::Routine, at(5)},
      {ProxyId(5), CheckPriority::New, at(8)},
  };
  const auto ids = [&](std::size_t room) {
    std::vector<std::uint64_t> list;
    for (const auto& c : select_checks(candidates, room)) list.push_back(c.proxy.value());
    return list;
  };
  EXPECT_EQ(ids(99), (std::vector<std::uint64_t>{5, 3, 2, 1, 4}));
  EXPECT_EQ(ids(2), (std::vector<std::uint64_t>{5, 3}));
  EXPECT_TRUE(ids(0).empty());
}

TEST(Planning, ABackLogSlowsOnlyRoutineProbesCT30) {
  EXPECT_EQ(routine_stretch(0, 100), 1U);
  EXPECT_EQ(routine_stretch(100, 100), 1U);
  EXPECT_EQ(routine_stretch(101, 100), 2U);
  EXPECT_EQ(routine_stretch(100'000, 100), 10U);
  EXPECT_EQ(routine_stretch(5, 0), 10U);
  HealthRecord record = fresh_record(at(0));
  const HealthPolicy policy;
  const auto due = [&](S state, std::uint32_t stretch, StoreTime now) {
    return check_candidate(ProxyId(1), state, record, policy, stretch, now).has_value();
  };
  EXPECT_TRUE(due(S::Available, 1, at(0)));
  EXPECT_FALSE(due(S::Available, 3, at(59)));
  EXPECT_TRUE(due(S::Available, 3, at(60)));
  EXPECT_TRUE(due(S::Suspect, 10, at(0)));
  EXPECT_TRUE(due(S::Fetched, 10, at(0)));
}

TEST(Planning, OnlyProxiesThatAreDueAndNotBeingProbedAreCandidates) {
  HealthRecord record = fresh_record(at(10));
  const HealthPolicy policy;
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    const auto state = static_cast<S>(s);
    EXPECT_EQ(check_candidate(ProxyId(1), state, record, policy, 1, at(10)).has_value(),
              checkable(state));
    EXPECT_EQ(check_priority(state).has_value(), checkable(state));
  }
  EXPECT_FALSE(check_candidate(ProxyId(1), S::Available, record, policy, 1, at(9)).has_value());
  record.open_task = 5;
  EXPECT_FALSE(check_candidate(ProxyId(1), S::Available, record, policy, 1, at(10)).has_value());
}

}  // namespace
}  // namespace proxypool::domain
