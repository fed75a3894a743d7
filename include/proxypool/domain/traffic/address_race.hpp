// Which of a name's addresses is dialled next, and when: happy eyeballs (RFC 8305, GW-21).
//
// Families take turns, beginning with the one that the resolver put first. An address joins when
// the one before it has had kDelay, or as soon as one has failed; whichever connects first wins,
// which is the caller's to see. So a dead family costs a quarter of a second and not a time-out.
//
// Thread rule: one thread at a time; `now` is an argument.
// Invariant:   each address comes once.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::domain {

// The first, the first of the other family, the second of the first one, and so on.
inline std::vector<IpAddress> families_in_turn(std::vector<IpAddress> addresses) {
  if (addresses.empty()) return addresses;
  const bool first = addresses.front().is_v4();
  const auto others = std::stable_partition(addresses.begin(), addresses.end(),
                                            [&](const auto& a) { return a.is_v4() == first; });
  std::vector<IpAddress> out;
  out.reserve(addresses.size());
  auto one = addresses.begin();
  for (auto other = others; one != others || other != addresses.end();) {
    if (one != others) out.push_back(*one++);
    if (other != addresses.end()) out.push_back(*other++);
  }
  return out;
}

class AddressRace {
 public:
  static constexpr nanoseconds kDelay = milliseconds(250);

  explicit AddressRace(std::vector<IpAddress> addresses)
      : addresses_(families_in_turn(std::move(addresses))) {}

  // The address to dial now, if one is due.
  [[nodiscard]] std::optional<IpAddress> next(TimePoint now) {
    if (now < due()) return std::nullopt;
    due_ = now + kDelay;
    ++running_;
    return addresses_[next_++];
  }
  // One of those that were dialled has failed: the next one need not wait.
  void failed() {
    PP_ASSERT(running_ > 0);
    --running_;
    due_ = TimePoint::min();
  }
  // When next() has another one; kNever: all were dialled.
  [[nodiscard]] TimePoint due() const noexcept {
    return next_ == addresses_.size() ? kNever : due_;
  }
  // Nobody is left who could win.
  [[nodiscard]] bool lost() const noexcept { return running_ == 0 && next_ == addresses_.size(); }

 private:
  std::vector<IpAddress> addresses_;
  std::size_t next_ = 0;
  std::size_t running_ = 0;
  TimePoint due_ = TimePoint::min();
};

}  // namespace proxypool::domain
