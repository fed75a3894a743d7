// The life cycle: the table (CT-20, rulings C2–C6, C20) and what time brings.
#include "proxypool/domain/proxy/state.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "proxypool/domain/proxy/due.hpp"
#include "unit/domain/lifecycle/builders.hpp"

namespace proxypool::domain {
namespace {

using build::at;
using S = ProxyState;
using E = ProxyEvent;

ProxyState state_at(std::size_t i) {
  return static_cast<ProxyState>(i);
}
ProxyEvent event_at(std::size_t i) {
  return static_cast<ProxyEvent>(i);
}

// Written from the specification, independently of the table in the header.
std::map<std::pair<S, E>, S> specified() {
  std::map<std::pair<S, E>, S> edges;
  const auto add = [&](S from, S to, std::initializer_list<E> events) {
    for (const E event : events) edges[{from, event}] = to;
  };
  add(S::Fetched, S::Checking, {E::CheckStarted});
  add(S::Fetched, S::Draining, {E::UpstreamDisabled, E::OperatorDrain});
  add(S::Fetched, S::Expired, {E::HardExpiry});
  add(S::Fetched, S::Removed, {E::OperatorRemove});
  add(S::Checking, S::Available, {E::BasicPassed});
  add(S::Checking, S::Unhealthy, {E::CheckExhausted});
  add(S::Checking, S::Draining, {E::UpstreamDisabled, E::OperatorDrain});
  add(S::Checking, S::Expired, {E::HardExpiry});
  add(S::Checking, S::Removed, {E::OperatorRemove});
  add(S::Available, S::Suspect, {E::MeaningfulFailure});
  add(S::Available, S::Extracted, {E::Extracted});
  add(S::Suspect, S::Available, {E::RecheckPassed});
  add(S::Suspect, S::Unhealthy, {E::ConsecutiveFailures});
  for (const S serving : {S::Available, S::Suspect}) {
    add(serving, S::Draining,
        {E::MarginReached, E::UpstreamDisabled, E::OperatorDrain, E::OperatorRemove});
    add(serving, S::Expired, {E::HardExpiry});
  }
  add(S::Unhealthy, S::Removed, {E::RetentionOver, E::OperatorRemove});
  add(S::Unhealthy, S::Expired, {E::HardExpiry});
  add(S::Draining, S::Expired, {E::DrainedIdlePastMargin, E::HardExpiry});
  add(S::Draining, S::Checking, {E::UpstreamEnabled});
  add(S::Draining, S::Removed, {E::DrainedIdleAfterRemove});
  add(S::Extracted, S::Expired, {E::HardExpiry});
  add(S::Extracted, S::Removed, {E::OperatorReset});
  add(S::Expired, S::Removed, {E::CountersZero});
  return edges;
}

TEST(LifeCycle, EveryStateWithEveryEventDoesWhatTheSpecificationSaysCT20) {
  const auto edges = specified();
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    for (std::size_t e = 0; e < kProxyEvents; ++e) {
      const auto wanted = edges.find({state_at(s), event_at(e)});
      const auto got = transition(state_at(s), event_at(e));
      const std::string where(std::string(to_string(state_at(s))) + " on " +
                              std::string(to_string(event_at(e))));
      if (wanted == edges.end()) {
        EXPECT_FALSE(got.has_value()) << where;
      } else {
        ASSERT_TRUE(got.has_value()) << where;
        EXPECT_EQ(*got, wanted->second) << where;
      }
    }
  }
  EXPECT_EQ(kLifeCycle.size(), edges.size());
}

TEST(LifeCycle, NoEdgeStandsTwiceInTheTable) {
  std::set<std::pair<S, E>> seen;
  for (const Edge& edge : kLifeCycle) {
    EXPECT_TRUE(seen.insert({edge.from, edge.event}).second)
        << to_string(edge.from) << " on " << to_string(edge.event);
  }
}

TEST(LifeCycle, EveryNonFinalStateHasAnExpiryEdgeC4AndRemovedIsFinal) {
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    if (state_at(s) == S::Expired || state_at(s) == S::Removed) continue;
    EXPECT_EQ(transition(state_at(s), E::HardExpiry), S::Expired) << to_string(state_at(s));
  }
  for (std::size_t e = 0; e < kProxyEvents; ++e) {
    EXPECT_FALSE(transition(S::Removed, event_at(e)).has_value());
  }
}

TEST(LifeCycle, OnlyAvailableProxiesCanBeExtractedC6) {
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    EXPECT_EQ(transition(state_at(s), E::Extracted).has_value(), state_at(s) == S::Available);
  }
}

TEST(LifeCycle, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (std::size_t e = 0; e < kProxyEvents; ++e) names.insert(to_string(event_at(e)));
  for (std::size_t s = 0; s < kProxyStates; ++s) names.insert(to_string(state_at(s)));
  EXPECT_EQ(names.size(), kProxyEvents + kProxyStates - 1);  // "extracted" is both
}

TEST(LifeCycle, AStrongerReasonToDrainReplacesAWeakerOne) {
  EXPECT_EQ(stronger(DrainCause::UpstreamDisabled, DrainCause::Remove), DrainCause::Remove);
  EXPECT_EQ(stronger(DrainCause::Operator, DrainCause::MarginReached), DrainCause::Operator);
  std::set<std::string_view> names;
  for (std::size_t e = 0; e < kProxyEvents; ++e) {
    const auto cause = drain_cause(event_at(e));
    const bool drains = transition(S::Available, event_at(e)) == S::Draining;
    EXPECT_EQ(cause.has_value(), drains) << to_string(event_at(e));
    if (cause) names.insert(to_string(*cause));
  }
  EXPECT_EQ(names.size(), 4U);
}

