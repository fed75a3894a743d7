// Observations: facts that checkers and gateways report. They decide nothing; the reducer does.
//
// Thread rule: immutable values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

enum class CheckLevel : std::uint8_t { Basic, Egress, Target };

// Where an attempt ended, for probes and for traffic alike (seed 002 §5).
enum class Phase : std::uint8_t { None, Dial, ProxyHandshake, ResponseHeaders, Tunnel };

constexpr std::string_view to_string(Phase phase) noexcept {
  constexpr std::string_view kNames[] = {"none", "dial", "proxy_handshake", "response_headers",
                                         "tunnel"};
  return kNames[static_cast<std::size_t>(phase)];
}

enum class FailureKind : std::uint8_t {
  None,
  Refused,
  Timeout,
  Reset,
  AuthRejected,
  Protocol,
  Unreachable,
  Other,
};

constexpr std::string_view to_string(FailureKind kind) noexcept {
  constexpr std::string_view kNames[] = {"none",          "refused",  "timeout",     "reset",
                                         "auth_rejected", "protocol", "unreachable", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

// What the hot path knows of a failure: two bytes, no text.
struct Failure {
  Phase phase = Phase::None;
  FailureKind kind = FailureKind::None;
  friend bool operator==(const Failure&, const Failure&) = default;
};

// One probe of one proxy.
struct CheckTask {
  std::uint64_t task_id = 0;  // unique per controller life; names the lease
  ProxyId proxy;
  CheckLevel level = CheckLevel::Basic;
  Endpoint endpoint;
  Credential credential;
  std::string target_host;  // CONNECT to it
  std::uint16_t target_port = 0;
  milliseconds timeout{5000};
  friend bool operator==(const CheckTask&, const CheckTask&) = default;
};

// What a probe found. `checked_at` is set by the controller from its store's clock when the report
// arrives; the checker's clock is never believed.
struct Observation {
  std::uint64_t task_id = 0;
  ProxyId proxy;
  CheckLevel level = CheckLevel::Basic;
  bool passed = false;
  Failure failure;
  milliseconds latency{0};
  friend bool operator==(const Observation&, const Observation&) = default;
};

}  // namespace proxypool::domain
