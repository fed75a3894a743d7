// The registry keeps what outlives snapshots: each proxy's counters, each upstream's index of
// loads, each routing's turn, and until when this worker may begin anything at all.
//
// Views come and go; a proxy keeps its slot from the first view that has it until, after the last
// one, its work has ended. The order of a swap:
//
//   ViewBuilder … finish()   new proxies get slots and open; old views do not see them
//   cell.publish(view)       serving threads take the new view, each at its next request
//   (all readers have it)
//   registry.adopt(*view)    slots that the view does not have close and drain
//   registry.reclaim()       again and again: drained slots are free
//
// Thread rule: valid, valid_until, bench, listener: any thread. Everything else: one thread at a
//              time (the owner: the snapshot session).
// Limits:      slots_max slots; a proxy that finds none is named in ViewBuilder::rejected.
//              kNamesMax upstreams and routings over the life of the process, some KiB each; a
//              snapshot beyond is refused. So with kClientsMax clients.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "gateway/dispatch/outcome_ring.hpp"
#include "gateway/dispatch/proxy_entry.hpp"
#include "gateway/dispatch/usage_sheet.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/balance/members.hpp"
#include "proxypool/domain/client/limits.hpp"
#include "proxypool/domain/cluster/validate.hpp"
#include "proxypool/domain/routing/strategy.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::gateway {

class View;

