#include "net/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace proxypool::net {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

SocketAddress to_socket_address(const Endpoint& endpoint) noexcept {
  SocketAddress out;
  if (endpoint.address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    v4.sin_addr.s_addr = htonl(endpoint.address.low32());
    std::memcpy(&out.storage, &v4, sizeof v4);
    out.size = sizeof v4;
    return out;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(endpoint.port);
  std::memcpy(v6.sin6_addr.s6_addr, endpoint.address.bytes().data(), 16);
  std::memcpy(&out.storage, &v6, sizeof v6);
  out.size = sizeof v6;
  return out;
}

bool switch_on(int fd, int level, int option) noexcept {
  const int on = 1;
  return ::setsockopt(fd, level, option, &on, sizeof on) == 0;
}

UniqueFd open_socket(const Endpoint& endpoint) noexcept {
  const int family = endpoint.address.is_v4() ? AF_INET : AF_INET6;
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

Error listen_error(const Endpoint& at, int error) {
  std::string text = "cannot listen on " + at.str() + ": " + errno_text(error);
  ErrorCode code = ErrorCode::Unavailable;
  switch (error) {
    case EADDRINUSE:
      code = ErrorCode::Conflict;
      text += "; another program holds port " + std::to_string(at.port) +
              " (see `ss -ltnp`): stop it, or choose another port";
      break;
    case EACCES:
    case EPERM:
      code = ErrorCode::Forbidden;
      text +=
          "; ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher port, or set "
          "AmbientCapabilities=CAP_NET_BIND_SERVICE in the service's unit";
      break;
    case EADDRNOTAVAIL:
      code = ErrorCode::InvalidArgument;
      text += "; this machine has no such address (see `ip address`)";
      break;
    case EMFILE:
    case ENFILE:
      code = ErrorCode::Exhausted;
      text += "; raise the limit of open files (`ulimit -n`, LimitNOFILE=)";
      break;
    default:
      break;
  }
  return {code, Origin::Internal, std::move(text)};
}

Error bad_listen(std::string_view text, std::string_view hint) {
  return {ErrorCode::InvalidArgument, Origin::Client,
          "\"" + std::string(text) + "\" is no address to listen on: " + std::string(hint)};
}

// Once it is set the kernel tunes no more, even if it granted less. So another socket asks first.
bool bound_receive(int fd, int bytes) noexcept {
  if (bytes == 0) return true;
  const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe) return false;
  int granted = 0;
  socklen_t size = sizeof granted;
  const bool asked = ::setsockopt(probe.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0 &&
                     ::getsockopt(probe.get(), SOL_SOCKET, SO_RCVBUF, &granted, &size) == 0;
  if (!asked || granted / 2 < bytes) return asked;
  return ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0;
}

}  // namespace

std::string Endpoint::str() const {
  const std::string host = address.is_v4() ? address.str() : "[" + address.str() + "]";
  return host + ":" + std::to_string(port);
}

Result<Endpoint> parse_listen(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return bad_listen(text, "write ADDRESS:PORT, for example 127.0.0.1:8080");
  }
  auto host = text.substr(0, colon);
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  if (host.empty()) {
    return bad_listen(text, "say which address: 127.0.0.1 for this machine alone, 0.0.0.0 for all");
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = IpAddress::parse(host);
  if (!address) return bad_listen(text, "the address must be an IP address, such as 127.0.0.1");
  if (address->is_v4() == bracketed) {
    return bad_listen(text, "write IPv6 addresses, and only those, in brackets: [::1]:8080");
  }
  if (!port) return bad_listen(text, "the port must be a number from 0 to 65535");
  return Endpoint{*address, *port};
}

Result<UniqueFd> listen_tcp(const Endpoint& at, ListenOptions options) {
  UniqueFd fd = open_socket(at);
  if (!fd) return listen_error(at, errno);
  const SocketAddress address = to_socket_address(at);
  const bool listening =
      switch_on(fd.get(), SOL_SOCKET, SO_REUSEADDR) &&
      (!options.reuse_port || switch_on(fd.get(), SOL_SOCKET, SO_REUSEPORT)) &&
      (at.address.is_v4() || switch_on(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY)) &&
      switch_on(fd.get(), IPPROTO_TCP, TCP_NODELAY) &&
      bound_receive(fd.get(), options.receive_max) &&
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0 &&
      ::listen(fd.get(), options.backlog) == 0;
  if (!listening) return listen_error(at, errno);
  return fd;
}

void adopt_listener(int fd, ListenOptions options) noexcept {
  (void)switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
  (void)bound_receive(fd, options.receive_max);
}

Endpoint to_endpoint(const sockaddr_storage& address) noexcept {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return {IpAddress::v4(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port)};
  }
  if (address.ss_family != AF_INET6) return {};
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  IpAddress::Bytes bytes{};
  std::memcpy(bytes.data(), v6.sin6_addr.s6_addr, bytes.size());
  return {IpAddress::v6(bytes), ntohs(v6.sin6_port)};
}

Endpoint local_endpoint(int fd) noexcept {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return to_endpoint(storage);
}

Accepted accept_tcp(int listener) noexcept {
  sockaddr_storage storage;
  storage.ss_family = AF_UNSPEC;
  socklen_t size = sizeof storage;
  const int fd = ::accept4(listener, reinterpret_cast<sockaddr*>(&storage), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return {UniqueFd(), {}, errno};
  return {UniqueFd(fd), to_endpoint(storage), 0};
}

Connecting start_connect(const Endpoint& to) noexcept {
  UniqueFd fd = open_socket(to);
  if (!fd) return {UniqueFd(), errno};
  switch_on(fd.get(), IPPROTO_TCP, TCP_NODELAY);
  const SocketAddress address = to_socket_address(to);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) {
    return {std::move(fd), 0};
  }
  const int error = errno;
  if (error != EINPROGRESS) return {UniqueFd(), error};
  return {std::move(fd), error};
}

int take_socket_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

void reset_on_close(int fd) noexcept {
  const linger now{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

std::string errno_text(int error) {
  return std::generic_category().message(error);
}

}  // namespace proxypool::net
