// Which proxies to probe now (CT-30).
//
// New proxies first, then those in doubt, then the rest by how long they have waited. When the
// checkers cannot keep up, only the rest is slowed down: its interval stretches with the back-log,
// instead of a queue growing.
//
// Thread rule: pure functions.
// Limits: at most `room` tasks a call; what does not fit stays due and is asked about again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/health/reducer.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

enum class CheckPriority : std::uint8_t { New, Suspect, Routine };

// Nothing for states that are not probed.
constexpr std::optional<CheckPriority> check_priority(ProxyState state) noexcept {
  switch (state) {
    case ProxyState::Fetched:
    case ProxyState::Checking:
      return CheckPriority::New;
    case ProxyState::Suspect:
      return CheckPriority::Suspect;
    case ProxyState::Available:
      return CheckPriority::Routine;
    default:
      return std::nullopt;
  }
}

// How many times longer routine intervals are while `due` probes wait and the checkers can answer
// `per_interval` of them in one interval: 1 when they keep up, at most 10.
constexpr std::uint32_t routine_stretch(std::size_t due, std::size_t per_interval) noexcept {
  if (per_interval == 0) return 10;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>((due + per_interval - 1) / per_interval, 1, 10));
}

// When a proxy's next probe is due under a stretch; new ones and those in doubt never wait longer.
inline StoreTime due_at(ProxyState state, const HealthRecord& record, const HealthPolicy& policy,
                        std::uint32_t stretch) noexcept {
  if (state != ProxyState::Available || stretch <= 1) return record.next_check_at;
  return record.next_check_at + policy.interval * (stretch - 1);
}

struct CheckCandidate {
  ProxyId proxy;
  CheckPriority priority = CheckPriority::Routine;
  StoreTime due_at;
  friend bool operator==(const CheckCandidate&, const CheckCandidate&) = default;
};

// A candidate if the proxy is due: probed in its state, no answer awaited, its time has come.
inline std::optional<CheckCandidate> check_candidate(ProxyId proxy, ProxyState state,
                                                     const HealthRecord& record,
                                                     const HealthPolicy& policy,
                                                     std::uint32_t stretch,
                                                     StoreTime now) noexcept {
  const auto priority = check_priority(state);
  if (!priority || record.open_task != 0) return std::nullopt;
  const StoreTime due = due_at(state, record, policy, stretch);
  if (due > now) return std::nullopt;
  return CheckCandidate{proxy, *priority, due};
}

// The `room` most urgent candidates, in order.
inline std::vector<CheckCandidate> select_checks(std::vector<CheckCandidate> candidates,
                                                 std::size_t room) {
  const auto urgent = [](const CheckCandidate& a, const CheckCandidate& b) {
    return std::tie(a.priority, a.due_at, a.proxy) < std::tie(b.priority, b.due_at, b.proxy);
  };
  const std::size_t count = std::min(room, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                    candidates.end(), urgent);
  candidates.resize(count);
  return candidates;
}

}  // namespace proxypool::domain
