#include "runtime/stepper.hpp"

#include <utility>

#include "runtime/boot_clock.hpp"
#include "runtime/system.hpp"

namespace proxypool::runtime {

Stepper::Stepper(std::string name, Step step)
    : name_(std::move(name)), step_(std::move(step)), thread_([this] { run(); }) {}

void Stepper::stop() {
  stopping_ = true;
  alarm_.wake();
  if (thread_.joinable()) thread_.join();
}

void Stepper::run() {
  constexpr milliseconds kPause{1};
  name_this_thread(name_);
  while (!stopping_) {
    const TimePoint due = step_(boot_now());
    std::this_thread::sleep_for(kPause);
    if (!stopping_) alarm_.wait_until(due);
  }
}

}  // namespace proxypool::runtime
