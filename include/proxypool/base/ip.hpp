// IP addresses, ranges, and the classes that the target policy (GW-20) speaks about.
//
// An address is 16 bytes; IPv4 is kept as IPv4-mapped together with a flag, so that one comparison
// and one range test serve both families.
//
// Thread rule: immutable values.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/text.hpp"

namespace proxypool {

class IpAddress {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  // The unspecified IPv4 address.
  constexpr IpAddress() noexcept : IpAddress(v4(0)) {}
  // Host byte order: 0x7f000001 is 127.0.0.1.
  static constexpr IpAddress v4(std::uint32_t host_order) noexcept {
    Bytes bytes{};
    bytes[10] = bytes[11] = 0xff;
    for (std::size_t i = 0; i < 4; ++i) {
      bytes[12 + i] = static_cast<std::uint8_t>(host_order >> (24U - 8U * i));
    }
    return {bytes, true};
  }
  static constexpr IpAddress v6(const Bytes& bytes) noexcept { return {bytes, false}; }

  // Exactly four decimal parts without leading zeros, or RFC 4291 text without zone and brackets.
  static std::optional<IpAddress> parse(std::string_view text) noexcept {
    return text.find(':') == std::string_view::npos ? parse_v4(text) : parse_v6(text);
  }

  [[nodiscard]] constexpr bool is_v4() const noexcept { return is_v4_; }
  [[nodiscard]] constexpr const Bytes& bytes() const noexcept { return bytes_; }
  // The last four bytes in host order: the address itself for IPv4.
  [[nodiscard]] constexpr std::uint32_t low32() const noexcept { return word(12); }
  // Four bytes from `offset` on, in host order.
  [[nodiscard]] constexpr std::uint32_t word(std::size_t offset) const noexcept {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = (value << 8U) | bytes_[offset + i];
    return value;
  }

  // RFC 5952 for IPv6; no brackets.
  [[nodiscard]] std::string str() const { return is_v4_ ? str_v4() : str_v6(); }

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  constexpr IpAddress(const Bytes& bytes, bool is_v4) noexcept : bytes_(bytes), is_v4_(is_v4) {}

  static std::optional<IpAddress> parse_v4(std::string_view text) noexcept {
    std::uint32_t value = 0;
    for (int part = 0; part < 4; ++part) {
      const auto end = part < 3 ? text.find('.') : text.size();
      if (end == std::string_view::npos) return std::nullopt;
      const auto digits = text.substr(0, end);
      const auto number = parse_number<std::uint32_t>(digits);
      if (!number || *number > 255 || (digits.size() > 1 && digits.front() == '0')) {
        return std::nullopt;
      }
      value = (value << 8U) | *number;
      text.remove_prefix(part < 3 ? end + 1 : end);
    }
    return v4(value);
  }

  static std::optional<IpAddress> parse_v6(std::string_view text) noexcept {
    std::array<std::uint16_t, 8> groups{};
    std::size_t count = 0;
    std::optional<std::size_t> gap;
    if (text.substr(0, 2) == "::") {
      gap = 0;
      text.remove_prefix(2);
    }
    while (!text.empty()) {
      const auto end = text.find(':');
      const auto part = text.substr(0, end);
      if (part.find('.') != std::string_view::npos) {
        const auto tail = parse_v4(part);
        if (!tail || end != std::string_view::npos || count > 6) return std::nullopt;
        groups[count++] = static_cast<std::uint16_t>(tail->low32() >> 16U);
        groups[count++] = static_cast<std::uint16_t>(tail->low32());
        text = {};
        break;
      }
      std::uint16_t group = 0;
      const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), group, 16);
      if (part.empty() || part.size() > 4 || error != std::errc{} ||
          stop != part.data() + part.size() || count == 8) {
        return std::nullopt;
      }
      groups[count++] = group;
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
      if (text.empty()) return std::nullopt;  // a single colon at the end
      if (text.front() == ':') {
        if (gap) return std::nullopt;
        gap = count;
        text.remove_prefix(1);
      }
    }
    if (gap ? count > 7 : count != 8) return std::nullopt;
    if (gap) {
      std::rotate(groups.begin() + static_cast<std::ptrdiff_t>(*gap),
                  groups.begin() + static_cast<std::ptrdiff_t>(count), groups.end());
    }
    Bytes bytes{};
    for (std::size_t i = 0; i < 8; ++i) {
      bytes[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8U);
      bytes[2 * i + 1] = static_cast<std::uint8_t>(groups[i]);
    }
    return v6(bytes);
  }

  [[nodiscard]] std::string str_v4() const {
    std::string out;
    for (std::size_t i = 12; i < 16; ++i) {
      if (i > 12) out += '.';
      out += std::to_string(bytes_[i]);
    }
    return out;
  }

  [[nodiscard]] std::string str_v6() const {
    std::array<std::uint32_t, 8> groups{};
    for (std::size_t i = 0; i < 8; ++i) {
      groups[i] = static_cast<std::uint32_t>(bytes_[2 * i] << 8U) | bytes_[2 * i + 1];
    }
    std::size_t gap = 8;  // the first longest run of at least two zero groups
    std::size_t gap_size = 1;
    for (std::size_t i = 0; i < 8; ++i) {
      std::size_t run = 0;
      while (i + run < 8 && groups[i + run] == 0) ++run;
      if (run > gap_size) {
        gap = i;
        gap_size = run;
      }
    }
    std::string out;
    for (std::size_t i = 0; i < 8; ++i) {
      if (i == gap) {
        out += "::";
        i += gap_size - 1;
        continue;
      }
      if (!out.empty() && out.back() != ':') out += ':';
      std::array<char, 4> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + 4, groups[i], 16).ptr;
      out.append(digits.data(), end);
    }
    return out;
  }

  Bytes bytes_;
  bool is_v4_;
};

