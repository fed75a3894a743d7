// RestServer: one listener with its router, on a loop and a thread of its own.
//
// The loop reads requests and writes answers; the routes run on a bounded pool, since they may wait
// for stores. A full pool answers 503 at once.
//
// Thread rule: start, stop_intake and stop: the owner's thread.
// Limits:      four routes at once and 256 waiting.
#pragma once

#include <memory>
#include <string>

#include "adapters/http/router.hpp"
#include "net/socket.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::http {

class RestServer {
 public:
  virtual ~RestServer() = default;
  // Opens the listener and serves. The error names the remedy for a port that is taken.
  [[nodiscard]] virtual Status start() = 0;
  // The one that was taken for port 0. REQUIRES: started.
  [[nodiscard]] virtual std::uint16_t port() const noexcept = 0;
  // Accepts nothing new and answers what is in work; false when the deadline passes first.
  virtual bool drain(Deadline deadline) = 0;
  virtual void stop() = 0;
};

std::unique_ptr<RestServer> make_rest_server(std::string name, net::Endpoint listen,
                                             std::unique_ptr<Router> router);

}  // namespace proxypool::http
