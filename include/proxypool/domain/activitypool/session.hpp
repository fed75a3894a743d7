// A worker's session: which snapshots were issued and applied, which reports count (seed 002 §2).
//
// Registering makes a new session and forgets the old one's references, so that a late stream or
// report of the old process can move nothing. Within a session sequences only grow; the same
// sequence again is a replay if the content is the same, and a conflict otherwise. A report counts
// against the version that was last acknowledged in this session, never against a version that the
// worker merely claims (C12).
//
// Thread rule: one thread at a time (owner: the worker registry).
// Invariant:   acknowledged() was issued in this session; a refused version is never issued again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"

namespace proxypool::domain {

using ContentDigest = std::array<std::uint8_t, 32>;

enum class SequenceVerdict : std::uint8_t { Accept, Replay, Conflict, Stale };

// The newest accepted sequence and what it carried; for runtime reports and for outcome batches.
class SequenceFence {
 public:
  [[nodiscard]] SequenceVerdict judge(std::uint64_t sequence,
                                      const ContentDigest& digest) const noexcept {
    if (sequence > last_) return SequenceVerdict::Accept;
    if (sequence == 0 || sequence < last_) return SequenceVerdict::Stale;
    return digest == digest_ ? SequenceVerdict::Replay : SequenceVerdict::Conflict;
  }
  // REQUIRES: judge(sequence, digest) == Accept.
  void accept(std::uint64_t sequence, const ContentDigest& digest) noexcept {
    last_ = sequence;
    digest_ = digest;
  }
  [[nodiscard]] std::uint64_t last() const noexcept { return last_; }

 private:
  std::uint64_t last_ = 0;  // sequences begin at 1
  ContentDigest digest_{};
};

// Names one issued version completely.
struct SnapshotRef {
  SnapshotVersion version;
  Epoch epoch;
  SnapshotDigest digest{};
  friend bool operator==(const SnapshotRef&, const SnapshotRef&) = default;
};

enum class AckStatus : std::uint8_t { Applied, Rejected, Busy };

enum class AckVerdict : std::uint8_t {
  Accepted,   // now the base of reports and deltas
  Replayed,   // was accepted or parked before
  Parked,     // refused by the worker; the last accepted version stays in force (C13)
  Deferred,   // the worker is busy: this version or a newer one may be issued later
  NotIssued,  // names nothing that this session was sent: the acknowledgement is refused
};

struct ReportHeader {
  std::uint64_t sequence = 0;
  ContentDigest digest{};  // of the whole content
  SnapshotVersion version;
  Epoch epoch;
};

enum class ReportVerdict : std::uint8_t {
  Accept,
  Replay,    // answered as before, changes nothing
  Conflict,  // the sequence was used with another content
  Stale,     // an older sequence
  WrongBase  // not the version and epoch that this session acknowledged last
};

struct SessionTimes {
  milliseconds session_ttl{60'000};  // the lease
  milliseconds report_ttl{10'000};
};

class WorkerSession {
 public:
  WorkerSession(WorkerId worker, InstanceId instance, SessionId session, StoreTime now,
                const SessionTimes& times)
      : worker_(std::move(worker)),
        instance_(std::move(instance)),
        session_(std::move(session)),
        expires_at_(now + times.session_ttl) {}

  // Marks a version as sent. Refused while another push is outstanding (CP-5), when the worker has
  // refused this version before, or when it holds it already.
  [[nodiscard]] bool issue(const SnapshotRef& ref) {
    if (outstanding_ || parked_ == ref || acknowledged_ == ref) return false;
    outstanding_ = ref;
    return true;
  }

  // What is outstanding was lost with its stream; the same or another version may be issued.
  void withdraw() noexcept { outstanding_.reset(); }

  AckVerdict acknowledge(const SnapshotRef& ref, AckStatus status) {
    if (outstanding_ != ref) {
      const bool again = (status == AckStatus::Applied && acknowledged_ == ref) ||
                         (status == AckStatus::Rejected && parked_ == ref);
      return again ? AckVerdict::Replayed : AckVerdict::NotIssued;
    }
    outstanding_.reset();
    if (status == AckStatus::Busy) return AckVerdict::Deferred;
    if (status == AckStatus::Rejected) {
      parked_ = ref;
      return AckVerdict::Parked;
    }
    acknowledged_ = ref;
    return AckVerdict::Accepted;
  }

  // Accepting renews session and report validity.
  ReportVerdict report(const ReportHeader& header, StoreTime now, const SessionTimes& times) {
    switch (reports_.judge(header.sequence, header.digest)) {
      case SequenceVerdict::Replay:
        return ReportVerdict::Replay;
      case SequenceVerdict::Conflict:
        return ReportVerdict::Conflict;
      case SequenceVerdict::Stale:
        return ReportVerdict::Stale;
      case SequenceVerdict::Accept:
        break;
    }
    // Before its first acknowledgement a worker names no version.
    const SnapshotRef base = acknowledged_.value_or(SnapshotRef{});
    if (base.version != header.version || base.epoch != header.epoch) {
      return ReportVerdict::WrongBase;
    }
    reports_.accept(header.sequence, header.digest);
    expires_at_ = now + times.session_ttl;
    report_valid_until_ = now + times.report_ttl;
    return ReportVerdict::Accept;
  }

  // Outcome batches have a fence of their own; the answer to the worker is outcomes().last().
  [[nodiscard]] SequenceFence& outcomes() noexcept { return outcomes_; }

  [[nodiscard]] const WorkerId& worker() const noexcept { return worker_; }
  [[nodiscard]] const InstanceId& instance() const noexcept { return instance_; }
  [[nodiscard]] const SessionId& session() const noexcept { return session_; }
  [[nodiscard]] const std::optional<SnapshotRef>& outstanding() const noexcept {
    return outstanding_;
  }
  [[nodiscard]] const std::optional<SnapshotRef>& acknowledged() const noexcept {
    return acknowledged_;
  }
  [[nodiscard]] const std::optional<SnapshotRef>& parked() const noexcept { return parked_; }
  [[nodiscard]] std::uint64_t last_report() const noexcept { return reports_.last(); }
  [[nodiscard]] bool expired(StoreTime now) const noexcept { return now >= expires_at_; }
  [[nodiscard]] StoreTime expires_at() const noexcept { return expires_at_; }
  // Until then the counts of the last report are known; no report yet: they never were.
  [[nodiscard]] const std::optional<StoreTime>& report_valid_until() const noexcept {
    return report_valid_until_;
  }

 private:
  WorkerId worker_;
  InstanceId instance_;
  SessionId session_;
  std::optional<SnapshotRef> outstanding_;
  std::optional<SnapshotRef> acknowledged_;
  std::optional<SnapshotRef> parked_;
  SequenceFence reports_;
  SequenceFence outcomes_;
  StoreTime expires_at_;
  std::optional<StoreTime> report_valid_until_;
};

}  // namespace proxypool::domain