LifeFacts facts(S state) {
  LifeFacts f;
  f.state = state;
  f.expires_at = at(100);
  f.usable_until = at(90);
  return f;
}
constexpr milliseconds kRetention = seconds(60);

TEST(Due, EveryStateExpiresAtTheHardEndButTheFinalOnesC4) {
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    LifeFacts f = facts(state_at(s));
    const auto due = due_event(f, kRetention, at(100));
    if (f.state == S::Removed || f.state == S::Expired) {
      EXPECT_FALSE(due.has_value());
    } else {
      EXPECT_EQ(due, E::HardExpiry) << to_string(f.state);
    }
  }
}

TEST(Due, AnEventThatIsDueIsAlwaysAnEdgeOfTheTable) {
  SplitMix64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    LifeFacts f;
    f.state = state_at(random.below(kProxyStates));
    if (random.below(4) != 0) {
      f.expires_at = at(static_cast<std::int64_t>(random.below(100)));
      f.usable_until = *f.expires_at - seconds(random.below(20));
    }
    if (random.below(2) != 0) f.unhealthy_since = at(static_cast<std::int64_t>(random.below(50)));
    if (random.below(2) != 0) f.drain_cause = static_cast<DrainCause>(random.below(4));
    f.idle = random.below(2) != 0;
    f.upstream_enabled = random.below(2) != 0;
    const auto now = at(static_cast<std::int64_t>(random.below(120)));
    if (const auto due = due_event(f, kRetention, now)) {
      EXPECT_TRUE(transition(f.state, *due).has_value())
          << to_string(f.state) << " on " << to_string(*due);
    }
    const auto next = next_due(f, kRetention, now);
    EXPECT_TRUE(!next || *next > now);
  }
}

TEST(Due, ServingProxiesDrainAtTheMarginOrWithTheirUpstream) {
  for (const S state : {S::Available, S::Suspect}) {
    LifeFacts f = facts(state);
    EXPECT_FALSE(due_event(f, kRetention, at(89)).has_value());
    EXPECT_EQ(due_event(f, kRetention, at(90)), E::MarginReached);
    f.upstream_enabled = false;
    EXPECT_EQ(due_event(f, kRetention, at(1)), E::UpstreamDisabled);
  }
  LifeFacts f = facts(S::Checking);
  EXPECT_FALSE(due_event(f, kRetention, at(95)).has_value());
  f.upstream_enabled = false;
  EXPECT_EQ(due_event(f, kRetention, at(1)), E::UpstreamDisabled);
}

TEST(Due, ADrainingProxyLeavesWhenItIsIdleAndItsReasonAllowsIt) {
  LifeFacts f = facts(S::Draining);
  f.drain_cause = DrainCause::Operator;
  f.idle = true;
  EXPECT_FALSE(due_event(f, kRetention, at(50)).has_value());
  EXPECT_EQ(due_event(f, kRetention, at(90)), E::DrainedIdlePastMargin);
  f.drain_cause = DrainCause::Remove;
  EXPECT_EQ(due_event(f, kRetention, at(50)), E::DrainedIdleAfterRemove);
  f.idle = false;
  EXPECT_FALSE(due_event(f, kRetention, at(95)).has_value());
}

TEST(Due, OnlyADrainForADisabledUpstreamIsTakenBackBeforeTheMargin) {
  LifeFacts f = facts(S::Draining);
  f.drain_cause = DrainCause::UpstreamDisabled;
  EXPECT_EQ(due_event(f, kRetention, at(50)), E::UpstreamEnabled);
  EXPECT_FALSE(due_event(f, kRetention, at(91)).has_value());
  f.upstream_enabled = false;
  EXPECT_FALSE(due_event(f, kRetention, at(50)).has_value());
  f.upstream_enabled = true;
  f.drain_cause = DrainCause::Operator;
  EXPECT_FALSE(due_event(f, kRetention, at(50)).has_value());
}

TEST(Due, AnUnhealthyProxyStaysForItsRetentionC5) {
  LifeFacts f = facts(S::Unhealthy);
  f.unhealthy_since = at(10);
  EXPECT_FALSE(due_event(f, kRetention, at(69)).has_value());
  EXPECT_EQ(next_due(f, kRetention, at(20)), at(70));
  EXPECT_EQ(due_event(f, kRetention, at(70)), E::RetentionOver);
}

TEST(Due, AnExpiredProxyIsRemovedOnlyWhenItIsKnownToBeIdle) {
  LifeFacts f = facts(S::Expired);
  EXPECT_FALSE(due_event(f, kRetention, at(500)).has_value());
  EXPECT_FALSE(next_due(f, kRetention, at(1)).has_value());
  f.idle = true;
  EXPECT_EQ(due_event(f, kRetention, at(500)), E::CountersZero);
}

TEST(Due, TheNextMomentIsTheMarginForServingProxiesAndTheEndForOthers) {
  EXPECT_EQ(next_due(facts(S::Available), kRetention, at(1)), at(90));
  EXPECT_EQ(next_due(facts(S::Available), kRetention, at(90)), at(100));
  EXPECT_EQ(next_due(facts(S::Fetched), kRetention, at(1)), at(100));
  EXPECT_FALSE(next_due(facts(S::Removed), kRetention, at(1)).has_value());
  LifeFacts listed;
  listed.state = S::Available;
  EXPECT_FALSE(next_due(listed, kRetention, at(1)).has_value());
}

TEST(Usable, AProxyPastItsMarginTakesNoNewWorkWhateverItsStateC4) {
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    Proxy p = build::proxy(1, state_at(s));
    EXPECT_EQ(usable(p, at(1)), p.state == S::Available || p.state == S::Suspect);
    p.usable_until = at(10);
    EXPECT_FALSE(usable(p, at(10)));
  }
}

}  // namespace
}  // namespace proxypool::domain
