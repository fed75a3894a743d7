// Runs a cold-path service: one thread that calls `step(now)` whenever it is due.
//
// A step does what is due and answers when it wants to be called again; wake() calls it earlier.
// The simulator calls the same function without this class.
//
// Thread rule: wake and stop: any thread, but not from inside the step (stop). The step itself runs
//              on one thread. An exception that leaves a step ends the process.
// Limits:      at most one step a millisecond, however often it is woken or asks for the past.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "proxypool/base/time.hpp"
#include "runtime/alarm.hpp"

namespace proxypool::runtime {

class Stepper {
 public:
  using Step = std::function<TimePoint(TimePoint now)>;

  // Starts at once; the first step comes immediately.
  Stepper(std::string name, Step step);
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;
  ~Stepper() { stop(); }

  // A step follows soon after this call, even if one is going on.
  void wake() noexcept { alarm_.wake(); }
  // Waits for the step that is going on, then ends. May be called twice.
  void stop();

 private:
  void run();

  const std::string name_;
  const Step step_;
  Alarm alarm_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace proxypool::runtime
