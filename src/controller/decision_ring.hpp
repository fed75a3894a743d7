// The newest outcomes that workers told of, for whoever asks why a request went where it went.
//
// Thread rule: any thread.
// Limits:      kDecisionsMax; the oldest makes room.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::controller {

struct Decision {
  WallTime at;
  WorkerId worker;
  RoutingId routing;
  ports::Outcome outcome;
};

class DecisionRing {
 public:
  static constexpr std::size_t kDecisionsMax = 4'096;

  void add(Decision decision) {
    decisions_.with([&](auto& decisions) {
      if (decisions.size() == kDecisionsMax) decisions.pop_front();
      decisions.push_back(std::move(decision));
    });
  }
  // Newest last.
  [[nodiscard]] std::vector<Decision> all() const {
    return decisions_.with([](const auto& decisions) {
      return std::vector<Decision>(decisions.begin(), decisions.end());
    });
  }

 private:
  Guarded<std::deque<Decision>> decisions_;
};

}  // namespace proxypool::controller
