// Builders of snapshots and views for the dispatch tests and its benchmark.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/dispatch/registry.hpp"
#include "gateway/dispatch/view.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"

namespace proxypool::gateway::testing_support {

inline constexpr TimePoint kNow{std::chrono::seconds(1'000)};
inline constexpr StoreTime kStoreNow{std::chrono::seconds(1'700'000'000)};

// A snapshot put together step by step. One routing "all" for everything unless others come first.
class SnapshotBuilder {
 public:
  SnapshotBuilder& upstream(const std::string& name, bool enabled = true) {
    snapshot_.upstreams.push_back({UpstreamId(name), enabled});
    return *this;
  }
  SnapshotBuilder& proxies(const std::string& upstream, std::uint64_t from, std::uint64_t count,
                           std::uint32_t limit = 1) {
    for (std::uint64_t id = from; id < from + count; ++id) proxy(upstream, id, limit);
    return *this;
  }
  SnapshotBuilder& proxy(const std::string& upstream, std::uint64_t id, std::uint32_t limit = 1) {
    domain::SnapshotProxy p;
    p.id = ProxyId(id);
    p.upstream = UpstreamId(upstream);
    p.endpoint.host = "192.0." + std::to_string(id / 256 % 256) + "." + std::to_string(id % 256);
    p.endpoint.port = static_cast<std::uint16_t>(1'024 + id / 65'536);
    p.max_concurrency = limit;
    p.lease_epoch = Epoch(1);
    snapshot_.proxies.push_back(std::move(p));
    return *this;
  }
  SnapshotBuilder& routing(const std::string& name, const std::vector<std::string>& upstreams,
                           domain::Strategy strategy = domain::Strategy::RoundRobin,
                           domain::Balancer balancer = domain::Balancer::LeastConn) {
    domain::SnapshotRouting r;
    r.id = RoutingId(name);
    for (const auto& upstream : upstreams) r.upstreams.push_back({UpstreamId(upstream), 1});
    r.strategy = strategy;
    r.balancer = balancer;
    snapshot_.routings.push_back(std::move(r));
    return *this;
  }
  domain::SnapshotProxy& last_proxy() { return snapshot_.proxies.back(); }
  domain::SnapshotRouting& last_routing() { return snapshot_.routings.back(); }
  domain::WorkerSnapshot& get() { return snapshot_; }
  [[nodiscard]] std::shared_ptr<const domain::WorkerSnapshot> share() const {
    return std::make_shared<const domain::WorkerSnapshot>(snapshot_);
  }

 private:
  domain::WorkerSnapshot snapshot_;
};

struct Built {
  std::shared_ptr<const View> view;
  std::vector<ports::RejectedEntry> rejected;
};

// Builds a view to its end, in steps of `step`.
inline Built build(ProxyRegistry& registry, const SnapshotBuilder& snapshot,
                   std::size_t step = 1'000) {
  ViewBuilder builder(registry, snapshot.share(), {kStoreNow, kNow});
  const Status begun = builder.begin();
  EXPECT_TRUE(begun) << (begun ? "" : begun.error().message);
  if (!begun) return {};
  while (builder.step(step)) {
  }
  Built built;
  built.rejected = builder.rejected();
  built.view = builder.finish();
  return built;
}

// Builds and takes a view as if every serving thread had it at once.
inline std::shared_ptr<const View> serve(ProxyRegistry& registry, const SnapshotBuilder& snapshot) {
  auto view = build(registry, snapshot).view;
  registry.extend(kNow + std::chrono::seconds(60));
  registry.adopt(*view);
  registry.reclaim();
  return view;
}

}  // namespace proxypool::gateway::testing_support
