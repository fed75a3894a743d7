// The answers that the gateway gives itself, as they stand on the wire.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http/head.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/domain/traffic/error_contract.hpp"

namespace proxypool::gateway {

// What a 407 asks for, each with the line end before it.
inline constexpr std::string_view kBasicChallenge =
    "\r\nProxy-Authenticate: Basic realm=\"proxypool\", charset=\"UTF-8\"";
inline constexpr std::string_view kBearerChallenge =
    "\r\nProxy-Authenticate: Bearer realm=\"proxypool\"";

struct Answer {
  domain::Refusal refusal = domain::Refusal::BadRequest;
  domain::FailureKind kind = domain::FailureKind::None;  // of the attempt that failed
  net::Method method = net::Method::Get;  // CONNECT: the reason phrase carries the code
  bool close = true;
  std::uint64_t request_id = 0;
  std::string_view detail;         // one sentence; the title when empty
  std::int64_t retry_after_s = 0;  // where the contract has it; 0: what is usual for the refusal
  std::string_view challenges = kBasicChallenge;  // of a 407
  bool direct = false;                            // it was tried without a proxy
};

// Head and body of an error answer: application/problem+json (RFC 9457) with Proxy-Status
// (RFC 9209), and what the case demands beside them.
[[nodiscard]] std::string write_answer(const Answer& answer);

// The answer to OPTIONS or TRACE whose Max-Forwards is used up (RFC 9110 §7.6.2). TRACE gets the
// request back, without the fields that could hold secrets.
[[nodiscard]] std::string write_last_hop(const net::RequestHead& head, bool close);

// The refusal behind a status that the codec names.
[[nodiscard]] domain::Refusal refusal_of(int status) noexcept;

// What RFC 9110 §15 calls the status.
[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

}  // namespace proxypool::gateway
