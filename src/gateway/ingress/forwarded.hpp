// Who sent a request that came through proxies of our own, by X-Forwarded-For (GW-3).
//
// Each proxy adds whom it saw at the right end. So the list is believed from there, as long as the
// one who says so is trusted: the right-most address that is none of ours is the caller, and what
// stands left of it anybody may have written.
//
// Thread rule: pure function.
#pragma once

#include <vector>

#include "net/http/head.hpp"
#include "proxypool/base/ip.hpp"

namespace proxypool::gateway {

[[nodiscard]] bool contains(const std::vector<Cidr>& ranges, const IpAddress& address) noexcept;

// `peer` when it is not trusted, or names nobody. An element that is no address ends the list.
[[nodiscard]] IpAddress caller_of(const net::RequestHead& head, const IpAddress& peer,
                                  const std::vector<Cidr>& trusted) noexcept;

}  // namespace proxypool::gateway
