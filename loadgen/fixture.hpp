// One process that plays a vendor API, forward proxies and an origin, all on loopback, with faults
// that can be switched while it runs.
//
// Names and foreign addresses never leave the machine: the fixture's proxies take every host but
// loopback to the fixture's own origin.
//
// Thread rule: runs on the calling thread until SIGINT or SIGTERM.
// Limits:      kFixtureProxiesMax proxies; see journal.hpp for what is remembered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loadgen/fault.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::loadgen {

inline constexpr unsigned kFixtureProxiesMax = 10'000;

struct FixtureOptions {
  std::string host = "127.0.0.1";
  std::uint16_t vendor_port = 0;      // 0: a free one
  std::uint16_t origin_port = 0;      // 0: a free one
  std::uint16_t proxy_port_base = 0;  // proxy i listens on base + i; 0: free ones
  unsigned proxies = 8;
  bool require_auth = true;
  std::string user = "fixture";
  SecretString password{"fixture-password"};
  std::string tls_cert;  // PEM files; with both the proxies speak TLS
  std::string tls_key;
  std::vector<FaultRule> faults;
  seconds ttl{600};  // of the proxies that the vendor API hands out, unless the call says ?ttl=
  std::string ready_file;      // written once all ports listen; empty: none
  std::string upstreams_file;  // the proxies, one scheme://user:password@host:port a line
};

// Prints one line of JSON with all ports to standard output, and a table for people to standard
// error when that is a terminal. Fails before it serves when a port is taken or a file cannot be
// written; otherwise serves until a signal comes.
Status run_fixture(const FixtureOptions& options);

}  // namespace proxypool::loadgen
