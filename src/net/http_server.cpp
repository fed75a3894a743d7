#include "net/http_server.hpp"

#include <exception>
#include <utility>

#include "net/http_server_connection.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::net {

// What outlives the server: the way back to it, as long as there is one.
struct Responder::Link {
  Link(EventLoop& its_loop, HttpServer& owner) : loop(&its_loop), server(&owner) {}

  Guarded<EventLoop*> loop;
  HttpServer* server;  // the loop's thread only
};

Responder& Responder::operator=(Responder&& other) noexcept {
  std::swap(link_, other.link_);
  std::swap(connection_, other.connection_);
  return *this;
}

Responder::~Responder() {
  if (link_ == nullptr) return;
  answer(problem_response(
      {.status = 500, .code = "internal", .detail = "the request was not answered"}));
}

void Responder::answer(HttpResponse response) {
  const auto link = std::exchange(link_, nullptr);
  if (PP_BUG_IF(link == nullptr)) return;
  auto deliver = [link, id = connection_, answer = std::move(response)]() mutable {
    if (link->server != nullptr) link->server->deliver(id, std::move(answer));
  };
  link->loop.with([&](EventLoop* loop) {
    if (loop != nullptr) loop->post(std::move(deliver));
  });
}

HttpServer::HttpServer(EventLoop& loop, UniqueFd listener, Handler handler,
                       HttpServerOptions options)
    : loop_(loop),
      handler_(std::move(handler)),
      options_(options),
      link_(std::make_shared<Responder::Link>(loop, *this)),
      port_(local_port(listener.get())),
      acceptor_(loop, std::move(listener),
                [this](UniqueFd fd, const Endpoint& peer) { on_accept(std::move(fd), peer); }) {
  acceptor_.resume();
}

HttpServer::~HttpServer() {
  link_->server = nullptr;
  link_->loop.with([](EventLoop*& loop) { loop = nullptr; });
}

void HttpServer::on_accept(UniqueFd fd, const Endpoint& peer) {
  const std::uint64_t id = ++last_connection_;
  auto connection = std::make_unique<Connection>(*this, id, std::move(fd), peer);
  Connection& started = *connection;
  connections_.emplace(id, std::move(connection));
  if (connections_.size() >= options_.connections_max) acceptor_.pause();
  started.start();
}

void HttpServer::dispatch(std::uint64_t connection, HttpRequest request) {
  try {
    handler_(std::move(request), Responder(link_, connection));
  } catch (const std::exception&) {
    // The dropped Responder has answered 500.
    static_cast<void>(PP_BUG_IF(true));
  }
}

void HttpServer::deliver(std::uint64_t connection, HttpResponse response) {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) found->second->answer(std::move(response));
}

void HttpServer::end(std::uint64_t connection) {
  loop_.post([link = link_, connection] {
    HttpServer* const server = link->server;
    if (server == nullptr) return;
    server->connections_.erase(connection);
    if (server->stopping_) {
      server->finish_stop();
    } else if (server->connections_.size() < server->options_.connections_max) {
      server->acceptor_.resume();
    }
  });
}

void HttpServer::stop(std::function<void()> done) {
  stopping_ = true;
  done_ = std::move(done);
  acceptor_.close();
  for (const auto& [id, connection] : connections_) connection->wind_down();
  finish_stop();
}

void HttpServer::finish_stop() {
  if (!connections_.empty()) return;
  if (auto done = std::exchange(done_, nullptr)) done();
}

}  // namespace proxypool::net
