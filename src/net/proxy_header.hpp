// The PROXY protocol, versions 1 and 2: what a balancer says about the connection that it passes
// on.
//
// The idea: one pure function over the bytes at hand. Its answer depends on the bytes alone, never
// on how they were cut, and what cannot become a header any more is refused at its first wrong
// byte. Whether a header may be believed is the caller's to know.
//
// Thread rule: pure function.
// Limits:      107 bytes in version 1, 536 in version 2; over: refused.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "net/http/field_line.hpp"
#include "net/socket.hpp"

namespace proxypool::net {

inline constexpr std::size_t kProxyHeaderBytesMax = 536;

struct ProxyHeader {
  ParseState state = ParseState::NeedMore;
  std::size_t size = 0;  // of the header, once Done; what follows belongs to the client
  // Nothing: the connection speaks for itself (LOCAL, UNKNOWN, no address of a kind we know).
  std::optional<Endpoint> source;
};

[[nodiscard]] ProxyHeader parse_proxy_header(std::string_view bytes) noexcept;

}  // namespace proxypool::net
