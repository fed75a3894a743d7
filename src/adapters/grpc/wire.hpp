// The generated messages by name, and the small conversions that every message shares.
//
// No header of this folder includes protobuf: the generated classes are only declared here, and
// defined where a .cpp includes them. Each enumeration travels as its domain value plus one, so
// that zero stays "unspecified"; wire.cpp asserts it for every enumerator.
//
// Errors: Corrupt, what no correct sender writes; InvalidArgument, what a newer or a misbehaving
//         peer may write (unknown enumeration values, exceeded limits, missing names).
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::controlplane::v1 {
class AcknowledgeSnapshotRequest;
class CheckTaskBatch;
class Client;
class OutcomeBatch;
class Policy;
class ProxyCredential;
class RegisterCheckerRequest;
class RegisterCheckerResponse;
class RegisterWorkerRequest;
class RegisterWorkerResponse;
class ReportObservationsRequest;
class ReportRuntimeRequest;
class ReportRuntimeResponse;
class Routing;
class SnapshotEvent;
class SnapshotVersion;
class WatchSnapshotsRequest;
class WatchTasksRequest;
}  // namespace proxypool::controlplane::v1

namespace proxypool::rpc {

namespace v1 = proxypool::controlplane::v1;

inline constexpr std::size_t kNameBytesMax = 256;  // identifiers of peers and sessions
inline constexpr std::size_t kTaskBatchMax = 512;  // tasks and observations in one message
inline constexpr std::size_t kRejectedMax = 1000;  // quarantined entries in one acknowledgement

inline Error corrupt(std::string why) {
  return {ErrorCode::Corrupt, Origin::Internal, std::move(why)};
}
inline Error refused(std::string why) {
  return {ErrorCode::InvalidArgument, Origin::Client, std::move(why)};
}

template <class Enum>
struct WireEnum;
template <>
struct WireEnum<domain::Scheme> {
  static constexpr std::string_view name = "scheme";
  static constexpr auto last = domain::Scheme::Socks5;
};
template <>
struct WireEnum<domain::RequestKind> {
  static constexpr std::string_view name = "request kind";
  static constexpr auto last = domain::RequestKind::Connect;
};
template <>
struct WireEnum<domain::Strategy> {
  static constexpr std::string_view name = "strategy";
  static constexpr auto last = domain::Strategy::First;
};
template <>
struct WireEnum<domain::Balancer> {
  static constexpr std::string_view name = "balancer";
  static constexpr auto last = domain::Balancer::ConsistentHash;
};
template <>
struct WireEnum<domain::OnUnavailable> {
  static constexpr std::string_view name = "on_unavailable";
  static constexpr auto last = domain::OnUnavailable::Direct;
};
template <>
struct WireEnum<domain::UseSuspect> {
  static constexpr std::string_view name = "use_suspect";
  static constexpr auto last = domain::UseSuspect::Never;
};
template <>
struct WireEnum<ports::AckStatus> {
  static constexpr std::string_view name = "acknowledgement status";
  static constexpr auto last = ports::AckStatus::Busy;
};
template <>
struct WireEnum<domain::Phase> {
  static constexpr std::string_view name = "phase";
  static constexpr auto last = domain::Phase::Tunnel;
};
template <>
struct WireEnum<domain::FailureKind> {
  static constexpr std::string_view name = "failure kind";
  static constexpr auto last = domain::FailureKind::Other;
};
template <>
struct WireEnum<domain::CheckLevel> {
  static constexpr std::string_view name = "check level";
  static constexpr auto last = domain::CheckLevel::Target;
};

template <class Enum>
constexpr int to_wire(Enum value) noexcept {
  return static_cast<int>(value) + 1;
}
template <class Enum>
Result<Enum> from_wire(int value) {
  if (value < 1 || value > to_wire(WireEnum<Enum>::last)) {
    return refused("unknown " + std::string(WireEnum<Enum>::name) + " " + std::to_string(value));
  }
  return static_cast<Enum>(value - 1);
}

// Clamped to what the field holds (49 days).
std::uint32_t to_wire_ms(milliseconds duration) noexcept;

constexpr std::uint64_t to_wire_time(StoreTime time) noexcept {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}
constexpr StoreTime from_wire_time(std::uint64_t ms) noexcept {
  return StoreTime(milliseconds(static_cast<std::int64_t>(ms)));
}

Result<std::uint16_t> to_port(std::uint32_t value);
// Not empty, at most kNameBytesMax bytes; `what` names the field in the error.
Status check_name(const std::string& value, std::string_view what);
Status check_count(std::size_t count, std::size_t count_max, std::string_view what);
// The first error, or ok.
Status first_error(std::initializer_list<Status> checks);

void encode(const domain::SnapshotVersion& version, v1::SnapshotVersion& wire);
domain::SnapshotVersion decode(const v1::SnapshotVersion& wire);
std::string to_wire_digest(const domain::SnapshotDigest& digest);
Result<domain::SnapshotDigest> from_wire_digest(const std::string& bytes);

}  // namespace proxypool::rpc
