#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "loadgen/stream.hpp"

namespace proxypool::loadgen {
namespace {

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

}  // namespace

Listener::Listener(asio::any_io_executor executor, const Tcp::endpoint& endpoint, Session session)
    : executor_(std::move(executor)),
      holder_(executor_, endpoint.protocol()),
      acceptor_(executor_),
      session_(std::move(session)) {
  ::fcntl(holder_.native_handle(), F_SETFD, FD_CLOEXEC);
  holder_.set_option(asio::socket_base::reuse_address(true));
  holder_.bind(endpoint);
  endpoint_ = holder_.local_endpoint();
}

void Listener::start() {
  if (acceptor_.is_open()) return;
  acceptor_.open(endpoint_.protocol());
  ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  acceptor_.set_option(asio::socket_base::reuse_address(true));
  acceptor_.bind(endpoint_);
  acceptor_.listen();
  acceptor_.non_blocking(true);
  spawn(executor_, accept_loop(shared_from_this()));
}

void Listener::refuse() {
  IoError ignored;
  acceptor_.close(ignored);
}

void Listener::stop() {
  refuse();
  for (Stream* stream : open_) stream->reset();
}

awaitable<void> Listener::accept_loop(std::shared_ptr<Listener> self) {
  for (;;) {
    const auto [error] = co_await acceptor_.async_wait(Tcp::acceptor::wait_read, kAsTuple);
    if (error) co_return;
    for (;;) {
      const int fd =
          ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) break;
      auto stream = std::make_shared<Stream>(Tcp::socket(executor_, endpoint_.protocol(), fd));
      spawn(executor_, serve(self, std::move(stream)));
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) continue;
    // Out of descriptors or memory: give the open connections time to end.
    asio::steady_timer timer(executor_, std::chrono::milliseconds(20));
    co_await timer.async_wait(kAsTuple);
  }
}

awaitable<void> Listener::serve(std::shared_ptr<Listener> self, StreamPtr stream) {
  self->open_.insert(stream.get());
  co_await self->session_(stream);
  stream->close();
  self->open_.erase(stream.get());
}

}  // namespace proxypool::loadgen