// An address range. IPv4 ranges hold IPv4 addresses only, IPv6 ranges IPv6 addresses only.
class Cidr {
 public:
  // "10.0.0.0/8", "fd00::/8", or a bare address (its own /32 or /128). Bits below the prefix must
  // be zero: a typing error is not silently widened.
  static std::optional<Cidr> parse(std::string_view text) noexcept {
    const auto slash = text.find('/');
    const auto address = IpAddress::parse(text.substr(0, slash));
    if (!address) return std::nullopt;
    unsigned bits = address->is_v4() ? 32 : 128;
    if (slash != std::string_view::npos) {
      const auto given = parse_number<unsigned>(text.substr(slash + 1));
      if (!given || *given > bits) return std::nullopt;
      bits = *given;
    }
    const Cidr range(*address, bits);
    if (mask(*address, range.prefix()) != address->bytes()) return std::nullopt;
    return range;
  }
  // REQUIRES: bits ≤ 32 for IPv4, ≤ 128 for IPv6.
  constexpr Cidr(IpAddress base, unsigned bits) noexcept : base_(base), bits_(bits) {}
  // The range of so many bits that the address is in. REQUIRES: as above.
  static Cidr around(const IpAddress& address, unsigned bits) noexcept {
    if (!address.is_v4()) return {IpAddress::v6(mask(address, bits)), bits};
    const std::uint32_t kept = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
    return {IpAddress::v4(address.low32() & kept), bits};
  }

  [[nodiscard]] constexpr const IpAddress& base() const noexcept { return base_; }
  [[nodiscard]] constexpr unsigned bits() const noexcept { return bits_; }

  [[nodiscard]] bool contains(const IpAddress& address) const noexcept {
    return address.is_v4() == base_.is_v4() && mask(address, prefix()) == mask(base_, prefix());
  }
  [[nodiscard]] std::string str() const { return base_.str() + "/" + std::to_string(bits_); }
  friend constexpr bool operator==(const Cidr&, const Cidr&) = default;

 private:
  [[nodiscard]] constexpr unsigned prefix() const noexcept {
    return base_.is_v4() ? bits_ + 96 : bits_;
  }
  static IpAddress::Bytes mask(const IpAddress& address, unsigned prefix) noexcept {
    IpAddress::Bytes bytes = address.bytes();
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned keep = prefix > 8 * i ? std::min(prefix - 8 * i, 8U) : 0;
      bytes[i] = static_cast<std::uint8_t>(bytes[i] & (0xff00U >> keep));
    }
    return bytes;
  }

  IpAddress base_;
  unsigned bits_;
};

enum class IpClass : std::uint8_t {
  Public,
  Unspecified,  // 0.0.0.0/8, ::
  Loopback,     // 127/8, ::1
  Private,      // 10/8, 172.16/12, 192.168/16, fec0::/10, 64:ff9b:1::/48
  LinkLocal,    // 169.254/16, fe80::/10
  UniqueLocal,  // fc00::/7
  SharedNat,    // 100.64/10 (carrier-grade NAT)
  Multicast,    // 224/4, ff00::/8
  Broadcast,    // 240/4, 255.255.255.255
  Metadata,     // 169.254.169.254, fd00:ec2::254 and kin
};

constexpr std::string_view to_string(IpClass c) noexcept {
  constexpr std::string_view kNames[] = {"public",     "unspecified",  "loopback",   "private",
                                         "link_local", "unique_local", "shared_nat", "multicast",
                                         "broadcast",  "metadata"};
  return kNames[static_cast<std::size_t>(c)];
}

