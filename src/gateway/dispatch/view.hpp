// The view: one snapshot, compiled for the request path.
//
// Everything a request asks is looked up, nothing is computed: the matcher, the order of upstreams,
// the candidates of each upstream as arrays by slot, credentials as header lines, moments on our
// own clock. Built aside by ViewBuilder in small pieces, published as a whole.
//
// How to hold one: a serving thread takes the view from its cell reader when a request begins and
// pins it (shared_ptr) only if the request may have to choose again after an await; a connection
// may keep the pin from request to request while the version stays the same. A tunnel lets go of
// the view once its allocation is committed: the allocation has what it needs.
//
// Thread rule: View: immutable. ViewBuilder: one thread at a time (the registry's owner).
// Limits:      as validate.hpp says. A proxy that cannot be served is left out and named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/dispatch/client_table.hpp"
#include "gateway/dispatch/filtered.hpp"
#include "gateway/dispatch/proxy_entry.hpp"
#include "gateway/dispatch/registry.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/balance/candidates.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/domain/routing/matcher.hpp"
#include "proxypool/domain/routing/strategy.hpp"
#include "proxypool/domain/traffic/target_policy.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::gateway {

// One moment on two clocks; turns store times into moments of our own. `local` may be earlier than
// the true moment of `store_now` (when the report was sent), never later: then proxies end early.
struct StoreMoment {
  StoreTime store_now;
  TimePoint local;
  [[nodiscard]] TimePoint to_local(StoreTime time) const noexcept;
};

class View {
 public:
  // Proxies of one upstream that no filter tells apart.
  struct Kind {
    domain::Attributes attributes;
    domain::Tags tags;
    std::vector<std::uint32_t> available;  // slots
    std::vector<std::uint32_t> suspects;
  };
  // A proxy by its slot. The id is here, too: to know whose slot it is nobody looks further.
  struct Place {
    EntryPointer entry;  // null: the slot is not in this view
    ProxyId id;
  };
  // One upstream as this snapshot has it.
  struct Upstream {
    UpstreamRuntime* runtime = nullptr;
    std::vector<Place> places;             // by slot
    std::vector<std::uint32_t> available;  // slots of AVAILABLE proxies
    std::vector<std::uint64_t> mask;       // slots of all its proxies
    std::size_t suspects = 0;
    std::vector<Kind> kinds;

    [[nodiscard]] const ProxyEntry* entry(std::uint32_t slot) const noexcept {
      return slot < places.size() ? places[slot].entry.get() : nullptr;
    }
    [[nodiscard]] domain::Candidates candidates() const noexcept { return {available, mask}; }
  };
  struct Routing {
    RoutingId id;
    domain::Balancer balancer;
    std::uint32_t attempts_max;              // different proxies for a safe method
    std::uint32_t in_flight_max;             // 0: none
    std::vector<const Upstream*> upstreams;  // enabled ones, in order
    domain::UpstreamOrder order;
    RoutingRuntime* runtime;
    domain::OnUnavailable on_unavailable = domain::OnUnavailable::Reject;
    milliseconds wait_timeout{0};
    std::uint32_t waiters_max = 0;
    std::vector<std::string> tag_keys;  // which its match names: no proxy is asked for them again
  };

  [[nodiscard]] const domain::SnapshotVersion& version() const noexcept { return version_; }
  [[nodiscard]] Epoch epoch() const noexcept { return epoch_; }
  [[nodiscard]] const domain::SnapshotPolicy& policy() const noexcept { return policy_; }
  [[nodiscard]] std::size_t proxies() const noexcept { return proxies_; }
  [[nodiscard]] const domain::Matcher& matcher() const noexcept { return matcher_; }
  // By the number that the matcher gives.
  [[nodiscard]] const Routing& routing(std::uint32_t number) const noexcept {
    return routings_[number];
  }
  [[nodiscard]] const std::vector<Routing>& routings() const noexcept { return routings_; }

