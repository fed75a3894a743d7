// What time brings: the event that is due for a proxy now, and the moment of the next one.
//
// The reconciler asks for every proxy whose moment has come; it needs no other rule about time.
// "Idle" means that both counters are known to be zero: unknown counts are never idle.
//
// Thread rule: pure functions.
#pragma once

#include <optional>

#include "proxypool/base/time.hpp"
#include "proxypool/domain/proxy/proxy.hpp"
#include "proxypool/domain/proxy/state.hpp"

namespace proxypool::domain {

struct LifeFacts {
  ProxyState state = ProxyState::Fetched;
  std::optional<StoreTime> expires_at;
  std::optional<StoreTime> usable_until;
  std::optional<StoreTime> unhealthy_since;
  std::optional<DrainCause> drain_cause;
  bool idle = false;
  bool upstream_enabled = true;
};

namespace detail {
constexpr bool reached(const std::optional<StoreTime>& at, StoreTime now) noexcept {
  return at && now >= *at;
}
}  // namespace detail

// At most one event; ask again after applying it. `retention` is check.unhealthyRetention.
constexpr std::optional<ProxyEvent> due_event(const LifeFacts& facts, milliseconds retention,
                                              StoreTime now) noexcept {
  using detail::reached;
  if (facts.state == ProxyState::Removed) return std::nullopt;
  if (facts.state == ProxyState::Expired) {
    if (facts.idle) return ProxyEvent::CountersZero;
    return std::nullopt;
  }
  if (reached(facts.expires_at, now)) return ProxyEvent::HardExpiry;
  const bool past_margin = reached(facts.usable_until, now);
  switch (facts.state) {
    case ProxyState::Available:
    case ProxyState::Suspect:
      if (past_margin) return ProxyEvent::MarginReached;
      if (!facts.upstream_enabled) return ProxyEvent::UpstreamDisabled;
      break;
    case ProxyState::Fetched:
    case ProxyState::Checking:
      if (!facts.upstream_enabled) return ProxyEvent::UpstreamDisabled;
      break;
    case ProxyState::Unhealthy:
      if (facts.unhealthy_since && now >= *facts.unhealthy_since + retention) {
        return ProxyEvent::RetentionOver;
      }
      break;
    case ProxyState::Draining:
      if (facts.idle && facts.drain_cause == DrainCause::Remove) {
        return ProxyEvent::DrainedIdleAfterRemove;
      }
      if (facts.idle && past_margin) return ProxyEvent::DrainedIdlePastMargin;
      if (!past_margin && facts.upstream_enabled &&
          facts.drain_cause == DrainCause::UpstreamDisabled) {
        return ProxyEvent::UpstreamEnabled;
      }
      break;
    default:
      break;
  }
  return std::nullopt;
}

// The earliest moment after `now` at which time alone makes an event due; nothing when only a
// change of the other facts can.
constexpr std::optional<StoreTime> next_due(const LifeFacts& facts, milliseconds retention,
                                            StoreTime now) noexcept {
  std::optional<StoreTime> next;
  const auto consider = [&](const std::optional<StoreTime>& at) {
    if (at && *at > now && (!next || *at < *next)) next = at;
  };
  if (facts.state == ProxyState::Removed || facts.state == ProxyState::Expired) return next;
  consider(facts.expires_at);
  if (facts.state == ProxyState::Available || facts.state == ProxyState::Suspect ||
      facts.state == ProxyState::Draining) {
    consider(facts.usable_until);
  }
  if (facts.state == ProxyState::Unhealthy && facts.unhealthy_since) {
    consider(*facts.unhealthy_since + retention);
  }
  return next;
}

}  // namespace proxypool::domain
