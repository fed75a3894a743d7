// What both ends of the control plane must agree on before the first message: pings and addresses.
//
// A server that is pinged more often than it allows drops the connection ("too_many_pings"), so
// both sides derive their figures from one configured interval, here.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "proxypool/base/host.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::rpc {

struct Keepalive {
  milliseconds interval;             // either side pings an idle connection so often
  milliseconds timeout;              // without an answer for so long, it is dead
  milliseconds server_interval_min;  // pings that come faster are strikes
};

// The interval is at least a second; the server allows twice the rate that a client uses.
constexpr Keepalive keepalive_of(nanoseconds configured) noexcept {
  const milliseconds interval =
      std::max(std::chrono::duration_cast<milliseconds>(configured), milliseconds(1'000));
  return {interval, std::clamp(interval / 2, milliseconds(1'000), milliseconds(10'000)),
          interval / 2};
}

// Plaintext is for "localhost" and loopback addresses, as HOST:PORT.
inline Status check_plaintext(std::string_view address) {
  const auto colon = address.rfind(':');
  std::string_view host = address.substr(0, colon);
  const bool port = colon != std::string_view::npos &&
                    parse_number<std::uint16_t>(address.substr(colon + 1)).has_value();
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (!port || host.empty()) {
    return Error{ErrorCode::InvalidArgument, Origin::Internal,
                 "control-plane address '" + std::string(address) + "' is not HOST:PORT"};
  }
  const auto ip = IpAddress::parse(host);
  if (host == "localhost" || (ip && classify(*ip) == IpClass::Loopback)) return ok();
  return Error{ErrorCode::InvalidArgument, Origin::Internal,
               "control-plane address '" + std::string(address) +
                   "' is not a loopback address; plaintext is not spoken beyond this machine, and "
                   "this release has no mutual TLS yet"};
}

}  // namespace proxypool::rpc
