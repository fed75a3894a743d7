// The worker's and the checker's end of the control plane over gRPC.
//
// The channel connects by itself and again after a loss; calls fail fast with Unavailable while
// there is no connection, so that the session's own backoff decides.
//
// Thread rule: any thread; a stream as ports::Stream says. Its end cancels the call and waits until
//              gRPC has let go of it, which takes no network.
// Limits:      `message_bytes_max` a received message (Exhausted); a stream holds one received
//              message that was not asked for yet, and about 64 KiB in the transport.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::rpc {

struct ClientOptions {
  std::size_t message_bytes_max = std::size_t{4} << 20U;
  nanoseconds keepalive = seconds(20);
  nanoseconds call_time_max = seconds(30);  // where the caller's deadline is later
  // Between attempts to connect, which are made during calls alone: the caller's backoff is what
  // spares the controller (CP-8).
  milliseconds reconnect_pause{200};
  milliseconds reconnect_wait{500};  // how long a call waits for an attempt; above the pause
};

// InvalidArgument: the address is not HOST:PORT of this machine. Does not connect yet. The clock
// outlives what is made.
Result<std::unique_ptr<ports::WorkerControl>> make_worker_control(const std::string& address,
                                                                  const ClientOptions& options,
                                                                  const Clock& clock);
Result<std::unique_ptr<ports::CheckerControl>> make_checker_control(const std::string& address,
                                                                    const ClientOptions& options,
                                                                    const Clock& clock);

}  // namespace proxypool::rpc
