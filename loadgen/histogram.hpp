// Durations in log-linear buckets: three significant digits from a nanosecond to an hour, in
// constant space and without sorting.
//
// The idea is that of Gil Tene's HdrHistogram: each doubling of the value is one range, cut into
// 1,024 equal buckets, so that a bucket is never wider than a thousandth of what is in it.
//
// Thread rule: one thread at a time; merge() after the threads have ended.
// Limits:      longer than 73 minutes counts as the last bucket; max() stays exact.
#pragma once

#include <cstdint>
#include <vector>

#include "proxypool/base/time.hpp"

namespace proxypool::loadgen {

class Histogram {
 public:
  Histogram();

  void record(nanoseconds value) noexcept;
  void merge(const Histogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  // Zero while empty.
  [[nodiscard]] nanoseconds min() const noexcept;
  [[nodiscard]] nanoseconds max() const noexcept { return nanoseconds{max_}; }
  [[nodiscard]] nanoseconds mean() const noexcept;
  // The smallest recorded value, to three digits and rounded up, that `percent` of all values do
  // not exceed. Zero while empty. REQUIRES: 0 ≤ percent ≤ 100.
  [[nodiscard]] nanoseconds percentile(double percent) const noexcept;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::int64_t min_ = INT64_MAX;
  std::int64_t max_ = 0;
};

}  // namespace proxypool::loadgen
