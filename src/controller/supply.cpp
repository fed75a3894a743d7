#include "controller/supply.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "proxypool/domain/proxy/identity.hpp"

namespace proxypool::controller {

namespace {

constexpr milliseconds kLeaderLease{15'000};
constexpr milliseconds kPoll{250};            // how often the pool is looked at
constexpr milliseconds kListRefresh{60'000};  // a list that did not change is read so often
constexpr milliseconds kStoreBudget{2'000};
constexpr milliseconds kStoreRetry{1'000};

std::optional<milliseconds> positive(nanoseconds value) {
  if (value <= nanoseconds{0}) return std::nullopt;
  return std::chrono::duration_cast<milliseconds>(value);
}

}  // namespace

SupplyService::SupplyService(const config::UpstreamConfig& upstream, InstanceId instance,
                             SecretString identity_key,
                             std::unique_ptr<ports::ProviderApi> provider, SupplyDeps deps)
    : id_(upstream.id),
      instance_(std::move(instance)),
      identity_key_(std::move(identity_key)),
      leader_name_("upstream/" + upstream.id.str()),
      deps_(std::move(deps)),
      config_(upstream),
      provider_(std::move(provider)) {
  show_settings();
}

void SupplyService::show_settings() {
  reading_.with([&](ports::UpstreamReading& reading) {
    reading.id = id_;
    reading.provider = domain::spell(config_.provider.type);
    reading.enabled = config_.enabled && !retired_;
    reading.minimum = config_.pool.minimum;
    reading.target = config_.pool.target;
    reading.size_max = config_.pool.size_max;
    reading.total_max = config_.fetch.total_max;
  });
}

void SupplyService::on_work(std::function<void()> wake) {
  orders_.with([&](Orders& orders) { orders.wake = std::move(wake); });
}

void SupplyService::order(const std::function<void(Orders&)>& write) {
  const auto wake = orders_.with([&](Orders& orders) {
    write(orders);
    orders.given = true;
    return orders.wake;
  });
  if (wake) wake();
}

void SupplyService::configure(const config::UpstreamConfig& upstream,
                              std::unique_ptr<ports::ProviderApi> provider) {
  order([&](Orders& orders) {
    orders.config = upstream;
    if (provider) orders.provider = std::move(provider);
    orders.retired = false;
  });
}

void SupplyService::retire() {
  order([](Orders& orders) { orders.retired = true; });
}

bool SupplyService::gone() const {
  const bool retired = orders_.with([](const Orders& orders) { return orders.retired; });
  return retired && reading_.with([](const ports::UpstreamReading& reading) {
    return !reading.enabled && reading.inventory.managed == 0;
  });
}

void SupplyService::take_orders() {
  const bool given = orders_.with([&](Orders& orders) {
    if (!orders.given) return false;
    orders.given = false;
    retired_ = orders.retired;
    if (orders.config) config_ = *std::exchange(orders.config, std::nullopt);
    new_source_ = new_source_ || orders.provider;
    if (orders.provider) provider_ = std::move(orders.provider);
    return true;
  });
  if (!given) return;
  listed_ = false;  // a list is read anew, with what is said of it now
  show_settings();
  if (!new_source_) return;
  backoff_ = {};
  filling_ = false;
  depleted_ = false;
  reading_.with([](ports::UpstreamReading& reading) { reading.errors_in_a_row = 0; });
}

Deadline SupplyService::budget() const {
  return Deadline::after(deps_.clock.now(), kStoreBudget);
}

ports::UpstreamReading SupplyService::reading() const {
  return reading_.with([](const ports::UpstreamReading& reading) { return reading; });
}

domain::TtlPolicy SupplyService::ttl() const {
  domain::TtlPolicy policy;
  policy.default_ttl = positive(config_.pool.default_ttl);
  policy.max_ttl = positive(config_.pool.ttl_max);
  policy.safety_margin =
      std::chrono::duration_cast<milliseconds>(config_.pool.allocation_safety_margin);
  return policy;
}

Status SupplyService::load_switches(Deadline deadline) {
  PP_TRY(const ports::UpstreamState state, deps_.management.upstream_state(id_, deadline));
  enabled_ = config_.enabled && state.enabled && !retired_;
  ports::UpstreamRules rules;
  rules.enabled = enabled_;
  rules.unhealthy_retention =
      std::chrono::duration_cast<milliseconds>(config_.check.unhealthy_retention);
  PP_TRY(const std::uint32_t moved, deps_.pool.configure(id_, rules, deadline));
  static_cast<void>(moved);
  reading_.with([&](ports::UpstreamReading& reading) { reading.enabled = enabled_; });
  return ok();
}

Status SupplyService::become_leader(Deadline deadline) {
  const TimePoint now = deps_.clock.now();
  if (term_ && now < lead_again_) return ok();
  const auto fence_before = term_ ? term_->fence : 0;
  PP_TRY(term_, deps_.coordination.lead(leader_name_, instance_, kLeaderLease, deadline));
  lead_again_ = now + kLeaderLease / 3;
  reading_.with([&](ports::UpstreamReading& reading) { reading.leader = term_.has_value(); });
  if (!term_ || term_->fence == fence_before) return ok();
  // A new term starts from what is durable (C11), and with a hysteresis of its own.
  filling_ = false;
  depleted_ = false;
  PP_TRY(const ports::UpstreamState state, deps_.management.upstream_state(id_, deadline));
  return deps_.coordination.raise_total(id_, state.spent_total, deadline);
}

TimePoint SupplyService::step_retired(TimePoint now) {
  const Deadline deadline = budget();
  if (term_) static_cast<void>(deps_.coordination.resign(leader_name_, instance_, deadline));
  term_.reset();
  reading_.with([](ports::UpstreamReading& reading) { reading.leader = false; });
  const Status loaded = load_switches(deadline);
  const auto inventory = deps_.pool.inventory(id_, deadline);
  if (!loaded || !inventory) return now + kStoreRetry;
  reading_.with([&](ports::UpstreamReading& reading) { reading.inventory = *inventory; });
  return inventory->managed == 0 ? kNever : now + kStoreRetry;
}

TimePoint SupplyService::step(TimePoint now) {
  take_orders();
  if (retired_) return step_retired(now);
  const Deadline deadline = budget();
  const Status led = become_leader(deadline);
  const Status loaded = led ? load_switches(deadline) : led;
  if (!loaded) {
    term_.reset();  // not certain: not leader
    return now + kStoreRetry;
  }
  if (auto inventory = deps_.pool.inventory(id_, deadline)) {
    reading_.with([&](ports::UpstreamReading& reading) { reading.inventory = *inventory; });
  }
  if (!term_ || !enabled_) return now + kStoreRetry;
  if (new_source_ && !deps_.coordination.clear_empty(id_, deadline)) return now + kStoreRetry;
  new_source_ = false;
  tell_depleted();
  return provider_->authoritative() ? step_list(now) : step_vendor(now);
}

TimePoint SupplyService::step_list(TimePoint now) {
  const std::uint64_t version = provider_->source_version();
  if (listed_ && version == source_seen_ && now < list_again_) return now + kPoll;
  const domain::FetchOutcome outcome = fetch(0);
  count(outcome);
  listed_ = outcome.kind != domain::FetchClass::Error;
  source_seen_ = version;
  list_again_ = now + kListRefresh;
  return now + (listed_ ? kPoll : kStoreRetry);
}

TimePoint SupplyService::step_vendor(TimePoint now) {
  const Deadline deadline = budget();
  const auto generation = deps_.pool.generation(deadline);
  const auto inventory = deps_.pool.inventory(id_, deadline);
  const auto ledger = deps_.coordination.ledger(id_, deadline);
  if (!generation || !inventory || !ledger) return now + kStoreRetry;
  reading_.with([&](ports::UpstreamReading& reading) {
    reading.total_spent = ledger->total_spent;
    reading.backoff_left = std::max(backoff_.until - generation->now, milliseconds{0});
  });
  if (backoff_.waiting(generation->now)) {
    return now + std::min<milliseconds>(backoff_.until - generation->now, kStoreRetry);
  }

  const auto decision = decide(*inventory, *ledger);
  if (decision.calls == 0) return now + kPoll;
  const ports::PermitRequest request = permit_request();
  const auto answer = deps_.coordination.acquire_permit(request, deadline);
  if (!answer) return now + kStoreRetry;
  if (!answer->permit) return after_refusal(*answer, now);

  const auto wanted = std::min<std::uint64_t>(decision.proxies, request.expected);
  const domain::FetchOutcome outcome = fetch(static_cast<std::uint32_t>(wanted));
  settle(*answer->permit, outcome);
  count(outcome);
  const auto after = deps_.pool.generation(budget());
  domain::BackoffPolicy backoff;
  backoff.first = std::chrono::duration_cast<milliseconds>(config_.fetch.backoff.initial);
  backoff.longest = std::chrono::duration_cast<milliseconds>(config_.fetch.backoff.max);
  backoff_.add(outcome, backoff, after ? after->now : generation->now, deps_.random());
  return deps_.clock.now();
}

domain::RefillDecision SupplyService::decide(const domain::Inventory& inventory,
                                             const ports::FetchLedger& ledger) {
  domain::RefillPolicy policy;
  policy.minimum = config_.pool.minimum;
  policy.target = config_.pool.target;
  policy.size_max = config_.pool.size_max;
  policy.expected_per_call = config_.fetch.estimated_ips_per_call;
  policy.slots_per_proxy = config_.pool.concurrency_max;
  policy.in_flight_max = config_.fetch.in_flight_max;
  domain::RefillInput input;
  input.managed = inventory.managed;
  input.slots = inventory.slots;
  // What is not through its first check will be slots soon: it is as good as on its way.
  input.pending = ledger.total_reserved + inventory.in_state(domain::ProxyState::Fetched) +
                  inventory.in_state(domain::ProxyState::Checking);
  input.managed -= std::min(input.managed, input.pending - ledger.total_reserved);
  input.in_flight = ledger.in_flight;
  if (config_.fetch.total_max != 0) {
    const std::uint64_t used = ledger.total_spent + ledger.total_reserved;
    input.total_left = config_.fetch.total_max - std::min(config_.fetch.total_max, used);
  }
  const auto decision = domain::decide_refill(policy, input, filling_);
  filling_ = decision.filling;
  reading_.with([&](ports::UpstreamReading& reading) { reading.stop = decision.stop; });
  return decision;
}

ports::PermitRequest SupplyService::permit_request() const {
  ports::PermitRequest request;
  request.upstream = id_;
  request.leader = leader_name_;
  request.term = *term_;
  request.request_interval =
      std::chrono::duration_cast<milliseconds>(config_.fetch.request_interval);
  request.in_flight_max = config_.fetch.in_flight_max;
  request.total_max = config_.fetch.total_max;
  request.expected = config_.fetch.estimated_ips_per_call;
  request.lifetime =
      std::chrono::duration_cast<milliseconds>(config_.fetch.timeout) + 2 * kStoreBudget;
  return request;
}

TimePoint SupplyService::after_refusal(const ports::PermitAnswer& answer, TimePoint now) {
  const auto stop = [this](domain::RefillStop why) {
    reading_.with([&](ports::UpstreamReading& reading) { reading.stop = why; });
  };
  switch (answer.refusal) {
    case ports::PermitRefusal::Interval:
      return now + std::clamp(answer.retry_after, milliseconds{1}, kStoreRetry);
    case ports::PermitRefusal::InFlight:
      stop(domain::RefillStop::InFlight);
      return now + kPoll;
    case ports::PermitRefusal::TotalSpent:
      // Something is left, but less than one call may bring.
      stop(domain::RefillStop::TotalUsed);
      return now + kStoreRetry;
    case ports::PermitRefusal::NotLeader:
      term_.reset();
      return now + kStoreRetry;
  }
  return now + kStoreRetry;
}

domain::FetchOutcome SupplyService::fetch(std::uint32_t wanted) {
  const TimePoint now = deps_.clock.now();
  reading_.with([](ports::UpstreamReading& reading) { reading.fetching = true; });
  ports::FetchAnswer answer = provider_->fetch({wanted, deps_.clock.wall_now()},
                                               Deadline::after(now, config_.fetch.timeout));
  reading_.with([&](ports::UpstreamReading& reading) {
    reading.fetching = false;
    reading.fetch_time += deps_.clock.now() - now;
  });
  detail_ = answer.detail;
  domain::FetchOutcome outcome;
  outcome.retry_after = answer.retry_after;
  outcome.tally.records = answer.records;
  outcome.tally.invalid = answer.invalid;
  outcome.tally.refused_private = answer.refused_private;
  if (answer.error) {
    outcome.reason = *answer.error;
    return outcome;
  }
  // A list that could not be read whole is not the truth about what is gone.
  if (provider_->authoritative() && answer.candidates.empty() && answer.records > 0) {
    outcome.reason = domain::FetchReason::Parse;
    return outcome;
  }
  std::uint32_t repeated = 0;
  const auto admitted = admit(std::move(answer.candidates), repeated);
  if (!admitted) {
    outcome.reason = domain::FetchReason::Other;
    detail_ = "the pool did not answer: " + admitted.error().message;
    return outcome;
  }
  domain::FetchTally tally = outcome.tally;
  tally.duplicates = admitted->duplicates + repeated;
  tally.expired_on_arrival = admitted->expired;
  tally.refused_full = admitted->over_size;
  tally.admitted = admitted->admitted;
  const auto retry_after = outcome.retry_after;
  outcome = domain::classify_fetch(tally);
  outcome.retry_after = retry_after;
  return outcome;
}

Result<ports::AdmitResult> SupplyService::admit(std::vector<domain::Candidate> candidates,
                                                std::uint32_t& repeated) {
  const auto keyed = [this](std::string_view message) {
    return deps_.crypto.hmac_sha256(identity_key_.reveal(), message);
  };
  ports::AdmitBatch batch;
  batch.upstream = id_;
  batch.ttl = ttl();
  batch.managed_max = config_.pool.size_max;
  batch.concurrency_max = config_.pool.concurrency_max;
  batch.tags = config_.tags;
  batch.authoritative = provider_->authoritative();
  batch.admissions.reserve(candidates.size());
  std::unordered_set<ProxyId> seen;
  for (domain::Candidate& candidate : candidates) {
    ports::Admission admission;
    admission.credential_version = domain::credential_version(candidate.credential, keyed);
    admission.id =
        domain::proxy_id(domain::unique_key(candidate.endpoint, candidate.credential.username,
                                            admission.credential_version),
                         keyed);
    if (!seen.insert(admission.id).second) {
      ++repeated;
      continue;
    }
    admission.candidate = std::move(candidate);
    batch.admissions.push_back(std::move(admission));
  }
  return deps_.pool.admit(batch, budget());
}

void SupplyService::settle(const ports::Permit& permit, const domain::FetchOutcome& outcome) {
  // What a failed call brought is not known: it is booked as expected.
  const bool certain = outcome.kind != domain::FetchClass::Error;
  const auto actual = certain ? std::optional(outcome.tally.valid()) : std::nullopt;
  static_cast<void>(deps_.coordination.settle_permit(id_, permit, actual, budget()));
  if (config_.fetch.total_max == 0) return;
  // The durable copy may lag behind by a crash; the larger of both counts (C11).
  const auto ledger = deps_.coordination.ledger(id_, budget());
  auto state = deps_.management.upstream_state(id_, budget());
  if (!ledger || !state || state->spent_total >= ledger->total_spent) return;
  state->spent_total = ledger->total_spent;
  static_cast<void>(deps_.management.put_upstream_state(*state, std::nullopt, budget()));
}

void SupplyService::tell_depleted() {
  if (depleted_ && deps_.on_depleted(id_, budget())) depleted_ = false;
}

void SupplyService::count(const domain::FetchOutcome& outcome) {
  std::uint32_t empty = 0;
  if (outcome.kind == domain::FetchClass::Empty) {
    empty = deps_.coordination.count_empty(id_, budget()).value_or(0);
    if (empty != 0 && empty % config_.fetch.empty_threshold == 0) depleted_ = true;
  } else if (outcome.kind != domain::FetchClass::Error) {
    static_cast<void>(deps_.coordination.clear_empty(id_, budget()));
    depleted_ = false;
  }
  tell_depleted();
  reading_.with([&](ports::UpstreamReading& reading) {
    reading.counters.add(outcome);
    reading.last = outcome;
    reading.last_detail = detail_;
    reading.last_fetch_at = deps_.clock.wall_now();
    if (outcome.kind != domain::FetchClass::Error) reading.empty_in_a_row = empty;
    reading.errors_in_a_row =
        outcome.kind == domain::FetchClass::Error ? reading.errors_in_a_row + 1 : 0;
  });
  if (deps_.on_fetch) deps_.on_fetch(id_, outcome, detail_);
}

}  // namespace proxypool::controller
