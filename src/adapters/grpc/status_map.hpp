// Errors of the ports to gRPC's status codes and back.
//
// Thread rule: pure functions.
#pragma once

#include "proxypool/base/result.hpp"

namespace grpc {
class Status;
}

namespace proxypool::rpc {

// The message travels; it is for people and holds no secret. At most kStatusBytesMax of it.
inline constexpr std::size_t kStatusBytesMax = 1024;
grpc::Status to_status(const Error& error);

// REQUIRES: the status is not OK.
Error from_status(const grpc::Status& status);

}  // namespace proxypool::rpc
