// The identity of a proxy: unique key, 64-bit id, credential version (rulings, "Identity").
//
// Two vendors that bring the same endpoint with the same credential bring the same proxy, so the
// upstream is no part of the key. Passwords enter through a keyed hash only. The hash is passed in
// (HMAC-SHA-256 under the cluster's identity key, bound by the caller): the domain knows no
// cryptography.
//
// Thread rule: pure functions.
// Invariant:   different keys have different encodings, and no key's encoding is a message of
//              credential_version.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxypool/base/id.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

// 32 bytes of a keyed hash over the message.
template <class F>
concept KeyedHash = requires(const F& hash, std::string_view message) {
  { hash(message) } -> std::convertible_to<std::array<std::uint8_t, 32>>;
};

// base64url of the first 16 bytes; empty when there is no credential to version.
template <KeyedHash F>
CredentialVersion credential_version(const Credential& credential, const F& hash) {
  if (credential.username.empty() && credential.password.empty()) return {};
  std::string message = credential.username;
  message += '\0';
  message += credential.password.reveal();
  const std::array<std::uint8_t, 32> digest = hash(std::string_view(message));
  const SecretString wiped(std::move(message));
  return CredentialVersion(base64_encode(
      {reinterpret_cast<const char*>(digest.data()), std::size_t{16}}, /*url_safe=*/true));
}

// Every field with its length before it; two zero bytes set it apart from a credential's message,
// which never starts so: passwords hold no zero byte.
inline std::string unique_key(const Endpoint& endpoint, std::string_view username,
                              const CredentialVersion& version) {
  std::string key(2, '\0');
  const auto append_number = [&key](std::uint32_t value) {
    for (unsigned shift = 32; shift > 0; shift -= 8) {
      key += static_cast<char>((value >> (shift - 8)) & 0xFFU);
    }
  };
  const auto append_text = [&](std::string_view text) {
    append_number(static_cast<std::uint32_t>(text.size()));
    key += text;
  };
  append_text(to_string(endpoint.scheme));
  append_text(endpoint.host);
  append_number(endpoint.port);
  append_text(username);
  append_text(version.str());
  return key;
}

// A collision is possible (2^-64 per pair) and is caught at admission by comparing the keys.
template <KeyedHash F>
ProxyId proxy_id(std::string_view key, const F& hash) {
  const std::array<std::uint8_t, 32> digest = hash(key);
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < 8; ++i) id = (id << 8U) | digest[i];
  return ProxyId(id);
}

// The same identity, whatever the upstream: the comparison behind an equal id.
inline bool same_identity(const Proxy& a, const Proxy& b) {
  return a.endpoint == b.endpoint && a.username == b.username &&
         a.credential_version == b.credential_version;
}

}  // namespace proxypool::domain
