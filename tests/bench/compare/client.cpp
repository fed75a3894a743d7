// The clients of a comparison: one thread, fixed work, one line of JSON at the end.
//
//   compare_client --mode get|new|rate|tunnel|echo|down|up|idle --port P --auth BASE64
//                  --connections N --count N (requests, tunnels, round trips) --bytes N (a page, or
//                  all of a bulk) --rate N (a second) --limit S
//
//   get     closed loop on kept connections       new     a connection for each request
//   rate    open loop: `rate` requests a second on kept connections; each is timed from when it was
//           due, so that a stall counts for all who wait
//   tunnel  CONNECT, 64 bytes there and back, close
//   echo    512 bytes there and back in open tunnels
//   down    `bytes` through `connections` tunnels; up: the other way
//   idle    opens `count` tunnels, says "holding", and holds them until its input ends
#include <sys/prctl.h>

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "sockets.hpp"

namespace proxypool::bench {
namespace {

enum class Mode : std::uint8_t { Get, New, Rate, Tunnel, Echo, Down, Up, Idle };
enum class Step : std::uint8_t {
  Closed,
  Connecting,
  Ready,
  Page,
  Opening,
  Echoing,
  Down,
  Up,
  Held
};

struct Conn {
  int fd = -1;
  Step step = Step::Closed;
  bool writing = false;
  std::uint64_t began = 0;
  std::uint64_t left = 0;  // of what is read, or of an upload
  bool in_body = false;
  bool closes = false;
  std::string head;
};

class Client {
 public:
  explicit Client(const Options& options)
      : options_(options),
        mode_(mode_of(options.text("mode", "get"))),
        port_(static_cast<std::uint16_t>(options.number("port", 8080))),
        count_(options.number("count", 1000)),
        bytes_(options.number("bytes", 1024)),
        connections_(options.number("connections", 64)),
        limit_(now_ns() + options.number("limit", 60) * 1'000'000'000U),
        loop_(::epoll_create1(EPOLL_CLOEXEC)),
        conns_(mode_ == Mode::Idle ? count_ : connections_) {
    const std::string auth = "Proxy-Authorization: Basic " + options.text("auth", "") + "\r\n";
    const std::string host = "page.bench";
    page_ = "GET http://" + host + "/bytes-" + std::to_string(bytes_) +
            " HTTP/1.1\r\nHost: " + host + "\r\n" + auth +
            "User-Agent: compare\r\nAccept: */*\r\n" +
            (mode_ == Mode::New ? "Connection: close\r\n" : "") + "\r\n";
    std::string where = "echo.bench:443";
    if (mode_ == Mode::Down) where = "source-" + std::to_string(share()) + ".bench:443";
    if (mode_ == Mode::Up) where = "sink-" + std::to_string(share()) + ".bench:443";
    connect_ = "CONNECT " + where + " HTTP/1.1\r\nHost: " + where + "\r\n" + auth + "\r\n";
    times_.reserve(count_ < 10'000'000 ? count_ : 0);
  }

  int run() {
    const std::uint64_t began = now_ns();
    next_due_ = began;
    for (Conn& conn : conns_) {
      if (mode_ == Mode::Idle && opening_ >= kOpeningMax) break;
      begin(conn);
    }
    while (!over()) turn();
    const std::uint64_t took = now_ns() - began;
    if (mode_ == Mode::Idle) hold();
    report(took);
    return errors_ == 0 ? 0 : 1;
  }

 private:
  static constexpr std::size_t kOpeningMax = 64;

  static Mode mode_of(const std::string& name) {
    constexpr std::array<std::string_view, 8> kNames{"get",  "new",  "rate", "tunnel",
                                                     "echo", "down", "up",   "idle"};
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) fail("unknown mode");
    return static_cast<Mode>(found - kNames.begin());
  }
  [[nodiscard]] std::uint64_t share() const { return bytes_ / connections_; }
  [[nodiscard]] bool bulk() const { return mode_ == Mode::Down || mode_ == Mode::Up; }
  [[nodiscard]] bool pages() const { return mode_ <= Mode::Rate; }

  [[nodiscard]] bool over() {
    if (now_ns() > limit_) {
      ++errors_;
      std::fprintf(stderr, "time is over: %llu of %llu done\n",
                   static_cast<unsigned long long>(done_), static_cast<unsigned long long>(goal()));
      return true;
    }
    return done_ + errors_ >= goal() || errors_ > 1000;
  }
  [[nodiscard]] std::uint64_t goal() const { return bulk() ? connections_ : count_; }

