// A free loopback port that stays the test's own: no other program is given it, while those of the
// test listen there, one after another.
//
// The socket is bound with SO_REUSEADDR and never listens. The kernel then gives the port to nobody
// who asks for any port, and lets whoever names it (with SO_REUSEADDR, as our programs do) listen.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>

namespace proxypool::support {

class PortHolder {
 public:
  PortHolder();
  PortHolder(const PortHolder&) = delete;
  PortHolder& operator=(const PortHolder&) = delete;
  ~PortHolder();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace proxypool::support
