// A publisher with its registry and cell; time is virtual and the test decides what happens while
// the publisher waits for its readers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/dispatch/dispatcher.hpp"
#include "gateway/snapshot/view_publisher.hpp"
#include "runtime/manual_clock.hpp"
#include "unit/gateway/dispatch/snapshots.hpp"

namespace proxypool::gateway::testing_support {

// Version `counter` of proxies from … from + count - 1, two places each.
inline SnapshotBuilder version(std::uint64_t counter, std::uint64_t from, std::uint64_t count) {
  SnapshotBuilder s;
  s.upstream("up").routing("all", {"up"}).proxies("up", from, count, 2);
  s.get().version = {7, counter};
  s.get().epoch = Epoch(1);
  return s;
}

class PublisherTest : public ::testing::Test {
 protected:
  using Views = runtime::SnapshotCell<View>;
  struct Ended {
    std::vector<ProxyId> proxies;  // none: all
    TimePoint at;
  };

  // Valid for a minute from now on; tunnels for half a minute more.
  [[nodiscard]] Validity minute() const {
    return {clock_.now(), kStoreNow, clock_.now() + seconds(60), clock_.now() + seconds(90)};
  }
  Result<std::vector<ports::RejectedEntry>> apply(const SnapshotBuilder& snapshot) {
    return publisher_.apply(snapshot.share(), minute());
  }
  // By the newest view, or by an older one.
  Acquisition acquire(const View& view) {
    return Dispatcher(registry_, 0).acquire(view, view.routing(0), {}, clock_.now(), random_);
  }
  Acquisition acquire() { return acquire(*views_.load()); }

  runtime::ManualClock clock_;
  SplitMix64 random_{3};
  ProxyRegistry registry_;
  Views views_;
  std::function<void()> while_waiting_ = [&] { clock_.advance(seconds(1)); };
  int pauses_ = 0;
  int refreshes_ = 0;
  std::vector<Ended> ended_;
  ViewPublisher publisher_{{registry_, views_, clock_, [this] { ++refreshes_; },
                            [this](std::vector<ProxyId> lost, TimePoint at) {
                              ended_.push_back({std::move(lost), at});
                            },
                            [this](TimePoint at) {
                              ended_.push_back({{}, at});
                            },
                            [this](milliseconds) {
                              ++pauses_;
                              while_waiting_();
                            }}};
};

}  // namespace proxypool::gateway::testing_support
