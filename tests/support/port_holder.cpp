#include "support/port_holder.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxypool/base/assert.hpp"

namespace proxypool::support {

PortHolder::PortHolder() {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  PP_ASSERT(fd_ >= 0);
  const int on = 1;
  PP_ASSERT(::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  PP_ASSERT(::bind(fd_, generic, size) == 0);
  PP_ASSERT(::getsockname(fd_, generic, &size) == 0);
  port_ = ntohs(address.sin_port);
}

PortHolder::~PortHolder() {
  ::close(fd_);
}

}  // namespace proxypool::support
