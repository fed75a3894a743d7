// A vendor's proxy for very many tunnels: one thread, one descriptor a tunnel. It says 200 to every
// CONNECT and sends back whatever comes through the tunnel.
//
// Thread rule: any thread; it runs on one of its own.
// Limits:      what comes through a tunnel is less than a socket takes, or it is lost.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "net/socket.hpp"
#include "net/unique_fd.hpp"
#include "proxypool/base/assert.hpp"

namespace proxypool::e2e {

class TunnelVendor {
 public:
  TunnelVendor() {
    auto listener = net::listen_tcp({IpAddress::v4(0x7f000001), 0});
    PP_ASSERT(listener);
    listener_ = *std::move(listener);
    watch(listener_.get());
    watch(stop_.get());
    thread_ = std::thread([this] { run(); });
  }
  TunnelVendor(const TunnelVendor&) = delete;
  TunnelVendor& operator=(const TunnelVendor&) = delete;
  ~TunnelVendor() {
    const std::uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return net::local_port(listener_.get()); }
  [[nodiscard]] std::size_t open() const noexcept { return open_.load(); }

 private:
  struct Tunnel {
    net::UniqueFd fd;
    std::string head{};
    bool stands = false;
  };

  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    PP_ASSERT(::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  }

  void run() {
    std::array<epoll_event, 256> events;
    for (;;) {
      const int count = ::epoll_wait(poll_.get(), events.data(), events.size(), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == stop_.get()) return;
        if (fd == listener_.get()) {
          accept();
        } else {
          serve(fd);
        }
      }
    }
  }

  void accept() {
    for (;;) {
      auto next = net::accept_tcp(listener_.get());
      if (!next.fd) return;
      const int fd = next.fd.get();
      watch(fd);
      tunnels_.emplace(fd, Tunnel{std::move(next.fd)});
      ++open_;
    }
  }

  void serve(int fd) {
    std::array<char, 16384> bytes;
    const auto got = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    const auto at = tunnels_.find(fd);
    if (got <= 0) {
      tunnels_.erase(at);
      --open_;
      return;
    }
    Tunnel& tunnel = at->second;
    const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
    if (tunnel.stands) return send(fd, text);
    tunnel.head.append(text);
    const auto end = tunnel.head.find("\r\n\r\n");
    if (end == std::string::npos) return;
    tunnel.stands = true;
    send(fd, "HTTP/1.1 200 OK\r\n\r\n");
    send(fd, std::string_view(tunnel.head).substr(end + 4));
    tunnel.head = {};
  }

  static void send(int fd, std::string_view bytes) {
    (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  net::UniqueFd listener_;
  net::UniqueFd poll_{::epoll_create1(EPOLL_CLOEXEC)};
  net::UniqueFd stop_{::eventfd(0, EFD_CLOEXEC)};
  std::unordered_map<int, Tunnel> tunnels_;
  std::atomic<std::size_t> open_{0};
  std::thread thread_;
};

}  // namespace proxypool::e2e