  void turn() {
    std::array<epoll_event, 512> events;
    timespec wait{1, 0};
    if (mode_ == Mode::Rate) {
      const std::uint64_t now = now_ns();
      const std::uint64_t pause = next_due_ > now ? next_due_ - now : 0;
      wait = {0, static_cast<long>(std::min<std::uint64_t>(pause, 999'999'999U))};
    }
    const int got =
        ::epoll_pwait2(loop_, events.data(), static_cast<int>(events.size()), &wait, nullptr);
    for (int i = 0; i < got; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      on_event(*static_cast<Conn*>(event.data.ptr), event.events);
    }
    if (mode_ == Mode::Rate) pace();
  }

  // Open loop: what is due goes out on a free connection, or as soon as one is free.
  void pace() {
    const std::uint64_t every = 1'000'000'000U / options_.number("rate", 4000);
    for (const std::uint64_t now = now_ns(); next_due_ <= now && asked_ < count_;
         next_due_ += every) {
      due_.push_back(next_due_);
      ++asked_;
    }
    while (!due_.empty() && !free_.empty()) {
      Conn& conn = *free_.back();
      free_.pop_back();
      conn.began = due_.front();
      due_.pop_front();
      ask(conn, Step::Page, page_);
    }
  }

  void begin(Conn& conn) {
    if (mode_ != Mode::Rate && !bulk() && mode_ != Mode::Echo && mode_ != Mode::Get &&
        asked_ >= count_)
      return;
    if (mode_ == Mode::New || mode_ == Mode::Tunnel || mode_ == Mode::Idle) ++asked_;
    conn = {};
    conn.fd = stream_socket();
    if (conn.fd < 0) fail("socket");
    conn.began = now_ns();
    const sockaddr_in to = loopback(port_);
    if (::connect(conn.fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
        errno != EINPROGRESS) {
      return lost(conn, "connect");
    }
    conn.step = Step::Connecting;
    conn.writing = true;
    ++opening_;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT;
    event.data.ptr = &conn;
    if (::epoll_ctl(loop_, EPOLL_CTL_ADD, conn.fd, &event) != 0) fail("epoll_ctl");
  }

  void writes(Conn& conn, bool on) {
    if (conn.writing == on) return;
    conn.writing = on;
    epoll_event event{};
    event.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.ptr = &conn;
    ::epoll_ctl(loop_, EPOLL_CTL_MOD, conn.fd, &event);
  }

  void end(Conn& conn) {
    ::close(conn.fd);
    conn.fd = -1;
    conn.step = Step::Closed;
  }
  void lost(Conn& conn, const char* what) {
    if (errors_++ == 0) std::fprintf(stderr, "first error: %s\n", what);
    end(conn);
    if (errors_ < 1000) begin(conn);
  }

  void on_event(Conn& conn, std::uint32_t events) {
    if (conn.step == Step::Connecting) {
      if ((events & (EPOLLERR | EPOLLHUP)) != 0) return lost(conn, "connection refused");
      writes(conn, false);
      return connected(conn);
    }
    if ((events & EPOLLOUT) != 0 && conn.step == Step::Up) push(conn);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && conn.fd >= 0) receive(conn);
  }

  void connected(Conn& conn) {
    if (mode_ == Mode::Rate) {
      conn.step = Step::Ready;
      free_.push_back(&conn);
      --opening_;
    } else if (pages()) {
      --opening_;
      next_page(conn);
    } else {
      ask(conn, Step::Opening, connect_);
    }
  }

  void next_page(Conn& conn) {
    if (mode_ == Mode::Get) {
      if (asked_ >= count_) return;
      ++asked_;
      conn.began = now_ns();
    }
    ask(conn, Step::Page, page_);
  }

