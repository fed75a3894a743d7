#include "checker/probe_metrics.hpp"

#include <chrono>
#include <string>

namespace proxypool::checker {

ProbeMetrics::ProbeMetrics(ports::Metrics& metrics)
    : seconds_(&metrics.histogram("proxypool_checker_probe_seconds",
                                  "From dialling a proxy to its answer, of probes that passed",
                                  ports::latency_buckets())),
      in_flight_(&metrics.gauge("proxypool_checker_probes_in_flight", "Probes under way")),
      queued_(&metrics.gauge("proxypool_checker_probes_queued", "Tasks that wait for their turn")) {
  for (std::size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<domain::FailureKind>(i);
    const std::string_view result =
        kind == domain::FailureKind::None ? "passed" : domain::to_string(kind);
    results_[i] = &metrics.counter("proxypool_checker_probes_total", "Probes that ended",
                                   {{"result", std::string(result)}});
  }
  for (std::size_t i = 0; i < kDrops; ++i) {
    drops_[i] = &metrics.counter("proxypool_checker_tasks_dropped_total",
                                 "Tasks that led to no observation",
                                 {{"reason", std::string(to_string(static_cast<Drop>(i)))}});
  }
}

void ProbeMetrics::finished(const domain::Observation& observation) noexcept {
  results_[static_cast<std::size_t>(observation.failure.kind)]->add();
  if (observation.passed) {
    seconds_->observe(std::chrono::duration<double>(observation.latency).count());
  }
}

}  // namespace proxypool::checker
