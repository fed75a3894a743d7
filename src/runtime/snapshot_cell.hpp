// SnapshotCell<T> hands one immutable value to many threads, and tells when all have taken it.
//
// Each serving thread has a Reader that keeps the value and the version it belongs to. A read is
// one load of the version word and a comparison (0.4 ns); only after a publish does a reader take
// the mutex, once. std::atomic<std::shared_ptr> costs 600 times as much with this library.
//
// Calling get() is the reader's quiescent point: it gives up the value of the call before and
// acknowledges the version that it returns. A thread that goes to sleep says so with offline(),
// and then counts as having passed every point (offline, online and a read: 6 ns).
//
// A replaced value is kept until nobody holds it and then dies in reclaim(), on the publisher's
// thread: no serving thread ever pays for the destruction of 100,000 proxies (GW-52).
//
// Thread rule: publish, reclaim, load, version and all_readers_at_least: any thread. A Reader: one
//              thread at a time (its owner). Readers end before the cell.
// Limits:      one retired value a publish, for as long as somebody holds it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::runtime {

template <class T>
class SnapshotCell {
 public:
  using Pointer = std::shared_ptr<const T>;
  class Reader;

  // Starts with `first` as version 1; null is allowed and read as null.
  explicit SnapshotCell(Pointer first = nullptr) : state_(State{std::move(first), {}, {}}) {}
  SnapshotCell(const SnapshotCell&) = delete;
  SnapshotCell& operator=(const SnapshotCell&) = delete;
  ~SnapshotCell() {
    PP_ASSERT(state_.with([](const State& state) { return state.readers.empty(); }));
  }

  // Replaces the value. Returns the version that readers will acknowledge.
  std::uint64_t publish(Pointer value) {
    const auto version = state_.with([&](State& state) {
      if (state.value) state.retired.push_back(std::move(state.value));
      state.value = std::move(value);
      const auto next = version_.load(std::memory_order_relaxed) + 1;
      version_.store(next);  // sequentially consistent: see Reader::online
      return next;
    });
    reclaim();
    return version;
  }

  // Destroys the replaced values that nobody holds any more. Returns how many are still held.
  std::size_t reclaim() {
    std::vector<Pointer> dead;  // destroyed outside the lock
    return state_.with([&](State& state) {
      // Nobody can copy a retired pointer from here, so a count of one stays one.
      const auto held = [](const Pointer& pointer) { return pointer.use_count() > 1; };
      const auto end = std::partition(state.retired.begin(), state.retired.end(), held);
      dead.assign(std::make_move_iterator(end), std::make_move_iterator(state.retired.end()));
      state.retired.erase(end, state.retired.end());
      return state.retired.size();
    });
  }

  // The current value for a thread without a Reader; takes the mutex.
  [[nodiscard]] Pointer load() const {
    return state_.with([](const State& state) { return state.value; });
  }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(); }

  // Whether every reader that is not offline has passed get() since `version` was published.
  [[nodiscard]] bool all_readers_at_least(std::uint64_t version) const {
    return state_.with([&](const State& state) {
      return std::all_of(state.readers.begin(), state.readers.end(),
                         [&](const Reader* r) { return r->acknowledged_.load() >= version; });
    });
  }

 private:
  struct State {
    Pointer value;
    std::vector<Pointer> retired;
    std::vector<Reader*> readers;
  };

  std::atomic<std::uint64_t> version_{1};
  Guarded<State> state_;
};

template <class T>
class SnapshotCell<T>::Reader {
 public:
  explicit Reader(SnapshotCell& cell) : cell_(cell) {
    cell_.state_.with([&](State& state) {
      state.readers.push_back(this);
      take_locked(state);
    });
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    cell_.state_.with([&](State& state) { std::erase(state.readers, this); });
    value_.reset();
  }

  // The current value, good until the next call or offline(). REQUIRES: online.
  [[nodiscard]] const T* get() {
    if (cell_.version_.load() != seen_) refresh();
    return value_.get();
  }
  // The same as a share that outlives the next call: for work that needs one view to its end.
  [[nodiscard]] Pointer pin() {
    (void)get();
    return value_;
  }

  // The thread sleeps and uses nothing it got from get(): a version need not wait for it.
  void offline() noexcept { acknowledged_.store(kOffline, std::memory_order_release); }
  // Back: either the publisher sees this store, or the next get() sees its version.
  void online() noexcept { acknowledged_.store(seen_); }

 private:
  static constexpr std::uint64_t kOffline = UINT64_MAX;

  void refresh() {
    Pointer old;  // never the last share: the cell keeps it until reclaim()
    cell_.state_.with([&](State& state) {
      old = std::move(value_);
      take_locked(state);
    });
  }
  void take_locked(const State& state) {
    value_ = state.value;
    seen_ = cell_.version_.load(std::memory_order_relaxed);
    acknowledged_.store(seen_);
  }

  friend class SnapshotCell;
  SnapshotCell& cell_;
  Pointer value_;
  std::uint64_t seen_ = 0;
  std::atomic<std::uint64_t> acknowledged_{0};
};

}  // namespace proxypool::runtime
