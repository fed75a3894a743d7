#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "adapters/telemetry/telemetry.hpp"
#include "proxypool/base/assert.hpp"
#include "runtime/manual_clock.hpp"

namespace proxypool::telemetry {
namespace {

using ports::Metrics;
using testing::HasSubstr;
using testing::Not;

TEST(MetricsTest, ACounterAppearsWithItsHelpAndLabels) {
  const auto metrics = make_metrics();
  auto& a = metrics->counter("proxypool_x_total", "Things", {{"kind", "a"}});
  auto& b = metrics->counter("proxypool_x_total", "Things", {{"kind", "b"}});
  a.add();
  a.add(2);
  b.add(5);
  EXPECT_THAT(metrics->render(), HasSubstr("# HELP proxypool_x_total Things\n"
                                           "# TYPE proxypool_x_total counter\n"
                                           "proxypool_x_total{kind=\"a\"} 3\n"
                                           "proxypool_x_total{kind=\"b\"} 5\n"));
}

TEST(MetricsTest, TheSameNameAndLabelsAreTheSameCounter) {
  const auto metrics = make_metrics();
  auto& first = metrics->counter("proxypool_x_total", "Things");
  EXPECT_EQ(&first, &metrics->counter("proxypool_x_total", "Things"));
}

TEST(MetricsTest, AGaugeShowsItsLastValue) {
  const auto metrics = make_metrics();
  auto& gauge = metrics->gauge("proxypool_level", "Level");
  gauge.set(4);
  gauge.add(-1.5);
  EXPECT_THAT(metrics->render(), HasSubstr("# TYPE proxypool_level gauge\nproxypool_level 2.5\n"));
}

TEST(MetricsTest, AHistogramIsCumulativeAndClosedAbove) {
  const auto metrics = make_metrics();
  auto& histogram = metrics->histogram("proxypool_wait_seconds", "Wait", {0.1, 1});
  for (const double value : {0.05, 0.1, 0.5, 7.0}) histogram.observe(value);
  EXPECT_THAT(metrics->render(), HasSubstr("proxypool_wait_seconds_count 4\n"
                                           "proxypool_wait_seconds_sum 7.65\n"
                                           "proxypool_wait_seconds_bucket{le=\"0.1\"} 2\n"
                                           "proxypool_wait_seconds_bucket{le=\"1\"} 3\n"
                                           "proxypool_wait_seconds_bucket{le=\"+Inf\"} 4\n"));
}

TEST(MetricsTest, NumbersOfOthersAreAskedForAtEachScrape) {
  const auto metrics = make_metrics();
  double value = 1;
  metrics->gauge_from("proxypool_other", "Other", [&] { return value; });
  metrics->counter_from("proxypool_other_total", "Other", [&] { return value * 10; });
  value = 7;
  EXPECT_THAT(metrics->render(), HasSubstr("proxypool_other 7\n"));
  EXPECT_THAT(metrics->render(), HasSubstr("proxypool_other_total 70\n"));
}

TEST(MetricsTest, WhatIsAskedMayRegisterAMetric) {
  const auto metrics = make_metrics();
  metrics->gauge_from("proxypool_other", "Other", [&] {
    metrics->counter("proxypool_late_total", "Late").add();
    return 1.0;
  });
  (void)metrics->render();
  EXPECT_THAT(metrics->render(), HasSubstr("proxypool_late_total 1\n"));
}

TEST(MetricsTest, LabelValuesAreEscaped) {
  const auto metrics = make_metrics();
  metrics->gauge("proxypool_x", "X", {{"name", "a\"b\\c\nd"}}).set(1);
  EXPECT_THAT(metrics->render(), HasSubstr("proxypool_x{name=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

// OP-3: hot-path counters are per thread and summed at the scrape.
TEST(MetricsTest, ThreadsAddWithoutLosingAnything) {
  const auto metrics = make_metrics();
  auto& counter = metrics->counter("proxypool_x_total", "Things");
  auto& histogram = metrics->histogram("proxypool_wait_seconds", "Wait", {0.1, 1});
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          counter.add();
          histogram.observe(0.5);
          if (i % 100 == 0) (void)counter.value();
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(counter.value(), 12'000U);
  EXPECT_EQ(histogram.counts(), (std::vector<std::uint64_t>{0, 12'000, 0}));
  EXPECT_DOUBLE_EQ(histogram.sum(), 6'000);
}

TEST(MetricsTest, RegistriesDoNotMix) {
  const auto one = make_metrics();
  const auto two = make_metrics();
  auto& a = one->counter("proxypool_x_total", "Things");
  auto& b = two->counter("proxypool_x_total", "Things");
  for (int i = 0; i < 3; ++i) {
    a.add();
    b.add(10);
  }
  EXPECT_EQ(a.value(), 3U);
  EXPECT_EQ(b.value(), 30U);
}

TEST(MetricsTest, WhatDoesNotFitIsCountedInsteadOfShown) {
  const auto metrics = make_metrics();
  for (std::size_t i = 0; i < ThreadCells::kCellsMax + 10; ++i) {
    metrics->counter("proxypool_x_total", "Things", {{"n", std::to_string(i)}}).add();
  }
  auto& late = metrics->histogram("proxypool_late_seconds", "Late", ports::latency_buckets());
  late.observe(1);
  const auto text = metrics->render();
  EXPECT_THAT(text, HasSubstr("proxypool_x_total{n=\"16000\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("proxypool_x_total{n=\"16390\"}")));
  EXPECT_THAT(text, Not(HasSubstr("proxypool_late_seconds_count")));
  EXPECT_THAT(text, HasSubstr("proxypool_metrics_refused_total 139\n"));  // 128 spare, 10, 1
}

TEST(MetricsDeathTest, BadNamesStopTheProgram) {
  const auto metrics = make_metrics();
  EXPECT_DEATH(metrics->gauge("other_name", "X"), "starts_with");
  EXPECT_DEATH(metrics->gauge("proxypool_Name", "X"), "good_name");
  EXPECT_DEATH(metrics->counter("proxypool_x", "X"), "_total");
  EXPECT_DEATH(metrics->gauge("proxypool_x_total", "X"), "_total");
  EXPECT_DEATH(metrics->gauge("proxypool_x", "X", {{"a-b", "1"}}), "key_is_good");
}

TEST(MetricsDeathTest, OneNameHasOneMeaning) {
  const auto metrics = make_metrics();
  metrics->gauge("proxypool_x", "X", {{"a", "1"}});
  EXPECT_DEATH(metrics->gauge("proxypool_x", "Y", {{"a", "2"}}), "help");
  EXPECT_DEATH(metrics->gauge("proxypool_x", "X", {{"b", "2"}}), "same_key");
  EXPECT_DEATH(metrics->gauge("proxypool_x", "X"), "same_key");
  EXPECT_DEATH(metrics->histogram("proxypool_x", "X", {1}), "type");
}

TEST(ProcessMetricsTest, TellWhatTheProcessIsAndUses) {
  const runtime::ManualClock clock;
  const auto telemetry = make_telemetry({.process = "test", .write = [](auto) {}}, clock);
  const std::uint64_t bugs = bugs_counted();
  EXPECT_TRUE(PP_BUG_IF(true));
  const std::string text = telemetry->metrics().render();
  EXPECT_THAT(text, HasSubstr("proxypool_build_info{version=\""));
  EXPECT_THAT(text, HasSubstr("proxypool_bugs_total " + std::to_string(bugs + 1) + "\n"));
  EXPECT_THAT(text, HasSubstr("proxypool_process_start_time_seconds 1700000000\n"));
  const auto value_of = [&](const std::string& name) {
    const auto at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + name.size() + 2));
  };
  EXPECT_GT(value_of("proxypool_process_resident_bytes"), 1e6);
  EXPECT_GE(value_of("proxypool_process_open_descriptors"), 3);
  EXPECT_GE(value_of("proxypool_process_threads"), 2);  // this one and the logger's
  EXPECT_GT(value_of("proxypool_process_descriptors_limit"), 3);
  EXPECT_GT(value_of("proxypool_process_cpu_seconds_total{mode=\"user\"}") +
                value_of("proxypool_process_cpu_seconds_total{mode=\"system\"}"),
            0);
}

}  // namespace
}  // namespace proxypool::telemetry
