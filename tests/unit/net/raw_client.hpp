// A blocking TCP client for tests: every wait ends after ten seconds.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/unique_fd.hpp"

namespace proxypool::net::test {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{10, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void end_sending() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }

  // Reads until everything received since the last call contains `text`; what was received.
  std::string read_until(std::string_view text) {
    std::string out;
    while (out.find(text) == std::string::npos && receive(out)) {
    }
    return out;
  }
  // Reads until the server closes.
  std::string read_all() {
    std::string out;
    while (receive(out)) {
    }
    return out;
  }

 private:
  bool receive(std::string& out) {
    std::array<char, 65536> bytes;
    const auto count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    EXPECT_GE(count, 0) << "nothing came, or a reset";
    if (count <= 0) return false;
    out.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
  }

  UniqueFd fd_;
};

}  // namespace proxypool::net::test
