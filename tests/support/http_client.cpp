#include "support/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "proxypool/base/assert.hpp"

namespace proxypool::support {
namespace {

using Steady = std::chrono::steady_clock;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

bool ready(int fd, short events, std::chrono::milliseconds limit) {
  pollfd wanted{fd, events, 0};
  return ::poll(&wanted, 1, static_cast<int>(limit.count())) == 1;
}

std::string_view method_of(std::string_view request) {
  return request.substr(0, request.find(' '));
}

}  // namespace

HttpClient::HttpClient(std::uint16_t port, std::chrono::milliseconds limit) : limit_(limit) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  PP_ASSERT(fd_ >= 0);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto address = loopback(port);
  if (::connect(fd_, generic(address), sizeof address) != 0) {
    failure_ = std::string("connect: ") + std::strerror(errno);
    close();
  }
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      limit_(other.limit_),
      buffer_(std::move(other.buffer_)),
      failure_(std::move(other.failure_)) {}

HttpClient::~HttpClient() {
  close();
}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (fd_ < 0 || !ready(fd_, POLLOUT, limit_)) return false;
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      failure_ = std::string("send: ") + std::strerror(errno);
      return false;
    }
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool HttpClient::fill() {
  if (fd_ < 0) return false;
  if (!ready(fd_, POLLIN, limit_)) {
    failure_ = "nothing came in time";
    return false;
  }
  std::array<char, 65'536> piece;
  const auto got = ::recv(fd_, piece.data(), piece.size(), 0);
  if (got <= 0) {
    failure_ = got == 0 ? "end of connection" : std::string("receive: ") + std::strerror(errno);
    return false;
  }
  buffer_.append(piece.data(), static_cast<std::size_t>(got));
  return true;
}

Reply HttpClient::receive(std::string_view method) {
  Reply reply;
  std::optional<std::size_t> size;
  while (!(size = loadgen::head_size(buffer_))) {
    if (fill()) continue;
    reply.failure = failure_;
    return reply;
  }
  const auto head = loadgen::parse_response(std::string_view(buffer_).substr(0, *size));
  if (!head) {
    reply.failure = head.error().message;
    return reply;
  }
  buffer_.erase(0, *size);
  if (head->status / 100 == 1 && head->status != 101) return receive(method);
  reply.status = head->status;
  reply.reason = head->reason;
  reply.fields = head->fields;
  const auto framing = loadgen::framing_of(*head, method);
  if (!framing) {
    reply.failure = framing.error().message;
    return reply;
  }
  loadgen::BodyScanner body(*framing);
  while (!body.done()) {
    if (buffer_.empty() && !fill()) {
      reply.complete = body.ends_with_connection() && failure_ == "end of connection";
      if (!reply.complete) reply.failure = failure_;
      return reply;
    }
    const auto step = body.take(buffer_);
    if (step.malformed) {
      reply.failure = "malformed chunk";
      return reply;
    }
    reply.body.append(step.payload);
    buffer_.erase(0, step.consumed);
  }
  reply.complete = true;
  return reply;
}

Reply HttpClient::exchange(std::string_view request) {
  if (!send(request)) {
    // The peer may have answered before it stopped reading.
    Reply reply = receive(method_of(request));
    if (reply.status == 0) reply.failure = failure_;
    return reply;
  }
  return receive(method_of(request));
}

std::string HttpClient::receive_bytes(std::size_t count) {
  while (buffer_.size() < count && fill()) {
  }
  std::string bytes = buffer_.substr(0, count);
  buffer_.erase(0, bytes.size());
  return bytes;
}

std::string HttpClient::receive_until(std::string_view text) {
  while (buffer_.find(text) == std::string::npos && fill()) {
  }
  const auto at = buffer_.find(text);
  return receive_bytes(at == std::string::npos ? buffer_.size() : at + text.size());
}

std::string HttpClient::receive_rest() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

bool HttpClient::ended() {
  while (fill()) buffer_.clear();
  return fd_ < 0 || failure_ != "nothing came in time";
}

void HttpClient::end_output() {
  ::shutdown(fd_, SHUT_WR);
}

void HttpClient::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void HttpClient::reset() {
  const linger at_once{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

Reply http_exchange(std::uint16_t port, std::string_view request, std::chrono::milliseconds limit) {
  HttpClient client(port, limit);
  return client.exchange(request);
}

Reply http_get(std::uint16_t port, std::string_view target, std::chrono::milliseconds limit) {
  std::string request = "GET " + std::string(target) + " HTTP/1.1\r\nHost: 127.0.0.1:";
  request += std::to_string(port) + "\r\nConnection: close\r\n\r\n";
  return http_exchange(port, request, limit);
}

Reply http_post(std::uint16_t port, std::string_view target, std::string_view body,
                std::string_view content_type) {
  std::string request = "POST " + std::string(target) + " HTTP/1.1\r\nHost: 127.0.0.1:";
  request += std::to_string(port) + "\r\nConnection: close\r\nContent-Type: ";
  request.append(content_type).append("\r\nContent-Length: ");
  request.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
  return http_exchange(port, request);
}

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  PP_ASSERT(::bind(fd, generic(address), size) == 0);
  PP_ASSERT(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace proxypool::support
