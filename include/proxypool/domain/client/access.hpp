// Which sources may speak to a listener at all, whatever they prove afterwards (GW-11).
//
// Thread rule: immutable; any thread may ask.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "proxypool/base/ip.hpp"
#include "proxypool/base/result.hpp"

namespace proxypool::domain {

// A dual-stack socket shows an IPv4 peer as ::ffff:a.b.c.d; ranges are written for a.b.c.d.
constexpr IpAddress unmapped(const IpAddress& address) noexcept {
  const bool mapped = !address.is_v4() && address.word(0) == 0 && address.word(4) == 0 &&
                      address.word(8) == 0x0000FFFF;
  return mapped ? IpAddress::v4(address.low32()) : address;
}

class AccessList {
 public:
  AccessList() = default;  // every source
  explicit AccessList(std::vector<Cidr> allowed) : allowed_(std::move(allowed)) {}

  [[nodiscard]] bool open() const noexcept { return allowed_.empty(); }
  [[nodiscard]] bool allows(const IpAddress& source) const noexcept {
    const IpAddress peer = unmapped(source);
    return open() || std::any_of(allowed_.begin(), allowed_.end(),
                                 [&](const Cidr& range) { return range.contains(peer); });
  }

 private:
  std::vector<Cidr> allowed_;
};

// The strict start rule: an open proxy is never started by accident. `authenticated`: the listener
// demands a proof from every client.
inline Status check_start(bool strict, const IpAddress& listen, bool authenticated,
                          const AccessList& access) {
  const bool loopback = classify(listen) == IpClass::Loopback;
  if (!strict || loopback || authenticated || !access.open()) return ok();
  return Error{ErrorCode::InvalidArgument, Origin::Internal,
               "a listener outside the loopback needs authentication or access.allowCIDRs: anybody "
               "who reaches it could use it"};
}

}  // namespace proxypool::domain
