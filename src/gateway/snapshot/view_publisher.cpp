#include "gateway/snapshot/view_publisher.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "proxypool/domain/cluster/validate.hpp"

namespace proxypool::gateway {

namespace {

constexpr std::size_t kPiece = 1'000;            // proxies compiled at a time: about 1 ms
constexpr milliseconds kLook{1};                 // between looks at the readers
constexpr std::chrono::seconds kReadersMax{10};  // a serving thread that takes longer hangs

}  // namespace

Result<std::vector<ports::RejectedEntry>> ViewPublisher::apply(
    std::shared_ptr<const domain::WorkerSnapshot> snapshot, const Validity& validity) {
  const TimePoint now = needs_.clock.now();
  const auto before = state_.with([&](State&) { return needs_.registry.held(); });
  const auto lost = domain::lost_by(before, *snapshot);
  if (needs_.registry.valid(now) && domain::loses_too_much(before, lost, *snapshot, now)) {
    return Error{ErrorCode::Conflict, Origin::Internal,
                 "more than half of the proxies would go without a reason; they are kept until "
                 "their leases end"};
  }
  ViewBuilder builder(needs_.registry, snapshot, {validity.store_now, validity.base});
  PP_TRY(const Unit begun, state_.with([&](State&) { return builder.begin(); }));
  static_cast<void>(begun);
  while (state_.with([&](State&) { return builder.step(kPiece); })) {
  }
  const auto view = state_.with([&](State&) { return builder.finish(); });
  PP_TRY(const Unit taken, swap(view));
  static_cast<void>(taken);
  const TimePoint lost_end = state_.with([&](State& state) {
    needs_.registry.adopt(*view);
    needs_.registry.reclaim();
    // Not before the lost proxies are closed: a request that pinned the old view when its validity
    // ended could begin on one of them.
    needs_.registry.extend(validity.until);
    const TimePoint end = state.version ? state.validity.tunnels_until : now;
    state.version = snapshot->version;
    state.validity = validity;
    state.orphans_ended = false;
    return end;
  });
  // Their leases were last renewed with the view before.
  std::vector<ProxyId> ids;
  for (const auto& proxy : lost) ids.push_back(proxy.id);
  if (!ids.empty()) needs_.end_tunnels_of(std::move(ids), lost_end);
  needs_.views.reclaim();
  return builder.rejected();
}

// Answers once every serving thread uses `view`; an error: none shall.
Status ViewPublisher::swap(const std::shared_ptr<const View>& view) {
  const auto before = needs_.views.load();
  const std::uint64_t version = needs_.views.publish(view);
  const Deadline deadline = Deadline::after(needs_.clock.now(), kReadersMax);
  needs_.refresh();
  while (!needs_.views.all_readers_at_least(version)) {
    if (deadline.passed(needs_.clock.now())) {
      needs_.views.publish(before);
      return Error{ErrorCode::Unavailable, Origin::Internal,
                   "a serving thread did not take the new view within 10 s"};
    }
    needs_.pause(kLook);
  }
  return ok();
}

void ViewPublisher::extend(const Validity& validity, const std::vector<ProxyId>& revoked) {
  revoke(revoked);  // their leases were last renewed with what stood before
  state_.with([&](State& state) {
    // An extension that answers an older report never shortens what stands.
    if (validity.until <= state.validity.until) return;
    state.validity = validity;
    state.orphans_ended = false;
    needs_.registry.extend(validity.until);
  });
}

void ViewPublisher::revoke(const std::vector<ProxyId>& ids) {
  if (ids.empty()) return;
  const TimePoint end = state_.with([&](State& state) {
    needs_.registry.revoke(ids);
    return state.validity.tunnels_until;
  });
  needs_.end_tunnels_of(ids, end);
}

std::vector<ports::ProxyCount> ViewPublisher::counts() {
  return state_.with([&](State&) {
    needs_.registry.reclaim();
    return needs_.registry.counts();
  });
}

void ViewPublisher::usage(const EachUsage& each) {
  state_.with([&](State&) { needs_.registry.usage(each); });
}

void ViewPublisher::over_quota(const std::vector<ClientName>& clients, TimePoint until) {
  const bool more = state_.with([&](State&) { return needs_.registry.over_quota(clients, until); });
  if (more) needs_.end_over_quota();
}

void ViewPublisher::take_outcomes(ports::OutcomeBatch& batch, std::size_t most, TimePoint now) {
  std::unordered_map<const RoutingRuntime*, std::uint32_t> routings;
  needs_.registry.outcome_rings().take(most, [&](const OutcomeRecord& record) {
    const auto next = static_cast<std::uint32_t>(batch.routings.size());
    const auto [place, fresh] = routings.try_emplace(record.routing, next);
    if (fresh) batch.routings.push_back(record.routing->id);
    const auto age = std::chrono::duration_cast<milliseconds>(now - record.at);
    batch.outcomes.push_back({record.what, record.lease_epoch, place->second, record.request_id,
                              std::max(age, milliseconds{0})});
  });
}

std::optional<HeldView> ViewPublisher::held() {
  return state_.with([&](State& state) -> std::optional<HeldView> {
    if (!state.version) return std::nullopt;
    HeldView view{*state.version, state.validity.until, {}};
    for (const auto& proxy : needs_.registry.held()) view.proxies.push_back(proxy.id);
    return view;
  });
}

void ViewPublisher::tick(TimePoint now) {
  const bool end = state_.with([&](State& state) {
    needs_.registry.look_ahead(now);
    if (!state.version || state.orphans_ended || now < state.validity.tunnels_until) return false;
    state.orphans_ended = true;
    return true;
  });
  if (end) needs_.end_all_tunnels(now);
}

}  // namespace proxypool::gateway
