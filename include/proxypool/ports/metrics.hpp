// Metrics: handles are made at start from configured names, and cost two nanoseconds afterwards.
//
//   auto& requests = metrics.counter("proxypool_gateway_requests_total", "Requests begun",
//                                    {{"routing", id}});
//   requests.add();
//
// Names begin with proxypool_, counters end in _total, durations are seconds and sizes bytes. Label
// values come from configuration or a closed list, never from traffic: no address, client, URL.
//
// Thread rule: any thread. A handle lives as long as its Metrics.
// Limits:      16,384 numbers in all; a series beyond is given out but not shown, and counted in
//              proxypool_metrics_refused_total. A series is never removed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxypool/base/thread_cells.hpp"

namespace proxypool::ports {

// A number that only grows.
class Counter {
 public:
  Counter(ThreadCells& cells, std::size_t cell) noexcept : cells_(&cells), cell_(cell) {}
  void add(std::uint64_t n = 1) noexcept { cells_->add(cell_, n); }
  [[nodiscard]] std::uint64_t value() const { return cells_->sum(cell_); }

 private:
  ThreadCells* cells_;
  std::size_t cell_;
};

// A number that goes up and down; shared by all threads, so not for the request path.
class Gauge {
 public:
  Gauge() = default;
  void set(double value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(double change) noexcept { value_.fetch_add(change, std::memory_order_relaxed); }
  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// How often a value fell into each bucket. One cell a bucket, one for what is above, one sum.
class Histogram {
 public:
  // `bounds` are upper bounds, rising.
  Histogram(ThreadCells& cells, std::size_t first, std::vector<double> bounds)
      : cells_(&cells), first_(first), bounds_(std::move(bounds)) {}

  void observe(double value) noexcept {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    cells_->add(first_ + static_cast<std::size_t>(bucket), 1);
    cells_->add_double(first_ + bounds_.size() + 1, value);
  }

  static std::size_t cells_needed(std::size_t bounds) noexcept { return bounds + 2; }
  [[nodiscard]] const std::vector<double>& bounds() const noexcept { return bounds_; }
  // Not cumulative; the last one counts what is above every bound.
  [[nodiscard]] std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> out;
    for (std::size_t i = 0; i <= bounds_.size(); ++i) out.push_back(cells_->sum(first_ + i));
    return out;
  }
  [[nodiscard]] double sum() const { return cells_->sum_double(first_ + bounds_.size() + 1); }

 private:
  ThreadCells* cells_;
  std::size_t first_;
  std::vector<double> bounds_;
};

// Seconds, for what a network answers: 1 ms to 60 s.
inline const std::vector<double>& latency_buckets() {
  static const std::vector<double> bounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                          0.5,   1,      2.5,   5,    10,    30,   60};
  return bounds;
}

class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  // Called at every scrape, on the scraping thread.
  using Read = std::function<double()>;

  virtual ~Metrics() = default;

  // The same name and labels give the same handle again. REQUIRES (asserted): a name as described
  // above; one name has one kind, one help text, one set of label names, and one list of bounds.
  virtual Counter& counter(std::string_view name, std::string_view help,
                           const Labels& labels = {}) = 0;
  virtual Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {}) = 0;
  virtual Histogram& histogram(std::string_view name, std::string_view help,
                               const std::vector<double>& bounds, const Labels& labels = {}) = 0;
  // Numbers that somebody else keeps. A second call with the same name and labels replaces `read`.
  virtual void counter_from(std::string_view name, std::string_view help, Read read,
                            const Labels& labels = {}) = 0;
  virtual void gauge_from(std::string_view name, std::string_view help, Read read,
                          const Labels& labels = {}) = 0;

  // Everything, in the Prometheus text format.
  [[nodiscard]] virtual std::string render() const = 0;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";
};

}  // namespace proxypool::ports
