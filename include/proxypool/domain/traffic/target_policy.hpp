// Which destinations a request may name: the defence against SSRF and DNS rebinding (GW-20).
//
// Asked twice: with the host as it was written, before anything resolves it, and with each address
// that a resolution gave; the address that passed is the one to dial. IPv4 is believed in one
// spelling only, four plain decimal parts, since resolvers read the others differently. allowCIDRs
// is a list of exceptions for addresses; it opens no name and no odd spelling.
//
// Thread rule: immutable; any thread may ask. No call allocates.
// Invariant:   without an exception, an address passes only if every IPv4 address in it would.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxypool/base/host.hpp"
#include "proxypool/base/ip.hpp"

namespace proxypool::domain {

enum class TargetVerdict : std::uint8_t {
  Allowed,
  BadHost,        // neither an address nor a valid name
  NumericHost,    // an IPv4 address in an odd spelling
  LocalName,      // localhost or below
  DeniedHost,     // denyHosts
  DeniedPort,     // 0, or not in allowPorts
  DeniedAddress,  // loopback, private, link-local, metadata, multicast and kin
  DeniedCidr,     // denyCIDRs
};

constexpr std::string_view to_string(TargetVerdict verdict) noexcept {
  constexpr std::string_view kNames[] = {"allowed",        "bad_host",    "numeric_host",
                                         "local_name",     "denied_host", "denied_port",
                                         "denied_address", "denied_cidr"};
  return kNames[static_cast<std::size_t>(verdict)];
}

struct TargetRules {
  std::vector<Cidr> deny_cidrs;
  std::vector<Cidr> allow_cidrs;
  std::vector<std::string> deny_hosts;     // canonical, or "*.suffix"
  std::vector<std::uint16_t> allow_ports;  // empty: every port
};

class TargetPolicy {
 public:
  TargetPolicy() = default;
  explicit TargetPolicy(TargetRules rules) : rules_(std::move(rules)) {
    std::sort(rules_.allow_ports.begin(), rules_.allow_ports.end());
  }

  // The host as the request wrote it, IPv6 in brackets or without. An address is judged at once; a
  // name that passes must be judged again by its addresses where this program resolves it.
  [[nodiscard]] TargetVerdict check_host(std::string_view host, std::uint16_t port) const noexcept {
    if (!port_allowed(port)) return TargetVerdict::DeniedPort;
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
      const auto address = IpAddress::parse(host.substr(1, host.size() - 2));
      if (!address || address->is_v4()) return TargetVerdict::BadHost;
      return check_address(*address);
    }
    if (const auto address = IpAddress::parse(host)) return check_address(*address);
    if (ends_in_number(host)) return TargetVerdict::NumericHost;
    return check_name(host);
  }

  // An address that a resolution gave or that the request named.
  [[nodiscard]] TargetVerdict check_address(const IpAddress& address) const noexcept {
    const EmbeddedV4 embedded = embedded_v4(address);
    if (within(rules_.allow_cidrs, address)) return TargetVerdict::Allowed;
    // Dialling a mapped address is dialling the IPv4 address; no other embedding is an exception.
    const bool mapped = embedded.count == 1 && address.word(0) == 0 && address.word(4) == 0 &&
                        address.word(8) == 0x0000FFFF;
    if (mapped && within(rules_.allow_cidrs, IpAddress::v4(embedded.addresses[0]))) {
      return TargetVerdict::Allowed;
    }
    if (classify(address) != IpClass::Public) return TargetVerdict::DeniedAddress;
    if (within(rules_.deny_cidrs, address)) return TargetVerdict::DeniedCidr;
    for (std::size_t i = 0; i < embedded.count; ++i) {
      if (within(rules_.deny_cidrs, IpAddress::v4(embedded.addresses[i]))) {
        return TargetVerdict::DeniedCidr;
      }
    }
    return TargetVerdict::Allowed;
  }

 private:
  static bool within(const std::vector<Cidr>& ranges, const IpAddress& address) noexcept {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Cidr& range) { return range.contains(address); });
  }
  [[nodiscard]] bool port_allowed(std::uint16_t port) const noexcept {
    if (port == 0) return false;
    return rules_.allow_ports.empty() ||
           std::binary_search(rules_.allow_ports.begin(), rules_.allow_ports.end(), port);
  }
  [[nodiscard]] TargetVerdict check_name(std::string_view text) const noexcept {
    if (!text.empty() && text.back() == '.') text.remove_suffix(1);
    std::array<char, 253> buffer{};
    if (text.size() > buffer.size()) return TargetVerdict::BadHost;
    std::transform(text.begin(), text.end(), buffer.begin(), [](char c) { return lower(c); });
    const std::string_view name(buffer.data(), text.size());
    if (!is_host_name(name)) return TargetVerdict::BadHost;
    if (name == "localhost" || host_matches(name, "*.localhost")) return TargetVerdict::LocalName;
    for (const std::string& pattern : rules_.deny_hosts) {
      if (host_matches(name, pattern)) return TargetVerdict::DeniedHost;
    }
    return TargetVerdict::Allowed;
  }

  TargetRules rules_;
};

}  // namespace proxypool::domain
