// What a client moved through the gateways, and when that is enough for the day. (GW-14)
//
// Bytes count as vendors bill them: heads and bodies, both ways, tunnels and failed attempts too. A
// day is one of UTC. A quota is used up with the byte that reaches it; it ends with the day.
//
// Thread rule: immutable values, pure functions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::domain {

using Day = std::chrono::sys_days;

constexpr Day day_of(WallTime time) noexcept {
  return std::chrono::floor<std::chrono::days>(time);
}
// Never zero.
constexpr milliseconds left_of_day(WallTime time) noexcept {
  return WallTime(day_of(time) + std::chrono::days{1}) - time;
}

struct Usage {
  std::uint64_t bytes_up = 0;    // towards the proxies
  std::uint64_t bytes_down = 0;  // from them
  std::uint64_t requests = 0;    // tunnels too

  [[nodiscard]] constexpr std::uint64_t bytes() const noexcept { return bytes_up + bytes_down; }
  [[nodiscard]] constexpr bool nothing() const noexcept { return *this == Usage{}; }
  constexpr Usage& operator+=(const Usage& other) noexcept {
    bytes_up += other.bytes_up;
    bytes_down += other.bytes_down;
    requests += other.requests;
    return *this;
  }
  // What came since. REQUIRES: `earlier` was the same count before.
  [[nodiscard]] constexpr Usage since(const Usage& earlier) const noexcept {
    return {bytes_up - earlier.bytes_up, bytes_down - earlier.bytes_down,
            requests - earlier.requests};
  }
  friend constexpr bool operator==(const Usage&, const Usage&) = default;
};

struct ClientUsage {
  ClientName client;
  Usage usage;
  friend bool operator==(const ClientUsage&, const ClientUsage&) = default;
};

// What one process of a gateway counted since its batch before. Its batches are numbered from 1 on
// and sent again unchanged until one answer says that they are kept; so each counts once.
struct UsageBatch {
  std::uint64_t number = 0;  // 0: there is none
  std::vector<ClientUsage> clients;
  friend bool operator==(const UsageBatch&, const UsageBatch&) = default;
};

inline constexpr std::size_t kUsageBatchClientsMax = 4'000;  // the rest comes with the next one
inline constexpr int kUsageDaysKept = 8;                     // today and the week before

struct DayUsage {
  Day day;
  Usage usage;
  friend bool operator==(const DayUsage&, const DayUsage&) = default;
};

// `bytes_per_day` 0: no quota.
constexpr bool used_up(const Usage& today, std::uint64_t bytes_per_day) noexcept {
  return bytes_per_day != 0 && today.bytes() >= bytes_per_day;
}

}  // namespace proxypool::domain
