// SequentialService: moves the cursors of sequential routings (CT-40).
//
// The cursor is management state: it survives restarts, and each move is one compare-and-set
// against the revision on which the move was decided (domain/routing/sequential.hpp decides). Who
// loses the race decides anew, against the cursor that the other one has set, so that one empty
// upstream moves each routing once, and an operator and a vendor's end never move it twice.
//
// Thread rule: any thread. Nothing is held while the store is called.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/routing/sequential.hpp"
#include "proxypool/ports/management_store.hpp"
#include "proxypool/ports/operations.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::controller {

enum class SwitchReason : std::uint8_t {
  Depleted,  // its vendor has nothing left
  Skipped,   // it is disabled, or no longer in the routing
  Operator,
  Exhausted,  // the last one is used up, and the routing is off
};
inline constexpr std::size_t kSwitchReasons = 4;

constexpr std::string_view to_string(SwitchReason reason) noexcept {
  constexpr std::string_view kNames[kSwitchReasons] = {"depleted", "skipped", "operator",
                                                       "exhausted"};
  return kNames[static_cast<std::size_t>(reason)];
}

struct SequentialDeps {
  ports::ManagementStore& management;
  const Clock& clock;
  ports::Events& events;
  std::function<void()> changed;  // called after a cursor or a switch was written
};

class SequentialService final : public ports::RoutingOperations {
 public:
  SequentialService(std::shared_ptr<const config::Config> config, SequentialDeps deps);

  // Another configuration counts from now on. REQUIRES: not null.
  void configure(std::shared_ptr<const config::Config> config);

  // The vendor of this upstream has nothing left: every routing that stands there goes on. An error
  // means that not all of them could be asked; it is to be called again.
  Status depleted(const UpstreamId& upstream, Deadline deadline);
  // Writes down where each routing stands: at its beginning, and when it passes over what is
  // disabled or gone.
  Status settle(Deadline deadline);

  Result<ports::RoutingState> switch_routing(const ports::RoutingCommand& command,
                                             const UpstreamId& to, Deadline deadline) override;
  Result<ports::RoutingState> enable_routing(const ports::RoutingCommand& command, bool enabled,
                                             Deadline deadline) override;
  Result<std::vector<ports::AuditEntry>> routing_history(const RoutingId& routing,
                                                         Deadline deadline) override;

  // How often this routing was moved, since the start of the process.
  [[nodiscard]] std::uint64_t switches(const RoutingId& routing, SwitchReason reason) const;

 private:
  using Stops = std::vector<domain::SequentialStop>;
  // What to make of a state that was just read, or nothing to be done.
  struct Move {
    ports::RoutingState to;
    std::string action;  // for the audit; empty: nobody needs to know
    std::string actor;
    std::optional<SwitchReason> why;  // the cursor moved, or came to the end of its list
  };
  using Decide =
      std::function<Result<std::optional<Move>>(const ports::RoutingState&, const Stops&)>;

  // Reads, decides and writes, and again when another writer was first. Answers the newest state.
  Result<ports::RoutingState> change(const config::RoutingConfig& routing, const Decide& decide,
                                     Deadline deadline);
  Result<Stops> stops_of(const config::RoutingConfig& routing, const config::Config& config,
                         Deadline deadline) const;
  void tell(const ports::RoutingState& before, const Move& move);
  [[nodiscard]] std::shared_ptr<const config::Config> config() const;

  struct State {
    std::shared_ptr<const config::Config> config;  // never null
    std::map<RoutingId, std::array<std::uint64_t, kSwitchReasons>> switches;
  };
  SequentialDeps deps_;
  Guarded<State> state_;
};

}  // namespace proxypool::controller
