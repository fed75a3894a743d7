// A TCP connection as coroutines use it: a read buffer, whole writes, one deadline.
//
// I/O errors are values. GCC 12 miscompiles a co_await of a class inside a condition or behind &&
// and
// ||, and one whose full expression holds a capturing or braced temporary: give both a name first.
//
// The deadline is one timer per connection that closes the socket; racing
// each operation with a timer would cost ten times as much.
//
// Thread rule: one thread at a time, that of its executor.
// Invariant:   sockets are close-on-exec, non-blocking and without Nagle's delay.
// Limits:      the buffer holds one read (64 KiB) beyond what its owner leaves in it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

namespace proxypool::net {
class TlsContext;
}

namespace proxypool::loadgen {

namespace asio = boost::asio;
using asio::awaitable;
using Tcp = asio::ip::tcp;
using IoError = boost::system::error_code;

class ClientTls;

// Starts a coroutine. An exception that reaches its end leaves through io_context::run().
void spawn(const asio::any_io_executor& executor, awaitable<void> work);

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // Takes a connected socket.
  explicit Stream(Tcp::socket socket);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  // Speaks TLS from now on, as a client of `host`.
  awaitable<IoError> start_tls(std::shared_ptr<ClientTls> tls, std::string host);
  // Speaks TLS from now on, as a server.
  awaitable<IoError> accept_tls(std::shared_ptr<const net::TlsContext> context);

  // Waits for bytes and adds them to the buffer; the end of input is asio::error::eof.
  awaitable<IoError> fill();
  // The same, unless bytes are there already.
  awaitable<IoError> fill_if_empty();
  [[nodiscard]] std::string_view buffered() const noexcept;
  void consume(std::size_t bytes) noexcept;

  // Writes everything. REQUIRES: the bytes live until it returns.
  awaitable<IoError> write(std::string_view bytes);

  // Returns when the peer has ended its side or the connection is broken; bytes that come in
  // meanwhile stay unread. Ends early by cancellation.
  awaitable<void> wait_gone();
  // Reads and drops until the peer has ended its side or the connection is broken.
  awaitable<void> discard();
  // Waits; false: the connection ended before.
  awaitable<bool> pause(std::chrono::nanoseconds duration);

  // Nothing more will be written; reading goes on.
  void end_output();
  // Answers written before get through even when unread input is left.
  awaitable<void> close_gently();
  void close();
  // Ends with a TCP reset.
  void reset();

  // From now on the connection is closed when `duration` has passed; a later call replaces it.
  void expire_after(std::chrono::nanoseconds duration);
  void never_expire();
  [[nodiscard]] bool expired() const noexcept { return expired_; }

  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] Tcp::endpoint peer() const noexcept { return peer_; }
  [[nodiscard]] Tcp::endpoint local() const noexcept { return local_; }

 private:
  using Steady = std::chrono::steady_clock;

  struct Tls;
  struct Served;

  awaitable<IoError> fill_served();
  awaitable<IoError> write_served(std::string_view bytes);
  awaitable<IoError> send_ciphertext();
  awaitable<IoError> receive_ciphertext();
  void end_served();
  awaitable<IoError> fill_tls();
  awaitable<IoError> write_tls(std::string_view bytes);
  void add(const char* bytes, std::size_t count);
  void watch_deadline();

  Tcp::socket socket_;
  asio::steady_timer timer_;
  Tcp::endpoint peer_;
  Tcp::endpoint local_;
  std::shared_ptr<Tls> tls_;        // a client's session; null: none
  std::shared_ptr<Served> served_;  // a server's session; null: none
  std::string buffer_;
  std::size_t begin_ = 0;  // of the unread part of buffer_
  Steady::time_point deadline_ = Steady::time_point::max();
  bool watching_ = false;
  bool expired_ = false;
};

using StreamPtr = std::shared_ptr<Stream>;

struct Dialled {
  StreamPtr stream;  // null on failure
  IoError error;
};
awaitable<Dialled> dial(Tcp::endpoint endpoint, std::chrono::nanoseconds timeout);

struct HeadText {
  enum class Outcome : std::uint8_t { Ok, End, Broken, TooLarge };  // End: before its first byte
  Outcome outcome = Outcome::Broken;
  std::string text;
  IoError error;
};
// Reads a message head off the stream.
awaitable<HeadText> read_head(StreamPtr stream);

// A port that stays ours while it is not listened on: while stopped, connections are refused.
//
// Each connection runs `session`; stop() resets all that are open.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  using Session = std::function<awaitable<void>(StreamPtr)>;

  // Throws boost::system::system_error when the port is taken.
  Listener(asio::any_io_executor executor, const Tcp::endpoint& endpoint, Session session);

  void start();
  // Stops listening; open connections go on.
  void refuse();
  // Stops listening and resets every open connection.
  void stop();
  [[nodiscard]] bool listening() const noexcept { return acceptor_.is_open(); }
  [[nodiscard]] std::uint16_t port() const noexcept { return endpoint_.port(); }
  [[nodiscard]] std::size_t open_connections() const noexcept { return open_.size(); }

 private:
  awaitable<void> accept_loop(std::shared_ptr<Listener> self);
  awaitable<void> serve(std::shared_ptr<Listener> self, StreamPtr stream);

  asio::any_io_executor executor_;
  Tcp::socket holder_;  // bound, never listening: keeps the port from other programs
  Tcp::endpoint endpoint_;
  Tcp::acceptor acceptor_;
  Session session_;
  std::unordered_set<Stream*> open_;
};

}  // namespace proxypool::loadgen
