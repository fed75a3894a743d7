// Checker: prober and session with the threads that they need, as one part of a process.
//
// Thread rule: start, stop_intake, drain and stop: the owner's thread, in this order; not_ready:
//              any thread.
// Limits:      kLookupThreads name look-ups at a time; how long the last report may take:
//              kLastReport.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "checker/probe_metrics.hpp"
#include "checker/prober.hpp"
#include "checker/session.hpp"
#include "net/event_loop.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/ports/control_plane.hpp"
#include "proxypool/ports/metrics.hpp"
#include "proxypool/ports/telemetry.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/stepper.hpp"

namespace proxypool::checker {

struct CheckerDeps {
  ports::CheckerControl& control;
  ports::Events& events;
  ports::Metrics& metrics;
  const Clock& clock;
  // Called once, from any thread, when trying again is of no use.
  std::function<void(const std::string& reason)> give_up;
  std::shared_ptr<const net::TlsContext> tls = nullptr;  // for https proxies
};

class Checker {
 public:
  static constexpr std::size_t kLookupThreads = 8;
  static constexpr seconds kLastReport{2};

  Checker(SessionSettings session, ProberSettings prober, CheckerDeps deps);
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;
  ~Checker() { stop(); }

  Status start();
  // Takes no more tasks; probes that run go on.
  void stop_intake();
  // Whether every probe had ended at the deadline.
  bool drain(Deadline deadline);
  // Sends the last observations and ends. May be called twice.
  void stop();

  // Why the checker is of no use now; empty: it has a session (OP-2).
  [[nodiscard]] std::vector<std::string> not_ready() const;
  [[nodiscard]] SessionStatus status() const { return session_.status(); }

 private:
  TimePoint watch(TimePoint now);

  CheckerDeps deps_;
  SplitMix64 watch_random_;
  SplitMix64 report_random_;
  ProbeMetrics metrics_;
  net::EventLoop loop_;
  runtime::BlockingPool lookups_;
  Session session_;
  Prober prober_;
  std::thread loop_thread_;
  std::unique_ptr<runtime::Stepper> reporter_;
  std::unique_ptr<runtime::Stepper> watcher_;
};

}  // namespace proxypool::checker
