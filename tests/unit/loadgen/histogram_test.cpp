#include "loadgen/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "proxypool/base/random.hpp"

namespace proxypool::loadgen {
namespace {

TEST(HistogramTest, PercentilesAreWithinAThousandthOfTheSortedValues) {
  SplitMix64 random(1);
  std::vector<std::int64_t> values;
  Histogram histogram;
  for (int i = 0; i < 20'000; ++i) {  // over nine decades
    const auto ns = static_cast<std::int64_t>(std::exp(random.unit() * 21));
    values.push_back(ns);
    histogram.record(nanoseconds{ns});
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    const auto rank = std::max(1.0, std::ceil(percent / 100 * static_cast<double>(values.size())));
    const auto exact = static_cast<double>(values[static_cast<std::size_t>(rank) - 1]);
    const auto found = static_cast<double>(histogram.percentile(percent).count());
    EXPECT_GE(found, exact) << percent;
    EXPECT_LE(found, exact * 1.001) << percent;
  }
  EXPECT_EQ(histogram.min().count(), values.front());
  EXPECT_EQ(histogram.max().count(), values.back());
  EXPECT_EQ(histogram.percentile(100), histogram.max());
}

TEST(HistogramTest, EveryPowerOfTwoAndItsNeighboursFallIntoTheirBucket) {
  for (int bit = 0; bit < 42; ++bit) {
    for (const std::int64_t offset : {-1, 0, 1}) {
      const auto value = (std::int64_t{1} << bit) + offset;
      Histogram histogram;
      histogram.record(nanoseconds{value});
      histogram.record(std::chrono::hours{1});  // so that the maximum does not cap the answer
      const auto found = histogram.percentile(50).count();
      EXPECT_GE(found, value);
      EXPECT_LE(static_cast<double>(found), static_cast<double>(value) * 1.001 + 0.5) << value;
    }
  }
}

TEST(HistogramTest, MergingEqualsRecordingInOne) {
  Histogram a;
  Histogram b;
  Histogram both;
  for (int i = 1; i <= 1000; ++i) {
    (i % 3 == 0 ? a : b).record(std::chrono::microseconds{i});
    both.record(std::chrono::microseconds{i});
  }
  a.merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.min(), both.min());
  EXPECT_EQ(a.max(), both.max());
  EXPECT_EQ(a.mean(), both.mean());
  EXPECT_EQ(a.percentile(99), both.percentile(99));
}

TEST(HistogramTest, EmptyIsZeroAndTheLongestCountsAsTheLast) {
  Histogram histogram;
  EXPECT_EQ(histogram.min().count(), 0);
  EXPECT_EQ(histogram.mean().count(), 0);
  EXPECT_EQ(histogram.percentile(99).count(), 0);
  histogram.record(nanoseconds{-5});
  EXPECT_EQ(histogram.min().count(), 0);
  histogram.record(std::chrono::hours{30});
  EXPECT_EQ(histogram.max(), std::chrono::hours{30});
  EXPECT_EQ(histogram.percentile(100), std::chrono::hours{30});
}

}  // namespace
}  // namespace proxypool::loadgen
