#include "controller/controller.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

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
Status check_keys(const config::Config& config, const std::vector<HashedClient>& clients) {
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
    return Error{ErrorCode::InvalidArgument, Origin::Client,
                 "clients " + owner->second->str() + " and " + client.name.str() +
                     " have the same API key in credentials.gateway"};
  }
  return ok();
}

Result<std::vector<HashedClient>> hash_clients(const config::Config& config,
                                               const ports::Crypto& crypto) {
  std::vector<HashedClient> clients;
  for (const config::ClientConfig& client : config.clients) {
    HashedClient out;
    out.name = client.name;
    if (client.gateway_secret) {
      PP_TRY(out.gateway_secret, hashed(*client.gateway_secret, crypto));
    }
    clients.push_back(std::move(out));
  }
  PP_TRY([[maybe_unused]] const Unit different, check_keys(config, clients));
  return clients;
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
  PP_TRY(std::vector<HashedClient> clients, hash_clients(*config, deps.crypto));
  return std::unique_ptr<Controller>(
      new Controller(std::move(config), std::move(identity), std::move(deps), std::move(clients)));
}

Controller::Controller(std::shared_ptr<const config::Config> config, ControllerIdentity identity,
                       ControllerDeps deps, std::vector<HashedClient> clients)
    : config_(std::move(config)),
      identity_(std::move(identity)),
      deps_(std::move(deps)),
      started_at_(deps_.clock.now()),
      clients_(std::move(clients)),
      usage_(config_, deps_.management, deps_.clock),
      sessions_(worker_settings(*config_, identity_),
                {deps_.pool, deps_.registry, deps_.coordination, deps_.crypto, shared_, deps_.clock,
                 usage_,
                 [this](const ports::OutcomeBatch& batch, Deadline deadline) {
                   return take_outcomes(batch, deadline);
                 }}),
      health_(health_settings(*config_, identity_), config_,
              {deps_.pool, deps_.registry, deps_.clock}),
      extraction_(config_, deps_.pool, deps_.clock),
      ownership_(
          ownership_settings(*config_), deps_.pool, deps_.registry, deps_.coordination, deps_.clock,
          [this] { return owned_upstreams(); },
          [this](const UpstreamId& upstream) { return extraction_.shortage(upstream); }),
      presence_(deps_.registry, deps_.events) {
  for (const config::UpstreamConfig& upstream : config_->upstreams) {
    SupplyDeps supply{deps_.pool,
                      deps_.coordination,
                      deps_.management,
                      deps_.crypto,
                      deps_.clock,
                      deps_.random,
                      [this](const UpstreamId& id, const domain::FetchOutcome& outcome,
                             const std::string& detail) { report_fetch(id, outcome, detail); }};
    supplies_.push_back(
        std::make_unique<SupplyService>(upstream, identity_.instance, identity_.identity_key,
                                        deps_.make_provider(upstream), std::move(supply)));
  }
}

std::vector<NamedStep> Controller::steps() {
  std::vector<NamedStep> steps;
  steps.push_back({"switches", [this](TimePoint now) { return step_switches(now); }, {}});
  steps.push_back({"sweep", [this](TimePoint now) { return step_sweep(now); }, {}});
  steps.push_back({"snapshots", [this](TimePoint now) { return sessions_.step(now); },
                   [this](std::function<void()> wake) { sessions_.on_work(std::move(wake)); }});
  steps.push_back({"health", [this](TimePoint now) { return health_.step(now); }, {}});
  steps.push_back({"presence", [this](TimePoint now) { return presence_.step(now); }, {}});
  steps.push_back({"ownership", [this](TimePoint now) { return step_ownership(now); }, {}});
  for (const auto& supply : supplies_) {
    steps.push_back({"supply " + supply->upstream().str(),
                     [service = supply.get()](TimePoint now) { return service->step(now); },
                     {}});
  }
  return steps;
}

TimePoint Controller::step_switches(TimePoint now) {
  const Deadline deadline = Deadline::after(now, kStoreBudget);
  Switches switches;
  std::string key;
  for (const config::UpstreamConfig& upstream : config_->upstreams) {
    const auto state = deps_.management.upstream_state(upstream.id, deadline);
    if (!state) return now + kStoreBudget;
    key += state->enabled ? '1' : '0';
    switches.upstreams.push_back(*state);
  }
  for (const config::RoutingConfig& routing : config_->routings) {
    const auto state = deps_.management.routing_state(routing.id, deadline);
    if (!state) return now + kStoreBudget;
    key += state->enabled ? '1' : '0';
    if (state->current) key += state->current->str();
    key += '\n';
    switches.routings.push_back(*state);
  }
  if (key != published_switches_ || !shared_.current()) {
    shared_.publish(make_shared_section(*config_, clients_, switches));
    published_switches_ = std::move(key);
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
  for (const config::UpstreamConfig& upstream : config_->upstreams) {
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
  for (const auto& supply : supplies_) ids.push_back(supply->upstream());
  return ids;
}

ports::UpstreamReading Controller::upstream(const UpstreamId& id) const {
  for (const auto& supply : supplies_) {
    if (supply->upstream() == id) return supply->reading();
  }
  return {};
}

std::vector<ports::UpstreamReading> Controller::upstreams(Deadline) {
  std::vector<ports::UpstreamReading> all;
  for (const auto& supply : supplies_) all.push_back(supply->reading());
  return all;
}

std::vector<ports::RoutingReading> Controller::routings(Deadline) {
  std::vector<ports::RoutingReading> all;
  const auto shared = shared_.current();
  if (!shared) return all;
  for (const domain::SnapshotRouting& routing : shared->routings) {
    ports::RoutingReading reading{routing.id,
                                  routing.enabled,
                                  std::string(domain::spell(routing.strategy)),
                                  std::string(domain::spell(routing.balancer)),
                                  {},
                                  routing.current};
    for (const auto& upstream : routing.upstreams) reading.upstreams.push_back(upstream.id);
    all.push_back(std::move(reading));
  }
  return all;
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
  reading.cluster_id = config_->cluster.id;
  reading.instance = identity_.instance;
  reading.uptime = deps_.clock.now() - started_at_;
  reading.storage = domain::spell(config_->storage.mode);
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
  for (const auto& supply : supplies_) {
    const auto reading = supply->reading();
    if (reading.errors_in_a_row == 0) continue;
    warnings.push_back("upstream " + reading.id.str() +
                       " fails: " + std::string(domain::to_string(reading.last.reason)) +
                       (reading.last_detail.empty() ? "" : " (" + reading.last_detail + ")"));
  }
  return warnings;
}

}  // namespace proxypool::controller
