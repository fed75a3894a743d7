#include "net/timer.hpp"

#include <algorithm>

#include "proxypool/base/assert.hpp"

namespace proxypool::net {
namespace {

constexpr std::size_t kArity = 4;  // shallow, and four keys share one cache line

}  // namespace

Timer::~Timer() {
  if (slot_ != kNoSlot) queue_.erase(slot_);
}

void Timer::arm(TimePoint due) {
  due_ = due;
  if (due == kNever) return;
  if (slot_ == kNoSlot) {
    queue_.push(*this, due);
  } else {
    queue_.earlier(slot_, due);
  }
}

TimerQueue::~TimerQueue() {
  PP_ASSERT(heap_.empty());  // no timer outlives its loop
}

TimePoint TimerQueue::next_due() noexcept {
  return settle_top() ? heap_.front().key : kNever;
}

void TimerQueue::run_due(TimePoint now) {
  for (std::size_t budget = heap_.size(); budget > 0 && settle_top(); --budget) {
    if (heap_.front().key > now) return;
    Timer& timer = *heap_.front().timer;
    erase(0);
    timer.due_ = kNever;
    timer.on_timer();
  }
}

bool TimerQueue::settle_top() noexcept {
  while (!heap_.empty()) {
    Entry& top = heap_.front();
    if (top.timer->due_ == top.key) return true;
    if (top.timer->armed()) {
      top.key = top.timer->due_;
      sift_down(0);
    } else {
      erase(0);
    }
  }
  return false;
}

void TimerQueue::push(Timer& timer, TimePoint key) {
  heap_.push_back({key, &timer});
  timer.slot_ = heap_.size() - 1;
  sift_up(timer.slot_);
}

void TimerQueue::earlier(std::size_t slot, TimePoint key) noexcept {
  if (key >= heap_[slot].key) return;
  heap_[slot].key = key;
  sift_up(slot);
}

void TimerQueue::erase(std::size_t slot) noexcept {
  heap_[slot].timer->slot_ = Timer::kNoSlot;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (slot == heap_.size()) return;
  place(slot, last);
  sift_up(slot);
  sift_down(last.timer->slot_);
}

void TimerQueue::place(std::size_t slot, Entry entry) noexcept {
  heap_[slot] = entry;
  entry.timer->slot_ = slot;
}

void TimerQueue::sift_up(std::size_t slot) noexcept {
  const Entry moving = heap_[slot];
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / kArity;
    if (heap_[parent].key <= moving.key) break;
    place(slot, heap_[parent]);
    slot = parent;
  }
  place(slot, moving);
}

void TimerQueue::sift_down(std::size_t slot) noexcept {
  const Entry moving = heap_[slot];
  for (;;) {
    const std::size_t first = slot * kArity + 1;
    if (first >= heap_.size()) break;
    std::size_t least = first;
    for (std::size_t i = first + 1; i < std::min(first + kArity, heap_.size()); ++i) {
      if (heap_[i].key < heap_[least].key) least = i;
    }
    if (heap_[least].key >= moving.key) break;
    place(slot, heap_[least]);
    slot = least;
  }
  place(slot, moving);
}

}  // namespace proxypool::net
