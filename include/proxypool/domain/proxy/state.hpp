// The life cycle of a proxy: the one table of its states and the events that move it (CT-20).
//
// An edge that is not in the table is refused; nobody moves a proxy but through `transition`. The
// table says which edges exist, not when they are due: time-driven events come from due.hpp,
// health from the reducer, extraction from its own rule. Ownership is another fact (ruling C2) and
// does not appear here.
//
// Thread rule: pure functions.
// Invariant:   Removed is final; every other state but Expired leads to Expired at the hard expiry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

enum class ProxyEvent : std::uint8_t {
  CheckStarted,
  BasicPassed,
  CheckExhausted,
  MeaningfulFailure,  // the first one
  RecheckPassed,
  ConsecutiveFailures,  // as many as the policy allows
  MarginReached,        // `usable_until` has passed
  UpstreamDisabled,
  UpstreamEnabled,  // again, before the margin; see DrainCause
  OperatorDrain,
  OperatorRemove,
  Extracted,
  OperatorReset,           // of an extracted proxy without a vendor expiry (C20)
  HardExpiry,              // `expires_at` has passed
  RetentionOver,           // check.unhealthyRetention has passed (C5)
  DrainedIdlePastMargin,   // both counters known to be zero, `usable_until` passed
  DrainedIdleAfterRemove,  // both counters known to be zero, an operator asked for removal
  CountersZero,            // both counters known to be zero
};
inline constexpr std::size_t kProxyEvents = 18;

constexpr std::string_view to_string(ProxyEvent event) noexcept {
  constexpr std::string_view kNames[kProxyEvents] = {"check_started",
                                                     "basic_passed",
                                                     "check_exhausted",
                                                     "meaningful_failure",
                                                     "recheck_passed",
                                                     "consecutive_failures",
                                                     "margin_reached",
                                                     "upstream_disabled",
                                                     "upstream_enabled",
                                                     "operator_drain",
                                                     "operator_remove",
                                                     "extracted",
                                                     "operator_reset",
                                                     "hard_expiry",
                                                     "retention_over",
                                                     "drained_idle_past_margin",
                                                     "drained_idle_after_remove",
                                                     "counters_zero"};
  return kNames[static_cast<std::size_t>(event)];
}

struct Edge {
  ProxyState from;
  ProxyEvent event;
  ProxyState to;
};

// Written as people read it; transition() looks it up in a dense form made from it.
inline constexpr auto kLifeCycle = std::to_array<Edge>({
    {ProxyState::Fetched, ProxyEvent::CheckStarted, ProxyState::Checking},
    {ProxyState::Fetched, ProxyEvent::UpstreamDisabled, ProxyState::Draining},
    {ProxyState::Fetched, ProxyEvent::OperatorDrain, ProxyState::Draining},
    {ProxyState::Fetched, ProxyEvent::HardExpiry, ProxyState::Expired},
    {ProxyState::Fetched, ProxyEvent::OperatorRemove, ProxyState::Removed},

    {ProxyState::Checking, ProxyEvent::BasicPassed, ProxyState::Available},
    {ProxyState::Checking, ProxyEvent::CheckExhausted, ProxyState::Unhealthy},
    {ProxyState::Checking, ProxyEvent::UpstreamDisabled, ProxyState::Draining},
    {ProxyState::Checking, ProxyEvent::OperatorDrain, ProxyState::Draining},
    {ProxyState::Checking, ProxyEvent::HardExpiry, ProxyState::Expired},
    {ProxyState::Checking, ProxyEvent::OperatorRemove, ProxyState::Removed},

    {ProxyState::Available, ProxyEvent::MeaningfulFailure, ProxyState::Suspect},
    {ProxyState::Available, ProxyEvent::MarginReached, ProxyState::Draining},
    {ProxyState::Available, ProxyEvent::UpstreamDisabled, ProxyState::Draining},
    {ProxyState::Available, ProxyEvent::OperatorDrain, ProxyState::Draining},
    {ProxyState::Available, ProxyEvent::OperatorRemove, ProxyState::Draining},
    {ProxyState::Available, ProxyEvent::Extracted, ProxyState::Extracted},
    {ProxyState::Available, ProxyEvent::HardExpiry, ProxyState::Expired},

    {ProxyState::Suspect, ProxyEvent::RecheckPassed, ProxyState::Available},
    {ProxyState::Suspect, ProxyEvent::ConsecutiveFailures, ProxyState::Unhealthy},
    {ProxyState::Suspect, ProxyEvent::MarginReached, ProxyState::Draining},
    {ProxyState::Suspect, ProxyEvent::UpstreamDisabled, ProxyState::Draining},
    {ProxyState::Suspect, ProxyEvent::OperatorDrain, ProxyState::Draining},
    {ProxyState::Suspect, ProxyEvent::OperatorRemove, ProxyState::Draining},
    {ProxyState::Suspect, ProxyEvent::HardExpiry, ProxyState::Expired},

    {ProxyState::Unhealthy, ProxyEvent::RetentionOver, ProxyState::Removed},
    {ProxyState::Unhealthy, ProxyEvent::OperatorRemove, ProxyState::Removed},
    {ProxyState::Unhealthy, ProxyEvent::HardExpiry, ProxyState::Expired},

    {ProxyState::Draining, ProxyEvent::DrainedIdlePastMargin, ProxyState::Expired},
    {ProxyState::Draining, ProxyEvent::HardExpiry, ProxyState::Expired},
    {ProxyState::Draining, ProxyEvent::UpstreamEnabled, ProxyState::Checking},
    {ProxyState::Draining, ProxyEvent::DrainedIdleAfterRemove, ProxyState::Removed},

    {ProxyState::Extracted, ProxyEvent::HardExpiry, ProxyState::Expired},
    {ProxyState::Extracted, ProxyEvent::OperatorReset, ProxyState::Removed},

    {ProxyState::Expired, ProxyEvent::CountersZero, ProxyState::Removed},
});

