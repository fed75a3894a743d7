// Prober: runs the probes of many tasks on one loop, no more than so many at a time.
//
// Tasks wait in a bounded queue in the order in which they came (the controller has put the urgent
// ones first). A task that is queued or running already is dropped, and so is what this checker
// cannot probe; the controller gives a task out again when it is not answered in time.
//
// Thread rule: offer, stop_intake, drain: any thread (drain blocks); all else the loop's thread,
//              or any thread once the loop has ended.
// Limits:      `in_flight_max` probes and look-ups at a time, `queue_max` tasks waiting; over:
//              dropped and counted. A probe takes at most the smaller of its task's timeout and
//              `timeout_max`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checker/basic_probe.hpp"
#include "checker/probe_metrics.hpp"
#include "net/event_loop.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::checker {

struct ProberSettings {
  std::size_t in_flight_max = 256;
  std::size_t queue_max = 1024;
  milliseconds timeout_max{30'000};
};

struct ProberDeps {
  net::EventLoop& loop;
  // Turns a name into addresses, at least one; called by `blocking`.
  std::function<Result<std::vector<net::Endpoint>>(const std::string& host, std::uint16_t port,
                                                   Deadline deadline)>
      look_up;
  // Runs a job on a thread that may block; false when it is overloaded. Ends before the loop does.
  std::function<bool(std::function<void()>)> blocking;
  // On the loop's thread.
  std::function<void(const domain::Observation&)> report;
  ProbeMetrics& metrics;
  ports::Events& events;
  // For https proxies; null: they are none of this checker's.
  std::shared_ptr<const net::TlsContext> tls = nullptr;
};

class Prober {
 public:
  Prober(ProberSettings settings, ProberDeps deps);
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  void offer(std::vector<domain::CheckTask> tasks);
  // Forgets what waits and refuses what comes; running probes go on.
  void stop_intake();
  // After stop_intake(): waits until no probe runs any more; false when `limit` passed before.
  // Once.
  [[nodiscard]] bool drain(nanoseconds limit) { return idle_.pop_for(limit).has_value(); }

 private:
  using TaskKey = std::pair<std::uint64_t, ProxyId>;
  static TaskKey key_of(const domain::CheckTask& task) { return {task.task_id, task.proxy}; }

  [[nodiscard]] bool supported(const domain::CheckTask& task) const;
  void take(domain::CheckTask task);
  void start_waiting();
  void start(domain::CheckTask task);
  void look_up(std::uint64_t ticket, const BasicProbe& probe);
  void end(std::uint64_t ticket, const std::optional<domain::Observation>& observation);
  void show_counts();

  const ProberSettings settings_;
  ProberDeps deps_;
  bool stopping_ = false;
  std::deque<domain::CheckTask> waiting_;
  std::set<TaskKey> known_;                                                 // waiting or running
  std::unordered_map<std::uint64_t, std::unique_ptr<BasicProbe>> running_;  // by ticket
  std::uint64_t last_ticket_ = 0;
  BoundedQueue<bool> idle_{1};
};

}  // namespace proxypool::checker
