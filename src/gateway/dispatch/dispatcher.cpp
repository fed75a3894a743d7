#include "gateway/dispatch/dispatcher.hpp"

#include "proxypool/base/assert.hpp"
#include "proxypool/domain/balance/reserve.hpp"

namespace proxypool::gateway {

using domain::Members;
using domain::Tier;
using domain::Verdict;

namespace {

Verdict judge(domain::Failure failure) noexcept {
  switch (failure.phase) {
    case domain::Phase::None:
      return Verdict::Good;
    case domain::Phase::Dial:
    case domain::Phase::ProxyHandshake:
      return Verdict::Bad;
    case domain::Phase::ResponseHeaders:
    case domain::Phase::Tunnel:
      break;
  }
  return Verdict::Neutral;
}

}  // namespace

void Allocation::take(Allocation& other) noexcept {
  entry_ = std::move(other.entry_);
  registry_ = other.registry_;
  upstream_ = other.upstream_;
  routing_ = other.routing_;
  taken_at_ = other.taken_at_;
  member_ = other.member_;
  timed_ = other.timed_;
  answered_ = other.answered_;
  stripe_ = other.stripe_;
  stage_ = std::exchange(other.stage_, Stage::Free);
}

void Allocation::commit() noexcept {
  if (PP_BUG_IF(stage_ != Stage::Reserved)) return;
  if (upstream_->members.commit(member_)) stage_ = Stage::Active;
}

void Allocation::answered(bool good, TimePoint now) noexcept {
  if (!held() || !to_be_timed()) return;
  answered_ = true;
  if (!good) {
    upstream_->members.failed(member_, now, registry_->options().penalty);
  } else if (timed_) {
    upstream_->members.answered(member_, now, now - taken_at_);
  }
}

void Allocation::release(domain::Failure failure, TimePoint now) noexcept {
  if (PP_BUG_IF(!held())) return;
  if (to_be_timed()) {
    if (failure.phase != domain::Phase::None) {
      upstream_->members.failed(member_, now, registry_->options().penalty);
    } else if (timed_) {
      upstream_->members.given_up(member_, now, now - taken_at_);
    }
  }
  give_back(judge(failure), now);
}

void Allocation::give_back(Verdict verdict, TimePoint now) noexcept {
  const bool active = std::exchange(stage_, Stage::Free) == Stage::Active;
  upstream_->members.release(member_, active, verdict, now, registry_->options().bench);
  if (routing_ != nullptr) routing_->in_flight.fetch_sub(1);
  if (stripe_ != kUncounted) upstream_->in_flight.add(stripe_, -1);
  // Whoever waits has counted itself before it looked for a place the last time.
  if (upstream_->waiters.load() != 0 && registry_->options().listener != nullptr) {
    registry_->options().listener->place_free(*upstream_);
  }
}

// Whoever is turned away says so and looks once more: then either it enters, or the one who leaves
// sees that it was here.
bool Dispatcher::enter(const View::Routing& routing) noexcept {
  if (routing.in_flight_max == 0) return true;
  auto& count = routing.runtime->in_flight;
  for (int look = 0; look < 2; ++look) {
    std::uint32_t seen = count.load();
    while (seen < routing.in_flight_max) {
      if (count.compare_exchange_weak(seen, seen + 1)) return true;
    }
    routing.runtime->turned_away.store(true);
  }
  return false;
}

void Dispatcher::leave(const View::Routing& routing) noexcept {
  if (routing.in_flight_max == 0) return;
  routing.runtime->in_flight.fetch_sub(1);
  if (!routing.runtime->turned_away.exchange(false) || routing.upstreams.empty()) return;
  look_again(*routing.upstreams.front()->runtime);
}

void Dispatcher::look_again(const UpstreamRuntime& upstream) noexcept {
  PlaceListener* listener = registry_.options().listener;
  if (upstream.waiters.load() != 0 && listener != nullptr) listener->place_free(upstream);
}

std::optional<RoutingPlace> Dispatcher::enter_direct(const View::Routing& routing) {
  if (!enter(routing)) return std::nullopt;
  RoutingPlace place;
  if (routing.in_flight_max == 0) return place;
  place.registry_ = &registry_;
  place.routing_ = routing.runtime;
  if (!routing.upstreams.empty()) place.first_ = routing.upstreams.front()->runtime;
  return place;
}

RoutingPlace::~RoutingPlace() {
  if (routing_ == nullptr) return;
  routing_->in_flight.fetch_sub(1);
  // A newer view may let others wait for what this one has.
  PlaceListener* const listener = registry_->options().listener;
  if (first_ != nullptr && first_->waiters.load() != 0 && listener != nullptr) {
    listener->place_free(*first_);
  }
}

const View::Routing* Dispatcher::route(const View& view, const domain::RouteRequest& request) {
  const std::uint32_t number = view.matcher().match(request, verdicts_);
  return number == domain::Matcher::kNone ? nullptr : &view.routing(number);
}

Acquisition Dispatcher::acquire(const View& view, const domain::RouteRequest& request,
                                const ExcludedProxies& tried, TimePoint now, Random& random) {
  const View::Routing* routing = route(view, request);
  if (routing == nullptr) return {};
  return acquire(view, *routing, tried, now, random);
}

Acquisition Dispatcher::acquire(const View& view, const View::Routing& routing,
                                const ExcludedProxies& tried, TimePoint now, Random& random,
                                const Wanted& wanted) {
  Acquisition out;
  out.routing = &routing;
  out.outcome = Acquired::NotValid;
  if (!registry_.valid(now)) return out;
  out.outcome = Acquired::RoutingFull;
  if (!enter(routing)) return out;
  const FilteredRouting* const fitting = filtered(view, routing, wanted);
  const auto load = [&](std::uint32_t i) { return routing.upstreams[i]->runtime->in_flight.sum(); };
  const bool suspects = view.policy().use_suspect == domain::UseSuspect::WhenEmpty;
  for (const Tier tier : {Tier::Available, Tier::Suspect}) {
    if (tier == Tier::Suspect && !suspects) break;
    domain::Preference preference;
    for (;;) {
      const auto i = routing.order.next(preference, routing.runtime->turn, random, load);
      if (i == domain::UpstreamOrder::kNone) break;
      const View::Upstream& upstream = *routing.upstreams[i];
      const FilteredRouting::Part* part = fitting == nullptr ? nullptr : &fitting->parts[i];
      const std::size_t suspects_here = part == nullptr ? upstream.suspects : part->suspects;
      if (tier == Tier::Suspect && suspects_here == 0) continue;
      const auto from = part == nullptr ? upstream.candidates() : part->candidates();
      const auto member =
          reserve(upstream, from, routing.balancer, tier, tried, now, random, wanted.affinity);
      if (member == Members::kNone) continue;
      out.outcome = Acquired::Ok;
      out.allocation = hand_out(upstream, member, routing, now);
      return out;
    }
  }
  leave(routing);
  out.outcome = Acquired::NoCandidate;
  return out;
}

const FilteredRouting* Dispatcher::filtered(const View& view, const View::Routing& routing,
                                            const Wanted& wanted) {
  if (wanted.key.empty()) return nullptr;
  return &filters_.find(view.stamp(), view.number_of(routing), wanted.key,
                        [&] { return view.filtered(routing, wanted); });
}

Acquisition Dispatcher::acquire_at(const View& view, const View::Routing& routing,
                                   const Binding& binding, TimePoint now, const Wanted& wanted) {
  Acquisition out;
  out.routing = &routing;
  out.outcome = Acquired::NotValid;
  if (!registry_.valid(now)) return out;
  out.outcome = Acquired::SessionLost;
  std::size_t at = 0;
  for (; at < routing.upstreams.size(); ++at) {
    if (routing.upstreams[at]->runtime == binding.upstream) break;
  }
  if (at == routing.upstreams.size()) return out;
  const View::Upstream& upstream = *routing.upstreams[at];
  const ProxyEntry* entry = upstream.entry(binding.member);
  Members& members = binding.upstream->members;
  const auto stands = [&] { return members.id(binding.member) == binding.proxy; };
  if (entry == nullptr || entry->id != binding.proxy || !stands()) return out;
  if (!members.still_usable(binding.member, now)) return out;
  if (const FilteredRouting* fitting = filtered(view, routing, wanted)) {
    const auto& mask = fitting->parts[at].mask;
    if ((mask[binding.member / 64] >> (binding.member % 64) & 1U) == 0) return out;
  }
  out.outcome = Acquired::RoutingFull;
  if (!enter(routing)) return out;
  members.wake_benched(now);
  // C6: no other proxy is a candidate, so a SUSPECT one is the last resort.
  const bool suspects = view.policy().use_suspect == domain::UseSuspect::WhenEmpty;
  const bool taken = members.try_reserve(binding.member, Tier::Available, now) ||
                     (suspects && members.try_reserve(binding.member, Tier::Suspect, now));
  if (taken && stands()) {
    out.outcome = Acquired::Ok;
    out.allocation = hand_out(upstream, binding.member, routing, now);
    return out;
  }
  if (taken) {
    members.release(binding.member, false, Verdict::Neutral, now, nanoseconds{0});
    look_again(*upstream.runtime);
  }
  leave(routing);
  out.outcome = taken ? Acquired::SessionLost : Acquired::NoCandidate;
  return out;
}

std::uint32_t Dispatcher::reserve(const View::Upstream& upstream, const domain::Candidates& from,
                                  domain::Balancer balancer, Tier tier,
                                  const ExcludedProxies& tried, TimePoint now, Random& random,
                                  std::uint64_t affinity) {
  Members& members = upstream.runtime->members;
  // A slot may have passed to another proxy since this view was made; then it is not the view's.
  const auto admit = [&](std::uint32_t member) {
    if (member >= upstream.places.size()) return false;
    const View::Place& place = upstream.places[member];
    if (!place.entry || members.id(member) != place.id || tried.contains(place.id)) return false;
    place.entry.prefetch();
    return true;
  };
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const auto member =
        domain::reserve_by(balancer, tier, members, from, now, random, admit, affinity);
    if (member == Members::kNone) break;
    // The place keeps the slot from passing on: what holds now, holds.
    if (members.id(member) == upstream.places[member].id) return member;
    members.release(member, false, Verdict::Neutral, now, nanoseconds{0});
    look_again(*upstream.runtime);
  }
  return Members::kNone;
}

Allocation Dispatcher::hand_out(const View::Upstream& upstream, std::uint32_t member,
                                const View::Routing& routing, TimePoint now) {
  Allocation out;
  out.entry_ = upstream.places[member].entry;
  out.registry_ = &registry_;
  out.upstream_ = upstream.runtime;
  out.taken_at_ = now;
  out.member_ = member;
  out.stage_ = Allocation::Stage::Reserved;
  if (routing.in_flight_max != 0) out.routing_ = routing.runtime;
  // Places that others gave back while this thread moved the member in the index could not be found
  // there until now.
  if (upstream.runtime->waiters.load() != 0 &&
      upstream.runtime->members.load_of(member) != Members::kFull) {
    look_again(*upstream.runtime);
  }
  if (upstream.runtime->counted.load(std::memory_order_relaxed)) {
    out.stripe_ = static_cast<std::uint8_t>(thread_ % StripedCount::kStripes);
    upstream.runtime->in_flight.add(out.stripe_, 1);
  }
  return out;
}

}  // namespace proxypool::gateway
