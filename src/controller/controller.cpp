#include "controller/controller.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "config/load.hpp"
#include "proxypool/base/stored_hash.hpp"
#include "proxypool/domain/client/api_key.hpp"

namespace proxypool::controller {

namespace {

constexpr milliseconds kSwitchPoll{500};
constexpr milliseconds kSweepPoll{200};
constexpr std::uint32_t kSweepBatch = 10'000;
constexpr milliseconds kStoreBudget{2'000};

milliseconds ms(nanoseconds duration) {
  return std::chrono::duration_cast<milliseconds>(duration);
}

Result<std::string> hashed(const config::ClientSecret& secret, const ports::Crypto& crypto) {
  const std::string_view plain = secret.value.reveal();
  if (secret.hashed) return std::string(plain);
  if (domain::is_api_key(plain)) return crypto.hash_api_key(plain).str();
  PP_TRY(const StoredHash hash, crypto.hash_password(plain, ScryptCost{}));
  return hash.str();
}

// A key that opens for two clients names neither.
void check_keys(const config::Config& config, const std::vector<HashedClient>& clients,
                std::vector<std::string>& problems) {
  using config::AuthMode;
  const auto ways = config.gateway.auth.ways();
  const bool keys = std::any_of(ways.begin(), ways.end(), [](AuthMode way) {
    return way == AuthMode::ApiKey || way == AuthMode::Bearer;
  });
  std::map<std::string_view, const ClientName*> owners;
  for (const HashedClient& client : clients) {
    if (!keys || !client.gateway_secret.starts_with("$sha256$")) continue;
    const auto [owner, fresh] = owners.emplace(client.gateway_secret, &client.name);
    if (fresh) continue;
    problems.push_back("clients " + owner->second->str() + " and " + client.name.str() +
                       " have the same API key in credentials.gateway");
  }
}

// The hash of the same secret of the same client, if there is one: another one would let every
// gateway verify all its callers anew.
std::optional<std::string> known_hash(const config::ClientConfig& client,
                                      const ActiveConfig* before) {
  if (!before) return std::nullopt;
  const auto& clients = before->config->clients;
  const auto old = std::find_if(clients.begin(), clients.end(),
                                [&](const auto& entry) { return entry.name == client.name; });
  if (old == clients.end() || !old->gateway_secret ||
      old->gateway_secret->hashed != client.gateway_secret->hashed ||
      !(old->gateway_secret->value == client.gateway_secret->value)) {
    return std::nullopt;
  }
  return before->clients[static_cast<std::size_t>(old - clients.begin())].gateway_secret;
}

WorkerSessionSettings worker_settings(const config::Config& config,
                                      const ControllerIdentity& identity) {
  WorkerSessionSettings settings;
  settings.cluster_id = config.cluster.id;
  settings.environment = identity.environment;
  settings.lease = ms(config.control_plane.lease);
  settings.report_interval = ms(config.control_plane.report_interval);
  settings.margin = lease_margin(settings.lease);
  settings.orphan_grace = ms(config.gateway.transport.orphan_grace);
  return settings;
}

HealthSettings health_settings(const config::Config& config, const ControllerIdentity& identity) {
  HealthSettings settings;
  settings.cluster_id = config.cluster.id;
  settings.environment = identity.environment;
  settings.session_ttl = ms(config.control_plane.lease);
  return settings;
}

ports::RoutingReading reading_of(const domain::SnapshotRouting& routing) {
  ports::RoutingReading reading{routing.id,
                                routing.enabled,
                                std::string(domain::spell(routing.strategy)),
                                std::string(domain::spell(routing.balancer)),
                                {},
                                routing.current,
                                0};
  for (const auto& upstream : routing.upstreams) reading.upstreams.push_back(upstream.id);
  return reading;
}

OwnershipSettings ownership_settings(const config::Config& config) {
  OwnershipSettings settings;
  settings.lease = ms(config.control_plane.lease);
  settings.proxies_per_worker_max = config.control_plane.proxies_per_worker_max;
  return settings;
}

}  // namespace

Result<std::unique_ptr<Controller>> Controller::make(std::shared_ptr<const config::Config> config,
                                                     ControllerIdentity identity,
                                                     ControllerDeps deps) {
  std::vector<std::string> problems;
  auto active = prepare(std::move(config), nullptr, deps.crypto, problems);
  if (!active) {
    return Error{ErrorCode::InvalidArgument, Origin::Client, problems.front()};
  }
  return std::unique_ptr<Controller>(
      new Controller(std::move(active), std::move(identity), std::move(deps)));
}

ActiveConfigPtr Controller::prepare(std::shared_ptr<const config::Config> config,
                                    const ActiveConfig* before, const ports::Crypto& crypto,
                                    std::vector<std::string>& problems) {
  ActiveConfig active{std::move(config), {}};
  for (const config::ClientConfig& client : active.config->clients) {
    HashedClient out;
    out.name = client.name;
    if (client.gateway_secret) {
      auto hash = known_hash(client, before);
      auto made = hash ? Result(*std::move(hash)) : hashed(*client.gateway_secret, crypto);
      if (made) out.gateway_secret = *std::move(made);
      if (!made) problems.push_back("client " + client.name.str() + ": " + made.error().message);
    }
    active.clients.push_back(std::move(out));
  }
  check_keys(*active.config, active.clients, problems);
  if (!problems.empty()) return nullptr;
  return std::make_shared<const ActiveConfig>(std::move(active));
}

Controller::Controller(ActiveConfigPtr active, ControllerIdentity identity, ControllerDeps deps)
    : active_(active),
      identity_(std::move(identity)),
      deps_(std::move(deps)),
      started_at_(deps_.clock.now()),
      sequential_(active->config,
                  {deps_.management, deps_.clock, deps_.events, [this] { wake_switches(); }}),
      usage_(active->config, deps_.management, deps_.clock),
      sessions_(worker_settings(*active->config, identity_),
                {deps_.pool, deps_.registry, deps_.coordination, deps_.crypto, shared_, deps_.clock,
                 usage_,
                 [this](const ports::OutcomeBatch& batch, Deadline deadline) {
                   return take_outcomes(batch, deadline);
                 }}),
      health_(health_settings(*active->config, identity_), active->config,
              {deps_.pool, deps_.registry, deps_.clock}),
      extraction_(active->config, deps_.pool, deps_.clock),
      ownership_(
          ownership_settings(*active->config), deps_.pool, deps_.registry, deps_.coordination,
          deps_.clock, [this] { return owned_upstreams(); },
          [this](const UpstreamId& upstream) { return extraction_.shortage(upstream); }),
      presence_(deps_.registry, deps_.events),
      supplied_(active) {
  supplies_.with([&](Supplies& supplies) {
    for (const config::UpstreamConfig& upstream : active->config->upstreams) {
      supplies.push_back(make_supply(upstream));
    }
  });
}

std::shared_ptr<SupplyService> Controller::make_supply(const config::UpstreamConfig& upstream) {
  SupplyDeps supply{deps_.pool,
                    deps_.coordination,
                    deps_.management,
                    deps_.crypto,
                    deps_.clock,
                    deps_.random,
                    [this](const UpstreamId& id, const domain::FetchOutcome& outcome,
                           const std::string& detail) { report_fetch(id, outcome, detail); },
                    [this](const UpstreamId& id, Deadline deadline) {
                      return sequential_.depleted(id, deadline);
                    }};
  return std::make_shared<SupplyService>(upstream, identity_.instance, identity_.identity_key,
                                         deps_.make_provider(upstream), std::move(supply));
}

// Another configuration --------------------------------------------------------------------------

ActiveConfigPtr Controller::active() const {
  return active_.with([](const ActiveConfigPtr& active) { return active; });
}

Controller::Supplies Controller::supplies() const {
  return supplies_.with([](const Supplies& supplies) { return supplies; });
}

void Controller::configure(ActiveConfigPtr active) {
  const auto config = active->config;
  active_.with([&](ActiveConfigPtr& current) { current = std::move(active); });
  health_.configure(config);
  extraction_.configure(config);
  usage_.configure(config);
  sequential_.configure(config);
  wake_switches();
}

// Who is named is supplied as it says, who is no longer named ends, and whose proxies are gone is
// forgotten.
void Controller::supply_from(const config::Config& before, const config::Config& after) {
  const Supplies old = supplies();
  Supplies now;
  for (const config::UpstreamConfig& upstream : after.upstreams) {
    const auto known = std::find_if(old.begin(), old.end(), [&](const auto& supply) {
      return supply->upstream() == upstream.id;
    });
    if (known == old.end()) {
      now.push_back(make_supply(upstream));
      continue;
    }
    now.push_back(*known);
    const auto was = std::find_if(before.upstreams.begin(), before.upstreams.end(),
                                  [&](const auto& entry) { return entry.id == upstream.id; });
    const bool named_before = was != before.upstreams.end();
    const bool same_source = named_before && config::same_source(*was, upstream);
    (*known)->configure(upstream, same_source ? nullptr : deps_.make_provider(upstream));
  }
  for (const auto& supply : old) {
    if (std::find(now.begin(), now.end(), supply) != now.end()) continue;
    supply->retire();
    if (!supply->gone()) now.push_back(supply);
  }
  supplies_.with([&](Supplies& supplies) { supplies = std::move(now); });
}

void Controller::on_steps(std::function<void()> changed) {
  hooks_.with([&](Hooks& hooks) { hooks.steps_changed = std::move(changed); });
}

void Controller::warn_with(std::function<std::vector<std::string>()> source) {
  hooks_.with([&](Hooks& hooks) { hooks.warnings = std::move(source); });
}

void Controller::wake_switches() const {
  const auto wake = hooks_.with([](const Hooks& hooks) { return hooks.wake_switches; });
  if (wake) wake();
}

// Steps ------------------------------------------------------------------------------------------

std::vector<NamedStep> Controller::steps() {
  std::vector<NamedStep> steps;
  steps.push_back({"switches", [this](TimePoint now) { return step_switches(now); },
                   [this](std::function<void()> wake) {
                     hooks_.with([&](Hooks& hooks) { hooks.wake_switches = std::move(wake); });
                   }});
  steps.push_back({"sweep", [this](TimePoint now) { return step_sweep(now); }, {}});
  steps.push_back({"snapshots", [this](TimePoint now) { return sessions_.step(now); },
                   [this](std::function<void()> wake) { sessions_.on_work(std::move(wake)); }});
  steps.push_back({"health", [this](TimePoint now) { return health_.step(now); }, {}});
  steps.push_back({"presence", [this](TimePoint now) { return presence_.step(now); }, {}});
  steps.push_back({"ownership", [this](TimePoint now) { return step_ownership(now); }, {}});
  for (const auto& supply : supplies()) {
    steps.push_back({"supply " + supply->upstream().str(),
                     [supply](TimePoint now) { return supply->step(now); },
                     [supply](std::function<void()> wake) { supply->on_work(std::move(wake)); }});
  }
  return steps;
}

TimePoint Controller::step_switches(TimePoint now) {
  const Deadline deadline = Deadline::after(now, kStoreBudget);
  const ActiveConfigPtr active = this->active();
  if (!sequential_.settle(deadline)) return now + kStoreBudget;
  Switches switches;
  std::string key;
  for (const config::UpstreamConfig& upstream : active->config->upstreams) {
    const auto state = deps_.management.upstream_state(upstream.id, deadline);
    if (!state) return now + kStoreBudget;
    key += state->enabled ? '1' : '0';
    switches.upstreams.push_back(*state);
  }
  for (const config::RoutingConfig& routing : active->config->routings) {
    const auto state = deps_.management.routing_state(routing.id, deadline);
    if (!state) return now + kStoreBudget;
    key += state->enabled ? '1' : '0';
    if (state->current) key += state->current->str();
    key += '\n';
    switches.routings.push_back(*state);
  }
  if (key != published_switches_ || published_ != active) {
    shared_.publish(make_shared_section(*active->config, active->clients, switches));
    published_switches_ = std::move(key);
    published_ = active;
  }
  if (supplied_ != active) {
    supply_from(*supplied_->config, *active->config);
    supplied_ = active;
    const auto changed = hooks_.with([](const Hooks& hooks) { return hooks.steps_changed; });
    if (changed) changed();
  }
  return now + kSwitchPoll;
}

TimePoint Controller::step_sweep(TimePoint now) {
  const auto swept = deps_.pool.sweep(kSweepBatch, Deadline::after(now, kStoreBudget));
  if (!swept) return now + kStoreBudget;
  const std::uint32_t moved = swept->drained + swept->expired + swept->removed + swept->freed;
  return moved >= kSweepBatch ? now : now + kSweepPoll;
}

TimePoint Controller::step_ownership(TimePoint now) {
  const std::uint64_t before = ownership_.counters().unplaced;
  const TimePoint next = ownership_.step(now);
  const OwnershipCounters after = ownership_.counters();
  if (before == 0 && after.unplaced != 0) {
    deps_.events.emit(ports::Event::OwnershipLimited, {{"left_over", after.unplaced}});
  }
  return next;
}

Status Controller::take_outcomes(const ports::OutcomeBatch& batch, Deadline deadline) {
  PP_TRY([[maybe_unused]] const Unit taken,
         health_.take_traffic(batch.worker, batch.outcomes, deadline));
  const WallTime now = deps_.clock.wall_now();
  for (const ports::Outcome& outcome : batch.outcomes) {
    decisions_.add({now - outcome.age, batch.worker, batch.routings[outcome.routing], outcome});
  }
  return ok();
}

std::vector<OwnedUpstream> Controller::owned_upstreams() const {
  std::vector<OwnedUpstream> upstreams;
  const auto config = this->config();
  for (const config::UpstreamConfig& upstream : config->upstreams) {
    upstreams.push_back(
        {upstream.id, {upstream.extraction.extractable, upstream.extraction.reserve}});
  }
  return upstreams;
}

void Controller::report_fetch(const UpstreamId& upstream, const domain::FetchOutcome& outcome,
                              const std::string& detail) {
  using ports::Event;
  if (outcome.kind == domain::FetchClass::Error) {
    deps_.events.emit(Event::UpstreamFetchFailed, {{"upstream", upstream.str()},
                                                   {"reason", domain::to_string(outcome.reason)},
                                                   {"detail", detail}});
    return;
  }
  deps_.events.emit(Event::UpstreamFetched, {{"upstream", upstream.str()},
                                             {"outcome", domain::to_string(outcome.kind)},
                                             {"records", outcome.tally.records},
                                             {"admitted", outcome.tally.admitted},
                                             {"duplicates", outcome.tally.duplicates}});
}

// Readings ---------------------------------------------------------------------------------------

std::vector<UpstreamId> Controller::upstream_ids() const {
  std::vector<UpstreamId> ids;
  for (const auto& supply : supplies()) ids.push_back(supply->upstream());
  return ids;
}

ports::UpstreamReading Controller::upstream(const UpstreamId& id) const {
  for (const auto& supply : supplies()) {
    if (supply->upstream() == id) return supply->reading();
  }
  return {};
}

std::vector<ports::UpstreamReading> Controller::upstreams(Deadline) {
  std::vector<ports::UpstreamReading> all;
  for (const auto& supply : supplies()) all.push_back(supply->reading());
  return all;
}

std::vector<ports::RoutingReading> Controller::routings(Deadline deadline) {
  std::vector<ports::RoutingReading> all;
  const auto shared = shared_.current();
  if (!shared) return all;
  for (const domain::SnapshotRouting& routing : shared->routings) {
    all.push_back(reading_of(routing));
    if (const auto state = deps_.management.routing_state(routing.id, deadline)) {
      all.back().revision = state->revision;
    }
  }
  return all;
}

ports::RoutingReading Controller::routing(const RoutingId& id) const {
  const auto shared = shared_.current();
  if (!shared) return {};
  const auto number = shared->routing_numbers.find(id);
  if (number == shared->routing_numbers.end()) return {};
  return reading_of(shared->routings[number->second]);
}

Result<std::vector<ports::WorkerRow>> Controller::workers(Deadline deadline) {
  return deps_.registry.workers(deadline);
}

Result<std::vector<ports::WorkerRegistry::CheckerRow>> Controller::checkers(Deadline deadline) {
  return deps_.registry.checkers(deadline);
}

Result<std::vector<ports::ProxyRow>> Controller::proxies(const ports::ProxyQuery& query,
                                                         Deadline deadline) {
  return deps_.pool.list(query, deadline);
}

Result<std::optional<ports::ClientUsageReading>> Controller::client_usage(const ClientName& client,
                                                                          Deadline deadline) {
  return usage_.reading(client, deadline);
}

Result<StoreTime> Controller::store_now(Deadline deadline) {
  PP_TRY(const ports::Generation generation, deps_.pool.generation(deadline));
  return generation.now;
}

std::vector<std::string> Controller::not_ready(Deadline deadline) {
  std::vector<std::string> reasons;
  if (const auto generation = deps_.pool.generation(deadline); !generation) {
    reasons.push_back("the activity pool does not answer: " + generation.error().message);
  }
  if (!shared_.current()) reasons.emplace_back("the management state was not read yet");
  return reasons;
}

ports::StatusReading Controller::status(Deadline deadline) {
  ports::StatusReading reading;
  const auto config = this->config();
  reading.cluster_id = config->cluster.id;
  reading.instance = identity_.instance;
  reading.uptime = deps_.clock.now() - started_at_;
  reading.storage = domain::spell(config->storage.mode);
  if (const auto generation = deps_.pool.generation(deadline)) reading.generation = *generation;
  reading.snapshots_issued = sessions_.counters().snapshots_issued;
  reading.checks_in_flight = health_.counters().in_flight;
  reading.warnings = warnings(reading.generation);
  return reading;
}

std::vector<std::string> Controller::warnings(const ports::Generation& generation) const {
  std::vector<std::string> warnings;
  if (generation.now < generation.exclusive_from) {
    const auto left = generation.exclusive_from - generation.now;
    warnings.push_back(
        "an earlier run may have left leases behind: nothing new is assigned and nothing is "
        "extracted for another " +
        std::to_string(left.count() / 1000 + 1) + " s");
  }
  const ports::StoreHealth store = deps_.management.health();
  if (!store.warning.empty()) warnings.push_back(store.warning);
  if (health_.counters().checkers == 0) {
    warnings.emplace_back("no checker is connected: new proxies stay unchecked and are not used");
  }
  for (const auto& supply : supplies()) {
    const auto reading = supply->reading();
    if (reading.errors_in_a_row == 0) continue;
    warnings.push_back("upstream " + reading.id.str() +
                       " fails: " + std::string(domain::to_string(reading.last.reason)) +
                       (reading.last_detail.empty() ? "" : " (" + reading.last_detail + ")"));
  }
  warn_of_routings(warnings);
  const auto more = hooks_.with([](const Hooks& hooks) { return hooks.warnings; });
  if (more) {
    for (std::string& warning : more()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

// Off beside the configuration: by an operator, or at the end of its list.
void Controller::warn_of_routings(std::vector<std::string>& warnings) const {
  const auto shared = shared_.current();
  if (!shared) return;
  const auto config = this->config();
  for (const domain::SnapshotRouting& routing : shared->routings) {
    const auto configured = std::find_if(config->routings.begin(), config->routings.end(),
                                         [&](const auto& entry) { return entry.id == routing.id; });
    if (routing.enabled || configured == config->routings.end() || !configured->enabled) continue;
    warnings.push_back("routing " + routing.id.str() +
                       " is off: its last upstream was used up, or an operator switched it off");
  }
}

}  // namespace proxypool::controller
