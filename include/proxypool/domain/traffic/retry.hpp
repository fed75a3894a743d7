// Whether a failed attempt may be repeated, and where (GW-35, ruling R6).
//
// Before the commit point only: once a byte of the answer (or the 200 of a CONNECT) went to the
// client, nothing is repeated. A request that may have had an effect is repeated only when it
// provably never left, and only if the configuration says so.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "proxypool/domain/health/observation.hpp"
#include "proxypool/domain/routing/policy.hpp"

namespace proxypool::domain {

struct RetryPolicy {
  std::uint32_t attempts_max = 2;   // different proxies, the first one included
  bool unsafe_before_send = false;  // also for other methods, before any byte left
};

struct FailedAttempt {
  RequestKind kind = RequestKind::Http;
  std::string_view method;
  bool has_body = false;
  Failure failure;
  bool bytes_sent = false;         // of the request itself, on this connection
  bool answer_started = false;     // any byte of the answer came from upstream
  bool committed = false;          // any byte of the answer went to the client
  bool reused_connection = false;  // an idle keep-alive connection was taken
  bool fresh_retry_used = false;   // the same proxy was tried again already
  std::uint32_t attempts = 1;      // different proxies tried so far, this one included
};

enum class RetryDecision : std::uint8_t {
  Stop,
  SameProxyFresh,  // no attempt in the sense of R4 and R6: excludes nothing, clears no binding
  OtherProxy,
};

// Safe methods that are repeated without a body; TRACE never is.
constexpr bool repeatable(std::string_view method, bool has_body) noexcept {
  return !has_body && (method == "GET" || method == "HEAD" || method == "OPTIONS");
}

constexpr RetryDecision decide_retry(const FailedAttempt& attempt,
                                     const RetryPolicy& policy) noexcept {
  if (attempt.committed || attempt.failure.phase == Phase::None ||
      attempt.failure.phase == Phase::Tunnel) {
    return RetryDecision::Stop;
  }
  const bool others_left = attempt.attempts < policy.attempts_max;
  const auto other = others_left ? RetryDecision::OtherProxy : RetryDecision::Stop;
  if (attempt.kind == RequestKind::Connect) return other;
  if (repeatable(attempt.method, attempt.has_body)) {
    const bool died_idle = attempt.reused_connection && !attempt.answer_started &&
                           attempt.failure.phase == Phase::ResponseHeaders &&
                           attempt.failure.kind == FailureKind::Reset;
    if (died_idle && !attempt.fresh_retry_used) return RetryDecision::SameProxyFresh;
    return other;
  }
  const bool never_left = !attempt.bytes_sent && (attempt.failure.phase == Phase::Dial ||
                                                  attempt.failure.phase == Phase::ProxyHandshake);
  if (policy.unsafe_before_send && never_left && attempt.method != "TRACE") return other;
  return RetryDecision::Stop;
}

}  // namespace proxypool::domain
