#include "loadgen/fixture_state.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace proxypool::loadgen {
namespace {

constexpr std::array<std::string_view, 5> kModes = {"ok", "empty", "error", "down", "hang"};

}  // namespace

void FixtureProxy::apply() {
  if (!running) {
    listener->stop();
  } else if (fault.kind == Fault::Kind::Refuse) {
    listener->refuse();
  } else {
    listener->start();
  }
}

InFlight::InFlight(std::shared_ptr<FixtureProxy> proxy) : proxy_(std::move(proxy)) {
  auto& counters = proxy_->counters;
  ++counters.requests;
  ++counters.in_flight;
  counters.in_flight_max = std::max(counters.in_flight_max, counters.in_flight);
}

void InFlight::release() noexcept {
  if (!proxy_) return;
  --proxy_->counters.in_flight;
  proxy_.reset();
}

std::optional<VendorMode> parse_vendor_mode(std::string_view text) {
  const auto at = std::find(kModes.begin(), kModes.end(), text);
  if (at == kModes.end()) return std::nullopt;
  return static_cast<VendorMode>(at - kModes.begin());
}

std::string_view to_string(VendorMode mode) {
  return kModes[static_cast<std::size_t>(mode)];
}

Tcp::endpoint FixtureState::origin_endpoint() const {
  return {asio::ip::make_address(options.host), origin->port()};
}

std::string to_text(const Tcp::endpoint& endpoint) {
  const auto address = endpoint.address();
  const std::string host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  return host + ":" + std::to_string(endpoint.port());
}

}  // namespace proxypool::loadgen
