// Stands for the proxies of a vendor in a comparison: one thread, many ports, next to no cost.
//
//   GET http://HOST/bytes-N              200 with N bytes
//   CONNECT echo.bench:443               sends back what comes
//   CONNECT source-N.bench:443           sends N bytes
//   CONNECT sink-N.bench:443             takes N bytes, then sends one
//
// Each request must carry "Proxy-Authorization: Basic" with a user name that begins with "up"; any
// other one gets 407, so that a proxy which passes its clients' credentials on is seen.
//
//   compare_upstream --port FIRST --ports 64
#include <string>
#include <unordered_map>
#include <vector>

#include "sockets.hpp"

namespace proxypool::bench {
namespace {

constexpr std::string_view kTunnel = "HTTP/1.1 200 Connection established\r\n\r\n";
constexpr std::string_view kDenied =
    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"up\"\r\n"
    "Content-Length: 0\r\n\r\n";

enum class Doing : std::uint8_t { Requests, Echo, Source, Sink };

struct Peer {
  int fd = -1;
  Doing doing = Doing::Requests;
  bool writing = false;  // waits for EPOLLOUT, and reads nothing meanwhile
  bool ends = false;
  std::uint64_t left = 0;
  std::string head;
  std::string own;  // what an echo could not send
  std::string_view out;
};

class Upstream {
 public:
  Upstream(std::uint16_t first, std::uint16_t ports) : loop_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::uint16_t i = 0; i < ports; ++i) listen(static_cast<std::uint16_t>(first + i));
  }

  [[noreturn]] void run() {
    std::vector<epoll_event> events(512);
    for (;;) {
      const int count = ::epoll_wait(loop_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if ((event.data.u64 & 1U) != 0) {
          accept(static_cast<int>(event.data.u64 >> 1U));
        } else {
          serve(*static_cast<Peer*>(event.data.ptr), event.events);
        }
      }
    }
  }

 private:
  void listen(std::uint16_t port) {
    const int fd = stream_socket();
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in at = loopback(port);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("bind");
    if (::listen(fd, 4096) != 0) fail("listen");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = (static_cast<std::uint64_t>(fd) << 1U) | 1U;  // a Peer is never odd
    if (::epoll_ctl(loop_, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
  }

  void accept(int listener) {
    for (;;) {
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      Peer* peer = spare_.empty() ? new Peer : spare_.back();
      if (!spare_.empty()) spare_.pop_back();
      *peer = {};
      peer->fd = fd;
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = peer;
      if (::epoll_ctl(loop_, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
      if (!receive(*peer)) drop(*peer);
    }
  }

  void serve(Peer& peer, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0 && !flush(peer)) return drop(peer);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !receive(peer)) drop(peer);
  }

  void drop(Peer& peer) {
    ::close(peer.fd);
    spare_.push_back(&peer);
  }

  // False when the connection has ended.
  bool receive(Peer& peer) {
    while (!peer.writing) {
      const ssize_t got = ::recv(peer.fd, bytes_.data(), bytes_.size(), 0);
      if (got < 0) return errno == EAGAIN;
      if (got == 0) return false;
      if (!take(peer, {bytes_.data(), static_cast<std::size_t>(got)})) return false;
      if (static_cast<std::size_t>(got) < bytes_.size()) return true;
    }
    return true;
  }

  bool take(Peer& peer, std::string_view bytes) {
    switch (peer.doing) {
      case Doing::Echo:
        return say(peer, bytes, true);
      case Doing::Source:
        return true;
      case Doing::Sink: {
        const std::uint64_t taken = std::min<std::uint64_t>(peer.left, bytes.size());
        peer.left -= taken;
        return taken == 0 || peer.left != 0 || say(peer, "k", false);
      }
      case Doing::Requests:
        break;
    }
    peer.head += bytes;
    for (;;) {
      const auto end = peer.head.find("\r\n\r\n");
      if (end == std::string::npos || peer.doing != Doing::Requests) break;
      const std::string head = peer.head.substr(0, end + 4);
      peer.head.erase(0, end + 4);
      if (!answer(peer, head)) return false;
    }
    if (peer.doing == Doing::Requests || peer.head.empty()) return true;
    const std::string early = std::move(peer.head);
    peer.head.clear();
    return take(peer, early);
  }

  bool answer(Peer& peer, std::string_view head) {
    // "up" in base64, as three of its four characters.
    constexpr std::string_view kCredential = "uthorization: Basic dXA";
    if (head.find(kCredential) == std::string_view::npos) return say(peer, kDenied, false);
    if (!head.starts_with("CONNECT ")) {
      peer.ends = head.find("Connection: close") != std::string_view::npos;
      return say(peer, page(number_after(head.substr(0, head.find('\r')), "bytes-", 0)), false);
    }
    if (head.starts_with("CONNECT source-")) {
      peer.doing = Doing::Source;
      peer.left = number_after(head, "source-", 0);
    } else if (head.starts_with("CONNECT sink-")) {
      peer.doing = Doing::Sink;
      peer.left = number_after(head, "sink-", 0);
    } else {
      peer.doing = Doing::Echo;
    }
    return say(peer, kTunnel, false);
  }

  const std::string& page(std::uint64_t bytes) {
    auto& whole = pages_[bytes];
    if (whole.empty()) {
      whole = "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\nContent-Length: " +
              std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'b');
    }
    return whole;
  }

  // `passing`: the bytes do not live on.
  bool say(Peer& peer, std::string_view bytes, bool passing) {
    if (!peer.out.empty() || passing) {
      if (peer.out.empty()) {
        const ssize_t sent = ::send(peer.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) return false;
        bytes.remove_prefix(sent < 0 ? 0 : static_cast<std::size_t>(sent));
        if (bytes.empty()) return true;
      }
      std::string all(peer.out);
      all += bytes;
      peer.own = std::move(all);
      peer.out = peer.own;
    } else {
      peer.out = bytes;
    }
    return flush(peer);
  }

  bool flush(Peer& peer) {
    for (;;) {
      if (peer.out.empty() && peer.doing == Doing::Source && peer.left != 0) {
        peer.out =
            std::string_view(block_).substr(0, std::min<std::uint64_t>(peer.left, block_.size()));
        peer.left -= peer.out.size();
      }
      if (peer.out.empty()) break;
      const ssize_t sent = ::send(peer.fd, peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno != EAGAIN) return false;
        writes(peer, true);
        return true;
      }
      peer.out.remove_prefix(static_cast<std::size_t>(sent));
    }
    writes(peer, false);
    return !peer.ends;
  }

  void writes(Peer& peer, bool on) {
    if (peer.writing == on) return;
    peer.writing = on;
    epoll_event event{};
    event.events = on ? EPOLLOUT : EPOLLIN;
    event.data.ptr = &peer;
    ::epoll_ctl(loop_, EPOLL_CTL_MOD, peer.fd, &event);
  }

  int loop_;
  std::vector<Peer*> spare_;
  std::unordered_map<std::uint64_t, std::string> pages_;
  std::string bytes_ = std::string(std::size_t{256} << 10U, '\0');
  std::string block_ = std::string(std::size_t{256} << 10U, 's');
};

}  // namespace
}  // namespace proxypool::bench

int main(int argc, char** argv) {
  using namespace proxypool::bench;
  all_descriptors();
  const Options options(argc, argv);
  Upstream upstream(static_cast<std::uint16_t>(options.number("port", 61000)),
                    static_cast<std::uint16_t>(options.number("ports", 64)));
  std::puts("ready");
  std::fflush(stdout);
  upstream.run();
}
