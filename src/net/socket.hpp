// TCP sockets by hand: non-blocking, close-on-exec, without delay, with as few calls as it takes.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/unique_fd.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/result.hpp"

struct sockaddr_storage;

namespace proxypool::net {

struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;

  // "127.0.0.1:80", "[::1]:80".
  [[nodiscard]] std::string str() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// What a configuration file says: "127.0.0.1:8080", "[::1]:0", "0.0.0.0:80". An address is
// required, and it is a literal: to listen everywhere is a decision, not a default.
[[nodiscard]] Result<Endpoint> parse_listen(std::string_view text);

struct ListenOptions {
  bool reuse_port = false;  // several threads listen on one port, each with its own queue
  int backlog = 4096;       // the kernel cuts it to net.core.somaxconn
  // How much the kernel takes in for a connection of which nobody reads, in bytes; it counts its
  // own overhead twofold. 0, and wherever net.core.rmem_max does not allow as much: as it finds
  // right, up to net.ipv4.tcp_rmem, which may be tens of MiB for each connection.
  int receive_max = 0;
};
// Listening, non-blocking. Accepted sockets inherit TCP_NODELAY from it. The error names what to
// do.
[[nodiscard]] Result<UniqueFd> listen_tcp(const Endpoint& at, ListenOptions options = {});

// Sets what listen_tcp() sets on a listening socket that somebody else has opened; best effort.
void adopt_listener(int fd, ListenOptions options) noexcept;

// Port 0 becomes the port that the kernel chose. The unspecified address when `fd` is no socket.
[[nodiscard]] Endpoint local_endpoint(int fd) noexcept;
[[nodiscard]] inline std::uint16_t local_port(int fd) noexcept {
  return local_endpoint(fd).port;
}

struct Accepted {
  UniqueFd fd;  // empty when `error` is not 0
  Endpoint peer;
  int error = 0;  // EAGAIN: nobody waits; EMFILE, ENFILE, ENOBUFS, ENOMEM: see Acceptor
};
[[nodiscard]] Accepted accept_tcp(int listener) noexcept;

struct Connecting {
  UniqueFd fd;    // empty when it failed at once
  int error = 0;  // 0: connected; EINPROGRESS: wait for EPOLLOUT, then take_socket_error()
};
[[nodiscard]] Connecting start_connect(const Endpoint& to) noexcept;

// The error that waits in the socket, taken from it; 0 when there is none.
[[nodiscard]] int take_socket_error(int fd) noexcept;

// The next close() sends a reset instead of an orderly end.
void reset_on_close(int fd) noexcept;

// "Connection refused".
[[nodiscard]] std::string errno_text(int error);

[[nodiscard]] Endpoint to_endpoint(const sockaddr_storage& address) noexcept;

}  // namespace proxypool::net
