#include "runtime/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "proxypool/base/assert.hpp"
#include "runtime/boot_clock.hpp"
#include "runtime/system.hpp"

namespace proxypool::runtime {
namespace {

// A terminal's Ctrl-C reaches the whole group, and a script then passes on a second one.
constexpr milliseconds kSamePress{500};

sigset_t handled_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void block_signals() noexcept {
  const sigset_t set = handled_signals();
  PP_ASSERT(::pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  ::signal(SIGPIPE, SIG_IGN);
}

void unblock_signals() noexcept {
  const sigset_t set = handled_signals();
  PP_ASSERT(::pthread_sigmask(SIG_UNBLOCK, &set, nullptr) == 0);
  ::signal(SIGPIPE, SIG_DFL);
}

Signals::Signals(std::function<void()> reload) : reload_(std::move(reload)) {
  const sigset_t set = handled_signals();
  signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  end_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  PP_ASSERT(signals_ && end_);
  thread_ = std::thread([this] { run(); });
}

Signals::~Signals() {
  const std::uint64_t one = 1;
  (void)!::write(end_.get(), &one, sizeof one);
  thread_.join();
}

void Signals::wait_for_stop() {
  while (!stop_requested_) stop_.wait_until(kNever);
}

void Signals::request_stop() noexcept {
  stop_requested_ = true;
  stop_.wake();
}

void Signals::run() {
  name_this_thread("signals");
  std::optional<TimePoint> asked;
  std::array<pollfd, 2> waits{{{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}}};
  while (true) {
    (void)::poll(waits.data(), waits.size(), -1);
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == ssize_t{sizeof info}) {
      if (info.ssi_signo == SIGHUP) {
        reload_();
        continue;
      }
      if (asked && boot_now() - *asked > kSamePress) ::_exit(1);
      if (!asked) asked = boot_now();
      request_stop();
    }
    if ((waits[1].revents & POLLIN) != 0) return;
  }
}

}  // namespace proxypool::runtime
