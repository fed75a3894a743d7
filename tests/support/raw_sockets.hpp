// Blocking sockets for tests that look at bytes: a Peer, a client, and a proxy that follows a
// script. Every wait ends after ten seconds.
//
// Thread rule: a Peer: one thread. FakeProxy: the test's; its scripts run on threads of its own.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/socket.hpp"
#include "net/unique_fd.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::testing {

// What a Peer speaks once it speaks TLS (peer_tls.hpp).
class PeerTls {
 public:
  PeerTls() = default;
  PeerTls(const PeerTls&) = delete;
  PeerTls& operator=(const PeerTls&) = delete;
  virtual ~PeerTls() = default;
  // As recv and send; 0: close_notify.
  virtual ssize_t read(char* to, std::size_t size) = 0;
  virtual ssize_t write(const char* data, std::size_t size) = 0;
  // close_notify.
  virtual void end() = 0;
};

class Peer {
 public:
  explicit Peer(net::UniqueFd fd) : fd_(std::move(fd)) {
    const timeval patience{10, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  static Peer dial(std::uint16_t port) {
    net::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* address = reinterpret_cast<const sockaddr*>(&to);
    PP_ASSERT(::connect(fd.get(), address, sizeof to) == 0);
    return Peer(std::move(fd));
  }

  // Whether all of it was taken.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = tls_ ? tls_->write(bytes.data(), bytes.size())
                              : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  // Sends as much as goes without waiting.
  std::size_t send_some(std::string_view bytes) {
    const auto count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }
  // Receives until everything that came since the last call holds `text`, or the end.
  std::string until(std::string_view text) {
    std::string out;
    while (out.find(text) == std::string::npos && receive(out)) {
    }
    return out;
  }
  std::string exactly(std::size_t bytes) {
    std::string out;
    while (out.size() < bytes && receive(out, bytes - out.size())) {
    }
    return out;
  }
  // Everything until the other side's end.
  std::string all() {
    std::string out;
    while (receive(out)) {
    }
    return out;
  }
  // The whole next answer that has a Content-Length.
  std::string answer() {
    std::string out = until("\r\n\r\n");
    const auto head_end = out.find("\r\n\r\n");
    const auto field = out.find("Content-Length: ");
    if (head_end == std::string::npos || field > head_end) return out;
    const auto size = std::strtoul(out.c_str() + field + 16, nullptr, 10);
    const std::size_t whole = head_end + 4 + size;
    if (out.size() < whole) out += exactly(whole - out.size());
    return out;
  }
  // The other side has ended the connection; nothing more came before.
  bool at_end() {
    char byte = 0;
    return get(&byte, 1) == 0;
  }
  // The errno that the connection ended with: 0 for an orderly end, -1 when bytes came.
  int end_error() {
    char byte = 0;
    const auto count = get(&byte, 1);
    return count > 0 ? -1 : count == 0 ? 0 : errno;
  }

  void shut_write() {
    if (tls_) tls_->end();
    ::shutdown(fd_.get(), SHUT_WR);
  }
  void close() {
    tls_.reset();
    fd_.reset();
  }
  void use(std::unique_ptr<PeerTls> tls) { tls_ = std::move(tls); }
  [[nodiscard]] PeerTls* tls() noexcept { return tls_.get(); }
  void reset() {
    tls_.reset();
    net::reset_on_close(fd_.get());
    fd_.reset();
  }
  void set_receive_buffer(int bytes) {
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  bool receive(std::string& out, std::size_t bytes_max = SIZE_MAX) {
    std::array<char, 65536> bytes;
    const auto size = std::min(bytes_max, bytes.size());
    const auto count = get(bytes.data(), size);
    if (count <= 0) return false;
    out.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
  }

  ssize_t get(char* to, std::size_t size) {
    return tls_ ? tls_->read(to, size) : ::recv(fd_.get(), to, size, 0);
  }

  net::UniqueFd fd_;
  std::unique_ptr<PeerTls> tls_;
};

// Listens on a free port and runs a script for each connection, with its number from 0 on.
class FakeProxy {
 public:
  using Script = std::function<void(Peer&, int number)>;

  explicit FakeProxy(Script script) : script_(std::move(script)) {
    auto listener = net::listen_tcp({IpAddress::v4(0x7f000001), 0});
    PP_ASSERT(listener);
    listener_ = *std::move(listener);
    port_ = net::local_port(listener_.get());
    const int flags = ::fcntl(listener_.get(), F_GETFL);
    ::fcntl(listener_.get(), F_SETFL, flags & ~O_NONBLOCK);
    accepting_ = std::thread([this] { accept(); });
  }
  FakeProxy(const FakeProxy&) = delete;
  FakeProxy& operator=(const FakeProxy&) = delete;
  ~FakeProxy() { stop(); }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] int connections() const noexcept { return connections_.load(); }
  // From now on connections are refused.
  void stop() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (accepting_.joinable()) accepting_.join();
    listener_.reset();
    open_.with([](auto& open) {
      for (const int fd : open) ::shutdown(fd, SHUT_RDWR);
    });
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void accept() {
    for (;;) {
      net::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) return;
      const int number = connections_++;
      open_.with([&](auto& open) { open.push_back(fd.get()); });
      threads_.emplace_back([this, number, peer = Peer(std::move(fd))]() mutable {
        const int descriptor = peer.fd();
        script_(peer, number);
        open_.with([&](auto& open) { std::erase(open, descriptor); });
      });
    }
  }

  Script script_;
  net::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  Guarded<std::vector<int>> open_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

// Answers each request on a connection with 200 and this body, for as long as requests come.
inline FakeProxy::Script answering(std::string body) {
  return [body = std::move(body)](Peer& peer, int) {
    while (!peer.until("\r\n\r\n").empty()) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                body);
    }
  };
}

// A port that refuses connections.
inline std::uint16_t closed_port() {
  auto listener = net::listen_tcp({IpAddress::v4(0x7f000001), 0});
  PP_ASSERT(listener);
  return net::local_port(listener->get());
}

}  // namespace proxypool::testing
