#include "runtime/alarm.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "proxypool/base/assert.hpp"

namespace proxypool::runtime {

Alarm::Alarm()
    : timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
      wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  PP_ASSERT(timer_ && wakes_);
}

void Alarm::wait_until(TimePoint at) {
  itimerspec setting{};  // all zero disarms the timer
  if (at != kNever) {
    const auto ns = std::max<std::int64_t>(at.time_since_epoch().count(), 1);
    setting.it_value.tv_sec = ns / 1'000'000'000;
    setting.it_value.tv_nsec = ns % 1'000'000'000;
  }
  PP_ASSERT(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &setting, nullptr) == 0);
  std::array<pollfd, 2> waits{{{timer_.get(), POLLIN, 0}, {wakes_.get(), POLLIN, 0}}};
  while (::poll(waits.data(), waits.size(), -1) < 0) PP_ASSERT(errno == EINTR);
  std::uint64_t count = 0;
  (void)!::read(wakes_.get(), &count, sizeof count);
}

void Alarm::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wakes_.get(), &one, sizeof one);  // full means that a wake is already waiting
}

}  // namespace proxypool::runtime
