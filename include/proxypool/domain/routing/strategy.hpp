// Strategies: in which order does a routing try its upstreams?
//
// The first answer is the strategy's choice; further answers are what to fall back to when that
// upstream has no free place, each upstream once. Sequential never falls back: its cursor moves in
// the controller (sequential.hpp).
//
// Thread rule: UpstreamOrder is immutable and serves any thread. StrategyTurn is shared by all of
//              them without a lock, and outlives the order, so that a new snapshot does not start
//              the round anew. A Preference is one request's own.
// Limits:      kUpstreamsMax upstreams a routing (validate.hpp refuses more).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/domain/routing/policy.hpp"

namespace proxypool::domain {

// Whose turn it is.
struct alignas(64) StrategyTurn {
  std::atomic<std::uint64_t> next{0};
};

// How far one request has come.
struct Preference {
  std::uint64_t asked = 0;  // bit i: upstream i was answered
  std::uint32_t last = 0;
};

class UpstreamOrder {
 public:
  static constexpr std::size_t kUpstreamsMax = 64;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // One weight an upstream; the weight 0 is fallen back to only. `current`: where the sequential
  // cursor stands, kNone if nowhere. REQUIRES: weights.size() ≤ kUpstreamsMax.
  UpstreamOrder(Strategy strategy, std::span<const std::uint32_t> weights,
                std::uint32_t current = kNone)
      : strategy_(strategy), current_(current), weights_(weights.begin(), weights.end()) {
    PP_ASSERT(weights.size() <= kUpstreamsMax);
    if (strategy == Strategy::WeightedRoundRobin) lay_out_round();
  }

  // The upstream to try next, or kNone when all were answered. load(i) → requests in flight through
  // upstream i (asked by least_conn alone).
  template <class Load>
  [[nodiscard]] std::uint32_t next(Preference& preference, StrategyTurn& turn, Random& random,
                                   Load&& load) const {
    if (weights_.empty()) return kNone;
    std::uint32_t choice = kNone;
    if (strategy_ == Strategy::Sequential) {
      choice = preference.asked == 0 ? current_ : kNone;
    } else if (strategy_ == Strategy::LeastConn) {
      choice = least_loaded(preference, random, load);
    } else if (preference.asked == 0) {
      choice = first(turn, random);
    } else {
      choice = following(preference);
    }
    if (choice != kNone) {
      preference.asked |= bit(choice);
      preference.last = choice;
    }
    return choice;
  }

 private:
  static constexpr std::uint64_t kRoundMax = 4'096;
  static constexpr std::uint64_t bit(std::uint32_t i) noexcept { return std::uint64_t{1} << i; }
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(weights_.size());
  }

  [[nodiscard]] std::uint32_t first(StrategyTurn& turn, Random& random) const noexcept {
    switch (strategy_) {
      case Strategy::First:
        return 0;
      case Strategy::Random:
        return static_cast<std::uint32_t>(random.below(size()));
      case Strategy::WeightedRoundRobin:
        return round_[turn.next.fetch_add(1, std::memory_order_relaxed) % round_.size()];
      default:
        return static_cast<std::uint32_t>(turn.next.fetch_add(1, std::memory_order_relaxed) %
                                          size());
    }
  }
  [[nodiscard]] std::uint32_t following(const Preference& preference) const noexcept {
    for (std::uint32_t step = 1; step < size(); ++step) {
      const std::uint32_t choice = (preference.last + step) % size();
      if ((preference.asked & bit(choice)) == 0) return choice;
    }
    return kNone;
  }
  // The smallest load for its weight; ties are random.
  template <class Load>
  [[nodiscard]] std::uint32_t least_loaded(const Preference& preference, Random& random,
                                           Load&& load) const {
    std::uint32_t best = kNone;
    std::uint64_t best_load = 0;
    std::uint32_t ties = 0;
    for (std::uint32_t i = 0; i < size(); ++i) {
      if ((preference.asked & bit(i)) != 0) continue;
      const std::uint64_t mine = load(i);
      const std::uint64_t here = best == kNone ? 0 : mine * weight(best);
      const std::uint64_t there = best == kNone ? 0 : best_load * weight(i);
      if (best == kNone || here < there) {
        best = i;
        best_load = mine;
        ties = 1;
      } else if (here == there && random.below(++ties) == 0) {
        best = i;
        best_load = mine;
      }
    }
    return best;
  }
  [[nodiscard]] std::uint64_t weight(std::uint32_t i) const noexcept {
    return std::max<std::uint64_t>(weights_[i], 1);
  }

  // Smooth weighted round robin, one whole round written down: each step every upstream gains its
  // weight, the richest is chosen and pays the sum. A round beyond kRoundMax is scaled down.
  void lay_out_round() {
    std::vector<std::int64_t> weights(weights_.begin(), weights_.end());
    auto sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    if (sum == 0) std::fill(weights.begin(), weights.end(), 1);
    std::int64_t divisor = 0;
    for (const auto w : weights) divisor = std::gcd(divisor, w);
    for (auto& w : weights) w /= std::max<std::int64_t>(divisor, 1);
    sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    if (sum > static_cast<std::int64_t>(kRoundMax)) {
      for (auto& w : weights) {
        const auto scaled = w * static_cast<std::int64_t>(kRoundMax) / sum;
        w = w == 0 ? 0 : std::max<std::int64_t>(scaled, 1);
      }
      sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    }
    std::vector<std::int64_t> riches(weights.size(), 0);
    for (std::int64_t step = 0; step < sum; ++step) {
      for (std::size_t i = 0; i < riches.size(); ++i) riches[i] += weights[i];
      const auto richest = std::max_element(riches.begin(), riches.end());
      *richest -= sum;
      round_.push_back(static_cast<std::uint8_t>(richest - riches.begin()));
    }
  }

  Strategy strategy_;
  std::uint32_t current_;
  std::vector<std::uint32_t> weights_;
  std::vector<std::uint8_t> round_;  // weighted_round_robin: one round of choices
};

}  // namespace proxypool::domain
