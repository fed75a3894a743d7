#include "net/event_loop.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "proxypool/base/assert.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::net {
namespace {

UniqueFd checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return UniqueFd(fd);
}

}  // namespace

void Deferred::undefer() noexcept {
  next_->previous_ = previous_;
  previous_->next_ = next_;
  next_ = previous_ = this;
}

EventLoop::EventLoop()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {
  // Edge-triggered, so that the counter never has to be read.
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = nullptr;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
  timers_.set_now(runtime::boot_now());
}

EventLoop::~EventLoop() = default;

void EventLoop::run() {
  while (!stopping_.load(std::memory_order_acquire)) turn(nanoseconds::max());
  run_posted();
}

void EventLoop::stop() {
  stopping_.store(true, std::memory_order_release);
  wake();
}

void EventLoop::turn(nanoseconds wait_max) {
  const int count = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()),
                                 timeout_ms(wait_max));
  PP_ASSERT(count >= 0 || errno == EINTR);
  timers_.set_now(runtime::boot_now());
  dispatch(count > 0 ? static_cast<std::size_t>(count) : 0);
  timers_.run_due(now());
  run_deferred();
  run_posted();
}

int EventLoop::timeout_ms(nanoseconds wait_max) noexcept {
  if (pending_.load(std::memory_order_acquire) || deferred_.deferred() ||
      stopping_.load(std::memory_order_acquire)) {
    return 0;
  }
  const TimePoint due = timers_.next_due();
  if (due == kNever && wait_max == nanoseconds::max()) return -1;
  // The cached time may be old by the length of the last turn; then the loop wakes a little late,
  // which a timer may be. Rounded up, so that it does not wake just before.
  const nanoseconds left = due == kNever ? wait_max : std::min(wait_max, due - now());
  constexpr nanoseconds kDay = std::chrono::hours{24};
  const auto ms = std::chrono::ceil<milliseconds>(std::clamp(left, nanoseconds{0}, kDay));
  return static_cast<int>(ms.count());
}

void EventLoop::dispatch(std::size_t count) {
  event_count_ = count;
  for (next_event_ = 0; next_event_ < event_count_;) {
    const epoll_event& event = events_[next_event_++];
    if (event.data.ptr == nullptr) continue;  // forgotten, or the wake-up
    static_cast<IoHandler*>(event.data.ptr)->on_io(event.events);
  }
  event_count_ = 0;
}

void EventLoop::forget(const IoHandler& handler) noexcept {
  for (std::size_t i = next_event_; i < event_count_; ++i) {
    if (events_[i].data.ptr == &handler) events_[i].data.ptr = nullptr;
  }
}

bool EventLoop::add(int fd, std::uint32_t events, IoHandler& handler) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

bool EventLoop::modify(int fd, std::uint32_t events, IoHandler& handler) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void EventLoop::remove(int fd, IoHandler& handler) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  forget(handler);
}

void EventLoop::defer(Deferred& work) noexcept {
  if (work.deferred()) return;
  work.previous_ = deferred_.previous_;
  work.next_ = &deferred_;
  work.previous_->next_ = &work;
  deferred_.previous_ = &work;
}

void EventLoop::run_deferred() {
  if (!deferred_.deferred()) return;
  // A marker in the list: what is deferred from now on stands behind it, for the next turn.
  defer(turn_end_);
  while (deferred_.next_ != &turn_end_) {
    Deferred& work = *deferred_.next_;
    work.undefer();
    work.on_turn();
  }
  turn_end_.undefer();
}

void EventLoop::run_posted() {
  if (!pending_.load(std::memory_order_acquire)) return;
  // Cleared before the list is taken: what is posted after the taking wakes the loop again.
  pending_.store(false, std::memory_order_seq_cst);
  posted_.with([this](auto& posted) { std::swap(posted, running_); });
  for (auto& function : running_) std::exchange(function, nullptr)();
  running_.clear();
}

void EventLoop::post(std::function<void()> function) {
  posted_.with([&](auto& posted) { posted.push_back(std::move(function)); });
  if (!pending_.exchange(true, std::memory_order_seq_cst)) wake();
}

void EventLoop::wake() noexcept {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the wake-up is already due.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace proxypool::net