// The class of an IPv4 address in host order.
constexpr IpClass classify_v4(std::uint32_t a) noexcept {
  const auto in = [a](std::uint32_t base, unsigned bits) {
    return (a >> (32U - bits)) == (base >> (32U - bits));
  };
  // 169.254.169.254, 169.254.170.2 (tasks), 100.100.100.200, 192.0.0.192, 168.63.129.16: the last
  // one is the only one that lies among public addresses.
  if (a == 0xA9FEA9FE || a == 0xA9FEAA02 || a == 0x646464C8 || a == 0xC00000C0 || a == 0xA83F8110) {
    return IpClass::Metadata;
  }
  if (in(0x00000000, 8)) return IpClass::Unspecified;
  if (in(0x7F000000, 8)) return IpClass::Loopback;
  if (in(0x0A000000, 8) || in(0xAC100000, 12) || in(0xC0A80000, 16)) return IpClass::Private;
  if (in(0xA9FE0000, 16)) return IpClass::LinkLocal;
  if (in(0x64400000, 10)) return IpClass::SharedNat;
  if (in(0xE0000000, 4)) return IpClass::Multicast;
  if (in(0xF0000000, 4)) return IpClass::Broadcast;
  return IpClass::Public;
}

// The IPv4 addresses, in host order, that an IPv6 address carries and that somebody on the way may
// dial in its place: mapped, compatible, translated, NAT64, 6to4, Teredo (server and client),
// ISATAP.
struct EmbeddedV4 {
  std::array<std::uint32_t, 2> addresses{};
  std::size_t count = 0;
};
constexpr EmbeddedV4 embedded_v4(const IpAddress& address) noexcept {
  if (address.is_v4()) return {};
  const std::uint32_t w0 = address.word(0);
  const std::uint32_t w1 = address.word(4);
  const std::uint32_t w2 = address.word(8);
  const std::uint32_t w3 = address.low32();
  const bool lowest = w0 == 0 && w1 == 0;
  if (lowest && w2 == 0) {   // compatible, ::/96
    if (w3 <= 1) return {};  // :: and ::1 are themselves
    return {{w3}, 1};
  }
  if (lowest && w2 == 0x0000FFFF) return {{w3}, 1};                    // mapped
  if (lowest && w2 == 0xFFFF0000) return {{w3}, 1};                    // translated, RFC 2765
  if (w0 == 0x0064FF9B && w1 == 0 && w2 == 0) return {{w3}, 1};        // NAT64 /96
  if (w0 == 0x0064FF9B && (w1 >> 16U) == 1) return {{w3}, 1};          // NAT64 local /48
  if ((w0 >> 16U) == 0x2002) return {{(w0 << 16U) | (w1 >> 16U)}, 1};  // 6to4
  if (w0 == 0x20010000) return {{w1, ~w3}, 2};                         // Teredo
  if ((w2 & 0xFDFFFFFFU) == 0x00005EFE) return {{w3}, 1};              // ISATAP, RFC 5214
  return {};
}

// The class of any address; one that embeds an IPv4 address is judged by what it embeds as well.
constexpr IpClass classify(const IpAddress& address) noexcept {
  if (address.is_v4()) return classify_v4(address.low32());
  const std::uint32_t w0 = address.word(0);
  const std::uint32_t w1 = address.word(4);
  const std::uint32_t w2 = address.word(8);
  const std::uint32_t w3 = address.low32();
  if (w0 == 0 && w1 == 0 && w2 == 0 && w3 == 0) return IpClass::Unspecified;
  if (w0 == 0 && w1 == 0 && w2 == 0 && w3 == 1) return IpClass::Loopback;
  if ((w0 >> 24U) == 0xFF) return IpClass::Multicast;
  if (w0 == 0xFD000EC2 && w1 == 0 && w2 == 0 && w3 == 0x254) return IpClass::Metadata;
  if ((w0 >> 22U) == (0xFE800000U >> 22U)) return IpClass::LinkLocal;
  if ((w0 >> 22U) == (0xFEC00000U >> 22U)) return IpClass::Private;  // site-local, deprecated
  if ((w0 >> 25U) == (0xFC000000U >> 25U)) return IpClass::UniqueLocal;
  const EmbeddedV4 embedded = embedded_v4(address);
  for (std::size_t i = 0; i < embedded.count; ++i) {
    const IpClass inner = classify_v4(embedded.addresses[i]);
    if (inner != IpClass::Public) return inner;
  }
  // What a network translates for itself (RFC 8215): it alone knows where the IPv4 address stands.
  if (w0 == 0x0064FF9B && (w1 >> 16U) == 1) return IpClass::Private;
  return IpClass::Public;
}

}  // namespace proxypool

template <>
struct std::hash<proxypool::IpAddress> {
  std::size_t operator()(const proxypool::IpAddress& address) const noexcept {
    std::uint64_t h = address.is_v4() ? 1 : 2;
    for (std::size_t i = 0; i < 16; i += 4) {
      h = (h ^ address.word(i)) * 0x9E3779B97F4A7C15U;
      h ^= h >> 29U;
    }
    return h;
  }
};
