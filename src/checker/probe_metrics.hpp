// The checker's numbers about probes; names and labels are in docs/metrics.md.
//
// Thread rule: any thread.
#pragma once

#include <array>
#include <cstdint>

#include "proxypool/domain/health/observation.hpp"
#include "proxypool/ports/metrics.hpp"

namespace proxypool::checker {

// Why a task was not probed.
enum class Drop : std::uint8_t { Duplicate, Full, Unsupported, Stopping, OwnFault };
inline constexpr std::size_t kDrops = 5;

constexpr std::string_view to_string(Drop drop) noexcept {
  constexpr std::string_view kNames[kDrops] = {"duplicate", "full", "unsupported", "stopping",
                                               "own_fault"};
  return kNames[static_cast<std::size_t>(drop)];
}

class ProbeMetrics {
 public:
  explicit ProbeMetrics(ports::Metrics& metrics);

  void finished(const domain::Observation& observation) noexcept;
  void dropped(Drop drop) noexcept { drops_[static_cast<std::size_t>(drop)]->add(); }
  [[nodiscard]] ports::Gauge& in_flight() noexcept { return *in_flight_; }
  [[nodiscard]] ports::Gauge& queued() noexcept { return *queued_; }

 private:
  static constexpr std::size_t kKinds = 8;  // of FailureKind; None counts what passed
  std::array<ports::Counter*, kKinds> results_{};
  std::array<ports::Counter*, kDrops> drops_{};
  ports::Histogram* seconds_;
  ports::Gauge* in_flight_;
  ports::Gauge* queued_;
};

}  // namespace proxypool::checker
