// What a fixture proxy does wrong, and its spelling on the command line and in the control calls.
//
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::loadgen {

struct Fault {
  enum class Kind : std::uint8_t {
    None,             // none: serves
    Refuse,           // refuse: connections are refused; a request on an open one is dropped
    Hang,             // hang: accepts, reads, never answers
    Status,           // 407, 502, any three digits: answers with that status
    Slow,             // slow:200ms: waits before it serves
    Garbage,          // garbage: answers with bytes that are no HTTP
    CloseBeforeHead,  // close-before-head: reads the request, then ends the connection
    Reset,            // reset: reads the request, then resets the connection
    ResetOnAccept,    // reset-on-accept: resets the connection as soon as it is there
    ResetInHead,      // reset-in-head: resets the connection in the middle of the answer's head
    Truncate,     // truncate[:BYTES]: ends the connection inside the answer's body or the tunnel
    ResetInBody,  // reset-in-body[:BYTES]: the same, with a reset
  };

  [[nodiscard]] bool cuts() const noexcept {
    return kind == Kind::Truncate || kind == Kind::ResetInBody;
  }

  Kind kind = Kind::None;
  unsigned status = 0;                // of Status
  milliseconds delay{0};              // of Slow
  std::optional<std::uint64_t> keep;  // where it cuts(): body bytes let through; none: half
};

// Every spelling, for help and error texts.
inline constexpr std::string_view kFaultSpellings =
    "none, refuse, hang, slow:200ms, garbage, close-before-head, reset, reset-on-accept, "
    "reset-in-head, truncate[:BYTES], reset-in-body[:BYTES], or a status such as 407 or 502";

Result<Fault> parse_fault(std::string_view text);
std::string to_text(const Fault& fault);

// "2=refuse" or "*=hang": which proxy (nothing: all) and what.
struct FaultRule {
  std::optional<unsigned> proxy;
  Fault fault;
};
Result<FaultRule> parse_fault_rule(std::string_view text);

}  // namespace proxypool::loadgen
