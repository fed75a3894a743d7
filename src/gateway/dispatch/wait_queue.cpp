#include "gateway/dispatch/wait_queue.hpp"

#include <algorithm>
#include <utility>

namespace proxypool::gateway {

bool WaitQueue::Record::can_use(const UpstreamRuntime& upstream) const noexcept {
  return std::find(upstreams.begin(), upstreams.end(), &upstream) != upstreams.end();
}

bool WaitQueue::Record::meets(const Record& other) const noexcept {
  return std::any_of(upstreams.begin(), upstreams.end(),
                     [&](const UpstreamRuntime* upstream) { return other.can_use(*upstream); });
}

bool WaitQueue::State::before(const Line& line, std::string_view wants) {
  return line.wants.contains(std::string_view{}) || line.wants.contains(wants);
}

template <class Fits>
void WaitQueue::State::wake_first(Fits&& fits) {
  Record* first = nullptr;
  for (auto& [routing, line] : lines) {
    for (Record& record : line.records) {
      if (first != nullptr && first->ticket < record.ticket) break;
      if (!fits(record)) continue;
      first = &record;
      break;
    }
  }
  if (first == nullptr || first->woken) return;
  first->woken = true;
  first->waker->wake(first->ticket);
}

std::optional<WaitQueue::Joined> WaitQueue::join(Waiter waiter, std::uint32_t waiters_max) {
  return state_.with([&](State& state) -> std::optional<Joined> {
    Line& line = state.lines[waiter.routing];
    if (line.records.size() >= waiters_max) return std::nullopt;
    const Joined joined{++state.last_ticket, !State::before(line, waiter.wants)};
    line.records.push_back({joined.ticket, waiter.routing, std::move(waiter.upstreams),
                            std::string(waiter.wants), waiter.waker});
    const auto record = std::prev(line.records.end());
    state.by_ticket.emplace(joined.ticket, record);
    ++line.wants[record->wants];
    record->routing->waiters.fetch_add(1);
    for (UpstreamRuntime* upstream : record->upstreams) upstream->waiters.fetch_add(1);
    return joined;
  });
}

bool WaitQueue::before(const RoutingRuntime& routing, std::string_view wants) const {
  if (routing.waiters.load() == 0) return false;
  return state_.with([&](const State& state) {
    const auto line = state.lines.find(&routing);
    return line != state.lines.end() && State::before(line->second, wants);
  });
}

void WaitQueue::rest(std::uint64_t ticket) {
  state_.with([&](State& state) {
    const auto found = state.by_ticket.find(ticket);
    if (found != state.by_ticket.end()) found->second->woken = false;
  });
}

void WaitQueue::pass_on(std::uint64_t ticket) {
  state_.with([&](State& state) {
    const auto found = state.by_ticket.find(ticket);
    if (found == state.by_ticket.end()) return;
    const Record& from = *found->second;
    state.wake_first([&](const Record& record) {
      return record.ticket > from.ticket && !from.covers(record) && from.meets(record);
    });
  });
}

void WaitQueue::leave(std::uint64_t ticket) {
  state_.with([&](State& state) {
    const auto found = state.by_ticket.find(ticket);
    if (found == state.by_ticket.end()) return;
    const auto record = found->second;
    state.by_ticket.erase(found);
    record->routing->waiters.fetch_sub(1);
    for (UpstreamRuntime* upstream : record->upstreams) upstream->waiters.fetch_sub(1);
    const auto line = state.lines.find(record->routing);
    const auto wants = line->second.wants.find(record->wants);
    if (--wants->second == 0) line->second.wants.erase(wants);
    Records gone;
    gone.splice(gone.begin(), line->second.records, record);
    if (line->second.records.empty()) state.lines.erase(line);
    state.wake_first([&](const Record& other) { return gone.front().meets(other); });
  });
}

void WaitQueue::wake_all() {
  state_.with([](State& state) {
    // In the order of tickets, so that of two on one thread the first looks first.
    std::map<std::uint64_t, Record*> sleepers;
    for (auto& [routing, line] : state.lines) {
      for (Record& record : line.records) {
        if (!record.woken) sleepers.emplace(record.ticket, &record);
      }
    }
    for (const auto& [ticket, record] : sleepers) {
      record->woken = true;
      record->waker->wake(ticket);
    }
  });
}

void WaitQueue::place_free(const UpstreamRuntime& upstream) noexcept {
  state_.with([&](State& state) {
    state.wake_first([&](const Record& record) { return record.can_use(upstream); });
  });
}

std::size_t WaitQueue::size() const {
  return state_.with([](const State& state) { return state.by_ticket.size(); });
}

}  // namespace proxypool::gateway
