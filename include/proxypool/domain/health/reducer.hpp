// The reducer: from what was observed to what is decided (CT-32).
//
// A pure function of (state, record, evidence, policy, time). It returns the new record and the
// events of the life-cycle table that follow; it never names a state that the table does not allow.
// Every probe has a task id and counts once, while it is awaited; an answer that comes late, twice,
// or for an older task says nothing. Evidence of traffic that is older than the newest evidence
// says nothing either.
//
// Thread rule: pure functions on plain values.
// Invariant:   applying the events in order through transition() gives `state` of the Reduction.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/domain/health/policy.hpp"
#include "proxypool/domain/proxy/state.hpp"
#include "proxypool/domain/traffic/outcome.hpp"

namespace proxypool::domain {

// What the pool keeps for each proxy beside its state.
struct HealthRecord {
  std::uint32_t failures = 0;   // in a row
  std::uint32_t successes = 0;  // in a row
  std::uint64_t turn = 0;       // decided probes and outcomes; moves the jitter
  std::uint64_t open_task = 0;  // the probe whose answer is awaited; 0: none
  StoreTime task_until{};
  StoreTime next_check_at{};
  std::optional<StoreTime> last_evidence_at;
  std::optional<StoreTime> last_checked_at;  // a probe was answered
  std::optional<StoreTime> last_success_at;
  std::optional<StoreTime> last_traffic_failure_at;
  milliseconds latency{0};  // of the last successful probe
  friend bool operator==(const HealthRecord&, const HealthRecord&) = default;
};

struct Reduction {
  ProxyState state;
  HealthRecord record;
  std::array<ProxyEvent, 2> events{};
  std::size_t event_count = 0;
  bool ignored = false;  // late, double, or without meaning here

