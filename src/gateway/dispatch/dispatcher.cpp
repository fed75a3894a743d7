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

// Takes one of the routing's own places. Full: nothing taken.
bool enter(const View::Routing& routing) noexcept {
  auto& count = routing.runtime->in_flight;
  std::uint32_t seen = count.load(std::memory_order_relaxed);
  do {
    if (seen >= routing.in_flight_max) return false;
  } while (!count.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
  return true;
}

}  // namespace

void Allocation::take(Allocation& other) noexcept {
  entry_ = std::move(other.entry_);
  registry_ = other.registry_;
  upstream_ = other.upstream_;
  routing_ = other.routing_;
  member_ = other.member_;
  stripe_ = other.stripe_;
  stage_ = std::exchange(other.stage_, Stage::Free);
}

void Allocation::commit() noexcept {
  if (PP_BUG_IF(stage_ != Stage::Reserved)) return;
  if (upstream_->members.commit(member_)) stage_ = Stage::Active;
}

void Allocation::release(domain::Failure failure, TimePoint now) noexcept {
  if (PP_BUG_IF(!held())) return;
  give_back(judge(failure), now);
}

void Allocation::give_back(Verdict verdict, TimePoint now) noexcept {
  const bool active = std::exchange(stage_, Stage::Free) == Stage::Active;
  upstream_->members.release(member_, active, verdict, now, registry_->options().bench);
  if (routing_ != nullptr) routing_->in_flight.fetch_sub(1, std::memory_order_relaxed);
  if (stripe_ != kUncounted) upstream_->in_flight.add(stripe_, -1);
  // Whoever waits has counted itself before it looked for a place the last time.
  if (upstream_->waiters.load() != 0 && registry_->options().listener != nullptr) {
    registry_->options().listener->place_free(*upstream_);
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
                                const ExcludedProxies& tried, TimePoint now, Random& random) {
  Acquisition out;
  out.routing = &routing;
  out.outcome = Acquired::NotValid;
  if (!registry_.valid(now)) return out;
  out.outcome = Acquired::RoutingFull;
  if (routing.in_flight_max != 0 && !enter(routing)) return out;
  const auto load = [&](std::uint32_t i) { return routing.upstreams[i]->runtime->in_flight.sum(); };
  const bool suspects = view.policy().use_suspect == domain::UseSuspect::WhenEmpty;
  for (const Tier tier : {Tier::Available, Tier::Suspect}) {
    if (tier == Tier::Suspect && !suspects) break;
    domain::Preference preference;
    for (;;) {
      const auto i = routing.order.next(preference, routing.runtime->turn, random, load);
      if (i == domain::UpstreamOrder::kNone) break;
      const View::Upstream& upstream = *routing.upstreams[i];
      if (tier == Tier::Suspect && upstream.suspects == 0) continue;
      const auto member = reserve(upstream, routing.balancer, tier, tried, now, random);
      if (member == Members::kNone) continue;
      out.outcome = Acquired::Ok;
      out.allocation = hand_out(upstream, member, routing);
      return out;
    }
  }
  if (routing.in_flight_max != 0) routing.runtime->in_flight.fetch_sub(1);
  out.outcome = Acquired::NoCandidate;
  return out;
}

std::uint32_t Dispatcher::reserve(const View::Upstream& upstream, domain::Balancer balancer,
                                  Tier tier, const ExcludedProxies& tried, TimePoint now,
                                  Random& random) {
  Members& members = upstream.runtime->members;
  // A slot may have passed to another proxy since this view was made; then it is not the view's.
  const auto admit = [&](std::uint32_t member) {
    const ProxyEntry* entry = upstream.entry(member);
    return entry != nullptr && members.id(member) == entry->id && !tried.contains(entry->id);
  };
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const auto member =
        domain::reserve_by(balancer, tier, members, upstream.candidates(), now, random, admit);
    if (member == Members::kNone) break;
    // The place keeps the slot from passing on: what holds now, holds.
    if (members.id(member) == upstream.entries[member]->id) return member;
    members.release(member, false, Verdict::Neutral, now, nanoseconds{0});
  }
  return Members::kNone;
}

Allocation Dispatcher::hand_out(const View::Upstream& upstream, std::uint32_t member,
                                const View::Routing& routing) {
  Allocation out;
  out.entry_ = upstream.entries[member];
  out.registry_ = &registry_;
  out.upstream_ = upstream.runtime;
  out.member_ = member;
  out.stage_ = Allocation::Stage::Reserved;
  if (routing.in_flight_max != 0) out.routing_ = routing.runtime;
  if (upstream.runtime->counted.load(std::memory_order_relaxed)) {
    out.stripe_ = static_cast<std::uint8_t>(thread_ % StripedCount::kStripes);
    upstream.runtime->in_flight.add(out.stripe_, 1);
  }
  return out;
}

}  // namespace proxypool::gateway
