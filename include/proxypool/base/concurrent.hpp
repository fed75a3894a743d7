// Data and its mutex as one object, and a queue with a maximum.
//
// Mutexes appear nowhere else in the project, and never on the gateway's request path.
//
// Thread rule: any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace proxypool {

// Guarded<T>: the value can only be reached inside with(). The callback must not block on I/O and
// must not call into the same Guarded.
template <class T>
class Guarded {
 public:
  Guarded() = default;
  explicit Guarded(T value) : value_(std::move(value)) {}

  template <class F>
  decltype(auto) with(F&& f) {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(f)(value_);
  }
  template <class F>
  decltype(auto) with(F&& f) const {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(f)(std::as_const(value_));
  }

 private:
  mutable std::mutex mutex_;
  T value_;
};

// A queue that refuses instead of growing: try_push answers false at the maximum.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t items_max) : items_max_(items_max) {}

  [[nodiscard]] bool try_push(T item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= items_max_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }
  [[nodiscard]] std::optional<T> try_pop() {
    const std::lock_guard lock(mutex_);
    return take_locked();
  }
  // Waits for an item; nothing once the queue is closed and empty.
  [[nodiscard]] std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return closed_ || !items_.empty(); });
    return take_locked();
  }
  // Like pop, but waits no longer than `limit`.
  [[nodiscard]] std::optional<T> pop_for(std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, std::min(limit, kWaitMax), [&] { return closed_ || !items_.empty(); });
    return take_locked();
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  std::optional<T> take_locked() {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  // A condition variable adds the wait to a clock; a longer one would overflow.
  static constexpr std::chrono::nanoseconds kWaitMax = std::chrono::hours(24);

  const std::size_t items_max_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace proxypool
