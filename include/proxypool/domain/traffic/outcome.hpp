// What the end of an attempt says about the proxy's health (rulings "Health defaults", GW-41).
//
// A failure to reach the proxy or to be accepted by it is meaningful. What happens after that says
// more about the target than about the proxy: answers that a vendor's own software gives as well
// are neutral, and one target that is down must not condemn a pool.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/domain/routing/policy.hpp"

namespace proxypool::domain {

struct TrafficOutcome {
  ProxyId proxy;
  RequestKind kind = RequestKind::Http;
  Failure failure;           // phase None: it ended well
  std::uint16_t status = 0;  // the last final answer of the vendor or origin; 0: none came
  bool first_byte = false;   // a tunnel brought a byte from the other side
  milliseconds latency{0};   // until the answer's head, or until the tunnel stood
};

enum class HealthMeaning : std::uint8_t { Neutral, Success, Failure };

// Answers that say that something could not be reached or is too busy: the origin, or the vendor's
// own software.
constexpr bool may_be_the_vendors(std::uint16_t status) noexcept {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

namespace detail {
constexpr HealthMeaning meaning_of_status(std::uint16_t status) noexcept {
  if (status == 407) return HealthMeaning::Failure;
  if (status < 200 || may_be_the_vendors(status)) return HealthMeaning::Neutral;
  return HealthMeaning::Success;
}
}  // namespace detail

constexpr HealthMeaning meaning_of(const TrafficOutcome& outcome) noexcept {
  const bool connect = outcome.kind == RequestKind::Connect;
  switch (outcome.failure.phase) {
    case Phase::Dial:
      return HealthMeaning::Failure;
    case Phase::ProxyHandshake:
      // A well-formed refusal proves that the proxy lives; only 407 says that it refuses us.
      if (connect && outcome.status != 0 && outcome.status != 407) return HealthMeaning::Neutral;
      return HealthMeaning::Failure;
    case Phase::ResponseHeaders:
      return outcome.status == 407 ? HealthMeaning::Failure : HealthMeaning::Neutral;
    case Phase::Tunnel:
    case Phase::None:
      break;
  }
  if (connect) return outcome.first_byte ? HealthMeaning::Success : HealthMeaning::Neutral;
  return detail::meaning_of_status(outcome.status);
}

}  // namespace proxypool::domain
