#include "net/proxy_header.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "proxypool/base/text.hpp"

namespace proxypool::net {
namespace {

constexpr std::string_view kTextBegin = "PROXY ";
constexpr std::string_view kBinaryBegin{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr std::size_t kTextBytesMax = 107;
constexpr std::size_t kBinaryHeadBytes = 16;

constexpr ProxyHeader kRefused{ParseState::Refused, 0, std::nullopt};

bool begins_alike(std::string_view a, std::string_view b) noexcept {
  const auto size = std::min(a.size(), b.size());
  return a.substr(0, size) == b.substr(0, size);
}

std::uint8_t byte_at(std::string_view bytes, std::size_t offset) noexcept {
  return static_cast<std::uint8_t>(bytes[offset]);
}

std::uint16_t short_at(std::string_view bytes, std::size_t offset) noexcept {
  return static_cast<std::uint16_t>(byte_at(bytes, offset) << 8U | byte_at(bytes, offset + 1));
}

// A dual-stack balancer names IPv4 clients ::ffff:192.0.2.1; ranges are written for 192.0.2.1.
IpAddress plain(const IpAddress& address) noexcept {
  const IpAddress v4 = IpAddress::v4(address.low32());
  return v4.bytes() == address.bytes() ? v4 : address;
}

std::optional<std::uint16_t> parse_number_of_port(std::string_view text) noexcept {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return parse_number<std::uint16_t>(text);
}

// "192.0.2.1 198.51.100.1 56324 443".
ProxyHeader parse_text_addresses(std::string_view text, bool v4, std::size_t size) noexcept {
  std::array<std::string_view, 4> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto end = text.find(' ');
    if ((end == std::string_view::npos) != (i == 3)) return kRefused;
    words[i] = text.substr(0, end);
    text.remove_prefix(i == 3 ? text.size() : end + 1);
  }
  const auto source = IpAddress::parse(words[0]);
  const auto destination = IpAddress::parse(words[1]);
  const auto port = parse_number_of_port(words[2]);
  if (!source || !destination || !port || !parse_number_of_port(words[3])) return kRefused;
  if (source->is_v4() != v4 || destination->is_v4() != v4) return kRefused;
  return {ParseState::Done, size, Endpoint{plain(*source), *port}};
}

ProxyHeader parse_text(std::string_view bytes) noexcept {
  const auto end = bytes.substr(0, kTextBytesMax).find('\n');
  if (end == std::string_view::npos) {
    return bytes.size() < kTextBytesMax ? ProxyHeader{} : kRefused;
  }
  const std::size_t size = end + 1;
  if (bytes[end - 1] != '\r') return kRefused;
  const auto line = bytes.substr(kTextBegin.size(), end - 1 - kTextBegin.size());
  const auto family = line.substr(0, line.find(' '));
  // What follows is to be ignored.
  if (family == "UNKNOWN") return {ParseState::Done, size, std::nullopt};
  const bool v4 = family == "TCP4";
  if ((!v4 && family != "TCP6") || family.size() == line.size()) return kRefused;
  return parse_text_addresses(line.substr(family.size() + 1), v4, size);
}

IpAddress v6_at(std::string_view bytes, std::size_t offset) noexcept {
  IpAddress::Bytes out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = byte_at(bytes, offset + i);
  return plain(IpAddress::v6(out));
}

ProxyHeader parse_binary(std::string_view bytes) noexcept {
  constexpr unsigned kStream = 1;
  constexpr unsigned kInet = 1;
  constexpr unsigned kInet6 = 2;
  constexpr unsigned kUnix = 3;
  if (bytes.size() > 12) {
    const unsigned command = byte_at(bytes, 12);
    if (command != 0x20 && command != 0x21) return kRefused;
  }
  if (bytes.size() > 13) {
    const unsigned kind = byte_at(bytes, 13);
    if (kind >> 4U > kUnix || (kind & 15U) > 2) return kRefused;
  }
  if (bytes.size() < kBinaryHeadBytes) return {};
  const std::size_t length = short_at(bytes, 14);
  const std::size_t size = kBinaryHeadBytes + length;
  if (size > kProxyHeaderBytesMax) return kRefused;
  const bool local = byte_at(bytes, 12) == 0x20;
  const unsigned family = byte_at(bytes, 13) >> 4U;
  const bool stream = (byte_at(bytes, 13) & 15U) == kStream;
  const bool addressed = !local && (family == kInet || family == kInet6);
  if (addressed && (!stream || length < (family == kInet ? 12U : 36U))) return kRefused;
  if (bytes.size() < size) return {};
  ProxyHeader out{ParseState::Done, size, std::nullopt};
  if (addressed && family == kInet) {
    const auto host = std::uint32_t{short_at(bytes, 16)} << 16U | short_at(bytes, 18);
    out.source = Endpoint{IpAddress::v4(host), short_at(bytes, 24)};
  } else if (addressed) {
    out.source = Endpoint{v6_at(bytes, 16), short_at(bytes, 48)};
  }
  return out;
}

}  // namespace

ProxyHeader parse_proxy_header(std::string_view bytes) noexcept {
  if (begins_alike(bytes, kTextBegin)) {
    return bytes.size() < kTextBegin.size() ? ProxyHeader{} : parse_text(bytes);
  }
  if (!begins_alike(bytes, kBinaryBegin)) return kRefused;
  return bytes.size() < kBinaryBegin.size() ? ProxyHeader{} : parse_binary(bytes);
}

}  // namespace proxypool::net
