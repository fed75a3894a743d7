// The answers that the gateway itself gives: one table of status, code and cause.
//
// Whoever refuses a request names a Refusal; how it looks on the wire is read from here, so that
// code, status and RFC 9209 error never disagree. Details never name another client, a credential
// or a proxy's address.
//
// Thread rule: immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxypool/domain/health/observation.hpp"

namespace proxypool::domain {

enum class Refusal : std::uint8_t {
  BadRequest,
  AuthRequired,
  AuthRejected,
  BadParameter,
  SourceDenied,
  TargetForbidden,
  NoRouting,
  RequestLineTooLarge,
  HeadersTooLarge,
  BodyTooLarge,
  RequestTimeout,
  ClientLimited,
  QuotaExceeded,
  Overloaded,
  NotReady,  // no view, or a stale one
  Draining,
  NoCandidate,
  WaitTimeout,
  SessionLost,
  ProxyConnectFailed,
  ProxyRefused,
  ProxyAuthRejected,
  ProxyProtocolError,
  DnsFailed,
  TargetConnectFailed,
  TargetProtocolError,
  ResolveTimeout,
  ConnectTimeout,
  TlsTimeout,
  ProxyConnectTimeout,
  FirstByteTimeout,
  IdleTimeout,
  TotalTimeout,
};
inline constexpr std::size_t kRefusals = 33;

struct RefusalRow {
  Refusal refusal;
  std::uint16_t status;
  std::string_view code;
  std::string_view proxy_status;  // RFC 9209 error type; empty: none is sent
  std::string_view title;
  bool retry_after = false;  // the answer carries Retry-After
  bool closes = false;       // the rest of the connection cannot be trusted
};

inline constexpr std::array<RefusalRow, kRefusals> kErrorContract{{
    {Refusal::BadRequest, 400, "bad_request", "http_request_error", "The request is malformed",
     false, true},
    {Refusal::AuthRequired, 407, "auth_required", "", "Proxy credentials are required"},
    {Refusal::AuthRejected, 407, "auth_rejected", "", "The proxy credentials were not accepted"},
    {Refusal::BadParameter, 407, "bad_parameter", "", "A parameter in the user name is wrong"},
    {Refusal::SourceDenied, 403, "source_denied", "http_request_denied",
     "This source may not use the gateway"},
    {Refusal::TargetForbidden, 403, "target_forbidden", "destination_ip_prohibited",
     "This destination is forbidden"},
    {Refusal::NoRouting, 403, "no_routing", "http_request_denied",
     "No routing matches the request"},
    {Refusal::RequestLineTooLarge, 414, "too_large", "http_request_error",
     "The request line is too long", false, true},
    {Refusal::HeadersTooLarge, 431, "too_large", "http_request_error",
     "The header section is too large", false, true},
    {Refusal::BodyTooLarge, 413, "too_large", "http_request_error", "The body is too large", false,
     true},
    {Refusal::RequestTimeout, 408, "request_timeout", "http_request_error",
     "The request did not arrive in time", false, true},
    {Refusal::ClientLimited, 429, "client_limited", "http_request_denied",
     "The client's limit is reached", true},
    {Refusal::QuotaExceeded, 429, "quota_exceeded", "http_request_denied",
     "The client's quota is used up", true},
    {Refusal::Overloaded, 503, "overloaded", "proxy_internal_response",
     "The gateway is at its limit", true},
    {Refusal::NotReady, 503, "not_ready", "proxy_internal_response",
     "The gateway has no valid configuration", true},
    {Refusal::Draining, 503, "draining", "proxy_internal_response", "The gateway is shutting down",
     true},
    {Refusal::NoCandidate, 503, "no_candidate", "destination_unavailable", "No proxy is available",
     true},
    {Refusal::WaitTimeout, 503, "wait_timeout", "destination_unavailable",
     "No proxy became available in time", true},
    {Refusal::SessionLost, 503, "session_lost", "destination_unavailable",
     "The proxy of this session is gone", true},
    {Refusal::ProxyConnectFailed, 502, "proxy_connect_failed", "connection_refused",
     "The proxy could not be reached"},
    {Refusal::ProxyRefused, 502, "proxy_refused", "connection_refused",
     "The proxy refused the request"},
    {Refusal::ProxyAuthRejected, 502, "proxy_auth_rejected", "connection_refused",
     "The proxy did not accept the pool's credentials"},
    {Refusal::ProxyProtocolError, 502, "proxy_protocol_error", "http_protocol_error",
     "The proxy gave no valid answer"},
    {Refusal::DnsFailed, 502, "dns_failed", "dns_error", "The destination could not be resolved"},
    {Refusal::TargetConnectFailed, 502, "target_connect_failed", "connection_refused",
     "The destination could not be reached"},
    {Refusal::TargetProtocolError, 502, "target_protocol_error", "http_protocol_error",
     "The destination gave no valid answer"},
    {Refusal::ResolveTimeout, 504, "resolve_timeout", "dns_timeout",
     "Resolving the destination took too long"},
    {Refusal::ConnectTimeout, 504, "connect_timeout", "connection_timeout",
     "Connecting took too long"},
    {Refusal::TlsTimeout, 504, "tls_timeout", "connection_timeout",
     "The TLS handshake took too long"},
    {Refusal::ProxyConnectTimeout, 504, "proxy_connect_timeout", "connection_timeout",
     "The proxy took too long to connect"},
    {Refusal::FirstByteTimeout, 504, "first_byte_timeout", "http_response_timeout",
     "The answer took too long to begin"},
    {Refusal::IdleTimeout, 504, "idle_timeout", "connection_read_timeout",
     "The answer stopped arriving"},
    {Refusal::TotalTimeout, 504, "total_timeout", "http_response_timeout",
     "The request took too long as a whole"},
}};

constexpr const RefusalRow& contract(Refusal refusal) noexcept {
  return kErrorContract[static_cast<std::size_t>(refusal)];
}

// The same failure where there was no proxy: it is the target's.
constexpr Refusal without_proxy(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::ProxyConnectFailed:
      return Refusal::TargetConnectFailed;
    case Refusal::ProxyAuthRejected:  // an origin has no business with 407 (GW-41)
    case Refusal::ProxyProtocolError:
      return Refusal::TargetProtocolError;
    default:
      return refusal;
  }
}

// The RFC 9209 error type, which tells a lost connection from a wrong answer under one code.
constexpr std::string_view proxy_status(Refusal refusal, FailureKind kind) noexcept {
  const bool answerless =
      refusal == Refusal::ProxyProtocolError || refusal == Refusal::TargetProtocolError ||
      refusal == Refusal::ProxyConnectFailed || refusal == Refusal::TargetConnectFailed;
  if (answerless && kind == FailureKind::Reset) return "connection_terminated";
  return contract(refusal).proxy_status;
}

}  // namespace proxypool::domain
