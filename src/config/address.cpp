#include "config/address.hpp"

#include "proxypool/base/host.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::config {

std::optional<HostPort> parse_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto host = text.substr(0, colon);
  if (host.find(':') != std::string_view::npos && !host.starts_with('[')) return std::nullopt;
  auto canonical = canonical_host(host);
  const auto port = parse_port(text.substr(colon + 1));
  if (!canonical || !port) return std::nullopt;
  return HostPort{*std::move(canonical), *port};
}

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
  const bool any_port = text.ends_with(":0");
  std::string with_port(text);
  if (any_port) with_port.back() = '1';
  const auto peer = parse_host_port(with_port);
  const auto address = peer ? IpAddress::parse(peer->host) : std::nullopt;
  if (!address) return std::nullopt;
  return ListenAddress{*address, any_port ? std::uint16_t{0} : peer->port};
}

bool is_loopback(const HostPort& peer) noexcept {
  const auto address = IpAddress::parse(peer.host);
  return peer.host == "localhost" || (address && classify(*address) == IpClass::Loopback);
}

}  // namespace proxypool::config