// A sum that many threads count on without meeting: each has its own cache line.
class StripedCount {
 public:
  static constexpr unsigned kStripes = 16;
  void add(unsigned stripe, std::int64_t change) noexcept {
    stripes_[stripe % kStripes].count.fetch_add(change, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t sum() const noexcept {
    std::int64_t total = 0;
    for (const auto& stripe : stripes_) total += stripe.count.load(std::memory_order_relaxed);
    return total < 0 ? 0 : static_cast<std::uint64_t>(total);
  }

 private:
  struct alignas(64) Stripe {
    std::atomic<std::int64_t> count{0};
  };
  std::array<Stripe, kStripes> stripes_;
};

// One upstream on this worker. Lives as long as the registry.
struct UpstreamRuntime {
  explicit UpstreamRuntime(UpstreamId name) : id(std::move(name)) {}

  const UpstreamId id;
  domain::Members members;
  StripedCount in_flight;                 // kept while `counted`
  std::atomic<bool> counted{false};       // some routing chooses among upstreams by load
  std::atomic<bool> timed{false};         // some routing chooses among its proxies by time
  std::atomic<std::uint32_t> waiters{0};  // requests that wait for a place here
};

// One routing on this worker. Lives as long as the registry.
struct RoutingRuntime {
  explicit RoutingRuntime(RoutingId name = {}) : id(std::move(name)) {}

  const RoutingId id;
  domain::StrategyTurn turn;
  std::atomic<std::uint32_t> in_flight{0};  // kept while the routing has a maximum
  std::atomic<bool> turned_away{false};     // somebody met that maximum
  std::atomic<std::uint32_t> waiters{0};    // requests that wait in this routing's line
};

// Is told that an upstream on which somebody waits has, or may have, a place. Called on the thread
// that gave the place back; must not block.
class PlaceListener {
 public:
  virtual ~PlaceListener() = default;
  virtual void place_free(const UpstreamRuntime& upstream) noexcept = 0;
};

class ProxyRegistry {
 public:
  static constexpr std::uint32_t kSlotsMax = 2 * limits::kProxiesPerWorkerMax;
  static constexpr std::size_t kNamesMax = 16'384;
  static constexpr std::size_t kClientsMax = UsageSheet::kClientsMax;

  struct Options {
    nanoseconds bench = std::chrono::seconds(2);  // gateway.bench; 0: nobody is benched
    PlaceListener* listener = nullptr;            // outlives the registry
    std::size_t slots_max = kSlotsMax;
    nanoseconds penalty = std::chrono::seconds(5);  // what a failed attempt counts for least_time
  };

  explicit ProxyRegistry(Options options) : options_(options) {}
  ProxyRegistry() : ProxyRegistry(Options{}) {}
  ProxyRegistry(const ProxyRegistry&) = delete;
  ProxyRegistry& operator=(const ProxyRegistry&) = delete;

  // Any thread's ----------------------------------------------------------------------------------

  // Whether this worker may begin new work at `now`: its leases, and with them its view, stand.
  [[nodiscard]] bool valid(TimePoint now) const noexcept { return now < valid_until(); }
  [[nodiscard]] TimePoint valid_until() const noexcept {
    return TimePoint(nanoseconds(valid_until_.load(std::memory_order_acquire)));
  }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  // Where serving threads tell how attempts ended.
  [[nodiscard]] OutcomeRings& outcome_rings() noexcept { return outcome_rings_; }
  // Clients whose quota is used up, as the controller last said.
  [[nodiscard]] std::size_t clients_over_quota() const noexcept {
    return over_quota_count_.load(std::memory_order_relaxed);
  }
  // Where serving threads count what clients move.
  [[nodiscard]] UsageSheets& usage_sheets() noexcept { return usage_sheets_; }

  // The owner's -----------------------------------------------------------------------------------

  // Until when new work may begin: the end of the leases less the margin (C9). Before the first
  // call nothing may.
  void extend(TimePoint valid_until) noexcept {
    valid_until_.store(valid_until.time_since_epoch().count(), std::memory_order_release);
  }
  // Takes proxies out of service at once, for every view, until a snapshot brings them under a
  // newer lease. Returns how many of them are known here.
  std::size_t revoke(std::span<const ProxyId> ids);
  // Every serving thread uses `view`, the newest: what it does not have takes no new work.
  void adopt(const View& view);
  // Notes which proxies end soon; see Members::look_ahead.
  void look_ahead(TimePoint now);
  // Frees closed slots that carry nothing. Returns how many still drain.
  std::size_t reclaim();

  // What every client moved so far.
  void usage(const std::function<void(std::uint32_t, const ClientName&, const domain::Usage&)>&
                 each) const;
  // These clients, and no others, have used up their quota until then. Whether one of them had not
  // before.
  bool over_quota(std::span<const ClientName> clients, TimePoint until);
  // What is in flight, draining proxies included; idle ones are left out.
  [[nodiscard]] std::vector<ports::ProxyCount> counts() const;
  // What the adopted view holds and may use (for CP-6 and for the next registration).
  [[nodiscard]] std::vector<domain::HeldProxy> held() const;
  [[nodiscard]] std::size_t slots() const noexcept { return slots_.size(); }

 private:
  friend class ViewBuilder;

  struct Slot {
    UpstreamRuntime* upstream = nullptr;
    std::uint32_t member = 0;
    bool revoked = false;
    bool draining = false;
    std::uint64_t stamp = 0;  // of the newest view that has it
    EntryPointer entry;       // of that view
    Epoch lease_epoch;        // of the newest adopted view that has it
  };

  // ViewBuilder's: null at a maximum.
  UpstreamRuntime* upstream(const UpstreamId& id);
  RoutingRuntime* routing(const RoutingId& id);
  domain::ClientUse* client(const ClientName& name);
  // The slot of a proxy under this upstream for the view `stamp`; why it gets none stands in
  // `refusal`.
  Slot* place(ProxyId id, UpstreamRuntime& upstream, std::uint64_t stamp, const char*& refusal);
  Slot* fresh_slot(ProxyId id, UpstreamRuntime& upstream, const char*& refusal);

  const Options options_;
  std::atomic<std::int64_t> valid_until_{INT64_MIN};
  std::uint64_t stamp_ = 0;  // of the newest view that was begun
  std::uint64_t adopted_ = 0;
  std::unordered_map<ProxyId, Slot> slots_;
  std::vector<ProxyId> draining_;
  std::unordered_map<UpstreamId, std::unique_ptr<UpstreamRuntime>> upstreams_;
  std::unordered_map<RoutingId, std::unique_ptr<RoutingRuntime>> routings_;
  std::unordered_map<ClientName, std::unique_ptr<domain::ClientUse>> clients_;
  std::vector<const ClientName*> client_names_;  // by number; keys of clients_
  std::vector<domain::ClientUse*> over_quota_;
  std::atomic<std::size_t> over_quota_count_{0};
  UsageSheets usage_sheets_;
  OutcomeRings outcome_rings_;
};

}  // namespace proxypool::gateway
