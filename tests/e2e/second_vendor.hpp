// A second vendor for a cluster: a fixture of its own, and the upstream that gets its proxies
// there.
//
// Thread rule: one thread, that of the test.
#pragma once

#include <string>

#include "support/cluster.hpp"

namespace proxypool::e2e {

// An item of `upstreams:` with this id. Its water mark is above what the vendor has, so that the
// vendor is asked for more all the time.
inline std::string upstream_of(const support::FixtureProcess& fixture, const std::string& id,
                               const std::string& fetch = "requestInterval: 100ms") {
  return "- id: " + id + "\n  provider:\n    type: http\n    request: {url: 'http://127.0.0.1:" +
         std::to_string(fixture.vendor_port()) +
         "/json/array'}\n    response: {format: json}\n    records: {from: 'body[*]'}\n"
         "    map: {host: item.host, port: item.port, username: item.username,\n"
         "          password: item.password, expires: {after: item.ttl, unit: s}}\n"
         "  allowPrivateAddresses: true\n  extraction: {reserve: 0}\n"
         "  fetch: {estimatedIPsPerCall: 10, " +
         fetch + "}\n  pool: {minimum: 500, target: 500, maxConcurrency: 10}\n";
}

// Requests and tunnels that the proxies of a fixture have seen.
inline std::uint64_t requests_of(support::FixtureProcess& fixture) {
  std::uint64_t all = 0;
  for (const auto stats = fixture.stats(); const auto& proxy : stats.at("proxies")) {
    all += proxy.at("requests").get<std::uint64_t>();
  }
  return all;
}

}  // namespace proxypool::e2e
