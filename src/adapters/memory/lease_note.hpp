// LeaseNote remembers, over restarts, which instances may still hold leases (C18).
//
// It is written ahead: the note says "until" a lease length later than the leases themselves, so
// that renewals cost a write once a lease, not once a renewal. After a restart every instance in
// it must have come back, or its time must have passed, before the generation is exclusive.
//
// Thread rule: one thread at a time (the owner holds the pool's lock).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/durable_notes.hpp"

namespace proxypool::memory {

class LeaseNote {
 public:
  // `notes` may be null: nothing survives.
  static Result<LeaseNote> load(ports::DurableNotes* notes);

  // Leases of this instance will end at `until` at the earliest; saved before it answers, if what
  // was saved does not cover it yet.
  Status cover(const WorkerId& worker, const InstanceId& instance, StoreTime until,
               milliseconds lease);
  // Instances whose leases ended before `moment` need not be remembered: gateways that came with a
  // name of their own each time would otherwise pile up. The next save leaves them out.
  void forget_ended(StoreTime moment);
  // The instance holds nothing any more.
  Status forget(const WorkerId& worker, const InstanceId& instance);

  // What an earlier process left: this instance is back and has said what it holds.
  void came_back(const WorkerId& worker, const InstanceId& instance);
  // When the last lease of an instance that has not come back ends; nothing when all are back.
  [[nodiscard]] std::optional<StoreTime> missing_until() const;

 private:
  using Key = std::pair<WorkerId, InstanceId>;

  explicit LeaseNote(ports::DurableNotes* notes) : notes_(notes) {}
  Status save() const;

  ports::DurableNotes* notes_;
  std::map<Key, StoreTime> covered_;
  std::map<Key, StoreTime> missing_;
};

}  // namespace proxypool::memory
