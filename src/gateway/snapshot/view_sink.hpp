// ViewSink: where the session puts what it received, and where it reads what is in flight.
//
// The session knows no serving thread; this interface is all that it sees of them.
//
// Thread rule: apply() and extend() one thread at a time (the session's); the rest from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/client/usage.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::gateway {

// What a push says about time, on the worker's own clock. `store_now` was read by the controller at
// or after `base`, so every moment derived from both is early rather than late (CP-9).
struct Validity {
  TimePoint base;
  StoreTime store_now;
  TimePoint until;          // no new work from then on: the lease's end less the margin (C9)
  TimePoint tunnels_until;  // what is open ends here: the lease's end and the grace (C16)
};

struct HeldView {
  domain::SnapshotVersion version;
  TimePoint valid_until;
  std::vector<ProxyId> proxies;
};

class ViewSink {
 public:
  virtual ~ViewSink() = default;
  // Compiles the snapshot aside, publishes it, and answers once every serving thread uses it: the
  // entries that were quarantined. An error refuses the version as a whole; the old view stands.
  virtual Result<std::vector<ports::RejectedEntry>> apply(
      std::shared_ptr<const domain::WorkerSnapshot> snapshot, const Validity& validity) = 0;
  // Moves the end of the current view and takes proxies out of it.
  virtual void extend(const Validity& validity, const std::vector<ProxyId>& revoked) = 0;
  virtual void revoke(const std::vector<ProxyId>& ids) = 0;
  // Everything that is reserved or active, removed proxies included.
  virtual std::vector<ports::ProxyCount> counts() = 0;
  // What each client of any view has moved so far, by its number.
  using EachUsage = std::function<void(std::uint32_t, const ClientName&, const domain::Usage&)>;
  virtual void usage(const EachUsage& each) = 0;
  // These clients, and no others, have used up their quota until then: they begin nothing, and
  // their tunnels end.
  virtual void over_quota(const std::vector<ClientName>& clients, TimePoint until) = 0;
  // How attempts ended since the last call, at most so many: into a batch that has none.
  virtual void take_outcomes(ports::OutcomeBatch& batch, std::size_t most, TimePoint now) = 0;
  // The last view, valid or not.
  virtual std::optional<HeldView> held() = 0;
};

}  // namespace proxypool::gateway
