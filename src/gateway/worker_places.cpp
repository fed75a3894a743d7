// Where a request goes: its routing, its session's proxy, or one that the balancer chooses.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "gateway/worker.hpp"
#include "proxypool/base/hash.hpp"

namespace proxypool::gateway {
namespace {

// Requests of one session, else of one client, want one proxy, if the routing cares (R1).
Wanted wanted_by(const Exchange& exchange) noexcept {
  Wanted out = exchange.asked == nullptr ? Wanted{} : exchange.asked->wanted();
  out.affinity = exchange.client_tag;
  if (!exchange.session.empty()) out.affinity = mix64(exchange.client_tag) ^ exchange.session.tag();
  return out;
}

// What a waiter asks beyond any place of its routing: a strict session waits for its own proxy.
std::string wants_of(const Exchange& exchange) {
  std::string out = exchange.asked == nullptr ? std::string{} : exchange.asked->filter_key;
  if (exchange.strict && !exchange.session.empty()) {
    out += 's';
    out += exchange.session.view();
  }
  return out;
}

SessionKey session_of(const Exchange& exchange) noexcept {
  return {exchange.client_tag, exchange.session_routing, exchange.session.view()};
}

// Whether it goes to its target when no proxy has a place (GW-34). Whoever asked for strictness is
// not switched to another way out; where there are no upstreams there is only one.
bool may_go_direct(const Exchange& exchange) noexcept {
  const View::Routing& routing = *exchange.routing;
  return routing.on_unavailable == domain::OnUnavailable::Direct && exchange.tried.count() == 0 &&
         (!exchange.strict || routing.upstreams.empty());
}

}  // namespace

bool Worker::route(const net::RequestHead& head, Exchange& exchange) {
  const View& view = *exchange.view->view;
  if (exchange.routing == nullptr) {
    std::array<char, net::kHostBytesMax> buffer;
    domain::RouteRequest request;
    request.kind = exchange.kind;
    request.host = net::canonical_host(head.host(), buffer);
    request.port = head.port();
    request.client = exchange.client;
    if (exchange.asked != nullptr) request.tags = exchange.asked->tags;
    if (exchange.kind == domain::RequestKind::Http) {
      request.method = head.method_text();
      const auto target = head.path_and_query();
      request.path = target.substr(0, target.find('?'));
      if (request.path.empty()) request.path = "/";
    }
    exchange.routing = dispatcher_.route(view, request);
  }
  return exchange.routing != nullptr;
}

Acquired Worker::acquire(const net::RequestHead& head, Exchange& exchange) {
  if (!route(head, exchange)) return Acquired::NoRouting;
  const View& view = *exchange.view->view;
  const bool waits = exchange.routing->on_unavailable == domain::OnUnavailable::Wait;
  if (waits && exchange.ticket == 0 && exchange.tried.count() == 0 &&
      exchange.routing->runtime->waiters.load() != 0 &&
      common_.waits.before(*exchange.routing->runtime, wants_of(exchange))) {
    return Acquired::InLine;
  }
  const Acquired outcome =
      exchange.session.empty() ? choose(view, exchange) : choose_in_session(view, exchange);
  load_.regex_misses.store(dispatcher_.regex_misses(), std::memory_order_relaxed);
  load_.filter_misses.store(dispatcher_.filter_misses(), std::memory_order_relaxed);
  if (outcome != Acquired::NoCandidate || !may_go_direct(exchange)) return outcome;
  auto place = dispatcher_.enter_direct(*exchange.routing);
  if (!place) return Acquired::RoutingFull;
  exchange.place = *std::move(place);
  exchange.direct = true;
  counters().went_direct();
  return Acquired::Ok;
}

Acquired Worker::take(Exchange& exchange, Acquisition acquisition) {
  if (acquisition.outcome != Acquired::Ok) return acquisition.outcome;
  if (!exchange.tried.add(acquisition.allocation.proxy().id)) return Acquired::NoCandidate;
  exchange.allocation = std::move(acquisition.allocation);
  return Acquired::Ok;
}

Acquired Worker::choose(const View& view, Exchange& exchange) {
  return take(exchange, dispatcher_.acquire(view, *exchange.routing, exchange.tried, now(), random_,
                                            wanted_by(exchange)));
}

// A session goes where it went before. While that proxy has no place, a request goes elsewhere and
// leaves the session where it is, unless it is strict; when the proxy is gone, the session moves.
Acquired Worker::choose_in_session(const View& view, Exchange& exchange) {
  Exchange& x = exchange;
  const SessionKey key{x.client_tag, x.routing->runtime, x.session.view()};
  SessionTable::Life life{view.policy().session_idle, nanoseconds{0}};
  if (x.asked != nullptr)
    life.age = x.asked->parameters.session_time.value_or(std::chrono::minutes{0});
  const auto join = [&](const SessionTable::Found& found) {
    if (x.tried.contains(found.binding.proxy)) return Acquired::NoCandidate;
    const auto at = found.binding;
    const Acquired outcome =
        take(x, dispatcher_.acquire_at(view, *x.routing, at, now(), wanted_by(x)));
    x.in_session = outcome == Acquired::Ok;
    x.session_confirmed = found.confirmed;
    x.session_routing = x.routing->runtime;
    return outcome;
  };
  const auto found = common_.sessions.find(key, life, now());
  if (found) {
    const Acquired outcome = join(*found);
    if (outcome == Acquired::Ok) return outcome;
    if (outcome != Acquired::SessionLost) return x.strict ? outcome : choose(view, x);
    if (x.strict && found->confirmed) {
      lose_session(key, *found);
      return outcome;
    }
  }
  auto chosen = dispatcher_.acquire(view, *x.routing, x.tried, now(), random_, wanted_by(x));
  if (chosen.outcome != Acquired::Ok) return chosen.outcome;
  if (found) lose_session(key, *found);
  const Binding mine = chosen.allocation.binding();
  const auto stands = common_.sessions.bind(key, mine, now(), life.idle);
  if (stands.binding != mine) {
    // Another request of the session was faster: both at one proxy, if it has a place for both.
    const Acquired outcome = join(stands);
    if (outcome == Acquired::Ok || x.strict) return outcome;
    return take(x, std::move(chosen));
  }
  x.in_session = true;
  x.session_confirmed = false;
  x.session_routing = x.routing->runtime;
  return take(x, std::move(chosen));
}

bool Worker::may_wait(const Exchange& x, Acquired outcome) const noexcept {
  const bool no_place = outcome == Acquired::NoCandidate || outcome == Acquired::RoutingFull ||
                        outcome == Acquired::InLine;
  // After an attempt the client hears what became of that.
  return no_place && x.routing != nullptr && x.tried.count() == 0 &&
         x.routing->on_unavailable == domain::OnUnavailable::Wait;
}

std::optional<WaitQueue::Joined> Worker::join_line(Connection& connection, Exchange& x) {
  WaitQueue::Waiter waiter;
  waiter.routing = x.routing->runtime;
  for (const View::Upstream* upstream : x.routing->upstreams) {
    waiter.upstreams.push_back(upstream->runtime);
  }
  const std::string wants = wants_of(x);
  waiter.wants = wants;
  waiter.waker = this;
  const auto joined = common_.waits.join(std::move(waiter), x.routing->waiters_max);
  if (!joined) return joined;
  x.ticket = joined->ticket;
  x.line = x.routing->runtime;
  in_line_.emplace(x.ticket, &connection);
  load_.waiting.store(static_cast<std::uint32_t>(in_line_.size()), std::memory_order_relaxed);
  return joined;
}

void Worker::leave_line(Exchange& x) noexcept {
  if (x.ticket == 0) return;
  in_line_.erase(x.ticket);
  load_.waiting.store(static_cast<std::uint32_t>(in_line_.size()), std::memory_order_relaxed);
  common_.waits.leave(std::exchange(x.ticket, 0));
}

void Worker::wake(std::uint64_t ticket) {
  loop_.post([this, ticket] { on_wake(ticket); });
}

void Worker::on_wake(std::uint64_t ticket) {
  const auto waiting = in_line_.find(ticket);
  if (waiting != in_line_.end()) waiting->second->woken();
}

Acquired Worker::renew_view(Exchange& x) {
  ViewPin* const newest = view();
  if (newest == nullptr) return Acquired::NotValid;
  if (newest == x.view) return Acquired::Ok;
  if (x.client != domain::RouteRequest::kNoClient) {
    const auto number = newest->view->client(x.view->view->clients()[x.client].name.str());
    if (!number) return Acquired::Stranger;
    x.client = *number;
  }
  let_go_of_view(x);
  x.view = newest;
  ++newest->users;
  return Acquired::Ok;
}

TimePoint Worker::next_look(const Exchange& x) const noexcept {
  TimePoint next = kNever;
  for (const View::Upstream* upstream : x.routing->upstreams) {
    next = std::min(next, upstream->runtime->members.bench_due());
  }
  return next;
}

void Worker::lose_session(const SessionKey& key, const SessionTable::Found& found) {
  if (common_.sessions.drop(key, found.binding.proxy)) counters().session_lost();
}

void Worker::confirm_session(Exchange& x) {
  if (!x.in_session || std::exchange(x.session_confirmed, true)) return;
  common_.sessions.confirm(session_of(x), x.allocation.proxy().id);
}

bool Worker::leave_session(Exchange& x) {
  if (!std::exchange(x.in_session, false)) return false;
  const bool served = common_.sessions.drop(session_of(x), x.allocation.proxy().id);
  if (served) counters().session_lost();
  return served || x.session_confirmed;
}

void Worker::end_session_use(const Exchange& x) {
  if (x.in_session) common_.sessions.touch(session_of(x), x.allocation.proxy().id, now());
}

}  // namespace proxypool::gateway
