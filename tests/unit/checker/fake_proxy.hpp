// Proxies made of raw sockets, each with one way to behave, and a recorder of events.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/socket.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::test {

// A blocking socket on 127.0.0.1 and a port of the kernel's choice; listens when asked.
inline net::UniqueFd bound_socket(int backlog) {
  net::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  PP_ASSERT(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  if (backlog >= 0) PP_ASSERT(::listen(fd.get(), backlog) == 0);
  return fd;
}

// Accepts until its end, each connection on a thread of its own.
class FakeProxy {
 public:
  using Behave = std::function<void(int connection)>;

  explicit FakeProxy(Behave behave)
      : behave_(std::move(behave)), listener_(bound_socket(64)), acceptor_([this] { accept(); }) {}
  FakeProxy(const FakeProxy&) = delete;
  FakeProxy& operator=(const FakeProxy&) = delete;
  ~FakeProxy() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (const auto& connection : connections_) ::shutdown(connection.get(), SHUT_RDWR);
    for (auto& thread : threads_) thread.join();
  }

  [[nodiscard]] std::uint16_t port() const { return net::local_port(listener_.get()); }
  [[nodiscard]] int accepted() const { return accepted_.load(); }

  // What came up to the end of the head; shorter when the connection ended before.
  static std::string read_head(int connection) {
    std::string head;
    char byte = 0;
    while (head.find("\r\n\r\n") == std::string::npos && ::recv(connection, &byte, 1, 0) == 1) {
      head += byte;
    }
    return head;
  }
  static void write(int connection, std::string_view text) {
    while (!text.empty()) {
      const auto sent = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  static void wait_for_end(int connection) {
    char byte = 0;
    while (::recv(connection, &byte, 1, 0) == 1) {
    }
  }
  // Reads the head, answers, and waits for the other side to close.
  static Behave answering(std::string text) {
    return [text = std::move(text)](int connection) {
      read_head(connection);
      write(connection, text);
      wait_for_end(connection);
    };
  }

 private:
  void accept() {
    while (true) {
      net::UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) return;
      const int fd = connection.get();
      connections_.push_back(std::move(connection));
      ++accepted_;
      threads_.emplace_back([this, fd] {
        behave_(fd);
        ::shutdown(fd, SHUT_RDWR);
      });
    }
  }

  const Behave behave_;
  net::UniqueFd listener_;
  std::vector<net::UniqueFd> connections_;  // of the acceptor
  std::vector<std::thread> threads_;        // of the acceptor
  std::atomic<int> accepted_{0};
  std::thread acceptor_;
};

}  // namespace proxypool::test
