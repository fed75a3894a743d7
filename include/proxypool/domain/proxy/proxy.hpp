// A proxy: one usable upstream endpoint with its credential, its times and its life-cycle state.
//
// Two facts are orthogonal (ruling C2): the life-cycle state, which the table in state.hpp moves,
// and the ownership, which says which worker may use the proxy. Passwords are kept apart from the
// proxy, under (secret_ref, credential_version), so that a Proxy can be listed and logged.
//
// Thread rule: immutable values, copied freely.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/id.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::domain {

enum class Scheme : std::uint8_t { Http, Https, Socks5 };

constexpr std::string_view to_string(Scheme scheme) noexcept {
  constexpr std::string_view kNames[] = {"http", "https", "socks5"};
  return kNames[static_cast<std::size_t>(scheme)];
}

// Where a proxy listens. `host` is canonical: an address in its shortest spelling without brackets,
// or a lower-case name in A-label form without a final dot.
struct Endpoint {
  Scheme scheme = Scheme::Http;
  std::string host;
  std::uint16_t port = 0;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// What a vendor says about the exit; empty means unknown. `country` is ISO 3166-1 alpha-2 in upper
// case; the others are lower-case as written by the vendor's map.
struct Attributes {
  std::string country;
  std::string region;
  std::string city;
  std::string carrier;
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

// Free labels from configuration and vendor maps; at most 16 of at most 64 bytes each.
using Tags = std::map<std::string, std::string, std::less<>>;

// User name and password towards a proxy. Both empty: the proxy wants none.
struct Credential {
  std::string username;
  SecretString password;
  friend bool operator==(const Credential&, const Credential&) = default;
};

// 22 characters: base64url of the first 16 bytes of HMAC-SHA-256(identity key, user ‖ 0 ‖
// password).
using CredentialVersion = NameId<struct CredentialVersionTag>;

// What a provider yields: parsed and canonical, not yet admitted.
struct Candidate {
  Endpoint endpoint;
  Credential credential;
  std::optional<StoreTime> expires_at;  // as the vendor says; none: pool.defaultTTL applies
  Attributes attributes;
  Tags tags;
};

enum class ProxyState : std::uint8_t {
  Fetched,
  Checking,
  Available,
  Suspect,
  Unhealthy,
  Draining,
  Extracted,
  Expired,
  Removed,
};
inline constexpr std::size_t kProxyStates = 9;

constexpr std::string_view to_string(ProxyState state) noexcept {
  constexpr std::string_view kNames[kProxyStates] = {"fetched",   "checking",  "available",
                                                     "suspect",   "unhealthy", "draining",
                                                     "extracted", "expired",   "removed"};
  return kNames[static_cast<std::size_t>(state)];
}

// Who may use the proxy. Revoking: no new work, the owner still reports what is in flight.
enum class Ownership : std::uint8_t { Unowned, Owned, Revoking };

constexpr std::string_view to_string(Ownership ownership) noexcept {
  constexpr std::string_view kNames[] = {"unowned", "owned", "revoking"};
  return kNames[static_cast<std::size_t>(ownership)];
}

struct Proxy {
  ProxyId id;
  Endpoint endpoint;
  std::string username;
  CredentialVersion credential_version;
  UpstreamId upstream;  // the owning source: the first that brought it (CT-21)
  StoreTime created_at;
  std::optional<StoreTime> expires_at;    // hard end; none: a list entry without one (C19)
  std::optional<StoreTime> usable_until;  // expires_at less the safety margin: no new work after it
  std::optional<StoreTime> last_checked_at;
  std::optional<StoreTime> last_success_at;
  milliseconds latency{0};  // of the last successful probe; 0 before the first
  std::uint32_t max_concurrency = 1;
  ProxyState state = ProxyState::Fetched;
  Ownership ownership = Ownership::Unowned;
  bool vendor_expiry = false;  // the expiry is the vendor's, not pool.defaultTTL
  Attributes attributes;
  Tags tags;
};

// May the proxy be given new work at `now`? The one place that knows (rulings C4, C6): a proxy past
// its margin takes no new work whatever its state.
inline bool usable(const Proxy& proxy, StoreTime now) noexcept {
  if (proxy.usable_until && now >= *proxy.usable_until) return false;
  return proxy.state == ProxyState::Available || proxy.state == ProxyState::Suspect;
}

// Counts against pool.maxSize.
constexpr bool managed(ProxyState state) noexcept {
  return state == ProxyState::Fetched || state == ProxyState::Checking ||
         state == ProxyState::Available || state == ProxyState::Suspect ||
         state == ProxyState::Draining;
}

}  // namespace proxypool::domain
