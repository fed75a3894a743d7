// TLS as a server: the product's own session over a stream's socket, so that one side can end
// (close_notify) while the other goes on, which Asio's stream does not do.
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

#include "loadgen/stream.hpp"
#include "net/tls.hpp"

namespace proxypool::loadgen {
namespace {

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

}  // namespace

struct Stream::Served final : net::TlsPipe {
  ssize_t pull(char* to, std::size_t size) noexcept override {
    if (in.empty()) {
      errno = EAGAIN;
      return ended ? 0 : -1;
    }
    const std::size_t count = in.copy(to, size);
    in.erase(0, count);
    return static_cast<ssize_t>(count);
  }
  bool push(std::string_view ciphertext) override {
    out += ciphertext;
    return true;
  }

  std::shared_ptr<const net::TlsContext> context;
  std::unique_ptr<net::TlsSession> session;
  std::string in;   // ciphertext, received and not read
  std::string out;  // ciphertext, written and not sent
  bool ended = false;
  std::array<char, 16'384> plain{};
};

awaitable<IoError> Stream::accept_tls(std::shared_ptr<const net::TlsContext> context) {
  // A stream may be closed while one of its coroutines waits: each holds what it works on.
  const auto served = std::make_shared<Served>();
  served->context = std::move(context);
  served->session = net::TlsSession::accept(*served->context, *served);
  served_ = served;
  for (;;) {
    const auto step = served->session->handshake();
    const IoError sent = co_await send_ciphertext();
    if (step == net::TlsSession::Step::Done) co_return sent;
    if (step == net::TlsSession::Step::Failed) co_return asio::error::connection_aborted;
    if (sent) co_return sent;
    const IoError received = co_await receive_ciphertext();
    if (received) co_return received;
  }
}

awaitable<IoError> Stream::send_ciphertext() {
  if (!served_) co_return asio::error::operation_aborted;
  const std::string bytes = std::exchange(served_->out, {});
  if (bytes.empty()) co_return IoError{};
  const auto all = asio::buffer(bytes);
  const auto [error, written] = co_await asio::async_write(socket_, all, kAsTuple);
  co_return error;
}

awaitable<IoError> Stream::receive_ciphertext() {
  const auto served = served_;
  if (!served) co_return asio::error::operation_aborted;
  for (;;) {
    IoError error;
    const auto space = asio::buffer(served->plain);
    const auto bytes = socket_.receive(space, 0, error);
    if (!error) {
      served->in.append(served->plain.data(), bytes);
      co_return error;
    }
    if (error == asio::error::eof) {
      served->ended = true;  // what that means the session knows
      co_return IoError{};
    }
    if (error != asio::error::would_block && error != asio::error::try_again) co_return error;
    const auto [waited] = co_await socket_.async_wait(Tcp::socket::wait_read, kAsTuple);
    if (waited) co_return waited;
  }
}

awaitable<IoError> Stream::fill_served() {
  const auto served = served_;
  for (;;) {
    const auto got = served->session->read(served->plain.data(), served->plain.size());
    if (got > 0) {
      add(served->plain.data(), static_cast<std::size_t>(got));
      co_return IoError{};
    }
    if (got == 0) co_return asio::error::eof;
    if (errno != EAGAIN) co_return IoError(errno, boost::system::system_category());
    const IoError failed = co_await receive_ciphertext();
    if (failed) co_return failed;
  }
}

awaitable<IoError> Stream::write_served(std::string_view bytes) {
  if (!served_ || !served_->session->write(bytes)) co_return asio::error::broken_pipe;
  co_return co_await send_ciphertext();
}

void Stream::end_served() {
  if (!served_ || !served_->session->write_end()) return;
  IoError ignored;
  // So little nearly always fits; whoever does not read on loses nothing by it.
  socket_.send(asio::buffer(std::exchange(served_->out, {})), 0, ignored);
}

}  // namespace proxypool::loadgen
