// How attempts through proxies ended, on their way from serving threads to the controller.
//
// Each serving thread has a ring of its own: it puts in, one other thread takes out, and neither
// waits. What finds no room is dropped and counted. Failures go in all; a success goes in once in
// kToldEvery for each proxy, since the next one would say nothing new.
//
// Thread rule: OutcomeRing: put() one thread, take() one thread. OutcomeSampler: its thread.
//              OutcomeRings: any thread; take() one at a time.
// Limits:      kRoom outcomes of a thread; kTold proxies whose last success is remembered, a newer
//              one takes an older one's place.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/hash.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/traffic/outcome.hpp"

namespace proxypool::gateway {

struct RoutingRuntime;

struct OutcomeRecord {
  domain::TrafficOutcome what;
  Epoch lease_epoch;
  const RoutingRuntime* routing = nullptr;
  std::uint64_t request_id = 0;
  TimePoint at{};
};

class OutcomeRing {
 public:
  static constexpr std::size_t kRoom = 1024;

  void put(const OutcomeRecord& record) noexcept {
    const std::uint64_t written = written_.load(std::memory_order_relaxed);
    if (written - taken_.load(std::memory_order_acquire) == kRoom) {
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    records_[written % kRoom] = record;
    written_.store(written + 1, std::memory_order_release);
  }
  // At most `most` of them, oldest first.
  template <class Each>
  std::size_t take(std::size_t most, Each&& each) {
    const std::uint64_t written = written_.load(std::memory_order_acquire);
    std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    std::size_t count = 0;
    for (; taken != written && count < most; ++taken, ++count) each(records_[taken % kRoom]);
    taken_.store(taken, std::memory_order_release);
    return count;
  }
  [[nodiscard]] std::uint64_t dropped() const noexcept {
    return dropped_.load(std::memory_order_relaxed);
  }

 private:
  std::array<OutcomeRecord, kRoom> records_{};
  alignas(64) std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> dropped_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};
};

class OutcomeSampler {
 public:
  static constexpr std::size_t kTold = 1024;
  static constexpr nanoseconds kToldEvery = seconds(5);

  // Whether the controller should hear of it.
  [[nodiscard]] bool wants(const domain::TrafficOutcome& outcome, TimePoint now) noexcept {
    const auto meaning = domain::meaning_of(outcome);
    Told& told = told_[mix64(outcome.proxy.value()) % kTold];
    const bool known = told.proxy == outcome.proxy;
    if (meaning == domain::HealthMeaning::Failure) {
      if (known) told = {};  // that it works again is news
      return true;
    }
    if (meaning == domain::HealthMeaning::Neutral) return false;
    if (known && now - told.at < kToldEvery) return false;
    told = {outcome.proxy, now};
    return true;
  }

 private:
  struct Told {
    ProxyId proxy;
    TimePoint at{};
  };
  std::array<Told, kTold> told_{};
};

class OutcomeRings {
 public:
  // Of a serving thread; made when it is first asked for, and kept.
  [[nodiscard]] OutcomeRing& ring(std::size_t thread) {
    return rings_.with([&](Rings& rings) -> OutcomeRing& {
      while (rings.size() <= thread) rings.push_back(std::make_unique<OutcomeRing>());
      return *rings[thread];
    });
  }
  template <class Each>
  void take(std::size_t most, Each&& each) {
    rings_.with([&](Rings& rings) {
      for (auto& ring : rings) most -= ring->take(most, each);
    });
  }
  [[nodiscard]] std::uint64_t dropped() const {
    return rings_.with([](const Rings& rings) {
      std::uint64_t sum = 0;
      for (const auto& ring : rings) sum += ring->dropped();
      return sum;
    });
  }

 private:
  using Rings = std::vector<std::unique_ptr<OutcomeRing>>;
  Guarded<Rings> rings_;
};

}  // namespace proxypool::gateway
