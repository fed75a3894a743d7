// One client's connection to an HttpServer: reads a request, waits for its answer, writes it, and
// begins again.
//
// Thread rule: the loop's thread.
// Limits:      one head and one read beyond it are buffered; the body as the options say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http/chunked.hpp"
#include "net/http_server.hpp"

namespace proxypool::net {

class HttpServer::Connection final : private IoHandler {
 public:
  Connection(HttpServer& server, std::uint64_t id, UniqueFd fd, const Endpoint& peer);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void start();
  void answer(HttpResponse response);
  // The server stops: an idle connection ends, a busy one ends after its answer.
  void wind_down();
  [[nodiscard]] bool ended() const noexcept { return state_ == State::Ended; }

 private:
  enum class State : std::uint8_t { Head, Body, Working, Writing, Lingering, Ended };

  void on_io(std::uint32_t events) override;
  void on_deadline();
  void advance();
  // One read; false when nothing more can be had now.
  bool read_some();
  bool parse_head();
  bool begin_body();
  bool take_body();
  bool take_chunked();
  void begin_work();
  // An answer of our own to a request that is not understood; the connection ends behind it.
  void fail(int status, std::string_view code, std::string_view detail);
  void send(const HttpResponse& response);
  void flush();
  void answered();
  void linger();
  void drop_input();
  void end();

  HttpServer& server_;
  const std::uint64_t id_;
  UniqueFd fd_;
  const Endpoint peer_;
  State state_ = State::Head;
  bool readable_ = true;  // no EAGAIN since the last edge
  bool close_ = false;
  bool head_method_ = false;
  bool http_1_0_ = false;
  std::string in_;
  std::string out_;
  std::size_t sent_ = 0;
  std::size_t dropped_ = 0;
  RequestParser parser_;
  ChunkedDecoder chunks_;
  HttpRequest request_;
  std::uint64_t body_left_ = 0;
  MemberTimer<&Connection::on_deadline> deadline_;
};

}  // namespace proxypool::net
