#include "net/passed_listeners.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "net/socket.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::net {
namespace {

constexpr int kFirst = 3;
constexpr int kMax = 256;

// What a variable says, which nobody else is to see.
std::optional<int> taken_from_environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  const auto number = value == nullptr ? std::nullopt : parse_number<int>(std::string_view(value));
  ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  return number;
}

std::optional<int> option(int fd, int name) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(fd, SOL_SOCKET, name, &value, &size) != 0) return std::nullopt;
  return value;
}

bool listens(int fd) noexcept {
  const auto domain = option(fd, SO_DOMAIN);
  return (domain == AF_INET || domain == AF_INET6) && option(fd, SO_TYPE) == SOCK_STREAM &&
         option(fd, SO_ACCEPTCONN) == 1;
}

}  // namespace

Result<std::vector<UniqueFd>> take_passed_listeners() {
  const auto count = taken_from_environment("LISTEN_FDS");
  const auto whose = taken_from_environment("LISTEN_PID");
  ::unsetenv("LISTEN_FDNAMES");  // NOLINT(concurrency-mt-unsafe)
  std::vector<UniqueFd> out;
  if (!count || whose != ::getpid()) return out;
  if (*count < 0 || *count > kMax) {
    return Error{ErrorCode::InvalidArgument, Origin::Client,
                 "LISTEN_FDS=" + std::to_string(*count) + ": between 0 and 256 sockets are taken"};
  }
  for (int fd = kFirst; fd < kFirst + *count; ++fd) {
    if (!listens(fd)) {
      return Error{ErrorCode::InvalidArgument, Origin::Client,
                   "descriptor " + std::to_string(fd) +
                       " of LISTEN_FDS is no listening TCP socket: give the socket unit a "
                       "ListenStream= with address and port, and Accept=no"};
    }
    UniqueFd listener(fd);
    const int flags = ::fcntl(fd, F_GETFL);
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || flags < 0 ||
        ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
      return Error{ErrorCode::Unavailable, Origin::Internal,
                   "descriptor " + std::to_string(fd) + " of LISTEN_FDS cannot be used"};
    }
    out.push_back(std::move(listener));
  }
  return out;
}

}  // namespace proxypool::net