  [[nodiscard]] const std::vector<domain::SnapshotClient>& clients() const noexcept {
    return clients_;
  }
  // No other view of this registry has the same one.
  [[nodiscard]] std::uint64_t stamp() const noexcept { return stamp_; }
  // The candidates of this view's routing under a filter. Any thread; see filtered.hpp.
  [[nodiscard]] FilteredPointer filtered(const Routing& routing, const Wanted& wanted) const;
  [[nodiscard]] std::uint32_t number_of(const Routing& routing) const noexcept {
    return static_cast<std::uint32_t>(&routing - routings_.data());
  }
  // What a client uses of its limits.
  [[nodiscard]] domain::ClientUse& use_of(std::uint32_t client) const noexcept {
    return *uses_[client];
  }
  // Who may use the gateway, and which destinations.
  [[nodiscard]] const ClientTable& principals() const noexcept { return principals_; }
  [[nodiscard]] const domain::TargetPolicy& targets() const noexcept { return targets_; }
  // The number that RouteRequest::client wants, or nothing.
  [[nodiscard]] std::optional<std::uint32_t> client(std::string_view name) const noexcept;

 private:
  friend class ViewBuilder;
  friend class ProxyRegistry;
  View(const domain::WorkerSnapshot& snapshot, domain::Matcher matcher, std::uint64_t stamp);

  std::uint64_t stamp_;
  domain::SnapshotVersion version_;
  Epoch epoch_;
  domain::SnapshotPolicy policy_;
  std::size_t proxies_ = 0;
  domain::Matcher matcher_;
  domain::TargetPolicy targets_;
  std::vector<domain::SnapshotClient> clients_;
  std::vector<domain::ClientUse*> uses_;  // by client; the registry's
  ClientTable principals_;
  std::unordered_map<std::string_view, std::uint32_t> client_numbers_;  // keys: clients_
  std::vector<Upstream> upstreams_;
  std::vector<Routing> routings_;
  FilterLists filter_lists_;
};

// Compiles a snapshot. Abandoning one half-way is fine: the next adopt() cleans up.
class ViewBuilder {
 public:
  ViewBuilder(ProxyRegistry& registry, std::shared_ptr<const domain::WorkerSnapshot> snapshot,
              StoreMoment moment);

  // Checks the whole and compiles routings and clients. An error refuses the snapshot: say so in a
  // negative acknowledgement. Once, first.
  Status begin();
  // Works on at most `proxies` more entries (1,000 take about 1 ms). Returns whether work is left.
  bool step(std::size_t proxies);
  // REQUIRES: begin() succeeded, step() said that no work is left.
  std::shared_ptr<const View> finish();

  // Proxies that were left out, with the reason; complete once no work is left. At most
  // kRejectedMax are named.
  static constexpr std::size_t kRejectedMax = 1'000;
  [[nodiscard]] const std::vector<ports::RejectedEntry>& rejected() const noexcept {
    return rejected_;
  }
  [[nodiscard]] std::size_t rejected_count() const noexcept { return rejected_count_; }

 private:
  Status add_clients();
  Status add_routing(const domain::SnapshotRouting& routing);
  // The proxy's slot, or null: it is left out.
  ProxyRegistry::Slot* place(const domain::SnapshotProxy& proxy);
  void open(const ProxyRegistry::Slot& slot, const domain::SnapshotProxy& proxy);
  [[nodiscard]] std::optional<std::size_t> number_of(const UpstreamId& upstream);
  View::Kind& kind_of(std::size_t upstream, const domain::SnapshotProxy& proxy);
  ProxyRegistry::Slot* reject(ProxyId id, std::string_view reason);  // null
  const EntryPointer& entry_for(ProxyRegistry::Slot& slot, const domain::SnapshotProxy& proxy);
  const std::shared_ptr<const ProxyCredential>& credential(std::uint32_t reference);

  ProxyRegistry& registry_;
  std::shared_ptr<const domain::WorkerSnapshot> snapshot_;
  StoreMoment moment_;
  std::uint64_t stamp_;
  std::shared_ptr<View> view_;
  std::unordered_map<UpstreamId, std::size_t> upstream_numbers_;
  std::pair<const UpstreamId*, std::size_t> last_upstream_{};  // looked up
  // Of each upstream: its kinds by what they are.
  std::vector<std::unordered_map<std::string, std::size_t>> kinds_;
  std::vector<std::shared_ptr<const ProxyCredential>> credentials_;  // made when first needed
  std::vector<ProxyRegistry::Slot*> slots_;                          // by proxy; null: left out
  std::size_t opened_ = 0;
  std::vector<ports::RejectedEntry> rejected_;
  std::size_t rejected_count_ = 0;
};

}  // namespace proxypool::gateway
