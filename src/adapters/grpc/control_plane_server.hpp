// The controller's gRPC server: WorkerService and CheckerService behind the control-plane contract.
//
// Handlers decode, hand over to the executor, and encode the answer; no service is called on a
// thread of gRPC.
//
// Thread rule: any thread.
// Limits:      `message_bytes_max` a received message (RESOURCE_EXHAUSTED), and
//              `concurrent_streams_max` calls on one connection (the rest waits at the client); a
//              refusing executor is UNAVAILABLE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "adapters/grpc/guarded_job.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::rpc {

struct ServerOptions {
  std::string listen = "127.0.0.1:0";  // port 0: any free one
  std::size_t message_bytes_max = std::size_t{4} << 20U;
  std::uint32_t concurrent_streams_max = 1024;
  nanoseconds keepalive = seconds(20);
  nanoseconds call_time_max = seconds(30);  // for callers that name no deadline, or a later one
  Executor executor;
};

class ControlPlaneServer {
 public:
  virtual ~ControlPlaneServer() = default;  // stops, without waiting for calls
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  // Ends the streams with Unavailable, lets running calls end until the deadline, then cancels
  // them. May be called twice.
  virtual void stop(Deadline deadline) = 0;
};

// Listens and serves from its return on. The services and the clock outlive the server.
// Unavailable: the port is taken. InvalidArgument: not a loopback address.
Result<std::unique_ptr<ControlPlaneServer>> make_control_plane_server(
    ServerOptions options, ports::WorkerService& workers, ports::CheckerService& checkers,
    const Clock& clock);

}  // namespace proxypool::rpc
