#include "net/http_server_connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "runtime/boot_clock.hpp"

namespace proxypool::net {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10U;
// RFC 9112 §9.6: what is read and dropped after an answer that closes, so that the answer is not
// lost to a reset.
constexpr std::size_t kLingerBytesMax = std::size_t{256} << 10U;
constexpr nanoseconds kLinger = seconds{2};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view code_of(int status) noexcept {
  switch (status) {
    case 408:
      return "request_timeout";
    case 413:
    case 414:
    case 431:
      return "too_large";
    default:
      return "bad_request";
  }
}

}  // namespace

HttpServer::Connection::Connection(HttpServer& server, std::uint64_t id, UniqueFd fd,
                                   const Endpoint& peer)
    : server_(server),
      id_(id),
      fd_(std::move(fd)),
      peer_(peer),
      deadline_(server.loop_.timers(), *this) {}

HttpServer::Connection::~Connection() {
  server_.loop_.forget(*this);
}

void HttpServer::Connection::start() {
  constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  if (!server_.loop_.add(fd_.get(), kEvents, *this)) return end();
  deadline_.arm_after(server_.options_.idle_timeout);
  advance();
}

void HttpServer::Connection::on_io(std::uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return end();
  if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) readable_ = true;
  if ((events & EPOLLOUT) != 0 && state_ == State::Writing) flush();
  advance();
}

void HttpServer::Connection::on_deadline() {
  switch (state_) {
    case State::Head:
      if (!parser_.begun()) return end();
      return fail(408, "request_timeout", "the request head did not arrive in time");
    case State::Body:
      return fail(408, "request_timeout", "the request body did not arrive in time");
    default:
      return end();
  }
}

void HttpServer::Connection::advance() {
  for (bool going = true; going;) {
    switch (state_) {
      case State::Head:
        going = parse_head() || read_some();
        break;
      case State::Body:
        going = take_body() || read_some();
        break;
      case State::Lingering:
        drop_input();
        return;
      default:
        return;
    }
  }
}

bool HttpServer::Connection::read_some() {
  if (!readable_) return false;
  std::array<char, kReadBytes> bytes;
  const auto count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
  if (count > 0) {
    in_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
  }
  readable_ = false;
  if (count < 0 && errno == EAGAIN) return false;
  // The request can no longer become whole.
  end();
  return false;
}

bool HttpServer::Connection::parse_head() {
  if (in_.empty()) return false;
  const bool first_bytes = !parser_.begun();
  const ParseState state = parser_.parse(in_);
  if (state == ParseState::NeedMore) {
    if (first_bytes) deadline_.arm_after(server_.options_.header_deadline);
    return false;
  }
  if (state == ParseState::Refused) {
    const Refusal& why = parser_.refusal();
    fail(why.status, code_of(why.status), why.reason);
    return true;
  }
  return begin_body();
}

bool HttpServer::Connection::begin_body() {
  const RequestHead& head = parser_.head();
  close_ = close_ || !head.keep_alive();
  http_1_0_ = head.minor_version() == 0;
  head_method_ = head.method() == Method::Head;
  request_ = {};
  request_.method = head.method();
  request_.method_text = head.method_text();
  request_.peer = peer_;
  for (const Field& field : head.fields()) {
    request_.fields.emplace_back(head.name(field), head.value(field));
  }
  const bool asterisk = head.form() == TargetForm::Asterisk;
  if (head.form() == TargetForm::Authority ||
      !take_target(asterisk ? head.target() : head.path_and_query(), request_)) {
    fail(400, "bad_request", "the request target is no path of this server");
    return true;
  }
  body_left_ = head.framing() == Framing::Length ? head.content_length() : 0;
  if (body_left_ > server_.options_.body_bytes_max) {
    fail(413, "too_large", "the request body is too large");
    return true;
  }
  const bool expects = head.expects_continue() && head.framing() != Framing::None;
  in_.erase(0, head.size());
  chunks_.reset();
  state_ = State::Body;
  deadline_.arm_after(server_.options_.body_deadline);
  if (expects && in_.empty()) {
    // A fresh connection's send buffer takes these 25 bytes; if not, the client waits its own time.
    [[maybe_unused]] const auto sent =
        ::send(fd_.get(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL);
  }
  return true;
}

// True when the state has changed.
bool HttpServer::Connection::take_body() {
  if (parser_.head().framing() == Framing::Chunked) return take_chunked();
  const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, in_.size()));
  request_.body.append(in_, 0, part);
  in_.erase(0, part);
  body_left_ -= part;
  if (body_left_ != 0) return false;
  begin_work();
  return true;
}

