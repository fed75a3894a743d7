// One request from its admission to the end of its answer or tunnel.
//
// Thread rule: the loop's thread.
// Limits:      ExcludedProxies::kMax attempts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "gateway/dispatch/dispatcher.hpp"
#include "gateway/ingress/access_log.hpp"
#include "gateway/ingress/asked.hpp"
#include "gateway/ingress/session_name.hpp"
#include "gateway/transport/body_flow.hpp"
#include "gateway/transport/buffer.hpp"
#include "gateway/transport/race.hpp"
#include "net/http/head.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/client/usage.hpp"
#include "proxypool/domain/routing/policy.hpp"
#include "proxypool/domain/traffic/error_contract.hpp"

namespace proxypool::gateway {

struct ViewPin;

struct Exchange {
  domain::RequestKind kind = domain::RequestKind::Http;
  bool http_1_0 = false;
  bool has_body = false;
  bool websocket = false;
  bool awaits_continue = false;  // the client holds its body back
  bool dialling = false;         // no upstream connection stands yet
  bool active = false;           // its place is an active one
  bool committed = false;        // a byte of the answer went to the client
  bool answer_started = false;   // a byte of an answer came from upstream
  bool reused = false;
  bool fresh_retry_used = false;
  bool upload_broken = false;   // the upstream takes no more of the body
  bool upstream_keeps = false;  // its connection can carry another exchange
  bool continue_sent = false;   // the gateway itself said 100
  bool up_starved = false;      // the bytes at hand make no whole element
  bool down_starved = false;
  bool strict = false;             // its session does not change its proxy
  bool in_session = false;         // the attempt goes through its session's proxy
  bool session_confirmed = false;  // which has served the session before
  bool direct = false;             // to its target, without a proxy
  bool target_judged = false;      // by what its name means to us
  bool first_byte = false;         // a tunnel brought a byte from the other side
  std::uint16_t status = 0;
  std::uint32_t client = 0;  // index in the view
  std::uint64_t client_tag = 0;
  std::shared_ptr<const Asked> asked;    // null: nothing in particular
  domain::ClientUse* use = nullptr;      // its client counts it
  domain::ClientUse* account = nullptr;  // who pays for its bytes; null: nobody
  domain::Usage accounted;               // of them, so far
  SessionName session;
  std::uint64_t ticket = 0;  // in the line for a place; 0: it does not wait
  const RoutingRuntime* line = nullptr;
  TimePoint waits_until{};  // set when it begins to wait, kept over changes of the line
  const RoutingRuntime* session_routing = nullptr;  // while in_session

  ViewPin* view = nullptr;  // until the commit point: attempts stay within one view (R6)
  const View::Routing* routing = nullptr;  // of the view
  const RoutingRuntime* routed = nullptr;  // the same for as long as the process lives
  milliseconds latency{0};                 // from the attempt's beginning to its answer's head
  ExcludedProxies tried;
  ProxyId last_tried;
  Allocation allocation;
  RoutingPlace place;          // of what goes direct
  std::unique_ptr<Race> race;  // while a target is dialled
  Buffer head;  // the request head as it came, for another attempt; empty once there is none
  BodyFlow up;
  BodyFlow down;
  net::ResponseParser* half_answer = nullptr;
  std::unique_ptr<AccessNote> note;  // it gets a line in the access log

  // Of the attempt before; what is answered when there is nothing more to try.
  std::optional<domain::Refusal> last_refusal;
  domain::FailureKind last_kind = domain::FailureKind::None;
  TimePoint began{};
  TimePoint attempt_began{};
  TimePoint ends_at = kNever;  // total time, tunnel age, end of an orphan
  // Heads and bodies, as vendors bill them: to the proxies and from them, failed attempts too.
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;
  std::uint64_t head_up = 0;  // of bytes_up: the attempt's request head
};

}  // namespace proxypool::gateway
