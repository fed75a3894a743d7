// Small types that only the configuration knows: addresses of listeners and peers, enumerations.
//
// Enumerations that the domain obeys (Strategy, Balancer, …) are in domain/routing/policy.hpp.
//
// Thread rule: immutable values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxypool/base/ip.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/domain/routing/policy.hpp"

namespace proxypool::config {

// Where a server listens: "127.0.0.1:8080", "[::1]:8080". Port 0 takes any free port.
struct ListenAddress {
  IpAddress address = IpAddress::v4(0x7f000001);
  std::uint16_t port = 0;

  [[nodiscard]] bool loopback() const noexcept { return classify(address) == IpClass::Loopback; }
  [[nodiscard]] std::string str() const {
    const auto host = address.str();
    return (address.is_v4() ? host : "[" + host + "]") + ":" + std::to_string(port);
  }
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// A peer to dial: a name or an address without brackets, and a port.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  [[nodiscard]] std::string str() const {
    const bool bracket = host.find(':') != std::string::npos;
    return (bracket ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// What a client proves itself with. A hash, as StoredHash writes it, may stand in the file itself;
// a plain password comes from the environment or from a file.
struct ClientSecret {
  SecretString value;
  bool hashed = false;
};

enum class StorageMode : std::uint8_t { Embedded, External };
enum class TlsMode : std::uint8_t { Disabled, Mtls };
enum class TlsMinimum : std::uint8_t { Tls12, Tls13 };
enum class ProxyProtocol : std::uint8_t { Off, Required };
enum class AuthMode : std::uint8_t { None, UsernamePassword, ApiKey, Bearer, IpWhitelist, Any };
enum class ProviderType : std::uint8_t { Static, File, Http, Gateway };
enum class ResponseFormat : std::uint8_t { Text, Json, Jsonl, Csv };
enum class LogLevel : std::uint8_t { Trace, Debug, Info, Warn, Error };
enum class LogFormat : std::uint8_t { Text, Json };

}  // namespace proxypool::config

namespace proxypool::domain {

template <>
struct Spelling<config::StorageMode> {
  static constexpr std::string_view names[] = {"embedded", "external"};
};
template <>
struct Spelling<config::TlsMode> {
  static constexpr std::string_view names[] = {"disabled", "mtls"};
};
template <>
struct Spelling<config::TlsMinimum> {
  static constexpr std::string_view names[] = {"TLS1.2", "TLS1.3"};
};
template <>
struct Spelling<config::ProxyProtocol> {
  static constexpr std::string_view names[] = {"off", "required"};
};
template <>
struct Spelling<config::AuthMode> {
  static constexpr std::string_view names[] = {"none",   "usernamePassword", "apiKey",
                                               "bearer", "ipWhitelist",      "any"};
};
template <>
struct Spelling<config::ProviderType> {
  static constexpr std::string_view names[] = {"static", "file", "http", "gateway"};
};
template <>
struct Spelling<config::ResponseFormat> {
  static constexpr std::string_view names[] = {"text", "json", "jsonl", "csv"};
};
template <>
struct Spelling<config::LogLevel> {
  static constexpr std::string_view names[] = {"trace", "debug", "info", "warn", "error"};
};
template <>
struct Spelling<config::LogFormat> {
  static constexpr std::string_view names[] = {"text", "json"};
};

}  // namespace proxypool::domain
