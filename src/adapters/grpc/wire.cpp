#include "adapters/grpc/wire.hpp"

#include <algorithm>
#include <limits>

#include "proto/controlplane/v1/controlplane.pb.h"

namespace proxypool::rpc {

static_assert(to_wire(domain::Scheme::Http) == v1::SCHEME_HTTP);
static_assert(to_wire(domain::Scheme::Https) == v1::SCHEME_HTTPS);
static_assert(to_wire(domain::Scheme::Socks5) == v1::SCHEME_SOCKS5);
static_assert(to_wire(domain::RequestKind::Http) == v1::REQUEST_KIND_HTTP);
static_assert(to_wire(domain::RequestKind::Connect) == v1::REQUEST_KIND_CONNECT);
static_assert(to_wire(domain::Strategy::Sequential) == v1::STRATEGY_SEQUENTIAL);
static_assert(to_wire(domain::Strategy::RoundRobin) == v1::STRATEGY_ROUND_ROBIN);
static_assert(to_wire(domain::Strategy::WeightedRoundRobin) == v1::STRATEGY_WEIGHTED_ROUND_ROBIN);
static_assert(to_wire(domain::Strategy::Random) == v1::STRATEGY_RANDOM);
static_assert(to_wire(domain::Strategy::LeastConn) == v1::STRATEGY_LEAST_CONN);
static_assert(to_wire(domain::Strategy::First) == v1::STRATEGY_FIRST);
static_assert(to_wire(domain::Balancer::LeastConn) == v1::BALANCER_LEAST_CONN);
static_assert(to_wire(domain::Balancer::RoundRobin) == v1::BALANCER_ROUND_ROBIN);
static_assert(to_wire(domain::Balancer::Random) == v1::BALANCER_RANDOM);
static_assert(to_wire(domain::Balancer::TwoRandomChoices) == v1::BALANCER_TWO_RANDOM_CHOICES);
static_assert(to_wire(domain::Balancer::LeastTime) == v1::BALANCER_LEAST_TIME);
static_assert(to_wire(domain::Balancer::ConsistentHash) == v1::BALANCER_CONSISTENT_HASH);
static_assert(to_wire(domain::OnUnavailable::Reject) == v1::ON_UNAVAILABLE_REJECT);
static_assert(to_wire(domain::OnUnavailable::Wait) == v1::ON_UNAVAILABLE_WAIT);
static_assert(to_wire(domain::OnUnavailable::Direct) == v1::ON_UNAVAILABLE_DIRECT);
static_assert(to_wire(domain::UseSuspect::WhenEmpty) == v1::USE_SUSPECT_WHEN_EMPTY);
static_assert(to_wire(domain::UseSuspect::Never) == v1::USE_SUSPECT_NEVER);
static_assert(to_wire(ports::AckStatus::Applied) == v1::ACK_STATUS_APPLIED);
static_assert(to_wire(ports::AckStatus::Rejected) == v1::ACK_STATUS_REJECTED);
static_assert(to_wire(ports::AckStatus::Busy) == v1::ACK_STATUS_BUSY);
static_assert(to_wire(domain::Phase::None) == v1::PHASE_NONE);
static_assert(to_wire(domain::Phase::Dial) == v1::PHASE_DIAL);
static_assert(to_wire(domain::Phase::ProxyHandshake) == v1::PHASE_PROXY_HANDSHAKE);
static_assert(to_wire(domain::Phase::ResponseHeaders) == v1::PHASE_RESPONSE_HEADERS);
static_assert(to_wire(domain::Phase::Tunnel) == v1::PHASE_TUNNEL);
static_assert(to_wire(domain::FailureKind::None) == v1::FAILURE_KIND_NONE);
static_assert(to_wire(domain::FailureKind::Refused) == v1::FAILURE_KIND_REFUSED);
static_assert(to_wire(domain::FailureKind::Timeout) == v1::FAILURE_KIND_TIMEOUT);
static_assert(to_wire(domain::FailureKind::Reset) == v1::FAILURE_KIND_RESET);
static_assert(to_wire(domain::FailureKind::AuthRejected) == v1::FAILURE_KIND_AUTH_REJECTED);
static_assert(to_wire(domain::FailureKind::Protocol) == v1::FAILURE_KIND_PROTOCOL);
static_assert(to_wire(domain::FailureKind::Unreachable) == v1::FAILURE_KIND_UNREACHABLE);
static_assert(to_wire(domain::FailureKind::Other) == v1::FAILURE_KIND_OTHER);
static_assert(to_wire(domain::CheckLevel::Basic) == v1::CHECK_LEVEL_BASIC);
static_assert(to_wire(domain::CheckLevel::Egress) == v1::CHECK_LEVEL_EGRESS);
static_assert(to_wire(domain::CheckLevel::Target) == v1::CHECK_LEVEL_TARGET);

std::uint32_t to_wire_ms(milliseconds duration) noexcept {
  constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(duration.count(), 0, kMax));
}

Result<std::uint16_t> to_port(std::uint32_t value) {
  if (value == 0 || value > 65'535) return corrupt("port " + std::to_string(value));
  return static_cast<std::uint16_t>(value);
}

Status check_name(const std::string& value, std::string_view what) {
  if (value.empty()) return refused(std::string(what) + " is missing");
  if (value.size() > kNameBytesMax) {
    return refused(std::string(what) + " is longer than " + std::to_string(kNameBytesMax) +
                   " bytes");
  }
  return ok();
}

Status check_count(std::size_t count, std::size_t count_max, std::string_view what) {
  if (count <= count_max) return ok();
  return refused(std::to_string(count) + " " + std::string(what) + ", at most " +
                 std::to_string(count_max));
}

Status first_error(std::initializer_list<Status> checks) {
  for (const Status& check : checks) {
    if (!check) return check;
  }
  return ok();
}

void encode(const domain::SnapshotVersion& version, v1::SnapshotVersion& wire) {
  wire.set_generation(version.generation);
  wire.set_counter(version.counter);
}

domain::SnapshotVersion decode(const v1::SnapshotVersion& wire) {
  return {wire.generation(), wire.counter()};
}

std::string to_wire_digest(const domain::SnapshotDigest& digest) {
  return {digest.begin(), digest.end()};
}

Result<domain::SnapshotDigest> from_wire_digest(const std::string& bytes) {
  domain::SnapshotDigest digest{};
  if (bytes.size() != digest.size()) {
    return corrupt("a digest of " + std::to_string(bytes.size()) + " bytes");
  }
  std::transform(bytes.begin(), bytes.end(), digest.begin(),
                 [](char c) { return static_cast<std::uint8_t>(c); });
  return digest;
}

}  // namespace proxypool::rpc
