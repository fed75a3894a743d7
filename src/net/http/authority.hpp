// host[:port] as it stands in a request target or a Host field, checked and taken apart.
//
// The rule (GW-4): a name of letters, digits and "-._~", or an IPv6 literal in brackets. No user
// information, no percent sign, no zone. What a host denotes is the target policy's business.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace proxypool::net {

// RFC 1035: 253 characters without the final dot.
inline constexpr std::size_t kHostBytesMax = 253;

struct Authority {
  std::string_view text;  // as written, without the colon of an empty port
  std::string_view host;  // without brackets
  std::uint16_t port = 0;
  bool has_port = false;
  bool ipv6 = false;
};

enum class AuthorityFault : std::uint8_t { None, UserInformation, Host, Port };

// `fault` tells what is wrong when there is no value.
[[nodiscard]] std::optional<Authority> parse_authority(std::string_view text,
                                                       AuthorityFault& fault) noexcept;
// The same for the authority at the beginning of `text`, which ends there or at '/' or '?'.
// `size`: how many bytes it takes.
[[nodiscard]] std::optional<Authority> parse_leading_authority(std::string_view text,
                                                               std::size_t& size,
                                                               AuthorityFault& fault) noexcept;

// A registered name or a dotted IPv4 address: labels of 1 to 63 characters, at most one final dot.
[[nodiscard]] bool is_host_name(std::string_view host) noexcept;

// Lower case and without a final dot, as rules compare it. Returns a part of `out`.
// REQUIRES: out.size() ≥ host.size().
[[nodiscard]] std::string_view canonical_host(std::string_view host, std::span<char> out) noexcept;
[[nodiscard]] std::string canonical_host(std::string_view host);

}  // namespace proxypool::net
