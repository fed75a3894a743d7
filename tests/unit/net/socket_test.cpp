#include "net/socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <vector>

#include "net/acceptor.hpp"

namespace proxypool::net {
namespace {

constexpr IpAddress kLoopback = IpAddress::v4(0x7F000001);

UniqueFd listener() {
  return std::move(listen_tcp({kLoopback, 0})).value();
}

bool has_option(int fd, int level, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(fd, level, option, &value, &size), 0);
  return value != 0;
}

bool wait_for(int fd, short events) {
  pollfd poll{fd, events, 0};
  return ::poll(&poll, 1, 5000) == 1;
}

TEST(ParseListen, TakesLiteralsWithAPort) {
  EXPECT_EQ(parse_listen("127.0.0.1:8080").value(), (Endpoint{kLoopback, 8080}));
  EXPECT_EQ(parse_listen("[::1]:0").value().str(), "[::1]:0");
  EXPECT_EQ(parse_listen("0.0.0.0:65535").value().port, 65535);
}

TEST(ParseListen, RefusesTheRestWithAHint) {
  const std::pair<const char*, const char*> cases[] = {
      {":8080", "0.0.0.0 for all"},
      {"8080", "ADDRESS:PORT"},
      {"localhost:80", "IP address"},
      {"::1:80", "in brackets"},
      {"[127.0.0.1]:80", "in brackets"},
      {"127.0.0.1:65536", "0 to 65535"},
      {"127.0.0.1:", "0 to 65535"},
      {"127.0.0.1:+1", "0 to 65535"},
      {"[]:80", "IP address"},
      {"", "ADDRESS:PORT"},
      {"[fe80::1%eth0]:80", "IP address"},
  };
  for (const auto& [text, hint] : cases) {
    const auto result = parse_listen(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().message.find(hint), std::string::npos) << result.error().message;
  }
}

TEST(ListenTcp, TellsThePortAndNamesTheRemedyWhenItIsTaken) {
  const UniqueFd first = listener();
  const std::uint16_t port = local_port(first.get());
  EXPECT_NE(port, 0);
  const auto second = listen_tcp({kLoopback, port});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Conflict);
  EXPECT_NE(second.error().message.find("choose another port"), std::string::npos);
}

TEST(ListenTcp, SharesAPortWhenAsked) {
  const auto first = listen_tcp({kLoopback, 0}, {.reuse_port = true});
  ASSERT_TRUE(first);
  EXPECT_TRUE(listen_tcp({kLoopback, local_port(first->get())}, {.reuse_port = true}));
}

// Whether this machine lets anybody listen on ::1.
bool has_ipv6() {
  const UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return fd && ::bind(fd.get(), generic, sizeof address) == 0;
}

// Where there is no IPv6 the listener says so, and does not fall back to anything else.
TEST(ListenTcp, BoundsWhatTheKernelTakesInWhereItMay) {
  const auto size_of = [](const UniqueFd& fd) {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    EXPECT_EQ(::getsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &bytes, &size), 0);
    return bytes;
  };
  const Endpoint anywhere{IpAddress::v4(0x7f000001), 0};
  const auto plain = listen_tcp(anywhere);
  const auto bounded = listen_tcp(anywhere, {.receive_max = 65'536});
  const auto too_much = listen_tcp(anywhere, {.receive_max = 1 << 30});
  ASSERT_TRUE(plain && bounded && too_much);
  EXPECT_EQ(size_of(*bounded), 2 * 65'536);
  EXPECT_EQ(size_of(*too_much), size_of(*plain)) << "the kernel goes on tuning";
}

TEST(ListenTcp, ListensOnIpv6Alone) {
  const auto fd = listen_tcp({IpAddress::parse("::1").value(), 0});
  ASSERT_EQ(fd.has_value(), has_ipv6());
  if (fd) {
    EXPECT_EQ(local_endpoint(fd->get()).address.str(), "::1");
    EXPECT_TRUE(has_option(fd->get(), IPPROTO_IPV6, IPV6_V6ONLY));
  } else {
    EXPECT_NE(fd.error().message.find("::1"), std::string::npos) << fd.error().message;
  }
}

TEST(AcceptTcp, GivesANonBlockingSocketWithoutDelayThatNoChildInherits) {
  const UniqueFd fd = listener();
  EXPECT_EQ(accept_tcp(fd.get()).error, EAGAIN);
  const Connecting client = start_connect(local_endpoint(fd.get()));
  ASSERT_TRUE(client.fd);
  ASSERT_TRUE(wait_for(fd.get(), POLLIN));
  const Accepted accepted = accept_tcp(fd.get());
  ASSERT_EQ(accepted.error, 0);
  EXPECT_EQ(accepted.peer, local_endpoint(client.fd.get()));
  for (const int socket : {accepted.fd.get(), client.fd.get()}) {
    EXPECT_TRUE(has_option(socket, IPPROTO_TCP, TCP_NODELAY));
    EXPECT_NE(::fcntl(socket, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(socket, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(StartConnect, ReportsARefusalThroughTheSocketError) {
  std::uint16_t port = 0;
  {
    const UniqueFd fd = listener();
    port = local_port(fd.get());
  }
  const Connecting attempt = start_connect({kLoopback, port});
  if (attempt.error == EINPROGRESS) {
    ASSERT_TRUE(wait_for(attempt.fd.get(), POLLOUT));
    EXPECT_EQ(take_socket_error(attempt.fd.get()), ECONNREFUSED);
    EXPECT_EQ(take_socket_error(attempt.fd.get()), 0);
  } else {
    EXPECT_EQ(attempt.error, ECONNREFUSED);
  }
}

TEST(Acceptor, TakesAWholeQueueAndPausesAndCloses) {
  EventLoop loop;
  std::vector<UniqueFd> accepted;
  Acceptor acceptor(loop, listener(), [&](UniqueFd fd, const Endpoint& peer) {
    EXPECT_EQ(peer.address, kLoopback);
    accepted.push_back(std::move(fd));
  });
  const Endpoint to{kLoopback, acceptor.port()};
  std::vector<UniqueFd> clients;
  const auto connect = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) clients.push_back(start_connect(to).fd);
  };
  acceptor.resume();
  connect(20);
  while (accepted.size() < 20) loop.turn(seconds{5});
  acceptor.pause();
  connect(1);
  loop.turn(nanoseconds{0});
  EXPECT_EQ(accepted.size(), 20U);
  acceptor.resume();
  while (accepted.size() < 21) loop.turn(seconds{5});
  acceptor.close();
  loop.turn(nanoseconds{0});
  EXPECT_FALSE(start_connect(to).error == 0);
}

TEST(Acceptor, OutOfDescriptorsItWaitsInsteadOfSpinning) {
  EventLoop loop;
  int accepted = 0;
  Acceptor acceptor(loop, listener(), [&](UniqueFd, const Endpoint&) { ++accepted; });
  acceptor.resume();
  const Connecting client = start_connect({kLoopback, acceptor.port()});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  loop.turn(seconds{5});
  for (int i = 0; i < 5; ++i) loop.turn(nanoseconds{0});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(accepted, 0);
  EXPECT_EQ(acceptor.exhausted(), 1U);
  while (accepted == 0) loop.turn(seconds{5});
  EXPECT_EQ(accepted, 1);
}

}  // namespace
}  // namespace proxypool::net
