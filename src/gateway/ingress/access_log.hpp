// The access log: a line for every so many requests that got an answer, and one for each that the
// gateway itself refused (GW-36).
//
// Which requests get a line is decided when they are admitted, so that the others cost a counter.
// A line names hosts and never a path, a query, a header or a credential. Writing it is the event
// log's business: bounded, on a thread of its own, with a limit of lines a second.
//
// Thread rule: begin() and the rest: the loop's thread that owns the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/dispatch/proxy_entry.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/traffic/error_contract.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::gateway {

// What the end of a request no longer knows by itself.
struct AccessNote {
  std::string client;
  std::string method;
  std::string target;  // host:port
  std::string routing;
  std::string upstream;  // "direct": none
};

// How an exchange ended, with what it cost.
struct AccessEnd {
  std::uint64_t request_id = 0;
  ProxyId proxy;        // of the last attempt; no id: there was none
  bool direct = false;  // it needed none
  std::size_t attempts = 0;
  std::uint16_t status = 0;
  std::string_view reason;  // ok, truncated, aborted
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  nanoseconds took{0};
};

class AccessLog {
 public:
  // One of `one_in` answered requests; 0: none of them.
  AccessLog(ports::Events& events, std::uint32_t one_in) noexcept
      : events_(events), one_in_(one_in), left_(one_in == 0 ? 0 : 1) {}

  // Whether the request that begins now gets a line when it is answered. The first one does.
  [[nodiscard]] bool next() noexcept {
    if (one_in_ == 0 || --left_ != 0) return false;
    left_ = one_in_;
    return true;
  }
  void served(const AccessNote& note, const AccessEnd& end);
  // `note` is null for a request that was not admitted, or would have got no line. Beyond the lines
  // that the event log writes in a second it costs a comparison: whoever is refused most often must
  // not cost most.
  void refused(const AccessNote* note, const AccessEnd& end, const IpAddress& peer,
               domain::Refusal refusal, std::string_view detail, TimePoint now);

 private:
  ports::Events& events_;
  const std::uint32_t one_in_;
  std::uint32_t left_;
  TimePoint second_ends_{};  // until then this thread has composed `refused_` lines
  std::uint32_t refused_ = 0;
};

}  // namespace proxypool::gateway