  void ask(Conn& conn, Step step, std::string_view what) {
    conn.step = step;
    conn.in_body = false;
    conn.head.clear();
    if (::send(conn.fd, what.data(), what.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(what.size())) {
      lost(conn, "request not taken");
    }
  }

  void receive(Conn& conn) {
    for (;;) {
      const ssize_t got = ::recv(conn.fd, buffer_.data(), buffer_.size(), 0);
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return lost(conn, "connection ended early");
      const auto size = static_cast<std::size_t>(got);
      received_ += size;
      if (!take(conn, {buffer_.data(), size}) || conn.fd < 0) return;
      if (size < buffer_.size()) return;
    }
  }

  // False when this connection is to be read no further.
  bool take(Conn& conn, std::string_view bytes) {
    if (conn.step == Step::Page || conn.step == Step::Opening) {
      if (!conn.in_body && !take_head(conn, bytes)) return conn.fd >= 0;
      if (conn.step == Step::Opening) {
        opened(conn);
        return bytes.empty() || conn.fd < 0 || take(conn, bytes);
      }
      conn.left -= std::min<std::uint64_t>(conn.left, bytes.size());
      if (conn.left == 0) page_done(conn);
      return true;
    }
    conn.left -= std::min<std::uint64_t>(conn.left, bytes.size());
    if (conn.left == 0) exchange_done(conn);
    return true;
  }

  // Cuts the head off `bytes`. False when it is not whole yet, or not what it should be.
  bool take_head(Conn& conn, std::string_view& bytes) {
    conn.head += bytes;
    const auto end = conn.head.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    bytes.remove_prefix(bytes.size() - (conn.head.size() - end - 4));
    if (!conn.head.starts_with("HTTP/1.1 200")) {
      if (errors_ == 0) std::fprintf(stderr, "%.*s\n", 200, conn.head.c_str());
      lost(conn, "another status than 200");
      return false;
    }
    conn.in_body = true;
    conn.head.resize(end + 2);
    for (char& c : conn.head) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    conn.left = number_after(conn.head, "content-length: ", 0);
    conn.closes = conn.head.find("connection: close") != std::string::npos;
    return true;
  }

  void page_done(Conn& conn) {
    finish(conn);
    if (mode_ == Mode::New) {
      end(conn);
      begin(conn);
    } else if (conn.closes) {
      end(conn);
      begin(conn);
    } else if (mode_ == Mode::Rate) {
      conn.step = Step::Ready;
      free_.push_back(&conn);
    } else {
      next_page(conn);
    }
  }

  void finish(const Conn& conn) {
    ++done_;
    times_.push_back(now_ns() - conn.began);
  }

  void opened(Conn& conn) {
    --opening_;
    conn.left = share();
    if (mode_ == Mode::Down) {
      conn.step = Step::Down;
    } else if (mode_ == Mode::Up) {
      conn.step = Step::Up;
      push(conn);
    } else {
      ping(conn, mode_ == Mode::Echo ? 512 : 64);
    }
  }

  void ping(Conn& conn, std::size_t size) {
    if (mode_ == Mode::Echo) {
      if (asked_ >= count_) return;
      ++asked_;
      conn.began = now_ns();
    }
    ask(conn, Step::Echoing, std::string_view(block_).substr(0, size));
    conn.left = size;
  }

  void exchange_done(Conn& conn) {
    if (conn.step == Step::Held) return;
    finish(conn);
    switch (mode_) {
      case Mode::Echo:
        return ping(conn, 512);
      case Mode::Tunnel:
        end(conn);
        return begin(conn);
      case Mode::Idle: {
        conn.step = Step::Held;
        if (asked_ < count_) begin(conns_[asked_]);
        return;
      }
      default:
        return end(conn);
    }
  }

  void push(Conn& conn) {
    while (conn.left != 0) {
      const std::size_t size = std::min<std::uint64_t>(conn.left, block_.size());
      const ssize_t sent = ::send(conn.fd, block_.data(), size, MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno != EAGAIN) return lost(conn, "upload broken");
        return writes(conn, true);
      }
      conn.left -= static_cast<std::uint64_t>(sent);
    }
    writes(conn, false);
    conn.step = Step::Down;  // for the one byte that says so
    conn.left = 1;
  }

  void hold() {
    std::puts("holding");
    std::fflush(stdout);
    while (std::fgetc(stdin) != EOF) {
    }
  }

  void report(std::uint64_t took) {
    std::sort(times_.begin(), times_.end());
    const auto at = [&](double part) {
      if (times_.empty()) return 0.0;
      const auto index = static_cast<std::size_t>(part * static_cast<double>(times_.size() - 1));
      return static_cast<double>(times_[index]) / 1000.0;
    };
    std::printf(
        "{\"done\": %llu, \"errors\": %llu, \"seconds\": %.6f, \"received\": %llu, "
        "\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f}\n",
        static_cast<unsigned long long>(done_), static_cast<unsigned long long>(errors_),
        static_cast<double>(took) / 1e9, static_cast<unsigned long long>(received_), at(0.5),
        at(0.99), at(0.999));
  }

  const Options& options_;
  const Mode mode_;
  const std::uint16_t port_;
  const std::uint64_t count_;
  const std::uint64_t bytes_;
  const std::uint64_t connections_;
  const std::uint64_t limit_;
  const int loop_;
  std::vector<Conn> conns_;
  std::string page_;
  std::string connect_;
  std::vector<Conn*> free_;
  std::deque<std::uint64_t> due_;  // of rate: when each request should have gone out
  std::vector<std::uint64_t> times_;
  std::string buffer_ = std::string(std::size_t{256} << 10U, '\0');
  std::string block_ = std::string(std::size_t{256} << 10U, 'c');
  std::uint64_t next_due_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t received_ = 0;
  std::size_t opening_ = 0;
};

}  // namespace
}  // namespace proxypool::bench

int main(int argc, char** argv) {
  using namespace proxypool::bench;
  ::prctl(PR_SET_TIMERSLACK, 1000);  // an open loop that is late by 50 µs measures itself
  all_descriptors();
  const Options options(argc, argv);
  return std::make_unique<Client>(options)->run();
}
