// Accepts connections on one loop and survives running out of descriptors.
//
// The idea: level-triggered, and no second accept() that would only say EAGAIN, unless the last
// round showed that a queue builds up. Out of descriptors or memory, it leaves the queue alone for
// kPause instead of spinning on a readiness that it cannot serve.
//
// Thread rule: the loop's thread.
// Limits:      kBurstMax connections a turn.
#pragma once

#include <cstdint>
#include <functional>

#include "net/event_loop.hpp"
#include "net/socket.hpp"
#include "net/unique_fd.hpp"

namespace proxypool::net {

class Acceptor final : private IoHandler {
 public:
  static constexpr int kBurstMax = 64;
  static constexpr milliseconds kPause{100};
  // May pause() or close() this acceptor, but not destroy it.
  using OnAccept = std::function<void(UniqueFd, const Endpoint& peer)>;
  // Descriptors or memory ran out; called once a pause.
  using OnExhausted = std::function<void()>;

  Acceptor(EventLoop& loop, UniqueFd listener, OnAccept on_accept, OnExhausted on_exhausted = {});
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor();

  // Accepts from now on, until pause() or close(). Connections wait in the kernel meanwhile.
  void resume();
  void pause();
  // Stops listening: the kernel resets what still waits, unless another process holds the socket.
  void close();
  // Accepts what still waits, then stops listening: a connection in the queue counts as accepted
  // to its client.
  void finish();

  [[nodiscard]] std::uint16_t port() const noexcept { return local_port(listener_.get()); }
  // How often descriptors or memory ran out.
  [[nodiscard]] std::uint64_t exhausted() const noexcept { return exhausted_; }

 private:
  void on_io(std::uint32_t events) override;

  EventLoop& loop_;
  UniqueFd listener_;
  OnAccept on_accept_;
  OnExhausted on_exhausted_;
  MemberTimer<&Acceptor::resume> again_;
  bool watching_ = false;
  int burst_ = 1;
  std::uint64_t exhausted_ = 0;
};

}  // namespace proxypool::net
