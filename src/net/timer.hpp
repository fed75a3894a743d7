// Timers that their owners hold as members: no allocation per timer once the queue is warm.
//
// The idea: pushing a timer back and cancelling it only store the new time; the heap finds out when
// the old time comes. An idle limit that restarts with each byte therefore costs one store.
//
// Thread rule: the loop's thread.
// Invariant:   a timer has at most one entry in the heap, whose key is at most its due time.
// Limits:      as many timers as their owners hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proxypool/base/time.hpp"

namespace proxypool::net {

class Timer;

// A four-ary heap of due times. Part of EventLoop; alone only in tests.
class TimerQueue {
 public:
  TimerQueue() = default;
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;
  ~TimerQueue();

  // When the next timer is due; kNever when none is.
  [[nodiscard]] TimePoint next_due() noexcept;
  // Fires what is due. A timer that is armed for `now` or earlier meanwhile waits for the next
  // call.
  void run_due(TimePoint now);

  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  void set_now(TimePoint now) noexcept { now_ = now; }

 private:
  friend class Timer;
  struct Entry {
    TimePoint key;
    Timer* timer;
  };

  void push(Timer& timer, TimePoint key);
  void erase(std::size_t slot) noexcept;
  void earlier(std::size_t slot, TimePoint key) noexcept;
  // Brings the top up to date with what its timer says; false when there is no top left.
  bool settle_top() noexcept;
  void sift_up(std::size_t slot) noexcept;
  void sift_down(std::size_t slot) noexcept;
  void place(std::size_t slot, Entry entry) noexcept;

  std::vector<Entry> heap_;
  TimePoint now_{};
};

class Timer {
 public:
  explicit Timer(TimerQueue& queue) noexcept : queue_(queue) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual ~Timer();

  // Replaces an earlier time.
  void arm(TimePoint due);
  // From the loop's cached now on.
  void arm_after(nanoseconds delay) { arm(Deadline::after(queue_.now(), delay).at()); }
  void cancel() noexcept { due_ = kNever; }
  [[nodiscard]] bool armed() const noexcept { return due_ != kNever; }
  [[nodiscard]] TimePoint due() const noexcept { return due_; }

 private:
  friend class TimerQueue;
  static constexpr std::size_t kNoSlot = SIZE_MAX;

  // Once per arming; may arm again, and may destroy this object.
  virtual void on_timer() = 0;

  TimerQueue& queue_;
  TimePoint due_ = kNever;
  std::size_t slot_ = kNoSlot;
};

// Calls a method of the object that holds it: MemberTimer<&Connection::on_idle> idle_.
template <auto Method>
class MemberTimer;
template <class Owner, void (Owner::*Method)()>
class MemberTimer<Method> final : public Timer {
 public:
  MemberTimer(TimerQueue& queue, Owner& owner) noexcept : Timer(queue), owner_(owner) {}

 private:
  void on_timer() override { (owner_.*Method)(); }

  Owner& owner_;
};

}  // namespace proxypool::net
