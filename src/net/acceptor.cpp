#include "net/acceptor.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace proxypool::net {
namespace {

// Errors of the listener's surroundings; every other one belongs to a connection that is gone.
bool out_of_resources(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Acceptor::Acceptor(EventLoop& loop, UniqueFd listener, OnAccept on_accept, OnExhausted on_exhausted)
    : loop_(loop),
      listener_(std::move(listener)),
      on_accept_(std::move(on_accept)),
      on_exhausted_(std::move(on_exhausted)),
      again_(loop.timers(), *this) {}

Acceptor::~Acceptor() {
  close();
}

void Acceptor::resume() {
  again_.cancel();
  if (watching_ || !listener_) return;
  // Of several loops that share a listener one is woken.
  watching_ = loop_.add(listener_.get(), EPOLLIN | EPOLLEXCLUSIVE, *this);
  if (!watching_) again_.arm_after(kPause);
}

void Acceptor::pause() {
  again_.cancel();
  if (!watching_) return;
  loop_.remove(listener_.get(), *this);
  watching_ = false;
}

void Acceptor::close() {
  again_.cancel();
  loop_.forget(*this);
  watching_ = false;
  listener_.reset();
}

void Acceptor::finish() {
  for (;;) {
    Accepted next = accept_tcp(listener_.get());
    if (next.error == 0) {
      on_accept_(std::move(next.fd), next.peer);
    } else if (next.error == EAGAIN || next.error == EBADF || out_of_resources(next.error)) {
      break;
    }
  }
  close();
}

void Acceptor::on_io(std::uint32_t) {
  for (int accepted = 0; accepted < burst_; ++accepted) {
    Accepted next = accept_tcp(listener_.get());
    if (next.error == EAGAIN) {
      burst_ = std::max(1, accepted);
      return;
    }
    if (out_of_resources(next.error)) {
      ++exhausted_;
      pause();
      again_.arm_after(kPause);
      if (on_exhausted_) on_exhausted_();
      return;
    }
    if (next.error == 0) on_accept_(std::move(next.fd), next.peer);
    if (!watching_) return;
  }
  burst_ = std::min(burst_ * 2, kBurstMax);
}

}  // namespace proxypool::net
