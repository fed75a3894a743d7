#include "adapters/grpc/status_map.hpp"

#include <grpcpp/support/status.h>

namespace proxypool::rpc {
namespace {

grpc::StatusCode to_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::NotFound:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::Conflict:
      return grpc::StatusCode::ABORTED;
    case ErrorCode::Exhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::Unavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::DeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::Unauthenticated:
      return grpc::StatusCode::UNAUTHENTICATED;
    case ErrorCode::Forbidden:
      return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorCode::Stale:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::Corrupt:
      return grpc::StatusCode::DATA_LOSS;
    case ErrorCode::Internal:
      break;
  }
  return grpc::StatusCode::INTERNAL;
}

ErrorCode from_code(grpc::StatusCode code) noexcept {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::InvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return ErrorCode::NotFound;
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::ALREADY_EXISTS:
      return ErrorCode::Conflict;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return ErrorCode::Exhausted;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return ErrorCode::Unavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::DeadlineExceeded;
    case grpc::StatusCode::UNAUTHENTICATED:
      return ErrorCode::Unauthenticated;
    case grpc::StatusCode::PERMISSION_DENIED:
      return ErrorCode::Forbidden;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return ErrorCode::Stale;
    case grpc::StatusCode::DATA_LOSS:
      return ErrorCode::Corrupt;
    default:
      return ErrorCode::Internal;
  }
}

}  // namespace

grpc::Status to_status(const Error& error) {
  return {to_code(error.code), error.message.substr(0, kStatusBytesMax)};
}

Error from_status(const grpc::Status& status) {
  const ErrorCode code = from_code(status.error_code());
  const bool retryable = code == ErrorCode::Unavailable || code == ErrorCode::DeadlineExceeded;
  return {code, Origin::Internal, status.error_message(), retryable};
}

}  // namespace proxypool::rpc
