// What the benchmarks of dispatch share: a timer of few nanoseconds, a histogram, a count of
// allocations, and snapshots of any size.
//
// Thread rule: ticks, allocations: any thread, each its own. Histogram: one thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "proxypool/base/ip.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"

namespace proxypool::bench {

// How often this thread has allocated; the programs that link bench_support.cpp count.
std::uint64_t allocations() noexcept;

inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  unsigned processor = 0;
  return __rdtscp(&processor);
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}
double ns_per_tick();

// By the nanosecond up to 65 µs.
class Histogram {
 public:
  void add(std::uint64_t ticks) {
    const auto ns = static_cast<std::size_t>(static_cast<double>(ticks) * scale_);
    ++counts_[std::min(ns, counts_.size() - 1)];
    ++total_;
  }
  [[nodiscard]] double quantile(double q) const {
    const auto wanted = static_cast<std::uint64_t>(q * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t ns = 0; ns < counts_.size(); ++ns) {
      seen += counts_[ns];
      if (seen > wanted) return static_cast<double>(ns);
    }
    return static_cast<double>(counts_.size());
  }

 private:
  double scale_ = ns_per_tick();
  std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(1U << 16U);
  std::uint64_t total_ = 0;
};

inline constexpr std::uint32_t kLimit = 200;

// One upstream of `proxies`, their ids from `first` on, and a hundred routings, the last of which
// takes all.
inline std::shared_ptr<domain::WorkerSnapshot> snapshot_of(std::uint32_t proxies,
                                                           domain::Balancer balancer,
                                                           std::uint64_t first = 0) {
  auto snapshot = std::make_shared<domain::WorkerSnapshot>();
  snapshot->version = {1, first + 1};
  snapshot->upstreams.push_back({UpstreamId("up"), true});
  for (int i = 0; i < 100; ++i) {
    domain::SnapshotRouting& routing = snapshot->routings.emplace_back();
    routing.id = RoutingId("r" + std::to_string(i));
    if (i < 99) routing.match.hosts = {"*.site" + std::to_string(i) + ".example"};
    routing.balancer = balancer;
    routing.upstreams = {{UpstreamId("up"), 1}};
  }
  for (std::uint32_t i = 0; i < proxies; ++i) {
    domain::SnapshotProxy& proxy = snapshot->proxies.emplace_back();
    proxy.id = ProxyId((first + i) * 0x9E3779B97F4A7C15U + 1);
    proxy.upstream = UpstreamId("up");
    proxy.endpoint = {domain::Scheme::Http, IpAddress::v4(0x0A000000U + i).str(), 8'080};
    proxy.max_concurrency = kLimit;
    proxy.usable_until = StoreTime(std::chrono::hours(1));
  }
  return snapshot;
}

}  // namespace proxypool::bench
