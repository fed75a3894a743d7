// Events as lines, written by spdlog's asynchronous logger.
//
// Thread rule: any thread, but for the construction and the end.
// Limits:      see telemetry.hpp.
#pragma once

#include <memory>

#include "adapters/telemetry/telemetry.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::telemetry {

class EventLog : public ports::Events {
 public:
  virtual void set_level(ports::Level level) noexcept = 0;
};

// Registers the log's own metrics. Both references must live longer than the log.
std::unique_ptr<EventLog> make_event_log(Options options, const Clock& clock,
                                         ports::Metrics& metrics);

}  // namespace proxypool::telemetry