namespace detail {
// state × event → state; kProxyStates stands for "refused".
using LifeCycleMatrix = std::array<std::array<std::uint8_t, kProxyEvents>, kProxyStates>;

constexpr LifeCycleMatrix life_cycle_matrix() noexcept {
  LifeCycleMatrix matrix{};
  for (auto& row : matrix) row.fill(kProxyStates);
  for (const Edge& edge : kLifeCycle) {
    matrix[static_cast<std::size_t>(edge.from)][static_cast<std::size_t>(edge.event)] =
        static_cast<std::uint8_t>(edge.to);
  }
  return matrix;
}
inline constexpr LifeCycleMatrix kLifeCycleMatrix = life_cycle_matrix();
}  // namespace detail

// Where the event leads, or nothing when the table has no such edge.
constexpr std::optional<ProxyState> transition(ProxyState from, ProxyEvent event) noexcept {
  const auto to =
      detail::kLifeCycleMatrix[static_cast<std::size_t>(from)][static_cast<std::size_t>(event)];
  if (to == kProxyStates) return std::nullopt;
  return static_cast<ProxyState>(to);
}

// Why a proxy is draining, from the weakest reason to the strongest. Only a drain for a disabled
// upstream can be taken back, and only a removal ends before the margin.
enum class DrainCause : std::uint8_t { UpstreamDisabled, MarginReached, Operator, Remove };

constexpr std::string_view to_string(DrainCause cause) noexcept {
  constexpr std::string_view kNames[] = {"upstream_disabled", "margin_reached", "operator",
                                         "remove"};
  return kNames[static_cast<std::size_t>(cause)];
}

// The reason that an event gives; nothing for events that do not drain.
constexpr std::optional<DrainCause> drain_cause(ProxyEvent event) noexcept {
  switch (event) {
    case ProxyEvent::UpstreamDisabled:
      return DrainCause::UpstreamDisabled;
    case ProxyEvent::MarginReached:
      return DrainCause::MarginReached;
    case ProxyEvent::OperatorDrain:
      return DrainCause::Operator;
    case ProxyEvent::OperatorRemove:
      return DrainCause::Remove;
    default:
      return std::nullopt;
  }
}

// A second reason on a draining proxy moves no state but may make the reason stronger.
constexpr DrainCause stronger(DrainCause a, DrainCause b) noexcept {
  return a < b ? b : a;
}

}  // namespace proxypool::domain
