#include "gateway/transport/resolver.hpp"

#include <algorithm>
#include <utility>

namespace proxypool::gateway {

Resolver::Resolver(const Clock& clock, LookUp look_up, nanoseconds patience)
    : clock_(clock),
      look_up_(std::move(look_up)),
      patience_(patience),
      pool_("resolve", kThreads, kQueueMax) {}

std::optional<Resolved> Resolver::resolve(const std::string& name, Asker& asker) {
  const TimePoint now = clock_.now();
  return state_.with([&](State& state) -> std::optional<Resolved> {
    const auto known = state.known.find(name);
    if (known != state.known.end() && now < known->second.good_until) return known->second;
    const auto [place, first] = state.running.try_emplace(name);
    auto& askers = place->second;
    if (std::find(askers.begin(), askers.end(), &asker) == askers.end()) askers.push_back(&asker);
    // The job cannot finish before this lock is given up.
    if (!first || pool_.try_run([this, name] { look_up(name); })) return std::nullopt;
    state.running.erase(place);
    return Resolved{std::nullopt, now + kFailed};
  });
}

void Resolver::look_up(const std::string& name) {
  const auto address = look_up_(name, Deadline::after(clock_.now(), patience_));
  Resolved resolved;
  if (address) resolved.address = *address;
  resolved.good_until = clock_.now() + (address ? kFresh : kFailed);
  const auto askers = state_.with([&](State& state) {
    if (state.known.size() >= kNamesMax) state.known.clear();
    state.known.insert_or_assign(name, resolved);
    return std::move(state.running.extract(name).mapped());
  });
  for (Asker* asker : askers) {
    asker->loop.post([asker, name, resolved] { asker->on_resolved(name, resolved); });
  }
}

}  // namespace proxypool::gateway
