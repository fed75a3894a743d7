// URLs, authorities and request targets, as far as a load generator needs them.
//
// Thread rule: pure functions, plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"

namespace proxypool::loadgen {

// host and port of "host:port", "[::1]:80" or "host" with a default port.
struct Authority {
  std::string host;  // without brackets
  std::uint16_t port = 0;
  friend bool operator==(const Authority&, const Authority&) = default;
};
std::optional<Authority> parse_authority(std::string_view text, std::uint16_t default_port);
std::string to_text(const Authority& authority);

struct Url {
  std::string scheme;  // lower case
  std::string user;
  std::string password;
  Authority authority;
  std::string target;  // path and query; at least "/"
};
// scheme://[user[:password]@]host[:port][/path][?query]; schemes http and https. User and password
// are percent-decoded.
Result<Url> parse_url(std::string_view text);

// The value of `name` in the query of a target, percent-decoded.
std::optional<std::string> query_value(std::string_view target, std::string_view name);
// The target without its query.
std::string_view path_of(std::string_view target);
std::string percent_decode(std::string_view text);

}  // namespace proxypool::loadgen
