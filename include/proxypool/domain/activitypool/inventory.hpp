// The inventory of one upstream: what is managed, and how many slots are free (CT-23).
//
// A slot is one concurrent request through one proxy. Slots are counted from what is known, never
// from the number of proxies times a constant: an owner's counts that are missing, late or
// inconsistent are no free slots (seed 000 §5). Refilling needs the opposite reading of the same
// doubt, so that a control-plane break starts no buying spree (C14); hence unknown slots are
// counted apart.
//
// Thread rule: one thread at a time; a plain value.
// Invariant:   owned + unowned + revoking == managed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "proxypool/base/time.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

// What one worker carries on one proxy, as one consistent pair.
struct InFlight {
  std::uint32_t active = 0;
  std::uint32_t reserved = 0;

  [[nodiscard]] constexpr std::uint64_t total() const noexcept {
    return std::uint64_t{active} + reserved;
  }
  friend bool operator==(const InFlight&, const InFlight&) = default;
};

struct InventoryItem {
  ProxyState state = ProxyState::Fetched;
  Ownership ownership = Ownership::Unowned;
  std::optional<StoreTime> usable_until;
  std::uint32_t max_concurrency = 1;
  std::optional<InFlight> in_flight = std::nullopt;  // of the owner; none: unknown
  std::uint32_t orphaned = 0;  // slots that a lost owner may still use (C16); free at best
};

struct SlotCount {
  std::uint64_t available = 0;
  std::uint64_t unknown = 0;  // free at best
  friend bool operator==(const SlotCount&, const SlotCount&) = default;
};

// The one place where "unknown means no" is decided for slots.
constexpr SlotCount count_slots(const InventoryItem& item, StoreTime now) noexcept {
  if (item.state != ProxyState::Available) return {};
  if (item.usable_until && now >= *item.usable_until) return {};
  if (item.ownership == Ownership::Revoking) return {};
  const std::uint64_t orphaned = std::min(item.orphaned, item.max_concurrency);
  const std::uint64_t slots = item.max_concurrency - orphaned;
  if (item.ownership == Ownership::Unowned) return {slots, orphaned};
  if (!item.in_flight) return {0, slots + orphaned};
  const std::uint64_t taken = item.in_flight->total();
  return {taken < slots ? slots - taken : 0, orphaned};
}

struct Inventory {
  std::array<std::uint64_t, kProxyStates> by_state{};
  std::uint64_t managed = 0;
  std::uint64_t owned = 0;     // of the managed
  std::uint64_t unowned = 0;   // of the managed
  std::uint64_t revoking = 0;  // of the managed
  SlotCount slots;
  std::uint64_t active = 0;    // as far as reported
  std::uint64_t reserved = 0;  // as far as reported

  void add(const InventoryItem& item, StoreTime now) noexcept {
    ++by_state[static_cast<std::size_t>(item.state)];
    if (item.in_flight) {
      active += item.in_flight->active;
      reserved += item.in_flight->reserved;
    }
    const SlotCount counted = count_slots(item, now);
    slots.available += counted.available;
    slots.unknown += counted.unknown;
    if (!domain::managed(item.state)) return;
    ++managed;
    switch (item.ownership) {
      case Ownership::Unowned:
        ++unowned;
        break;
      case Ownership::Owned:
        ++owned;
        break;
      case Ownership::Revoking:
        ++revoking;
        break;
    }
  }
  [[nodiscard]] std::uint64_t in_state(ProxyState state) const noexcept {
    return by_state[static_cast<std::size_t>(state)];
  }
};

}  // namespace proxypool::domain
