// Events become log lines and metrics become text: the telemetry of one process.
//
// Lines are composed by the thread that emits and written by one thread of the logger's own. The
// end of the object writes what is still queued: let it outlive every thread that emits.
//
// Thread rule: any thread, but for the construction and the end.
// Limits:      queue_lines_max lines; beyond that the oldest is dropped and counted in
//              proxypool_log_dropped_total. A value of a line is cut at 1 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "proxypool/base/time.hpp"
#include "proxypool/ports/metrics.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::telemetry {

enum class Format : std::uint8_t { Text, Json };

struct Options {
  std::string process;  // "gateway", "controller", …
  ports::Level level = ports::Level::Info;
  Format format = Format::Text;
  std::size_t queue_lines_max = 8192;
  // Where a line with its newline goes; nothing given: standard error.
  std::function<void(std::string_view line)> write;
};

class Telemetry {
 public:
  virtual ~Telemetry() = default;
  [[nodiscard]] virtual ports::Events& events() noexcept = 0;
  // Holds the metrics of the process itself from the start.
  [[nodiscard]] virtual ports::Metrics& metrics() noexcept = 0;
  virtual void set_level(ports::Level level) noexcept = 0;
};

std::unique_ptr<Telemetry> make_telemetry(Options options, const Clock& clock);

// Metrics alone, without those of the process: for tests and tools.
std::unique_ptr<ports::Metrics> make_metrics();

}  // namespace proxypool::telemetry
