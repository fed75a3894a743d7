// The ownership lease: by which one proxy belongs to one session of one worker.
//
// The controller counts from processing a report and waits lease + margin; the worker counts from
// *sending* it and stops a margin early (CP-9). Whatever the network does in between, the worker's
// end comes first. Tunnels may outlive the lease by the orphan grace (C16): they take slots from
// the next owner that long, and an extraction waits for them.
//
// Thread rule: pure functions and plain values.
// Invariant:   nobody else gets a proxy while its owner may still start work on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::domain {

struct LeaseTimes {
  milliseconds margin{2'000};         // before its end the owner stops; after it others begin (C9)
  milliseconds orphan_grace{30'000};  // transport.orphanGrace
};

enum class Handover : std::uint8_t { ToWorker, ToExtraction };

// When the end of a lease frees its proxy, whatever its owner says or does not say (C16, C17).
constexpr StoreTime free_at(StoreTime lease_until, Handover to, const LeaseTimes& times) noexcept {
  const StoreTime end = lease_until + times.margin;
  return to == Handover::ToExtraction ? end + times.orphan_grace : end;
}

// What a lost owner may still run on a proxy that its lease has freed for another worker (C16).
struct Orphans {
  WorkerId worker;
  InstanceId instance;
  std::uint32_t slots = 0;  // as last reported; all that it may have used when it never reported
  StoreTime until;          // free_at(…, ToExtraction)
};

// A process works on a proxy without a lease that it still counts on.
struct RunningOn {
  ProxyId id;
  std::uint32_t slots = 0;  // active and reserved
  friend bool operator==(const RunningOn&, const RunningOn&) = default;
};

// From when on a new generation of the store extracts, and assigns a proxy to others than the
// worker that reports holding it (C18). `leases_end`: of the last lease that an earlier generation
// gave and whose holder has not come back.
constexpr StoreTime settled_at(StoreTime started, std::optional<StoreTime> leases_end,
                               const LeaseTimes& times) noexcept {
  if (!leases_end) return started;
  return std::max(started, free_at(*leases_end, Handover::ToExtraction, times));
}

// The worker's own reading of the leases of its view, on its steady clock.
struct WorkerLease {
  TimePoint work_until;     // no new work from then on
  TimePoint tunnels_until;  // what is open ends here
};

// `report_sent` is when the report that the grant answers was sent.
constexpr WorkerLease worker_lease(TimePoint report_sent, milliseconds valid_for,
                                   const LeaseTimes& times) noexcept {
  return {report_sent + std::max(valid_for - times.margin, milliseconds{0}),
          report_sent + valid_for + times.orphan_grace};
}

}  // namespace proxypool::domain
