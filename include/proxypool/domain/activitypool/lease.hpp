// The ownership lease: by which one proxy belongs to one session of one worker.
//
// The controller counts from processing a report and waits lease + margin; the worker counts from
// *sending* it and stops a margin early (CP-9). Whatever the network does in between, the worker's
// end comes first. Tunnels may outlive the lease by the orphan grace (C16), so an extraction waits
// that much longer than a hand-over to another worker.
//
// Thread rule: pure functions.
// Invariant:   nobody else gets a proxy while its owner may still start work on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/activitypool/inventory.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

struct LeaseTimes {
  milliseconds lease{60'000};  // controlPlane.lease (C9)
  milliseconds margin{2'000};
  milliseconds orphan_grace{30'000};  // transport.orphanGrace
};

struct OwnershipLease {
  WorkerId worker;
  SessionId session;  // a restarted worker is another session (C17)
  Epoch epoch;        // of the grant
  StoreTime until;
  std::optional<Epoch> revoked = std::nullopt;  // epoch of the first version without the proxy
};

inline OwnershipLease grant_lease(WorkerId worker, SessionId session, Epoch epoch, StoreTime now,
                                  const LeaseTimes& times) {
  return {std::move(worker), std::move(session), epoch, now + times.lease, std::nullopt};
}

// Whether a report of `session` renews the lease: never for another session, after a revocation, or
// for a proxy that the newest version no longer names (C13).
inline bool renewable(const OwnershipLease& lease, const SessionId& session,
                      bool in_newest_version) noexcept {
  return !lease.revoked && in_newest_version && lease.session == session;
}

// What an owner's session last said about one of its proxies.
struct OwnerWord {
  Epoch applied;  // of the version that every serving thread used when it spoke
  InFlight in_flight;
  bool final = false;  // the session ended with this report
};

struct ReportedCount {
  InFlight in_flight;
  Epoch lease_epoch;
};

// A worker's newest accepted report, as far as one lease is concerned.
struct ReportView {
  SessionId session;
  Epoch applied;
  StoreTime valid_until;
  std::optional<ReportedCount> entry =
      std::nullopt;  // reports are sparse: a proxy without work has none
};

// The owner's counts, or nothing where they are unknown: another session's report, a late one, one
// from before the worker learned of the lease, or a count for another lease (C12).
inline std::optional<InFlight> known_in_flight(const OwnershipLease& lease,
                                               const ReportView& report, StoreTime now) noexcept {
  if (report.session != lease.session || now >= report.valid_until) return std::nullopt;
  if (report.applied < lease.epoch) return std::nullopt;
  if (!report.entry) return InFlight{};
  if (report.entry->lease_epoch != lease.epoch) return std::nullopt;
  return report.entry->in_flight;
}

enum class Handover : std::uint8_t { ToWorker, ToExtraction };

// When the lease frees the proxy by time alone (C16, C17).
constexpr StoreTime free_at(const OwnershipLease& lease, Handover to,
                            const LeaseTimes& times) noexcept {
  const StoreTime end = lease.until + times.margin;
  return to == Handover::ToExtraction ? end + times.orphan_grace : end;
}

// Whether the proxy may go to somebody else. `word` is of the lease's own session. Zero counts free
// it early only when the owner can no longer start work: its session ended, or it uses a version
// without the proxy.
constexpr bool may_hand_over(const OwnershipLease& lease, const std::optional<OwnerWord>& word,
                             Handover to, StoreTime now, const LeaseTimes& times) noexcept {
  if (now >= free_at(lease, to, times)) return true;
  if (!word || word->in_flight.total() != 0) return false;
  return word->final || (lease.revoked && word->applied >= *lease.revoked);
}

// Slots of a lost owner's tunnels that still count after a hand-over to another worker.
constexpr std::uint64_t still_active(const OwnershipLease& lease, const InFlight& last_reported,
                                     StoreTime now, const LeaseTimes& times) noexcept {
  return now < free_at(lease, Handover::ToExtraction, times) ? last_reported.total() : 0;
}

// What is known of the leases that an earlier generation of the store gave (C18).
struct Predecessor {
  bool existed = true;
  std::optional<StoreTime> leases_end = std::nullopt;  // the last of them; none: unknown
};

// Until then a new generation extracts nothing and assigns a proxy only to the worker that reports
// holding it.
constexpr StoreTime settled_at(StoreTime started, const Predecessor& predecessor,
                               const LeaseTimes& times) noexcept {
  if (!predecessor.existed) return started;
  const StoreTime leases_end = predecessor.leases_end.value_or(started + times.lease);
  return std::max(started, leases_end + times.orphan_grace + times.margin);
}

// The worker's own reading of the lease of its whole view, on its steady clock.
class WorkerLease {
 public:
  WorkerLease() = default;  // never granted
  // `report_sent` is when the report that the grant answers was sent.
  constexpr WorkerLease(TimePoint report_sent, milliseconds valid_for) noexcept
      : end_(report_sent + valid_for) {}

  // An Extend that answers an older report never shortens a lease.
  constexpr void extend(const WorkerLease& newer) noexcept { end_ = std::max(end_, newer.end_); }
  [[nodiscard]] constexpr bool may_start_work(TimePoint now,
                                              const LeaseTimes& times) const noexcept {
    return end_ != TimePoint{} && now < end_ - times.margin;
  }
  // When the last tunnel must be closed.
  [[nodiscard]] constexpr TimePoint tunnels_end(const LeaseTimes& times) const noexcept {
    return end_ + times.orphan_grace;
  }
  [[nodiscard]] constexpr TimePoint end() const noexcept { return end_; }

 private:
  TimePoint end_{};
};

}  // namespace proxypool::domain
