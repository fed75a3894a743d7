// http and https URLs, taken apart for a client.
//
// Thread rule: plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"

namespace proxypool::net {

struct Url {
  bool tls = false;
  std::string host;  // without brackets
  std::uint16_t port = 80;
  std::string authority;  // as a Host field says it
  std::string target;     // path and query, begins with '/'

  // Same scheme, host and port.
  [[nodiscard]] bool same_origin(const Url& other) const noexcept;
};

// No user information; the fragment is dropped. The error does not repeat the URL: a query may hold
// a vendor's key.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

// What `location` means, seen from `base` (RFC 3986 §5.2, without dot segments taken out).
[[nodiscard]] Result<Url> resolve(const Url& base, std::string_view location);

}  // namespace proxypool::net
