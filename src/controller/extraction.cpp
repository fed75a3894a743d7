#include "controller/extraction.hpp"

#include <algorithm>
#include <utility>

#include "proxypool/base/assert.hpp"

namespace proxypool::controller {

namespace {

const config::ClientConfig* find_client(const config::Config& config, const ClientName& name) {
  const auto found = std::find_if(config.clients.begin(), config.clients.end(),
                                  [&](const auto& client) { return client.name == name; });
  return found == config.clients.end() ? nullptr : &*found;
}

template <class T>
bool holds(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::uint32_t count_max_of(const config::Config& config, const ClientName& name) {
  const auto* client = find_client(config, name);
  const std::uint32_t own = client ? client->extraction.count_max : 0;
  return own != 0 ? own : config.distribution.extraction.count_max;
}

}  // namespace

ExtractionService::ExtractionService(std::shared_ptr<const config::Config> config,
                                     ports::ActivityPool& pool, const Clock& clock)
    : pool_(pool), clock_(clock) {
  configure(std::move(config));
}

void ExtractionService::configure(std::shared_ptr<const config::Config> config) {
  PP_ASSERT(config != nullptr);
  state_.with([&](State& state) { state.config = std::move(config); });
}

std::uint32_t ExtractionService::count_max(const ClientName& client) const {
  return state_.with([&](const State& state) { return count_max_of(*state.config, client); });
}

ExtractionCounters ExtractionService::counters() const {
  return state_.with([](const State& state) { return state.counters; });
}

std::size_t ExtractionService::shortage(const UpstreamId& upstream) const {
  const TimePoint now = clock_.now();
  return state_.with([&](const State& state) -> std::size_t {
    const auto found = state.lacks.find(upstream);
    if (found == state.lacks.end() || now >= found->second.until) return 0;
    return found->second.proxies;
  });
}

Status ExtractionService::complete(domain::ExtractionCommand& command) const {
  const auto config = state_.with([](const State& state) { return state.config; });
  const std::uint32_t most = count_max_of(*config, command.client);
  if (command.count == 0) {
    return Error{ErrorCode::InvalidArgument, Origin::Client, "count must be at least 1"};
  }
  if (command.count > most) {
    return Error{ErrorCode::InvalidArgument, Origin::Client,
                 "count_too_large: at most " + std::to_string(most) + " in one call"};
  }
  const auto* client = find_client(*config, command.client);
  const bool any = !client || client->allowed_upstreams.empty();
  for (const UpstreamId& wanted : command.filters.upstreams) {
    if (!any && !holds(client->allowed_upstreams, wanted)) {
      return Error{ErrorCode::Forbidden, Origin::Client,
                   "upstream '" + wanted.str() + "' is not allowed to this client"};
    }
  }
  command.idempotency_ttl =
      std::chrono::duration_cast<milliseconds>(config->distribution.extraction.idempotency_ttl);
  command.policies.clear();
  for (const config::UpstreamConfig& upstream : config->upstreams) {
    if (!any && !holds(client->allowed_upstreams, upstream.id)) continue;
    command.policies.push_back(
        {upstream.id, upstream.extraction.extractable, upstream.extraction.reserve_for_gateway});
  }
  return ok();
}

void ExtractionService::note(const domain::ExtractionCommand& command,
                             const domain::ExtractionResult& result) {
  constexpr seconds kRemembered{60};
  const TimePoint now = clock_.now();
  state_.with([&](State& state) {
    ExtractionCounters& counters = state.counters;
    ++counters.calls;
    counters.requested += command.count;
    if (result.outcome == domain::ExtractionOutcome::Replayed) ++counters.replayed;
    const bool done = result.outcome == domain::ExtractionOutcome::Done;
    if (done) counters.returned += result.proxies.size();
    const bool served = done || result.outcome == domain::ExtractionOutcome::Insufficient;
    if (!served || result.available >= command.count) return;
    ++counters.insufficient;
    for (const domain::ExtractionPolicy& policy : command.policies) {
      if (!policy.extractable) continue;
      const auto& wanted = command.filters.upstreams;
      if (!wanted.empty() && !holds(wanted, policy.upstream)) continue;
      Lack& lack = state.lacks[policy.upstream];
      const std::size_t before = now < lack.until ? lack.proxies : 0;
      lack = {std::max<std::size_t>(command.count - result.available, before), now + kRemembered};
    }
  });
}

Result<domain::ExtractionResult> ExtractionService::extract(domain::ExtractionCommand command,
                                                            Deadline deadline) {
  PP_TRY(const Unit completed, complete(command));
  static_cast<void>(completed);
  auto result = pool_.extract(command, deadline);
  if (!result) {
    state_.with([](State& state) { ++state.counters.failed; });
    return result;
  }
  note(command, *result);
  return result;
}

Result<domain::ExtractionResult> ExtractionService::preview(domain::ExtractionCommand command,
                                                            Deadline deadline) {
  PP_TRY(const Unit completed, complete(command));
  static_cast<void>(completed);
  return pool_.preview(command, deadline);
}

}  // namespace proxypool::controller
