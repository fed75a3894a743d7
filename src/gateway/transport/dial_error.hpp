// What the errno of a connection says.
//
// Thread rule: pure functions.
#pragma once

#include <cerrno>

#include "proxypool/domain/health/observation.hpp"

namespace proxypool::gateway {

[[nodiscard]] inline domain::FailureKind kind_of(int error) noexcept {
  using domain::FailureKind;
  switch (error) {
    case ECONNREFUSED:
      return FailureKind::Refused;
    case ECONNRESET:
    case EPIPE:
      return FailureKind::Reset;
    case ETIMEDOUT:
      return FailureKind::Timeout;
    case EHOSTUNREACH:
    case ENETUNREACH:
      return FailureKind::Unreachable;
    default:
      return FailureKind::Other;
  }
}

// This machine is short of something; the other end has no part in it.
[[nodiscard]] inline bool ours(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL;
}

}  // namespace proxypool::gateway
