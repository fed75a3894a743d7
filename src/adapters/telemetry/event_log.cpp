#include "adapters/telemetry/event_log.hpp"

#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "adapters/telemetry/log_line.hpp"
#include "adapters/telemetry/rate_limit.hpp"
#include "proxypool/base/assert.hpp"

namespace proxypool::telemetry {
namespace {

void write_to_standard_error(std::string_view line) {
  while (!line.empty()) {
    const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // there is nobody to tell
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Lines arrive complete; only the logger's one thread calls.
class LineSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LineSink(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    write_({message.payload.data(), message.payload.size()});
  }
  void flush_() override {}
  std::function<void(std::string_view)> write_;
};

class SpdlogEventLog final : public EventLog {
 public:
  SpdlogEventLog(Options options, const Clock& clock, ports::Metrics& metrics)
      : clock_(clock),
        process_(std::move(options.process)),
        format_(options.format),
        level_(options.level),
        queue_(std::make_shared<spdlog::details::thread_pool>(options.queue_lines_max, 1)),
        lines_{&lines(metrics, ports::Level::Debug), &lines(metrics, ports::Level::Info),
               &lines(metrics, ports::Level::Warn), &lines(metrics, ports::Level::Error)},
        suppressed_(metrics.counter("proxypool_log_suppressed_total",
                                    "Log lines left out by their event's rate limit")) {
    auto write = options.write ? std::move(options.write) : write_to_standard_error;
    logger_ = std::make_shared<spdlog::async_logger>(
        process_, std::make_shared<LineSink>(std::move(write)), queue_,
        spdlog::async_overflow_policy::overrun_oldest);
    logger_->set_level(spdlog::level::trace);
    metrics.counter_from("proxypool_log_dropped_total",
                         "Log lines dropped because the queue was full",
                         [queue = std::weak_ptr(queue_)] {
                           const auto alive = queue.lock();
                           return alive ? static_cast<double>(alive->overrun_counter()) : 0.0;
                         });
  }
  // The end of the queue writes what is still waiting and joins; nobody uses the logger after it.
  ~SpdlogEventLog() override { queue_.reset(); }

  void emit(ports::Event event, std::span<const ports::Field> fields) noexcept override {
    const ports::Level level = ports::row(event).level;
    if (!enabled(level)) return;
    (void)PP_BUG_IF(std::any_of(fields.begin(), fields.end(), [&](const ports::Field& field) {
      return !ports::has_field(event, field.key);
    }));
    const auto left_out = limit_.take(event, clock_.now());
    if (!left_out) {
      suppressed_.add();
      return;
    }
    lines_[static_cast<std::size_t>(level)]->add();
    const LineHead head{clock_.wall_now(), process_, *left_out};
    const std::string line = compose_line(format_, head, event, fields);
    logger_->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
  }
  bool enabled(ports::Level level) const noexcept override {
    return level >= level_.load(std::memory_order_relaxed);
  }
  void set_level(ports::Level level) noexcept override { level_ = level; }

 private:
  static ports::Counter& lines(ports::Metrics& metrics, ports::Level level) {
    return metrics.counter("proxypool_log_lines_total", "Log lines by level",
                           {{"level", std::string(to_string(level))}});
  }

  const Clock& clock_;
  const std::string process_;
  const Format format_;
  std::atomic<ports::Level> level_;
  RateLimit limit_;
  std::shared_ptr<spdlog::details::thread_pool> queue_;
  std::array<ports::Counter*, 4> lines_;
  ports::Counter& suppressed_;
  std::shared_ptr<spdlog::async_logger> logger_;
};

}  // namespace

std::unique_ptr<EventLog> make_event_log(Options options, const Clock& clock,
                                         ports::Metrics& metrics) {
  return std::make_unique<SpdlogEventLog>(std::move(options), clock, metrics);
}

}  // namespace proxypool::telemetry
