#include "loadgen/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace proxypool::loadgen {
namespace {

constexpr unsigned kFineBits = 10;                               // 1,024 buckets to a doubling
constexpr std::uint64_t kExact = std::uint64_t{2} << kFineBits;  // below: one bucket a nanosecond
constexpr unsigned kValueBits = 42;
constexpr std::size_t kBuckets = kExact + ((kValueBits - kFineBits - 1) << kFineBits);

std::size_t bucket_of(std::uint64_t value) {
  if (value < kExact) return value;
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - kFineBits - 1;
  const auto index = (std::uint64_t{shift} << kFineBits) + (value >> shift);
  return std::min<std::uint64_t>(index, kBuckets - 1);
}

// The largest value that falls into the bucket.
std::uint64_t top_of(std::size_t bucket) {
  if (bucket < kExact) return bucket;
  const auto shift = (bucket >> kFineBits) - 1;
  const auto fine = bucket - (shift << kFineBits);
  return ((fine + 1) << shift) - 1;
}

}  // namespace

Histogram::Histogram() : buckets_(kBuckets) {}

void Histogram::record(nanoseconds value) noexcept {
  const auto ns = std::max<std::int64_t>(value.count(), 0);
  ++buckets_[bucket_of(static_cast<std::uint64_t>(ns))];
  ++count_;
  sum_ += static_cast<double>(ns);
  min_ = std::min(min_, ns);
  max_ = std::max(max_, ns);
}

void Histogram::merge(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

nanoseconds Histogram::min() const noexcept {
  return nanoseconds{count_ == 0 ? 0 : min_};
}

nanoseconds Histogram::mean() const noexcept {
  if (count_ == 0) return nanoseconds{0};
  return nanoseconds{std::llround(sum_ / static_cast<double>(count_))};
}

nanoseconds Histogram::percentile(double percent) const noexcept {
  if (count_ == 0) return nanoseconds{0};
  const auto wanted = std::ceil(percent / 100 * static_cast<double>(count_));
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen < rank) continue;
    if (i == kBuckets - 1) break;
    return nanoseconds{std::min<std::int64_t>(static_cast<std::int64_t>(top_of(i)), max_)};
  }
  return nanoseconds{max_};
}

}  // namespace proxypool::loadgen
