// What the fixture's servers share: the proxies with their faults and counters, the journal, the
// vendor's mood.
//
// Thread rule: one thread, that of the fixture.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "loadgen/fault.hpp"
#include "loadgen/fixture.hpp"
#include "loadgen/journal.hpp"
#include "loadgen/stream.hpp"

namespace proxypool::loadgen {

struct ProxyCounters {
  std::uint64_t connections = 0;
  std::uint64_t requests = 0;  // CONNECT included
  std::uint64_t tunnels = 0;
  std::uint64_t wrong_credentials = 0;
  std::uint64_t late_connections = 0;  // opened after the vendor's word on this proxy had run out
  std::uint32_t in_flight = 0;         // requests and tunnels, not idle connections
  std::uint32_t in_flight_max = 0;
};

struct FixtureProxy {
  unsigned index = 0;
  Fault fault;
  bool running = true;
  ProxyCounters counters;
  std::int64_t offered_until_ms = 0;  // 0: never offered by the vendor
  std::shared_ptr<Listener> listener;

  // Makes listening fit `fault` and `running`.
  void apply();
};

// Counts a request in flight, until released or destroyed.
class InFlight {
 public:
  explicit InFlight(std::shared_ptr<FixtureProxy> proxy);
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  ~InFlight() { release(); }
  // Called before the last byte of an answer leaves: whoever reads it may send the next request
  // before our own coroutine runs again.
  void release() noexcept;

 private:
  std::shared_ptr<FixtureProxy> proxy_;
};

enum class VendorMode : std::uint8_t { Ok, Empty, Error, Down, Hang };
std::optional<VendorMode> parse_vendor_mode(std::string_view text);
std::string_view to_string(VendorMode mode);

struct FixtureState {
  FixtureOptions options;
  std::shared_ptr<const net::TlsContext> tls;  // of the proxies; null: they speak plain HTTP
  std::vector<std::shared_ptr<FixtureProxy>> proxies;
  std::shared_ptr<Listener> vendor;
  std::shared_ptr<Listener> origin;
  Journal journal;
  VendorMode vendor_mode = VendorMode::Ok;
  std::uint64_t vendor_calls = 0;
  std::uint64_t vendor_offered = 0;
  std::uint64_t origin_requests = 0;
  std::size_t vendor_next = 0;  // where the next partial answer begins
  // Local port of a proxy's connection to the origin → that proxy.
  std::unordered_map<std::uint16_t, unsigned> dialled;

  [[nodiscard]] Tcp::endpoint origin_endpoint() const;
  [[nodiscard]] const char* proxy_scheme() const noexcept { return tls ? "https" : "http"; }
};

using FixtureStatePtr = std::shared_ptr<FixtureState>;

// One connection each.
awaitable<void> serve_origin(FixtureStatePtr state, StreamPtr stream);
awaitable<void> serve_vendor(FixtureStatePtr state, StreamPtr stream);
awaitable<void> serve_proxy(FixtureStatePtr state, std::shared_ptr<FixtureProxy> proxy,
                            StreamPtr client);

std::string to_text(const Tcp::endpoint& endpoint);

}  // namespace proxypool::loadgen
