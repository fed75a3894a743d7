// How often a second each event may become a line.
//
// Thread rule: any thread, no lock: one word per event holds the second and what it has seen.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "proxypool/base/time.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::telemetry {

class RateLimit {
 public:
  // Nothing: leave this one out. Otherwise how many were left out before it.
  std::optional<std::uint64_t> take(ports::Event event, TimePoint now) noexcept {
    const std::uint64_t max = ports::row(event).per_second_max;
    if (max == 0) return 0;
    State& state = states_[static_cast<std::size_t>(event)];
    const auto second = static_cast<std::uint64_t>(now.time_since_epoch() / seconds{1}) << kShift;
    std::uint64_t seen = state.window.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      const bool same = (seen >> kShift) == (second >> kShift);
      if (same && (seen & kCountMask) >= max) {
        state.left_out.fetch_add(1, std::memory_order_relaxed);
        return std::nullopt;
      }
      next = same ? seen + 1 : second + 1;
    } while (!state.window.compare_exchange_weak(seen, next, std::memory_order_relaxed));
    return state.left_out.exchange(0, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kShift = 32;
  static constexpr std::uint64_t kCountMask = 0xFFFFFFFF;
  struct State {
    std::atomic<std::uint64_t> window{0};  // second in the high half, lines in the low half
    std::atomic<std::uint64_t> left_out{0};
  };
  std::array<State, ports::kEvents.size()> states_;
};

}  // namespace proxypool::telemetry
