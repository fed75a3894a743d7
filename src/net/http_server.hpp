// A small HTTP/1.1 server for REST, metrics and health: whole requests in, whole answers out.
//
// The idea: connections live on one loop and never block it; a handler may answer at once or later,
// from any thread, through its Responder. One request of a connection is in work at a time.
//
// Thread rule: the loop's thread (or any one thread before run() and after it); Responder: any
//              thread.
// Invariant:   each request that reached the handler is answered exactly once; a Responder that is
//              dropped answers 500.
// Limits:      HttpServerOptions; over: 413 for a body, 408 for a deadline, 414 and 431 as the
// codec
//              says. With connections_max open, further ones wait in the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "net/acceptor.hpp"
#include "net/event_loop.hpp"
#include "net/http_message.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::net {

struct HttpServerOptions {
  std::size_t body_bytes_max = limits::kRestBodyBytesMax;
  std::size_t connections_max = 1024;
  nanoseconds header_deadline = seconds{10};  // from the first byte; no byte extends it
  nanoseconds body_deadline = seconds{30};    // for the whole body, and for taking the answer
  nanoseconds idle_timeout = seconds{75};
  // Names a request that the server itself refuses, from as much of it as was read; none: such
  // answers carry no X-Request-Id. On the loop's thread.
  std::function<std::string(const HttpRequest& request)> request_id = nullptr;
};

class HttpServer;

// The right and the duty to answer one request.
class Responder {
 public:
  Responder(Responder&& other) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  // Once. The client may be gone by now; then the answer is dropped.
  void answer(HttpResponse response);

 private:
  friend class HttpServer;
  struct Link;

  Responder(std::shared_ptr<Link> link, std::uint64_t connection) noexcept
      : link_(std::move(link)), connection_(connection) {}

  std::shared_ptr<Link> link_;  // empty once answered
  std::uint64_t connection_ = 0;
};

class HttpServer {
 public:
  using Handler = std::function<void(HttpRequest, Responder)>;

  // `handler` runs on the loop's thread and must not block it.
  HttpServer(EventLoop& loop, UniqueFd listener, Handler handler, HttpServerOptions options = {});
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Closes what is still open.
  ~HttpServer();

  // Stops listening, closes idle connections, lets requests in work be answered; `done` is called
  // on the loop's thread once no connection is left.
  void stop(std::function<void()> done);

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::size_t connections() const noexcept { return connections_.size(); }

 private:
  friend class Responder;
  class Connection;

  void on_accept(UniqueFd fd, const Endpoint& peer);
  void dispatch(std::uint64_t connection, HttpRequest request);
  void deliver(std::uint64_t connection, HttpResponse response);
  // `connection` ends; it is destroyed in the next turn, so that it may say so itself.
  void end(std::uint64_t connection);
  void finish_stop();

  EventLoop& loop_;
  const Handler handler_;
  const HttpServerOptions options_;
  std::shared_ptr<Responder::Link> link_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t last_connection_ = 0;
  std::function<void()> done_;
  bool stopping_ = false;
  std::uint16_t port_ = 0;
  Acceptor acceptor_;
};

}  // namespace proxypool::net
