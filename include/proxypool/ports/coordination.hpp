// Coordination: what several controllers agree on: leaders, fetch permits, epochs, counters.
//
// Everything fails closed: an unknown or damaged record is "not leader", "no permit" (CT-11). The
// permit arithmetic is pure: domain/upstream/permits.hpp.
//
// Adapters: memory, Redis. Both pass tests/contract/coordination_contract.hpp.
//
// Thread rule: any thread. Methods block until done or until the deadline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::ports {

// A term of leadership; `fence` grows by every term within a generation.
struct LeaderTerm {
  std::uint64_t generation = 0;
  std::uint64_t fence = 0;
  StoreTime until;
};

struct PermitRequest {
  UpstreamId upstream;
  std::string leader;  // the name that lead() was called with
  LeaderTerm term;     // a stale term gets nothing
  milliseconds request_interval{0};
  std::uint32_t in_flight_max = 1;
  std::uint64_t total_max = 0;    // 0: no limit; counts from the last reset (C11)
  std::uint32_t expected = 0;     // reserved against total_max until settled
  milliseconds lifetime{60'000};  // unsettled after it: `expected` counts as spent
};

struct Permit {
  std::uint64_t id = 0;
  std::uint32_t expected = 0;
};

enum class PermitRefusal : std::uint8_t { NotLeader, Interval, InFlight, TotalSpent };

struct PermitAnswer {
  std::optional<Permit> permit;
  PermitRefusal refusal = PermitRefusal::NotLeader;  // meaningful without a permit
  milliseconds retry_after{0};
};

struct FetchLedger {
  std::uint64_t total_spent = 0;     // settled
  std::uint64_t total_reserved = 0;  // pending
  std::uint32_t in_flight = 0;
};

class Coordination {
 public:
  virtual ~Coordination() = default;

  // Becomes or stays leader of `name`; nothing when another holder's term still runs.
  virtual Result<std::optional<LeaderTerm>> lead(const std::string& name, const InstanceId& holder,
                                                 milliseconds lease, Deadline deadline) = 0;
  virtual Status resign(const std::string& name, const InstanceId& holder, Deadline deadline) = 0;

  virtual Result<PermitAnswer> acquire_permit(const PermitRequest& request, Deadline deadline) = 0;
  // Settles once; a repeat changes nothing. No `actual`: the outcome is unknown, `expected` counts.
  virtual Status settle_permit(const UpstreamId& upstream, const Permit& permit,
                               std::optional<std::uint32_t> actual, Deadline deadline) = 0;
  virtual Result<FetchLedger> ledger(const UpstreamId& upstream, Deadline deadline) = 0;
  // Raises the spent total to at least `total` (the durable copy is larger, C11).
  virtual Status raise_total(const UpstreamId& upstream, std::uint64_t total,
                             Deadline deadline) = 0;
  virtual Status reset_total(const UpstreamId& upstream, Deadline deadline) = 0;

  // Consecutive empty answers of an upstream, shared by all routings (CT-40).
  virtual Result<std::uint32_t> count_empty(const UpstreamId& upstream, Deadline deadline) = 0;
  virtual Status clear_empty(const UpstreamId& upstream, Deadline deadline) = 0;

  // A fresh ownership epoch: larger than every earlier one of this generation (C12).
  virtual Result<Epoch> next_epoch(Deadline deadline) = 0;
};

}  // namespace proxypool::ports
