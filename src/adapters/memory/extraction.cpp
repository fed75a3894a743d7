// Extraction from the embedded pool: selects and sets aside under the lock, makes the hand-out
// durable outside it, and only then marks it and answers (CT-60, EX-1, EX-2).
#include <algorithm>
#include <limits>
#include <utility>

#include "adapters/memory/activity_pool.hpp"
#include "proxypool/domain/extraction/eligibility.hpp"

namespace proxypool::memory {

namespace {

using domain::ExtractionCommand;
using domain::ExtractionOutcome;
using domain::ExtractionResult;
using domain::ProxyEvent;
using domain::ProxyState;

// Tag, city and health-age filters have no index: no more members than this are looked at (ST-1).
constexpr std::size_t kScanMax = 1'000;

// Leaves out whole classes; domain::matches decides about each proxy of the rest.
bool class_matches(const domain::ExtractionFilters& filters, const ClassKey& key) {
  using domain::detail::any_equal;
  return any_equal(filters.protocols, key.scheme) && any_equal(filters.countries, key.country) &&
         any_equal(filters.regions, key.region) && any_equal(filters.carriers, key.carrier) &&
         any_equal(filters.upstreams, key.upstream);
}

const domain::ExtractionPolicy* policy_of(const ExtractionCommand& command,
                                          const UpstreamId& upstream) {
  for (const auto& policy : command.policies) {
    if (policy.upstream == upstream && policy.extractable) return &policy;
  }
  return nullptr;
}

ExtractionResult answer(ExtractionOutcome outcome, StoreTime now) {
  ExtractionResult result;
  result.outcome = outcome;
  result.now = now;
  return result;
}

}  // namespace

MemoryPool::Selection MemoryPool::select(const State& state, const ExtractionCommand& command,
                                         StoreTime now) const {
  // How many proxies each upstream may still give without touching what the gateway needs.
  std::map<UpstreamId, std::uint32_t> budget;
  // The heads of all matching classes; the longest life of all comes next.
  using Walk = std::pair<PoolTable::ByLife::const_iterator, PoolTable::ByLife::const_iterator>;
  std::vector<std::pair<const ClassKey*, Walk>> walks;
  for (const auto& [key, members] : state.table.extractable()) {
    const auto* policy = policy_of(command, key.upstream);
    if (!policy || !class_matches(command.filters, key)) continue;
    const auto counts = state.table.counts(key.upstream);
    // What another call is handing out right now counts as gone already.
    const auto available =
        counts.by_state[static_cast<std::size_t>(ProxyState::Available)] - counts.handing_out;
    budget[key.upstream] = static_cast<std::uint32_t>(domain::takeable(*policy, available));
    walks.push_back({&key, {members.begin(), members.end()}});
  }
  const auto later = [](const auto& a, const auto& b) {
    return *b.second.first < *a.second.first;  // a heap has its greatest in front
  };
  std::make_heap(walks.begin(), walks.end(), later);
  Selection selection;
  std::size_t skipped = 0;
  while (!walks.empty() && selection.ids.size() < command.count) {
    std::pop_heap(walks.begin(), walks.end(), later);
    auto& [key, walk] = walks.back();
    const LifeKey life = *walk.first;
    const Row& row = *state.table.find(life.id);
    std::uint32_t& left = budget[key->upstream];
    const bool alive =
        domain::usable(row.proxy, now) &&
        (!row.proxy.expires_at || *row.proxy.expires_at - now >= command.filters.min_remaining_ttl);
    // Lives only get shorter from here on, and an upstream's reserve does not grow.
    if (!alive || left == 0) {
      walks.pop_back();
      continue;
    }
    if (domain::matches(command.filters, row.proxy, now)) {
      selection.ids.push_back(life.id);
      --left;
    } else if (++skipped >= kScanMax) {
      selection.scan_limited = true;
      break;
    }
    if (++walk.first == walk.second) {
      walks.pop_back();
    } else {
      std::push_heap(walks.begin(), walks.end(), later);
    }
  }
  return selection;
}

std::optional<ExtractionResult> MemoryPool::replayed(State& state, const ExtractionCommand& command,
                                                     StoreTime now) {
  if (command.idempotency_key.empty()) return std::nullopt;
  const ReplayKey key{command.client.str(), command.idempotency_key};
  const auto going = state.in_progress.find(key);
  if (going != state.in_progress.end()) {
    const bool same = going->second == command.request_digest;
    return answer(same ? ExtractionOutcome::InProgress : ExtractionOutcome::Mismatch, now);
  }
  const auto found = state.replays.find(key);
  if (found == state.replays.end() || now >= found->second.replay_until) return std::nullopt;
  if (found->second.request_digest != command.request_digest) {
    return answer(ExtractionOutcome::Mismatch, now);
  }
  ExtractionResult result = answer(ExtractionOutcome::Replayed, found->second.at);
  result.available = static_cast<std::uint32_t>(found->second.proxies.size());
  result.proxies = found->second.proxies;
  return result;
}

void MemoryPool::finish(State& state, const Handout& handout, bool durable, StoreTime now) {
  const ReplayKey key{handout.client, handout.idempotency_key};
  state.in_progress.erase(key);
  for (const domain::ExtractedProxy& entry : handout.proxies) {
    Row* row = state.table.find(entry.proxy.id);
    PP_ASSERT(row != nullptr);  // nothing erases a row that is set aside
    state.table.change(*row, [](Row& r) { r.handing_out = false; });
    if (!durable) continue;
    // It was AVAILABLE when it was set aside; should it have expired since, it stays so.
    move(state, *row, ProxyEvent::Extracted, now);
  }
  if (durable && !handout.idempotency_key.empty() && !handout.proxies.empty()) {
    state.replays[key] = handout;
  }
}

Result<ExtractionResult> MemoryPool::extract(const ExtractionCommand& command, Deadline) {
  const StoreTime now = clock_.now();
  Handout handout;
  handout.client = command.client.str();
  handout.idempotency_key = command.idempotency_key;
  handout.request_digest = command.request_digest;
  handout.replay_until = now + command.idempotency_ttl;
  handout.at = now;
  bool scan_limited = false;
  const auto early = state_.with([&](State& state) -> std::optional<ExtractionResult> {
    if (auto result = replayed(state, command, now)) return result;
    if (young(state, now)) return answer(ExtractionOutcome::NotYet, now);
    const Selection selection = select(state, command, now);
    scan_limited = selection.scan_limited;
    const auto found = static_cast<std::uint32_t>(selection.ids.size());
    const bool all = command.fulfillment == domain::Fulfillment::AllOrNothing;
    if (selection.ids.empty() || (all && found < command.count)) {
      auto result = answer(all ? ExtractionOutcome::Insufficient : ExtractionOutcome::Done, now);
      result.available = found;
      result.scan_limited = scan_limited;
      return result;
    }
    for (const ProxyId id : selection.ids) {
      Row& row = *state.table.find(id);
      handout.proxies.push_back({row.proxy, row.credential});
      handout.proxies.back().proxy.state = ProxyState::Extracted;
      state.table.change(row, [](Row& r) { r.handing_out = true; });
    }
    if (!command.idempotency_key.empty()) {
      state.in_progress[{handout.client, handout.idempotency_key}] = command.request_digest;
    }
    ++state.appending;
    return std::nullopt;
  });
  if (early) return *early;

  const Status durable = handouts_.append(handout);
  state_.with([&](State& state) {
    finish(state, handout, durable.has_value(), clock_.now());
    // Under the lock, so that no append falls between what is collected and what is written. One
    // that fails leaves the longer log, which says the same.
    if (--state.appending == 0 && handouts_.worth_rewriting()) {
      static_cast<void>(handouts_.rewrite(living_handouts(state, now)));
    }
  });
  if (!durable) return durable.error();
  ExtractionResult result = answer(ExtractionOutcome::Done, now);
  result.available = static_cast<std::uint32_t>(handout.proxies.size());
  result.scan_limited = scan_limited;
  result.proxies = std::move(handout.proxies);
  return result;
}

Result<ExtractionResult> MemoryPool::preview(const ExtractionCommand& command, Deadline) {
  const StoreTime now = clock_.now();
  return state_.with([&](const State& state) -> Result<ExtractionResult> {
    if (young(state, now)) return answer(ExtractionOutcome::NotYet, now);
    const Selection selection = select(state, command, now);
    auto result = answer(ExtractionOutcome::Done, now);
    result.available = static_cast<std::uint32_t>(selection.ids.size());
    result.scan_limited = selection.scan_limited;
    return result;
  });
}

std::vector<Handout> MemoryPool::living_handouts(const State& state, StoreTime now) const {
  std::vector<Handout> living;
  std::set<ProxyId> kept;
  for (const auto& [key, handout] : state.replays) {
    if (now >= handout.replay_until) continue;
    living.push_back(handout);
    for (const auto& entry : handout.proxies) kept.insert(entry.proxy.id);
  }
  constexpr std::size_t kMarksInOneRecord = 500;
  for (const auto& [id, row] : state.table.rows()) {
    if (row.proxy.state != ProxyState::Extracted || kept.contains(id)) continue;
    const bool full = living.empty() || !living.back().idempotency_key.empty() ||
                      living.back().proxies.size() == kMarksInOneRecord;
    if (full) living.emplace_back().at = now;
    // Only the mark counts from here on: the password is not kept longer than it must be.
    living.back().proxies.push_back({row.proxy, {row.credential.username, {}}});
  }
  return living;
}

Status MemoryPool::load_handouts() {
  const StoreTime now = clock_.now();
  return state_.with([&](State& state) {
    return handouts_.load([&](Handout handout) {
      for (const domain::ExtractedProxy& entry : handout.proxies) {
        if (entry.proxy.expires_at && now >= *entry.proxy.expires_at) continue;
        if (state.table.find(entry.proxy.id)) continue;
        Row row;
        row.proxy = entry.proxy;
        row.credential = {entry.credential.username, {}};
        state.table.insert(std::move(row));
      }
      if (handout.idempotency_key.empty() || now >= handout.replay_until) return;
      const ReplayKey key{handout.client, handout.idempotency_key};
      state.replays[key] = std::move(handout);
    });
  });
}

}  // namespace proxypool::memory
