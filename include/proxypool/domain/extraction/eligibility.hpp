// Which proxies an extraction may take, and which it takes (EX-2, seed 000 §10.2, rulings C3, C6).
//
// Only AVAILABLE, unowned proxies without any work are taken, and never so many of one upstream
// that fewer than its reserveForGateway would stay AVAILABLE. The longest remaining life goes
// first; ties are random. An answer that was given under an idempotency key is given again.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxypool/base/random.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/extraction/extraction.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

namespace detail {
inline bool any_equal(const std::vector<std::string>& wanted, const std::string& value) noexcept {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
           return equal_ignoring_case(w, value);
         });
}
template <class T>
bool any_equal(const std::vector<T>& wanted, const T& value) noexcept {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

// The moment of the last good word about the proxy, from a probe or from traffic.
inline std::optional<StoreTime> last_confirmed(const Proxy& proxy) noexcept {
  if (!proxy.last_checked_at) return proxy.last_success_at;
  if (!proxy.last_success_at) return proxy.last_checked_at;
  return std::max(*proxy.last_checked_at, *proxy.last_success_at);
}
}  // namespace detail

// Whether the proxy is what was asked for.
inline bool matches(const ExtractionFilters& filters, const Proxy& proxy, StoreTime now) noexcept {
  using detail::any_equal;
  const Attributes& attributes = proxy.attributes;
  if (!any_equal(filters.protocols, proxy.endpoint.scheme)) return false;
  if (!any_equal(filters.countries, attributes.country)) return false;
  if (!any_equal(filters.regions, attributes.region)) return false;
  if (!any_equal(filters.cities, attributes.city)) return false;
  if (!any_equal(filters.carriers, attributes.carrier)) return false;
  if (!any_equal(filters.upstreams, proxy.upstream)) return false;
  for (const auto& [key, value] : filters.tags) {
    const auto tag = proxy.tags.find(key);
    if (tag == proxy.tags.end() || tag->second != value) return false;
  }
  if (proxy.expires_at && *proxy.expires_at - now < filters.min_remaining_ttl) return false;
  if (filters.max_health_check_age) {
    const auto confirmed = detail::last_confirmed(proxy);
    if (!confirmed || now - *confirmed > *filters.max_health_check_age) return false;
  }
  return true;
}

// Whether the proxy may leave the pool at all. `idle`: both counters are known to be zero.
inline bool extractable(const Proxy& proxy, bool idle, StoreTime now) noexcept {
  return proxy.state == ProxyState::Available && proxy.ownership == Ownership::Unowned && idle &&
         usable(proxy, now);
}

// How many proxies of an upstream one extraction may take at most. `available` counts AVAILABLE,
// owned and unowned.
constexpr std::size_t takeable(const ExtractionPolicy& policy, std::size_t available) noexcept {
  if (!policy.extractable || available <= policy.reserve_for_gateway) return 0;
  return available - policy.reserve_for_gateway;
}

// AVAILABLE proxies of one upstream, owned and unowned.
struct UpstreamAvailable {
  UpstreamId upstream;
  std::size_t available = 0;
};

struct ExtractionChoice {
  ExtractionOutcome outcome = ExtractionOutcome::Done;
  std::uint32_t available = 0;        // how many could be had, at most `count`
  std::vector<const Proxy*> proxies;  // empty when Insufficient
};

// Chooses among `candidates`, each extractable() and matching. `available` lists every upstream
// that a candidate comes from.
inline ExtractionChoice choose(const ExtractionCommand& command,
                               std::vector<const Proxy*> candidates,
                               const std::vector<UpstreamAvailable>& available, Random& random) {
  std::vector<std::pair<UpstreamId, std::size_t>> left;
  for (const ExtractionPolicy& policy : command.policies) {
    for (const UpstreamAvailable& upstream : available) {
      if (upstream.upstream != policy.upstream) continue;
      left.emplace_back(policy.upstream, takeable(policy, upstream.available));
    }
  }
  for (std::size_t i = candidates.size(); i > 1; --i) {
    std::swap(candidates[i - 1], candidates[random.below(i)]);
  }
  const auto end_of = [](const Proxy* proxy) {
    return proxy->expires_at.value_or(StoreTime::max());
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Proxy* a, const Proxy* b) { return end_of(a) > end_of(b); });
  ExtractionChoice choice;
  for (const Proxy* proxy : candidates) {
    if (choice.proxies.size() >= command.count) break;
    const auto quota = std::find_if(left.begin(), left.end(), [&](const auto& entry) {
      return entry.first == proxy->upstream;
    });
    if (quota == left.end() || quota->second == 0) continue;
    --quota->second;
    choice.proxies.push_back(proxy);
  }
  choice.available = static_cast<std::uint32_t>(choice.proxies.size());
  if (command.fulfillment == Fulfillment::AllOrNothing && choice.available < command.count) {
    choice.outcome = ExtractionOutcome::Insufficient;
    choice.proxies.clear();
  }
  return choice;
}

// What is stored under (client, idempotency key).
struct IdempotencyRecord {
  std::string request_digest;
  bool finished = false;  // false: the first request is still being served
  StoreTime valid_until;
};

enum class IdempotencyDecision : std::uint8_t { Fresh, Replay, Mismatch, InProgress };

// EX-1. A record that has run out counts for nothing.
inline IdempotencyDecision decide_idempotency(const std::optional<IdempotencyRecord>& record,
                                              const std::string& request_digest,
                                              StoreTime now) noexcept {
  if (!record || now >= record->valid_until) return IdempotencyDecision::Fresh;
  if (record->request_digest != request_digest) return IdempotencyDecision::Mismatch;
  return record->finished ? IdempotencyDecision::Replay : IdempotencyDecision::InProgress;
}

// Only an answer that handed something out is worth remembering.
inline bool worth_remembering(const ExtractionResult& result) noexcept {
  return result.outcome == ExtractionOutcome::Done && !result.proxies.empty();
}

}  // namespace proxypool::domain
