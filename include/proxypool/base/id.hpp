// Strong identifiers: an UpstreamId is no RoutingId, and a version is no count.
//
// Thread rule: immutable values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace proxypool {

// A name given by configuration or by a peer.
template <class Tag>
class NameId {
 public:
  NameId() = default;
  explicit NameId(std::string value) : value_(std::move(value)) {}
  [[nodiscard]] const std::string& str() const noexcept { return value_; }
  [[nodiscard]] bool empty() const noexcept { return value_.empty(); }
  friend auto operator<=>(const NameId&, const NameId&) = default;

 private:
  std::string value_;
};

// A 64-bit number.
template <class Tag>
class NumberId {
 public:
  constexpr NumberId() = default;
  constexpr explicit NumberId(std::uint64_t value) noexcept : value_(value) {}
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }
  friend constexpr auto operator<=>(const NumberId&, const NumberId&) = default;

 private:
  std::uint64_t value_ = 0;
};

using UpstreamId = NameId<struct UpstreamTag>;
using RoutingId = NameId<struct RoutingTag>;
using WorkerId = NameId<struct WorkerTag>;      // logical node, stable over restarts
using InstanceId = NameId<struct InstanceTag>;  // one process
using SessionId = NameId<struct SessionTag>;    // one registration of one instance
using CheckerId = NameId<struct CheckerTag>;
using ClientName = NameId<struct ClientTag>;

using ProxyId = NumberId<struct ProxyTag>;
using Epoch = NumberId<struct EpochTag>;  // ownership epoch: larger is newer

// Sixteen hexadecimal digits, as identifiers are shown to people and in JSON.
inline std::string to_hex(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4U) out[i] = kDigits[value & 15U];
  return out;
}
inline std::string to_string(ProxyId id) {
  return to_hex(id.value());
}

}  // namespace proxypool

template <class Tag>
struct std::hash<proxypool::NameId<Tag>> {
  std::size_t operator()(const proxypool::NameId<Tag>& id) const noexcept {
    return std::hash<std::string>{}(id.str());
  }
};
template <class Tag>
struct std::hash<proxypool::NumberId<Tag>> {
  std::size_t operator()(const proxypool::NumberId<Tag>& id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value());
  }
};
