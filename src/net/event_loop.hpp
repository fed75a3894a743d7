// One thread's reactor: an epoll set, timers, and functions posted from other threads.
//
// The loop calls; it never decides. A descriptor is registered when its owner says so, usually
// after a call answered EAGAIN; closing a descriptor takes it out of the epoll set without a call.
//
// Thread rule: post() and stop() from any thread, all else from the thread that is in run() (or
// from
//              one thread before run() begins).
// Invariant:   after forget(h), h is never called again, not even for events already fetched.
// Limits:      kEventsPerTurn events a turn; the rest waits in the kernel.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "net/timer.hpp"
#include "net/unique_fd.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::net {

class EventLoop;

// What an epoll registration points at. Owners call EventLoop::forget() before they end.
class IoHandler {
 public:
  // `events`: EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR. May destroy this object.
  virtual void on_io(std::uint32_t events) = 0;

 protected:
  IoHandler() = default;
  IoHandler(const IoHandler&) = default;
  IoHandler& operator=(const IoHandler&) = default;
  ~IoHandler() = default;
};

// Work that goes on in the next turn, so that one busy connection does not hold the thread.
// Destroying it takes it out of the queue.
class Deferred {
 public:
  Deferred(const Deferred&) = delete;
  Deferred& operator=(const Deferred&) = delete;
  [[nodiscard]] bool deferred() const noexcept { return next_ != this; }
  void undefer() noexcept;

 protected:
  Deferred() = default;
  virtual ~Deferred() { undefer(); }

 private:
  friend class EventLoop;
  // May defer itself again (for the turn after this one), and may destroy this object.
  virtual void on_turn() = 0;

  Deferred* next_ = this;
  Deferred* previous_ = this;
};

class EventLoop {
 public:
  static constexpr std::size_t kEventsPerTurn = 256;

  // Throws std::system_error when the kernel has no descriptor left.
  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  // Turns until stop(). What was posted before stop() still runs.
  void run();
  // run() returns after its current turn, or at once when it has not begun.
  void stop();
  // One round: waits at most `wait_max` for something to do, then does it.
  void turn(nanoseconds wait_max);

  // Runs `function` on the loop's thread; functions run in the order of posting. After run() has
  // returned they are kept, and destroyed with the loop. One wake-up serves all that is posted
  // before the loop gets to it.
  void post(std::function<void()> function);

  // Registration; false with errno when the kernel refuses (ENOMEM, ENOSPC). `events` with EPOLLET
  // is edge-triggered, without it level-triggered.
  [[nodiscard]] bool add(int fd, std::uint32_t events, IoHandler& handler) noexcept;
  [[nodiscard]] bool modify(int fd, std::uint32_t events, IoHandler& handler) noexcept;
  void remove(int fd, IoHandler& handler) noexcept;
  // Drops the events of this turn that are still to be delivered to `handler`. Makes no system
  // call: the owner closes the descriptor, which takes it out of the epoll set.
  void forget(const IoHandler& handler) noexcept;

  // Calls work.on_turn() after the events of this turn, or in the next turn when called from
  // on_turn(). Twice is once.
  void defer(Deferred& work) noexcept;

  [[nodiscard]] TimerQueue& timers() noexcept { return timers_; }
  // The time at which this turn began.
  [[nodiscard]] TimePoint now() const noexcept { return timers_.now(); }

 private:
  [[nodiscard]] int timeout_ms(nanoseconds wait_max) noexcept;
  void dispatch(std::size_t count);
  void run_deferred();
  void run_posted();
  void wake() noexcept;

  class DeferredHead final : public Deferred {
    void on_turn() override {}
  };

  UniqueFd epoll_;
  UniqueFd wake_;
  TimerQueue timers_;
  std::array<epoll_event, kEventsPerTurn> events_;
  std::size_t next_event_ = 0;
  std::size_t event_count_ = 0;
  DeferredHead deferred_;
  DeferredHead turn_end_;
  Guarded<std::vector<std::function<void()>>> posted_;
  std::vector<std::function<void()>> running_;
  std::atomic<bool> pending_{false};  // something is posted and the loop knows or will be told
  std::atomic<bool> stopping_{false};
};

}  // namespace proxypool::net
