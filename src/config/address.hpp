// HOST:PORT in text.
//
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "config/types.hpp"

namespace proxypool::config {

// The host in its canonical spelling, IPv6 in brackets, the port from 1 on.
std::optional<HostPort> parse_host_port(std::string_view text);
// An address, no name; port 0 takes any free port.
std::optional<ListenAddress> parse_listen_address(std::string_view text);

// A loopback address, or localhost.
bool is_loopback(const HostPort& peer) noexcept;

}  // namespace proxypool::config