  void move(ProxyEvent event) noexcept {
    const auto to = transition(state, event);
    PP_ASSERT(to.has_value() && event_count < events.size());
    state = *to;
    events[event_count++] = event;
  }
};

// A record for a life, or a part of it, that begins with checks: when a proxy is admitted, and when
// a disabled upstream comes back. The first probe is due at once.
inline HealthRecord fresh_record(StoreTime now) noexcept {
  HealthRecord record;
  record.next_check_at = now;
  return record;
}

// States in which probes make sense. A proxy that is leaving, or that has failed for good, is not
// asked any more.
constexpr bool checkable(ProxyState state) noexcept {
  return state == ProxyState::Fetched || state == ProxyState::Checking ||
         state == ProxyState::Available || state == ProxyState::Suspect;
}

// Hands out a probe. REQUIRES: checkable(state), task_id != 0.
inline Reduction begin_check(ProxyState state, const HealthRecord& record, std::uint64_t task_id,
                             const HealthPolicy& policy, StoreTime now) noexcept {
  PP_ASSERT(checkable(state) && task_id != 0);
  Reduction reduction{state, record};
  reduction.record.open_task = task_id;
  reduction.record.task_until = now + policy.task_lease;
  if (state == ProxyState::Fetched) reduction.move(ProxyEvent::CheckStarted);
  return reduction;
}

// Takes back a probe whose answer did not come: the checker's fault, not the proxy's. Returns
// whether there was one; another is due at once.
inline bool expire_check(HealthRecord& record, StoreTime now) noexcept {
  if (record.open_task == 0 || now < record.task_until) return false;
  record.open_task = 0;
  record.next_check_at = now;
  return true;
}

namespace detail {

inline void schedule(Reduction& reduction, ProxyId proxy, const HealthPolicy& policy,
                     StoreTime from) noexcept {
  HealthRecord& record = reduction.record;
  ++record.turn;
  const bool in_order = reduction.state == ProxyState::Available;
  const auto interval = in_order ? policy.interval : policy.recheck_interval;
  const auto next = from + jittered(interval, policy.jitter_percent, proxy, record.turn);
  // Doubt brings the next probe forward; good news only puts it off.
  record.next_check_at = in_order ? std::max(record.next_check_at, next) : next;
}

inline void succeed(Reduction& reduction, const HealthPolicy& policy) noexcept {
  HealthRecord& record = reduction.record;
  record.failures = 0;
  record.successes += record.successes < policy.success_threshold ? 1U : 0U;
  if (record.successes < policy.success_threshold) return;
  if (reduction.state == ProxyState::Checking) reduction.move(ProxyEvent::BasicPassed);
  if (reduction.state == ProxyState::Suspect) reduction.move(ProxyEvent::RecheckPassed);
}

inline void fail(Reduction& reduction, const HealthPolicy& policy) noexcept {
  HealthRecord& record = reduction.record;
  record.successes = 0;
  ++record.failures;
  if (reduction.state == ProxyState::Available) reduction.move(ProxyEvent::MeaningfulFailure);
  if (record.failures < policy.failure_threshold) return;
  if (reduction.state == ProxyState::Checking) reduction.move(ProxyEvent::CheckExhausted);
  if (reduction.state == ProxyState::Suspect) reduction.move(ProxyEvent::ConsecutiveFailures);
}

inline Reduction ignore(ProxyState state, const HealthRecord& record) noexcept {
  Reduction reduction{state, record};
  reduction.ignored = true;
  return reduction;
}

}  // namespace detail

// A probe's answer, at the moment at which it arrived. Only BASIC moves the proxy; the other levels
// concern a profile, not the proxy (CT-31).
inline Reduction reduce(ProxyState state, const HealthRecord& record,
                        const Observation& observation, const HealthPolicy& policy,
                        StoreTime now) noexcept {
  if (observation.level != CheckLevel::Basic || observation.task_id == 0 ||
      observation.task_id != record.open_task || now >= record.task_until) {
    return detail::ignore(state, record);
  }
  Reduction reduction{state, record};
  reduction.record.open_task = 0;
  if (state == ProxyState::Fetched || !checkable(state)) {  // it moved on while it was probed
    reduction.ignored = true;
    return reduction;
  }
  reduction.record.last_evidence_at = now;
  reduction.record.last_checked_at = now;
  if (observation.passed) {
    reduction.record.last_success_at = now;
    reduction.record.latency = observation.latency;
    detail::succeed(reduction, policy);
    // A probe's own answer decides the next one, whatever was planned.
    reduction.record.next_check_at = now;
  } else {
    detail::fail(reduction, policy);
  }
  detail::schedule(reduction, observation.proxy, policy, now);
  return reduction;
}

// What traffic showed at `happened_at`. New proxies must pass their probe first, so it counts in
// AVAILABLE and SUSPECT only. A success makes the next probe wait: probes burn paid quota.
inline Reduction reduce(ProxyState state, const HealthRecord& record, const TrafficOutcome& outcome,
                        const HealthPolicy& policy, StoreTime happened_at) noexcept {
  const HealthMeaning meaning = meaning_of(outcome);
  const bool serving = state == ProxyState::Available || state == ProxyState::Suspect;
  const bool late = record.last_evidence_at && happened_at < *record.last_evidence_at;
  if (meaning == HealthMeaning::Neutral || !serving || late) return detail::ignore(state, record);
  if (meaning == HealthMeaning::Failure && record.last_traffic_failure_at &&
      happened_at < *record.last_traffic_failure_at + policy.traffic_spacing) {
    return detail::ignore(state, record);
  }
  Reduction reduction{state, record};
  reduction.record.last_evidence_at = happened_at;
  if (meaning == HealthMeaning::Success) {
    reduction.record.last_success_at = happened_at;
    detail::succeed(reduction, policy);
  } else {
    reduction.record.last_traffic_failure_at = happened_at;
    detail::fail(reduction, policy);
  }
  detail::schedule(reduction, outcome.proxy, policy, happened_at);
  return reduction;
}

}  // namespace proxypool::domain
