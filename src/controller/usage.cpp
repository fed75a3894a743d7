#include "controller/usage.hpp"

#include <utility>

namespace proxypool::controller {

namespace {

template <class Quotas>
bool used_up(const Quotas& quotas, const ClientName& client, const domain::Usage& today) {
  const auto quota = quotas.find(client);
  return quota != quotas.end() && domain::used_up(today, quota->second);
}

}  // namespace

UsageService::UsageService(std::shared_ptr<const config::Config> config,
                           ports::ManagementStore& store, const Clock& clock)
    : store_(store), clock_(clock) {
  configure(config);
}

void UsageService::configure(const std::shared_ptr<const config::Config>& config) {
  auto quotas = std::make_shared<Quotas>();
  for (const config::ClientConfig& client : config->clients) {
    quotas->emplace(client.name, client.limits.bytes_per_day);
  }
  state_.with([&](State& state) {
    state.quotas = std::move(quotas);
    state.day.reset();  // who is over is found out anew
  });
}

std::shared_ptr<const UsageService::Quotas> UsageService::quotas() const {
  return state_.with([](const State& state) { return state.quotas; });
}

domain::UsageBatch UsageService::known_of(const domain::UsageBatch& batch) {
  const auto quotas = this->quotas();
  domain::UsageBatch known{batch.number, {}};
  for (const domain::ClientUsage& row : batch.clients) {
    if (quotas->contains(row.client)) known.clients.push_back(row);
  }
  const std::size_t unknown = batch.clients.size() - known.clients.size();
  if (unknown != 0) state_.with([&](State& state) { state.counters.unknown += unknown; });
  return known;
}

// Who has used up the new day already: those whose usage outlived a restart. While the store does
// not answer it is asked again with the next report.
void UsageService::begin_day(domain::Day day, Deadline deadline) {
  const bool begun = state_.with([&](const State& state) { return state.day == day; });
  if (begun) return;
  const auto usage = store_.usage_on(day, deadline);
  if (!usage) return;
  state_.with([&](State& state) {
    if (state.day == day) return;
    state.day = day;
    state.over.clear();
    for (const domain::ClientUsage& row : *usage) {
      if (used_up(*state.quotas, row.client, row.usage)) state.over.insert(row.client);
    }
  });
}

bool UsageService::keep(const InstanceId& instance, const domain::UsageBatch& batch, WallTime at,
                        Deadline deadline) {
  const domain::UsageBatch known = known_of(batch);
  const auto added = store_.add_usage(instance, known, at, deadline);
  state_.with([&](State& state) {
    if (!added) {
      ++state.counters.failures;
      return;
    }
    for (std::size_t i = 0; i < known.clients.size(); ++i) {
      const domain::ClientUsage& row = known.clients[i];
      if (added->fresh) {
        state.counters.bytes_up += row.usage.bytes_up;
        state.counters.bytes_down += row.usage.bytes_down;
      }
      if (state.day == domain::day_of(at) && used_up(*state.quotas, row.client, added->today[i])) {
        state.over.insert(row.client);
      }
    }
  });
  return added.has_value();
}

UsageService::Verdicts UsageService::take(const InstanceId& instance,
                                          const domain::UsageBatch& batch, Deadline deadline) {
  const WallTime at = clock_.wall_now();
  const domain::Day today = domain::day_of(at);
  begin_day(today, deadline);
  Verdicts verdicts;
  if (batch.number != 0 && keep(instance, batch, at, deadline)) verdicts.kept = batch.number;
  verdicts.resets_in = domain::left_of_day(at);
  state_.with([&](const State& state) {
    if (state.day != today) return;  // of another day: it is over
    verdicts.over.assign(state.over.begin(), state.over.end());
  });
  return verdicts;
}

Result<std::optional<ports::ClientUsageReading>> UsageService::reading(const ClientName& client,
                                                                       Deadline deadline) const {
  const auto quotas = this->quotas();
  const auto quota = quotas->find(client);
  if (quota == quotas->end()) return std::optional<ports::ClientUsageReading>{};
  PP_TRY(std::vector<domain::DayUsage> days, store_.usage(client, deadline));
  ports::ClientUsageReading reading;
  reading.client = client;
  reading.day = domain::day_of(clock_.wall_now());
  reading.bytes_per_day = quota->second;
  reading.days = std::move(days);
  for (const domain::DayUsage& entry : reading.days) {
    if (entry.day == reading.day) reading.today = entry.usage;
  }
  return std::optional(std::move(reading));
}

UsageCounters UsageService::counters() const {
  return state_.with([](const State& state) { return state.counters; });
}

std::size_t UsageService::over_quota() const {
  return state_.with([](const State& state) { return state.over.size(); });
}

}  // namespace proxypool::controller
