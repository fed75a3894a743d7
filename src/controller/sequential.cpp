#include "controller/sequential.hpp"

#include <algorithm>
#include <utility>

#include "proxypool/base/assert.hpp"

namespace proxypool::controller {

namespace {

constexpr int kRounds = 8;  // writers that may come first before this one gives up
constexpr std::size_t kHistory = 20;

bool sequential(const config::RoutingConfig& routing) {
  return routing.strategy == domain::Strategy::Sequential;
}

const config::RoutingConfig* find_routing(const config::Config& config, const RoutingId& id) {
  const auto found = std::find_if(config.routings.begin(), config.routings.end(),
                                  [&](const auto& routing) { return routing.id == id; });
  return found == config.routings.end() ? nullptr : &*found;
}

bool names(const config::RoutingConfig& routing, const UpstreamId& upstream) {
  return std::any_of(routing.upstreams.begin(), routing.upstreams.end(),
                     [&](const auto& entry) { return entry.id == upstream; });
}

Error no_routing(const RoutingId& id) {
  return {ErrorCode::NotFound, Origin::Client, "no routing has the id '" + id.str() + "'"};
}

// Stale when the caller has seen another state than this.
Status check_revision(const ports::RoutingCommand& command, const ports::RoutingState& state) {
  if (!command.revision || *command.revision == state.revision) return ok();
  return Error{ErrorCode::Stale, Origin::Client,
               "the routing has changed since: its revision is " + std::to_string(state.revision)};
}

std::string shown(const std::optional<UpstreamId>& upstream) {
  return upstream ? "\"" + upstream->str() + "\"" : "null";
}

// Names of configuration need no escaping.
std::string detail_of(const ports::RoutingState& before, const ports::RoutingState& after,
                      std::optional<SwitchReason> why) {
  const std::string_view reason = to_string(why.value_or(SwitchReason::Operator));
  return "{\"from\":" + shown(before.current) + ",\"to\":" + shown(after.current) +
         ",\"enabled\":" + (after.enabled ? "true" : "false") + ",\"reason\":\"" +
         std::string(reason) + "\"}";
}

}  // namespace

SequentialService::SequentialService(std::shared_ptr<const config::Config> config,
                                     SequentialDeps deps)
    : deps_(std::move(deps)) {
  configure(std::move(config));
}

void SequentialService::configure(std::shared_ptr<const config::Config> config) {
  PP_ASSERT(config != nullptr);
  state_.with([&](State& state) { state.config = std::move(config); });
}

std::shared_ptr<const config::Config> SequentialService::config() const {
  return state_.with([](const State& state) { return state.config; });
}

std::uint64_t SequentialService::switches(const RoutingId& routing, SwitchReason reason) const {
  return state_.with([&](const State& state) -> std::uint64_t {
    const auto found = state.switches.find(routing);
    return found == state.switches.end() ? 0 : found->second[static_cast<std::size_t>(reason)];
  });
}

Result<SequentialService::Stops> SequentialService::stops_of(const config::RoutingConfig& routing,
                                                             const config::Config& config,
                                                             Deadline deadline) const {
  Stops stops;
  for (const domain::RoutingUpstream& entry : routing.upstreams) {
    const auto upstream = std::find_if(config.upstreams.begin(), config.upstreams.end(),
                                       [&](const auto& known) { return known.id == entry.id; });
    PP_TRY(const ports::UpstreamState state, deps_.management.upstream_state(entry.id, deadline));
    const bool configured = upstream != config.upstreams.end() && upstream->enabled;
    stops.push_back({entry.id, configured && state.enabled});
  }
  return stops;
}

Result<ports::RoutingState> SequentialService::change(const config::RoutingConfig& routing,
                                                      const Decide& decide, Deadline deadline) {
  for (int round = 0; round < kRounds; ++round) {
    PP_TRY(ports::RoutingState state, deps_.management.routing_state(routing.id, deadline));
    PP_TRY(const Stops stops, stops_of(routing, *config(), deadline));
    PP_TRY(std::optional<Move> move, decide(state, stops));
    if (!move) return state;
    std::optional<ports::AuditEntry> audit;
    if (!move->action.empty()) {
      audit = ports::AuditEntry{0,
                                deps_.clock.wall_now(),
                                move->actor,
                                move->action,
                                routing.id.str(),
                                detail_of(state, move->to, move->why),
                                "done"};
    }
    const auto written = deps_.management.put_routing_state(move->to, audit, deadline);
    if (written) {
      tell(state, *move);
      return *written;
    }
    if (written.error().code != ErrorCode::Conflict) return written.error();
  }
  return Error{ErrorCode::Conflict, Origin::Client, "others keep changing this routing; try again"};
}

void SequentialService::tell(const ports::RoutingState& before, const Move& move) {
  if (move.why) {
    state_.with([&](State& state) {
      ++state.switches[before.routing][static_cast<std::size_t>(*move.why)];
    });
    const auto name = [](const auto& upstream) { return upstream ? upstream->str() : ""; };
    const bool ended = move.why == SwitchReason::Exhausted;
    deps_.events.emit(ports::Event::RoutingSwitched, {{"routing", before.routing.str()},
                                                      {"from", name(before.current)},
                                                      {"to", ended ? "" : name(move.to.current)},
                                                      {"reason", to_string(*move.why)}});
  } else if (!move.action.empty()) {
    deps_.events.emit(
        ports::Event::OperatorActed,
        {{"principal", move.actor}, {"action", move.action}, {"subject", before.routing.str()}});
  }
  deps_.changed();
}

Status SequentialService::depleted(const UpstreamId& upstream, Deadline deadline) {
  Status all = ok();
  const auto config = this->config();
  for (const config::RoutingConfig& routing : config->routings) {
    if (!sequential(routing) || !routing.enabled || !names(routing, upstream)) continue;
    const auto done = change(
        routing,
        [&](const ports::RoutingState& state, const Stops& stops) -> Result<std::optional<Move>> {
          if (!state.enabled) return std::optional<Move>{};
          const auto decision =
              domain::decide_advance(stops, state.current, upstream, routing.exhaustion);
          Move move{state, "routing.switch", "controller", SwitchReason::Depleted};
          if (decision.step == domain::CursorStep::Switched) {
            move.to.current = decision.to;
          } else if (decision.step == domain::CursorStep::Stopped) {
            move.to.enabled = false;
            move.why = SwitchReason::Exhausted;
            move.action = "routing.disable";
          } else {
            return std::optional<Move>{};
          }
          return std::optional(std::move(move));
        },
        deadline);
    if (!done) all = done.error();
  }
  return all;
}

Status SequentialService::settle(Deadline deadline) {
  const auto config = this->config();
  for (const config::RoutingConfig& routing : config->routings) {
    if (!sequential(routing)) continue;
    PP_TRY([[maybe_unused]] const ports::RoutingState settled,
           change(
               routing,
               [&](const ports::RoutingState& state,
                   const Stops& stops) -> Result<std::optional<Move>> {
                 const auto current =
                     domain::current_upstream(stops, state.current, routing.exhaustion);
                 // With nobody to go to it keeps its place.
                 if (!current || current == state.current) return std::optional<Move>{};
                 Move move{state, "", "", std::nullopt};
                 if (state.current) {
                   move = {state, "routing.switch", "controller", SwitchReason::Skipped};
                 }
                 move.to.current = current;
                 return std::optional(std::move(move));
               },
               deadline));
  }
  return ok();
}

Result<ports::RoutingState> SequentialService::switch_routing(const ports::RoutingCommand& command,
                                                              const UpstreamId& to,
                                                              Deadline deadline) {
  const auto config = this->config();
  const auto* routing = find_routing(*config, command.routing);
  if (!routing) return no_routing(command.routing);
  if (!sequential(*routing)) {
    return Error{ErrorCode::InvalidArgument, Origin::Client,
                 "only a routing of strategy sequential can be switched"};
  }
  return change(
      *routing,
      [&](const ports::RoutingState& state, const Stops& stops) -> Result<std::optional<Move>> {
        PP_TRY([[maybe_unused]] const Unit newest, check_revision(command, state));
        const auto current = domain::current_upstream(stops, state.current, routing->exhaustion);
        const auto target = std::find_if(stops.begin(), stops.end(),
                                         [&](const auto& stop) { return stop.upstream == to; });
        if (target == stops.end() || !target->enabled) {
          return Error{ErrorCode::InvalidArgument, Origin::Client,
                       "upstream '" + to.str() + "' is " +
                           (target == stops.end() ? "not in this routing" : "disabled")};
        }
        if (current == to && state.current == to) return std::optional<Move>{};
        Move move{state, "routing.switch", command.actor, SwitchReason::Operator};
        move.to.current = to;
        return std::optional(std::move(move));
      },
      deadline);
}

Result<ports::RoutingState> SequentialService::enable_routing(const ports::RoutingCommand& command,
                                                              bool enabled, Deadline deadline) {
  const auto config = this->config();
  const auto* routing = find_routing(*config, command.routing);
  if (!routing) return no_routing(command.routing);
  return change(
      *routing,
      [&](const ports::RoutingState& state, const Stops&) -> Result<std::optional<Move>> {
        PP_TRY([[maybe_unused]] const Unit newest, check_revision(command, state));
        if (state.enabled == enabled) return std::optional<Move>{};
        Move move{state, enabled ? "routing.enable" : "routing.disable", command.actor,
                  std::nullopt};
        move.to.enabled = enabled;
        return std::optional(std::move(move));
      },
      deadline);
}

Result<std::vector<ports::AuditEntry>> SequentialService::routing_history(const RoutingId& routing,
                                                                          Deadline deadline) {
  PP_TRY(std::vector<ports::AuditEntry> entries, deps_.management.audit(0, 1'000, deadline));
  std::erase_if(entries, [&](const ports::AuditEntry& entry) {
    return entry.subject != routing.str() || !entry.action.starts_with("routing.");
  });
  if (entries.size() > kHistory) entries.resize(kHistory);
  return entries;
}

}  // namespace proxypool::controller
