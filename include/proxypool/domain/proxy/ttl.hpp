// How long a proxy lives: vendor expiry, defaults, maximum, safety margin, renewals (CT-22, C19).
//
// No life is longer than pool.maxTTL from its beginning, whatever the vendor says and however often
// it is renewed; the proxy may begin another one. Lists have no default: an entry without an expiry
// has none, and it ends when its line does.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <optional>

#include "proxypool/base/time.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

struct TtlPolicy {
  std::optional<milliseconds> default_ttl;  // none for lists
  std::optional<milliseconds> max_ttl;
  milliseconds safety_margin{0};  // allocationSafetyMargin
};

struct Life {
  std::optional<StoreTime> expires_at;
  std::optional<StoreTime> usable_until;
  bool vendor_expiry = false;
  friend bool operator==(const Life&, const Life&) = default;
};

// The life that a sighting at `now` gives to a proxy that was born then, or earlier.
constexpr Life life_from(const std::optional<StoreTime>& vendor_expiry, const TtlPolicy& policy,
                         StoreTime now, StoreTime born) noexcept {
  Life life;
  if (vendor_expiry) {
    life.expires_at = vendor_expiry;
    life.vendor_expiry = true;
  } else if (policy.default_ttl) {
    life.expires_at = now + *policy.default_ttl;
  }
  if (life.expires_at && policy.max_ttl) {
    life.expires_at = std::min(*life.expires_at, born + *policy.max_ttl);
  }
  if (life.expires_at) life.usable_until = *life.expires_at - policy.safety_margin;
  return life;
}

// Whether a life is still worth admitting. One that arrives past its margin is a valid candidate,
// is counted, and stays out.
constexpr bool admissible(const Life& life, StoreTime now) noexcept {
  return !life.usable_until || now < *life.usable_until;
}

// The longer life of a proxy that its owning upstream brought again, or nothing when the sighting
// changes nothing. Another source's sighting never comes here; an extracted proxy is not renewed,
// and neither is one that is leaving the pool.
constexpr std::optional<Life> renewed(const Proxy& proxy,
                                      const std::optional<StoreTime>& vendor_expiry,
                                      const TtlPolicy& policy, StoreTime now) noexcept {
  const bool renewable = proxy.state == ProxyState::Fetched ||
                         proxy.state == ProxyState::Checking ||
                         proxy.state == ProxyState::Available ||
                         proxy.state == ProxyState::Suspect || proxy.state == ProxyState::Unhealthy;
  if (!renewable || !proxy.expires_at || now >= *proxy.expires_at) return std::nullopt;
  if (!vendor_expiry && proxy.vendor_expiry) return std::nullopt;  // a default renews a default
  const Life life = life_from(vendor_expiry, policy, now, proxy.created_at);
  if (!life.expires_at || *life.expires_at <= *proxy.expires_at) return std::nullopt;
  return life;
}

}  // namespace proxypool::domain
