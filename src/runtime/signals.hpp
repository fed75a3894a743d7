// Signals become calls: SIGTERM and SIGINT ask to stop, SIGHUP asks to read the configuration
// again.
//
// The signals are blocked before the first thread (gRPC starts threads that inherit the mask, and a
// signal that finds one unblocked thread kills the process) and read from a descriptor by a thread
// of our own. A second one that asks to stop ends the process at once with exit code 1.
//
// Thread rule: any thread; the reload callback runs on the signal thread, one at a time.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "runtime/alarm.hpp"
#include "runtime/unique_fd.hpp"

namespace proxypool::runtime {

// The first statement of main: blocks the three signals and ignores SIGPIPE. A child process
// inherits the mask: whoever starts one unblocks it there (unblock_signals).
void block_signals() noexcept;
void unblock_signals() noexcept;

class Signals {
 public:
  // REQUIRES: block_signals() was called before any thread was started.
  explicit Signals(std::function<void()> reload);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  // Blocks until the first request to stop. One thread (main).
  void wait_for_stop();
  // As SIGTERM does: for a part that cannot go on.
  void request_stop() noexcept;
  [[nodiscard]] bool stop_requested() const noexcept { return stop_requested_; }

 private:
  void run();

  const std::function<void()> reload_;
  UniqueFd signals_;
  UniqueFd end_;
  Alarm stop_;
  std::atomic<bool> stop_requested_{false};
  std::thread thread_;
};

}  // namespace proxypool::runtime