bool HttpServer::Connection::take_chunked() {
  std::size_t consumed = 0;
  ChunkedDecoder::Step step;
  do {
    step = chunks_.next(std::string_view(in_).substr(consumed));
    consumed += step.consumed;
    request_.body += step.payload;
  } while (step.state == ParseState::NeedMore && step.consumed != 0 &&
           request_.body.size() <= server_.options_.body_bytes_max);
  in_.erase(0, consumed);
  if (request_.body.size() > server_.options_.body_bytes_max) {
    fail(413, "too_large", "the request body is too large");
    return true;
  }
  if (step.state == ParseState::NeedMore) return false;
  if (step.state == ParseState::Done) {
    begin_work();
  } else {
    const Refusal& why = chunks_.refusal();
    fail(why.status, code_of(why.status), why.reason);
  }
  return true;
}

void HttpServer::Connection::begin_work() {
  state_ = State::Working;
  deadline_.cancel();
  server_.dispatch(id_, std::exchange(request_, {}));
}

void HttpServer::Connection::answer(HttpResponse response) {
  if (state_ == State::Working) send(response);
  advance();
}

void HttpServer::Connection::fail(int status, std::string_view code, std::string_view detail) {
  close_ = true;
  Problem problem{.status = status, .code = std::string(code), .detail = std::string(detail)};
  const auto& name = server_.options_.request_id;
  if (name) problem.request_id = name(request_);
  HttpResponse response = problem_response(problem);
  if (name) response.fields.emplace_back("X-Request-Id", problem.request_id);
  send(response);
}

void HttpServer::Connection::send(const HttpResponse& response) {
  out_ = compose_head(response, {close_, http_1_0_}, runtime::wall_now());
  if (!head_method_ && has_body(response.status)) out_ += response.body;
  sent_ = 0;
  state_ = State::Writing;
  deadline_.arm_after(server_.options_.body_deadline);
  flush();
}

void HttpServer::Connection::flush() {
  while (sent_ < out_.size()) {
    const auto count = ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno != EAGAIN) end();
      return;
    }
    sent_ += static_cast<std::size_t>(count);
  }
  answered();
}

void HttpServer::Connection::answered() {
  out_.clear();
  if (close_) return linger();
  parser_.reset();
  http_1_0_ = head_method_ = false;
  state_ = State::Head;
  deadline_.arm_after(server_.options_.idle_timeout);
}

void HttpServer::Connection::linger() {
  in_.clear();
  state_ = State::Lingering;
  ::shutdown(fd_.get(), SHUT_WR);
  deadline_.arm_after(kLinger);
}

void HttpServer::Connection::drop_input() {
  std::array<char, kReadBytes> bytes;
  while (readable_ && dropped_ < kLingerBytesMax) {
    const auto count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EAGAIN) {
      readable_ = false;
      return;
    }
    if (count <= 0) return end();
    dropped_ += static_cast<std::size_t>(count);
  }
  if (dropped_ >= kLingerBytesMax) end();
}

void HttpServer::Connection::wind_down() {
  close_ = true;
  if (state_ == State::Head && !parser_.begun()) end();
}

void HttpServer::Connection::end() {
  if (state_ == State::Ended) return;
  state_ = State::Ended;
  deadline_.cancel();
  server_.loop_.forget(*this);
  fd_.reset();
  server_.end(id_);
}

}  // namespace proxypool::net
