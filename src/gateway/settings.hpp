// What a gateway's own file tells it; everything else comes with the snapshot.
//
// Thread rule: immutable once the gateway runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/socket.hpp"
#include "net/tls.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::gateway {

struct Settings {
  // A way to prove which client one is (GW-10).
  enum class Auth : std::uint8_t {
    UsernamePassword,  // its name and its secret
    ApiKey,            // its secret, as user name or as Bearer token
    Bearer,            // its secret as Bearer token
    IpWhitelist,       // its address
  };

  net::Endpoint listen{IpAddress::v4(0x7f000001), 8080};
  bool share_port = false;        // with other gateways of this machine
  std::uint32_t threads = 0;      // 0: one per core
  std::vector<Auth> auth;         // in this order, the first that accepts counts; none: all may
  std::vector<Cidr> allow_cidrs;  // sources; empty: every one
  // Peers whose word about where a connection or a request comes from is taken (GW-3).
  std::vector<Cidr> trusted_proxies;
  bool proxy_header = false;                 // they begin each connection with a PROXY header
  bool strict = true;                        // refuse to be an open proxy (GW-11)
  std::optional<net::TlsServerOptions> tls;  // clients speak TLS
  std::string proxy_authorities;             // PEM file; empty: the system's (GW-40)

  std::uint32_t access_log_one_in = 100;  // answered requests for each line of the log; 0: none

  // For the whole process.
  std::uint32_t connections_max = 20'000;        // over: closed on arrival
  std::uint32_t connections_per_source_max = 0;  // over: the same; 0: no limit
  std::uint32_t in_flight_max = 10'000;          // requests and tunnels; over: 503
  std::uint64_t body_bytes_max = 0;              // 0: none; over: 413
  std::uint32_t sessions_max = 65'536;      // remembered; the one unused for longest makes room
  std::uint32_t idle_upstreams_max = 4096;  // kept connections of one thread; the oldest is closed

  bool reuse = true;

  nanoseconds head = seconds(10);  // from the first byte of a request to the end of its head
  nanoseconds keep_alive = seconds(75);
  nanoseconds verify = seconds(10);
  nanoseconds resolve = seconds(5);
  nanoseconds connect = seconds(5);
  nanoseconds tls_handshake = seconds(5);  // with a client, and with a proxy
  nanoseconds proxy_connect = seconds(10);
  nanoseconds first_byte = seconds(60);
  nanoseconds idle = seconds(300);
  nanoseconds total{0};  // 0: none
  nanoseconds tunnel_age_max{0};
  std::uint64_t tunnel_bytes_max = 0;
  nanoseconds expect_wait = seconds(1);     // then the gateway itself says 100
  nanoseconds upstream_idle = seconds(20);  // an unused upstream connection
  nanoseconds linger = seconds(2);          // after an answer that closes
  nanoseconds drain_idle = seconds(1);      // an idle client connection of a draining gateway
};

// GW-11: an open proxy is no accident that a strict gateway allows.
[[nodiscard]] inline Status check_access(const Settings& settings) {
  const bool loopback = classify(settings.listen.address) == IpClass::Loopback;
  const bool open = settings.auth.empty() && settings.allow_cidrs.empty();
  if (!settings.strict || loopback || !open) return ok();
  return Error{ErrorCode::InvalidArgument, Origin::Client,
               "gateway.listen " + settings.listen.str() +
                   " would be an open proxy: set gateway.auth or gateway.access.allowCIDRs, or "
                   "listen on 127.0.0.1"};
}

}  // namespace proxypool::gateway
