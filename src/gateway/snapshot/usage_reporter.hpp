// What clients moved since the last report, as batches of which each is kept once. (GW-14)
//
// A batch is made from the counters, and from then on it stays as it is: it goes with every report
// until an answer says that it is kept. So a lost answer neither loses it nor counts it twice, and
// what is counted meanwhile waits for the next batch. Numbers grow over the sessions of a process,
// and from one process of the same name to the next: they begin with the time of day.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "gateway/snapshot/view_sink.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/client/usage.hpp"

namespace proxypool::gateway {

class UsageReporter {
 public:
  explicit UsageReporter(WallTime started)
      : number_(static_cast<std::uint64_t>(started.time_since_epoch().count())) {}

  // The batch that the next report carries; number 0: nothing was moved.
  [[nodiscard]] const domain::UsageBatch& due(ViewSink& sink) {
    if (batch_.number != 0) return batch_;
    sink.usage([&](std::uint32_t client, const ClientName& name, const domain::Usage& total) {
      if (client >= counted_.size()) counted_.resize(client + 1);
      domain::Usage& counted = counted_[client];
      if (total == counted || batch_.clients.size() == domain::kUsageBatchClientsMax) return;
      batch_.clients.push_back({name, total.since(counted)});
      counted = total;
    });
    if (!batch_.clients.empty()) batch_.number = ++number_;
    return batch_;
  }
  // A batch was sent, and nothing says that it is kept.
  [[nodiscard]] bool waits() const noexcept { return batch_.number != 0; }
  // An answer says so.
  void kept(std::uint64_t number) {
    if (batch_.number != 0 && batch_.number <= number) batch_ = {};
  }

 private:
  std::uint64_t number_;
  std::vector<domain::Usage> counted_;  // in batches so far, by client
  domain::UsageBatch batch_;            // not yet known to be kept
};

}  // namespace proxypool::gateway
