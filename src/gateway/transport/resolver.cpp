#include "gateway/transport/resolver.hpp"

#include <algorithm>
#include <utility>

namespace proxypool::gateway {
namespace {

Resolved::Outcome outcome_of(const Error& error) noexcept {
  switch (error.code) {
    case ErrorCode::DeadlineExceeded:
      return Resolved::Outcome::Late;
    case ErrorCode::Exhausted:
      return Resolved::Outcome::Busy;
    default:
      return Resolved::Outcome::Unknown;
  }
}

Resolved resolved_at(Result<std::vector<IpAddress>> answer, TimePoint now) {
  Resolved out;
  if (!answer) {
    out.outcome = outcome_of(answer.error());
    const bool busy = out.outcome == Resolved::Outcome::Busy;
    out.good_until = now + (busy ? Resolver::kBusy : Resolver::kFailed);
    return out;
  }
  out.addresses = *std::move(answer);
  if (out.addresses.size() > Resolver::kAddressesMax) out.addresses.resize(Resolver::kAddressesMax);
  if (!out.addresses.empty()) out.outcome = Resolved::Outcome::Found;
  out.good_until = now + (out.addresses.empty() ? Resolver::kFailed : Resolver::kFresh);
  return out;
}

}  // namespace

const Resolved* NameTable::find(const std::string& name, TimePoint now) const {
  const auto found = entries_.find(name);
  return found == entries_.end() || now >= found->second.good_until ? nullptr : &found->second;
}

const Resolved& NameTable::learn(const std::string& name, Resolved resolved, TimePoint now) {
  if (entries_.size() >= kNamesMax) {
    std::erase_if(entries_, [&](const auto& entry) { return now >= entry.second.good_until; });
    if (entries_.size() >= kNamesMax) entries_.clear();
  }
  return entries_.insert_or_assign(name, std::move(resolved)).first->second;
}

Resolver::Resolver(const Clock& clock, LookUp look_up, nanoseconds patience, Limits limits)
    : clock_(clock),
      look_up_(std::move(look_up)),
      patience_(patience),
      pool_("resolve", limits.threads, limits.waiting_max) {}

std::optional<Resolved> Resolver::resolve(const std::string& name, Asker& asker) {
  const TimePoint now = clock_.now();
  return state_.with([&](State& state) -> std::optional<Resolved> {
    if (const Resolved* known = state.known.find(name, now)) return *known;
    const auto [place, first] = state.running.try_emplace(name);
    auto& askers = place->second;
    if (std::find(askers.begin(), askers.end(), &asker) == askers.end()) askers.push_back(&asker);
    // The job cannot finish before this lock is given up.
    const Deadline deadline = Deadline::after(now, patience_);
    if (!first || pool_.try_run([=, this] { look_up(name, deadline); })) return std::nullopt;
    state.running.erase(place);
    return Resolved{Resolved::Outcome::Busy, {}, now + kBusy};
  });
}

// Whoever waited in line for a name has gone by its deadline: then the next name is worth more.
Result<std::vector<IpAddress>> Resolver::ask(const std::string& name, Deadline deadline) {
  if (!deadline.passed(clock_.now())) return look_up_(name, deadline);
  return Error{ErrorCode::DeadlineExceeded, Origin::Target, "too many names before it"};
}

void Resolver::look_up(const std::string& name, Deadline deadline) {
  auto answer = ask(name, deadline);
  const TimePoint now = clock_.now();
  const Resolved resolved = resolved_at(std::move(answer), now);
  const auto askers = state_.with([&](State& state) {
    state.known.learn(name, resolved, now);
    return std::move(state.running.extract(name).mapped());
  });
  for (Asker* asker : askers) {
    asker->loop.post([asker, name, resolved] { asker->on_resolved(name, resolved); });
  }
}

}  // namespace proxypool::gateway
