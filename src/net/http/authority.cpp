#include "net/http/authority.hpp"

#include "net/http/characters.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::net {
namespace {

constexpr std::size_t kLabelBytesMax = 63;

// How many bytes at the beginning of `text` are a host name; 0 when none are.
std::size_t host_name_prefix(std::string_view text) noexcept {
  std::size_t label_at = 0;
  std::size_t at = 0;
  for (; at < text.size() && in(kHostByte, text[at]); ++at) {
    if (text[at] != '.') continue;
    if (at == label_at || at - label_at > kLabelBytesMax) return 0;
    label_at = at + 1;
  }
  const bool final_dot = at != 0 && at == label_at;
  if (at - label_at > kLabelBytesMax || at > kHostBytesMax + (final_dot ? 1 : 0)) return 0;
  return at;
}

// ":", ":8080" or nothing at text[at]; moves `at` behind it. False when it is none of these.
bool take_port(std::string_view text, std::size_t& at, Authority& out) noexcept {
  if (at == text.size() || text[at] != ':') return true;
  const std::size_t first = ++at;
  std::uint32_t port = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    if (at - first == 5) return false;
    port = port * 10 + static_cast<std::uint32_t>(text[at] - '0');
  }
  if (at == first) return true;
  if (port == 0 || port > 65'535) return false;
  out.port = static_cast<std::uint16_t>(port);
  out.has_port = true;
  return true;
}

bool ends_authority(std::string_view text, std::size_t at) noexcept {
  return at == text.size() || text[at] == '/' || text[at] == '?';
}

// What a reader of the log should know: a name before '@' tells more than "invalid host".
AuthorityFault host_fault(std::string_view text) noexcept {
  const auto end = text.find_first_of("/?@");
  return end != std::string_view::npos && text[end] == '@' ? AuthorityFault::UserInformation
                                                           : AuthorityFault::Host;
}

}  // namespace

bool is_host_name(std::string_view host) noexcept {
  return !host.empty() && host_name_prefix(host) == host.size();
}

std::optional<Authority> parse_leading_authority(std::string_view text, std::size_t& size,
                                                 AuthorityFault& fault) noexcept {
  Authority out;
  std::size_t at = 0;
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    out.host = close == std::string_view::npos ? std::string_view{} : text.substr(1, close - 1);
    out.ipv6 = true;
    const auto address = IpAddress::parse(out.host);
    if (address && !address->is_v4()) at = close + 1;
  } else {
    at = host_name_prefix(text);
    out.host = text.substr(0, at);
  }
  const std::size_t host_end = at;
  fault = host_fault(text.substr(at));
  if (at == 0 || fault == AuthorityFault::UserInformation) return std::nullopt;
  if (!ends_authority(text, at) && text[at] != ':') return std::nullopt;
  fault = AuthorityFault::Port;
  if (!take_port(text, at, out) || !ends_authority(text, at)) return std::nullopt;
  size = at;
  out.text = text.substr(0, out.has_port ? at : host_end);
  fault = AuthorityFault::None;
  return out;
}

std::optional<Authority> parse_authority(std::string_view text, AuthorityFault& fault) noexcept {
  std::size_t size = 0;
  auto out = parse_leading_authority(text, size, fault);
  if (!out || size == text.size()) return out;
  fault = AuthorityFault::Host;
  return std::nullopt;
}

std::string_view canonical_host(std::string_view host, std::span<char> out) noexcept {
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  for (std::size_t i = 0; i < host.size(); ++i) out[i] = lower(host[i]);
  return {out.data(), host.size()};
}

std::string canonical_host(std::string_view host) {
  std::string out(host.size(), '\0');
  out.resize(canonical_host(host, std::span<char>(out)).size());
  return out;
}

}  // namespace proxypool::net
