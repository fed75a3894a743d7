#include "loadgen/stream.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <utility>

#include "loadgen/http1.hpp"

namespace proxypool::loadgen {
namespace {

using asio::experimental::awaitable_operators::operator||;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadBytes = std::size_t{64} << 10U;
constexpr std::size_t kKeptBytes = 4096;  // what an idle connection may hold on to

void set_close_on_exec(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// One read's space for the whole thread: nothing waits between filling and emptying it.
char* scratch() {
  thread_local const std::unique_ptr<char[]> bytes(new char[kReadBytes]);
  return bytes.get();
}

}  // namespace

void spawn(const asio::any_io_executor& executor, awaitable<void> work) {
  asio::co_spawn(executor, std::move(work), [](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
  });
}

Stream::Stream(Tcp::socket socket) : socket_(std::move(socket)), timer_(socket_.get_executor()) {
  IoError ignored;
  socket_.set_option(Tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  peer_ = socket_.remote_endpoint(ignored);
  local_ = socket_.local_endpoint(ignored);
}

Stream::~Stream() = default;

awaitable<IoError> Stream::fill() {
  if (begin_ == buffer_.size()) {
    begin_ = 0;
    buffer_.clear();
    if (buffer_.capacity() > kKeptBytes) buffer_.shrink_to_fit();
  }
  if (tls_) co_return co_await fill_tls();
  if (served_) co_return co_await fill_served();
  for (;;) {
    IoError error;
    const auto bytes = socket_.receive(asio::buffer(scratch(), kReadBytes), 0, error);
    if (!error) {
      add(scratch(), bytes);
      co_return error;
    }
    if (error != asio::error::would_block && error != asio::error::try_again) co_return error;
    const auto [waited] = co_await socket_.async_wait(Tcp::socket::wait_read, kAsTuple);
    if (waited) co_return waited;
  }
}

void Stream::add(const char* bytes, std::size_t count) {
  buffer_.erase(0, std::exchange(begin_, 0));
  buffer_.append(bytes, count);
}

awaitable<IoError> Stream::fill_if_empty() {
  if (!buffered().empty()) co_return IoError{};
  co_return co_await fill();
}

std::string_view Stream::buffered() const noexcept {
  return std::string_view(buffer_).substr(begin_);
}

void Stream::consume(std::size_t bytes) noexcept {
  begin_ += bytes;
}

awaitable<IoError> Stream::write(std::string_view bytes) {
  if (tls_) co_return co_await write_tls(bytes);
  if (served_) co_return co_await write_served(bytes);
  IoError error;
  const auto sent = socket_.send(asio::buffer(bytes.data(), bytes.size()), 0, error);
  if (!error && sent == bytes.size()) co_return error;
  if (error && error != asio::error::would_block && error != asio::error::try_again) {
    co_return error;
  }
  if (!error) bytes.remove_prefix(sent);
  const auto rest = asio::buffer(bytes.data(), bytes.size());
  const auto [failed, written] = co_await asio::async_write(socket_, rest, kAsTuple);
  co_return failed;
}

awaitable<void> Stream::wait_gone() {
  for (;;) {
    const auto [error] = co_await socket_.async_wait(Tcp::socket::wait_read, kAsTuple);
    if (error) co_return;
    char byte = 0;
    const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) co_return;
    if (got < 0) continue;
    // The next request is already here; its sender is alive and nothing more can be learnt.
    asio::steady_timer cancelled(socket_.get_executor(), asio::steady_timer::time_point::max());
    co_await cancelled.async_wait(kAsTuple);
    co_return;
  }
}

awaitable<void> Stream::discard() {
  consume(buffered().size());
  for (;;) {
    const IoError failed = co_await fill();
    if (failed) co_return;
    consume(buffered().size());
  }
}

awaitable<bool> Stream::pause(std::chrono::nanoseconds duration) {
  asio::steady_timer timer(socket_.get_executor(), duration);
  const auto first = co_await (timer.async_wait(kAsTuple) || wait_gone());
  co_return first.index() == 0;
}

void Stream::end_output() {
  end_served();
  IoError ignored;
  socket_.shutdown(Tcp::socket::shutdown_send, ignored);
}

awaitable<void> Stream::close_gently() {
  constexpr std::chrono::seconds kLinger{2};
  end_output();
  expire_after(kLinger);
  co_await discard();
  close();
}

void Stream::close() {
  end_served();
  served_.reset();
  IoError ignored;
  timer_.cancel(ignored);
  socket_.close(ignored);
}

void Stream::reset() {
  served_.reset();
  IoError ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Stream::expire_after(std::chrono::nanoseconds duration) {
  const auto earlier = deadline_;
  deadline_ = Steady::now() + duration;
  if (watching_ && deadline_ >= earlier) return;  // the running wait looks again when it ends
  watch_deadline();
}

void Stream::never_expire() {
  deadline_ = Steady::time_point::max();
}

void Stream::watch_deadline() {
  watching_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](const IoError& error) {
    const auto self = weak.lock();
    if (!self || error) return;
    self->watching_ = false;
    if (self->deadline_ == Steady::time_point::max()) return;
    if (Steady::now() < self->deadline_) return self->watch_deadline();
    self->expired_ = true;
    self->close();
  });
}

awaitable<Dialled> dial(Tcp::endpoint endpoint, std::chrono::nanoseconds timeout) {
  const auto executor = co_await asio::this_coro::executor;
  Tcp::socket socket(executor);
  Dialled out;
  socket.open(endpoint.protocol(), out.error);
  if (out.error) co_return out;
  set_close_on_exec(socket.native_handle());
  asio::steady_timer timer(executor, timeout);
  const auto first =
      co_await (socket.async_connect(endpoint, kAsTuple) || timer.async_wait(kAsTuple));
  if (first.index() == 1) {
    out.error = asio::error::timed_out;
    co_return out;
  }
  out.error = std::get<0>(std::get<0>(first));
  if (!out.error) out.stream = std::make_shared<Stream>(std::move(socket));
  co_return out;
}

awaitable<HeadText> read_head(StreamPtr stream) {
  HeadText out;
  std::size_t searched = 0;
  for (;;) {
    const auto bytes = stream->buffered();
    if (const auto size = head_size(bytes, searched)) {
      out.outcome = HeadText::Outcome::Ok;
      out.text = bytes.substr(0, *size);
      stream->consume(*size);
      co_return out;
    }
    searched = bytes.size();
    if (searched > kHeadBytesMax) {
      out.outcome = HeadText::Outcome::TooLarge;
      co_return out;
    }
    out.error = co_await stream->fill();
    if (out.error) {
      const bool nothing = searched == 0 && out.error == asio::error::eof;
      out.outcome = nothing ? HeadText::Outcome::End : HeadText::Outcome::Broken;
      co_return out;
    }
  }
}

}  // namespace proxypool::loadgen
