// What a client presents in Authorization or Proxy-Authorization: Basic or Bearer (RFC 7617, 6750).
//
// Parsing only; whether it is right is decided where the hashes are.
//
// Thread rule: pure functions.
// Limits: a field value of at most 8 KiB; over: nothing was presented.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "proxypool/base/secret.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::domain {

enum class AuthScheme : std::uint8_t { Basic, Bearer };

struct Presented {
  AuthScheme scheme = AuthScheme::Basic;
  SecretString username;  // Basic only; may be an API key
  SecretString secret;    // password or token
};

// Nothing when the value is of another scheme or malformed.
inline std::optional<Presented> parse_authorization(std::string_view value) {
  constexpr std::size_t kBytesMax = 8192;
  value = trim(value);
  const auto space = value.find(' ');
  if (value.size() > kBytesMax || space == std::string_view::npos) return std::nullopt;
  const auto scheme = value.substr(0, space);
  const auto rest = trim(value.substr(space));
  if (rest.empty() || rest.find(' ') != std::string_view::npos) return std::nullopt;
  Presented presented;
  if (equal_ignoring_case(scheme, "bearer")) {
    presented.scheme = AuthScheme::Bearer;
    presented.secret = SecretString(std::string(rest));
    return presented;
  }
  if (!equal_ignoring_case(scheme, "basic")) return std::nullopt;
  auto decoded = base64_decode(rest);
  if (!decoded) return std::nullopt;
  const SecretString pair(*std::move(decoded));
  const auto colon = pair.reveal().find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  presented.username = SecretString(std::string(pair.reveal().substr(0, colon)));
  presented.secret = SecretString(std::string(pair.reveal().substr(colon + 1)));
  return presented;
}

}  // namespace proxypool::domain
