#include "adapters/telemetry/telemetry.hpp"

#include <utility>

#include "adapters/telemetry/event_log.hpp"
#include "adapters/telemetry/process_metrics.hpp"

namespace proxypool::telemetry {
namespace {

class ProcessTelemetry final : public Telemetry {
 public:
  ProcessTelemetry(Options options, const Clock& clock)
      : metrics_(make_metrics()), log_(make_event_log(std::move(options), clock, *metrics_)) {
    register_process_metrics(*metrics_, clock);
  }

  ports::Events& events() noexcept override { return *log_; }
  ports::Metrics& metrics() noexcept override { return *metrics_; }
  void set_level(ports::Level level) noexcept override { log_->set_level(level); }

 private:
  std::unique_ptr<ports::Metrics> metrics_;
  std::unique_ptr<EventLog> log_;
};

}  // namespace

std::unique_ptr<Telemetry> make_telemetry(Options options, const Clock& clock) {
  return std::make_unique<ProcessTelemetry>(std::move(options), clock);
}

}  // namespace proxypool::telemetry
