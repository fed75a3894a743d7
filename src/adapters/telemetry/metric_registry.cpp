#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/telemetry/telemetry.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/ports/metrics.hpp"

namespace proxypool::telemetry {
namespace {

using Labels = ports::Metrics::Labels;
using prometheus::MetricType;

bool good_name(std::string_view name) noexcept {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

// One series; exactly one of the last four is there, and once it is there it stays.
struct Series {
  bool shown = true;
  std::unique_ptr<ports::Counter> counter;
  std::unique_ptr<ports::Gauge> gauge;
  std::unique_ptr<ports::Histogram> histogram;
  ports::Metrics::Read read;
};

struct Family {
  MetricType type;
  std::string help;
  std::map<Labels, Series> series;  // the address of a series does not change
};

prometheus::ClientMetric::Histogram collect(const ports::Histogram& histogram) {
  prometheus::ClientMetric::Histogram out;
  const auto counts = histogram.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    out.sample_count += counts[i];
    const double bound = i < histogram.bounds().size() ? histogram.bounds()[i]
                                                       : std::numeric_limits<double>::infinity();
    out.bucket.push_back({out.sample_count, bound});
  }
  out.sample_sum = histogram.sum();
  return out;
}

class Registry final : public ports::Metrics {
 public:
  Registry() {
    counter_from("proxypool_metrics_refused_total",
                 "Series that did not fit into the registry any more",
                 [this] { return static_cast<double>(refused_.load()); }, {});
  }

  ports::Counter& counter(std::string_view name, std::string_view help,
                          const Labels& labels) override {
    return families_.with([&](Families& families) -> ports::Counter& {
      Series& series = find(families, MetricType::Counter, name, help, labels);
      if (!series.counter) {
        series.counter = std::make_unique<ports::Counter>(cells_, cells_for(series, 1));
      }
      return *series.counter;
    });
  }

  ports::Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels) override {
    return families_.with([&](Families& families) -> ports::Gauge& {
      Series& series = find(families, MetricType::Gauge, name, help, labels);
      if (!series.gauge) series.gauge = std::make_unique<ports::Gauge>();
      return *series.gauge;
    });
  }

  ports::Histogram& histogram(std::string_view name, std::string_view help,
                              const std::vector<double>& bounds, const Labels& labels) override {
    const std::size_t needed = ports::Histogram::cells_needed(bounds.size());
    PP_ASSERT(std::is_sorted(bounds.begin(), bounds.end()) && needed <= kSpareCells);
    return families_.with([&](Families& families) -> ports::Histogram& {
      Series& series = find(families, MetricType::Histogram, name, help, labels);
      if (!series.histogram) {
        series.histogram =
            std::make_unique<ports::Histogram>(cells_, cells_for(series, needed), bounds);
      }
      PP_ASSERT(series.histogram->bounds() == bounds);
      return *series.histogram;
    });
  }

  void counter_from(std::string_view name, std::string_view help, Read read,
                    const Labels& labels) override {
    read_from(MetricType::Counter, name, help, std::move(read), labels);
  }
  void gauge_from(std::string_view name, std::string_view help, Read read,
                  const Labels& labels) override {
    read_from(MetricType::Gauge, name, help, std::move(read), labels);
  }

  std::string render() const override {
    std::vector<prometheus::MetricFamily> out;
    std::vector<Pending> reads;
    families_.with([&](const Families& families) {
      for (const auto& [name, family] : families) {
        out.push_back({name, family.help, family.type, {}});
        for (const auto& [labels, series] : family.series) {
          if (!series.shown) continue;
          auto& metric = out.back().metric.emplace_back();
          for (const auto& [key, value] : labels) metric.label.push_back({key, value});
          if (series.counter) metric.counter.value = static_cast<double>(series.counter->value());
          if (series.gauge) metric.gauge.value = series.gauge->value();
          if (series.histogram) metric.histogram = collect(*series.histogram);
          if (series.read) {
            reads.push_back({series.read, out.size() - 1, out.back().metric.size() - 1});
          }
        }
      }
    });
    // Outside the lock: what is asked here may itself be waiting to register a metric.
    for (const Pending& pending : reads) {
      auto& metric = out[pending.family].metric[pending.series];
      metric.counter.value = metric.gauge.value = pending.read();
    }
    return prometheus::TextSerializer().Serialize(out);
  }

 private:
  using Families = std::map<std::string, Family, std::less<>>;
  static constexpr std::size_t kSpareCells = 128;

  struct Pending {
    Read read;
    std::size_t family;
    std::size_t series;
  };

  void read_from(MetricType type, std::string_view name, std::string_view help, Read read,
                 const Labels& labels) {
    families_.with([&](Families& families) {
      find(families, type, name, help, labels).read = std::move(read);
    });
  }

  // Where the numbers of a new series live; what does not fit shares some that nobody looks at.
  std::size_t cells_for(Series& series, std::size_t count) {
    const auto first = cells_.allocate(count);
    series.shown = first.has_value();
    if (!first) refused_.fetch_add(1);
    return first.value_or(spare_);
  }

  // The series of this name and these labels, made if it is new.
  static Series& find(Families& families, MetricType type, std::string_view name,
                      std::string_view help, const Labels& labels) {
    PP_ASSERT(good_name(name) && name.starts_with("proxypool_"));
    PP_ASSERT((type == MetricType::Counter) == name.ends_with("_total"));
    const auto at = families.try_emplace(std::string(name), Family{type, std::string(help), {}});
    Family& family = at.first->second;
    PP_ASSERT(family.type == type && family.help == help);
    const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto key_is_good = [](const auto& label) { return good_name(label.first); };
    PP_ASSERT(std::all_of(labels.begin(), labels.end(), key_is_good));
    if (!family.series.empty()) {
      const Labels& first = family.series.begin()->first;
      PP_ASSERT(std::equal(first.begin(), first.end(), labels.begin(), labels.end(), same_key));
    }
    return family.series[labels];
  }

  std::atomic<std::uint64_t> refused_{0};
  ThreadCells cells_;
  std::size_t spare_ = cells_.allocate(kSpareCells).value();
  Guarded<Families> families_;
};

}  // namespace

std::unique_ptr<ports::Metrics> make_metrics() {
  return std::make_unique<Registry>();
}

}  // namespace proxypool::telemetry
