// Everything that the programs ever log: one closed list of events, each with its level, its fields
// and how often a second it may appear.
//
//   events.emit(Event::UpstreamFetchFailed, {{"upstream", id.str()}, {"reason", reason}});
//
// Where an error is handled, it is emitted once; nothing is logged and then returned. A Secret has
// no conversion to a field. A new event is one enumerator and one row below it.
//
// Thread rule: any thread; emit never blocks and never throws.
// Limits:      the third column of the table; beyond it an event is counted, and the next line
//              that appears says how many were left out.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "proxypool/base/time.hpp"

namespace proxypool::ports {

// error: a person must act. warn: degraded, and counted. info: a state changed. debug: per request.
enum class Level : std::uint8_t { Debug, Info, Warn, Error };

constexpr std::string_view to_string(Level level) noexcept {
  constexpr std::string_view kNames[] = {"debug", "info", "warn", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

enum class Event : std::uint8_t {
  // every process
  ProcessStarted,
  ProcessReady,
  ProcessFailed,
  ProcessStopped,
  StageDone,
  StageIncomplete,
  StopRequested,
  ConfigReloaded,
  ConfigRejected,
  ConfigWarning,
  ListenerOpened,
  // gateway
  SessionOpened,
  SessionLost,
  SessionRefused,
  SnapshotApplied,
  SnapshotRefused,
  SnapshotExpired,
  SnapshotReporting,
  RequestServed,
  RequestRefused,
  AuthenticationRejected,
  ProxyBenched,
  TunnelClosed,
  Overloaded,
  CertificateLoaded,
  CertificateRefused,
  // controller
  WorkerRegistered,
  WorkerLost,
  CheckerRegistered,
  CheckerLost,
  UpstreamFetched,
  UpstreamFetchFailed,
  UpstreamChanged,
  RoutingSwitched,
  ProxyChanged,
  OwnershipLimited,
  ProxiesExtracted,
  GenerationChanged,
  StoreFailed,
  StoreRecovered,
  OperatorActed,
  SnapshotParked,
  // checker
  ProbeFinished,
  ReportFailed,
};

struct EventRow {
  Event event;
  std::string_view name;
  Level level;
  std::uint32_t per_second_max;  // 0: no limit
  std::string_view fields;       // names, separated by blanks; a line may leave some out
};

inline constexpr std::array kEvents{
    EventRow{Event::ProcessStarted, "process_started", Level::Info, 0, "version config pid"},
    EventRow{Event::ProcessReady, "process_ready", Level::Info, 0, "after"},
    EventRow{Event::ProcessFailed, "process_failed", Level::Error, 0, "reason"},
    EventRow{Event::ProcessStopped, "process_stopped", Level::Info, 0, "exit_code after"},
    EventRow{Event::StageDone, "stage_done", Level::Info, 0, "stage member took"},
    EventRow{Event::StageIncomplete, "stage_incomplete", Level::Warn, 0,
             "stage member took reason"},
    EventRow{Event::StopRequested, "stop_requested", Level::Info, 0, "reason"},
    EventRow{Event::ConfigReloaded, "config_reloaded", Level::Info, 0,
             "config fingerprint changed"},
    EventRow{Event::ConfigRejected, "config_rejected", Level::Error, 20, "config problem"},
    EventRow{Event::ConfigWarning, "config_warning", Level::Warn, 20, "config problem"},
    EventRow{Event::ListenerOpened, "listener_opened", Level::Info, 0, "listener address"},

    EventRow{Event::SessionOpened, "session_opened", Level::Info, 10, "session peer"},
    EventRow{Event::SessionLost, "session_lost", Level::Warn, 10, "session reason retry_in"},
    EventRow{Event::SessionRefused, "session_refused", Level::Error, 10, "reason retry_in"},
    EventRow{Event::SnapshotApplied, "snapshot_applied", Level::Info, 10,
             "generation version proxies routings took valid_for"},
    EventRow{Event::SnapshotRefused, "snapshot_refused", Level::Error, 10, "version reason"},
    EventRow{Event::SnapshotExpired, "snapshot_expired", Level::Error, 1, "version"},
    EventRow{Event::SnapshotReporting, "snapshot_reporting", Level::Warn, 1, "reason"},
    EventRow{Event::RequestServed, "request_served", Level::Info, 1000,
             "request client routing upstream proxy method target status attempts reason bytes_in "
             "bytes_out took"},
    EventRow{Event::RequestRefused, "request_refused", Level::Info, 100,
             "request client peer target proxy attempts status code detail"},
    EventRow{Event::AuthenticationRejected, "authentication_rejected", Level::Warn, 5,
             "realm peer reason"},
    EventRow{Event::ProxyBenched, "proxy_benched", Level::Info, 5, "upstream proxy phase for"},
    EventRow{Event::TunnelClosed, "tunnel_closed", Level::Debug, 100, "request proxy reason took"},
    EventRow{Event::Overloaded, "overloaded", Level::Warn, 1, "limit"},
    EventRow{Event::CertificateLoaded, "certificate_loaded", Level::Info, 0,
             "certificate valid_until"},
    EventRow{Event::CertificateRefused, "certificate_refused", Level::Error, 0,
             "certificate reason"},

    EventRow{Event::WorkerRegistered, "worker_registered", Level::Info, 10,
             "worker instance session zone peer"},
    EventRow{Event::WorkerLost, "worker_lost", Level::Warn, 10, "worker session reason"},
    EventRow{Event::CheckerRegistered, "checker_registered", Level::Info, 10,
             "checker session peer"},
    EventRow{Event::CheckerLost, "checker_lost", Level::Warn, 10, "checker session reason"},
    EventRow{Event::UpstreamFetched, "upstream_fetched", Level::Debug, 20,
             "upstream outcome records admitted duplicates took"},
    EventRow{Event::UpstreamFetchFailed, "upstream_fetch_failed", Level::Warn, 5,
             "upstream reason detail retry_in"},
    EventRow{Event::UpstreamChanged, "upstream_changed", Level::Info, 20, "upstream state reason"},
    EventRow{Event::RoutingSwitched, "routing_switched", Level::Info, 20, "routing from to reason"},
    EventRow{Event::ProxyChanged, "proxy_changed", Level::Debug, 100,
             "upstream proxy from to cause"},
    EventRow{Event::OwnershipLimited, "ownership_limited", Level::Warn, 1, "left_over"},
    EventRow{Event::ProxiesExtracted, "proxies_extracted", Level::Info, 20,
             "request client wanted given fulfilment"},
    EventRow{Event::GenerationChanged, "generation_changed", Level::Warn, 0, "from to reason"},
    EventRow{Event::StoreFailed, "store_failed", Level::Error, 1, "store operation reason"},
    EventRow{Event::StoreRecovered, "store_recovered", Level::Info, 1, "store after"},
    EventRow{Event::OperatorActed, "operator_acted", Level::Info, 0, "principal action subject"},
    EventRow{Event::SnapshotParked, "snapshot_parked", Level::Warn, 10, "worker version reason"},

    EventRow{Event::ProbeFinished, "probe_finished", Level::Debug, 100,
             "proxy level result reason took"},
    EventRow{Event::ReportFailed, "report_failed", Level::Warn, 1, "reason lost"},
};

static_assert(
    [] {
      for (std::size_t i = 0; i < kEvents.size(); ++i) {
        if (kEvents[i].event != static_cast<Event>(i)) return false;
      }
      return kEvents.back().event == Event::ReportFailed;
    }(),
    "each enumerator of Event has its row, in the same order");

constexpr const EventRow& row(Event event) noexcept {
  return kEvents[static_cast<std::size_t>(event)];
}

// Whether the table names `key` as a field of `event`.
constexpr bool has_field(Event event, std::string_view key) noexcept {
  std::string_view fields = row(event).fields;
  while (!fields.empty()) {
    const auto end = fields.find(' ');
    if (fields.substr(0, end) == key) return true;
    fields.remove_prefix(end == std::string_view::npos ? fields.size() : end + 1);
  }
  return false;
}

// One value of a line. Text is only looked at, not kept: emit composes the line at once.
struct Field {
  using Value =
      std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool, nanoseconds>;

  Field(std::string_view k, std::string_view v) noexcept : key(k), value(v) {}
  Field(std::string_view k, const char* v) noexcept : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, const std::string& v) noexcept : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, bool v) noexcept : key(k), value(v) {}
  Field(std::string_view k, double v) noexcept : key(k), value(v) {}
  template <class Integer>
  requires std::is_integral_v<Integer> Field(std::string_view k, Integer v)
  noexcept : key(k), value(wide(v)) {}
  template <class Rep, class Period>
  Field(std::string_view k, std::chrono::duration<Rep, Period> v) noexcept
      : key(k), value(std::chrono::duration_cast<nanoseconds>(v)) {}

  std::string_view key;
  Value value;

 private:
  template <class Integer>
  static Value wide(Integer v) noexcept {
    if constexpr (std::is_signed_v<Integer>)
      return std::int64_t{v};
    else
      return std::uint64_t{v};
  }
};

class Events {
 public:
  virtual ~Events() = default;

  void emit(Event event, std::initializer_list<Field> fields = {}) noexcept {
    emit(event, std::span<const Field>(fields.begin(), fields.size()));
  }
  virtual void emit(Event event, std::span<const Field> fields) noexcept = 0;

  // Whether a line of this level would be written: for what is costly to put together.
  [[nodiscard]] virtual bool enabled(Level level) const noexcept = 0;
};

}  // namespace proxypool::ports
