// Without a proxy: what a name means to us, whether that is allowed, and a connection to it (GW-20,
// GW-21, GW-34). The addresses that were judged are the ones that are dialled.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/ingress/connection.hpp"
#include "gateway/transport/dial_error.hpp"
#include "gateway/worker.hpp"
#include "net/http/authority.hpp"
#include "proxypool/base/hash.hpp"

namespace proxypool::gateway {
namespace {

using domain::FailureKind;
using domain::Phase;
using domain::TargetVerdict;

std::string canonical(const net::RequestHead& head) {
  return net::canonical_host(head.host());
}

UpstreamKey key_of(const Exchange& x, const std::string& host, std::uint16_t port) noexcept {
  return {{}, 0, x.client_tag, x.session.tag(), mix64(hash64(host) + port) | 1U};
}

}  // namespace

// The addresses of the target. Null: the request waits for them, or was refused.
const std::vector<IpAddress>* Connection::target_addresses(const net::RequestHead& head) {
  const Resolved* known = worker_.target_names().find(canonical(head), worker_.now(), *this);
  if (known == nullptr) {
    remember(head);
    state_ = State::Resolving;
    limit(Limit::ResolveTarget, worker_.settings().resolve);
    return nullptr;
  }
  switch (known->outcome) {
    case Resolved::Outcome::Found:
      return &known->addresses;
    case Resolved::Outcome::Unknown:
      refuse(domain::Refusal::DnsFailed);
      break;
    case Resolved::Outcome::Late:
      refuse(domain::Refusal::ResolveTimeout);
      break;
    case Resolved::Outcome::Busy:
      refuse(domain::Refusal::Overloaded, FailureKind::None, "too many names are being looked up");
      break;
  }
  return nullptr;
}

// gateway.target.resolveBeforeProxy: a name of which any address is forbidden goes to no proxy. The
// proxy may find another meaning; this one is known. False: it waits, or was refused.
bool Connection::target_may_pass(const net::RequestHead& head) {
  Exchange& x = *exchange_;
  const View& view = *x.view->view;
  if (x.target_judged || !view.policy().resolve_before_proxy) return true;
  // Without a routing, and where nothing but its target is dialled, others have the word.
  if (!worker_.route(head, x) || x.routing->upstreams.empty()) return true;
  if (!IpAddress::parse(head.host())) {
    const auto* const addresses = target_addresses(head);
    if (addresses == nullptr) return false;
    const bool allowed = std::all_of(addresses->begin(), addresses->end(), [&](const auto& a) {
      return view.targets().check_address(a) == TargetVerdict::Allowed;
    });
    if (!allowed) {
      refuse(domain::Refusal::TargetForbidden);
      return false;
    }
  }
  x.target_judged = true;
  return true;
}

void Connection::go_direct(const net::RequestHead& head) {
  Exchange& x = *exchange_;
  if (worker_.view() == nullptr) return refuse(domain::Refusal::NotReady);
  if (x.note != nullptr) {
    x.note->routing = x.routing->id.str();
    x.note->upstream = "direct";
  }
  const domain::TargetPolicy& targets = x.view->view->targets();
  if (take_kept(head, targets)) return ask(head);
  std::vector<IpAddress> addresses;
  if (const auto literal = IpAddress::parse(head.host())) {
    addresses.push_back(*literal);
  } else {
    const auto* const found = target_addresses(head);
    if (found == nullptr) return;
    addresses = *found;
  }
  std::erase_if(addresses, [&](const IpAddress& address) {
    return targets.check_address(address) != TargetVerdict::Allowed;
  });
  if (addresses.empty()) return refuse(domain::Refusal::TargetForbidden);
  remember(head);
  const TimePoint ends_at = worker_.now() + worker_.settings().connect;
  UpstreamUser& user = *this;
  x.race = std::make_unique<Race>(worker_.pool(), key_of(x, canonical(head), head.port()), user,
                                  worker_.dial(), std::move(addresses), head.port(), ends_at);
  x.dialling = true;
  state_ = State::Dialling;
  race();
}

// An idle connection to this very target, if where it leads is still allowed.
bool Connection::take_kept(const net::RequestHead& head, const domain::TargetPolicy& targets) {
  Exchange& x = *exchange_;
  if (!worker_.settings().reuse || x.kind == domain::RequestKind::Connect || x.websocket ||
      x.fresh_retry_used) {
    return false;
  }
  const std::string host = canonical(head);
  Upstream* const kept = worker_.pool().take(key_of(x, host, head.port()), *this);
  if (kept == nullptr) return false;
  const Destination* const leads_to = kept->destination();
  if (leads_to == nullptr || leads_to->host != host || leads_to->port != head.port() ||
      targets.check_address(leads_to->address) != TargetVerdict::Allowed) {
    worker_.pool().discard(*kept);
    return false;
  }
  upstream_ = kept;
  x.reused = true;
  worker_.counters().reused();
  return true;
}

void Connection::race() {
  Exchange& x = *exchange_;
  Race& race = *x.race;
  switch (race.step(worker_.now())) {
    case Race::State::Runs:
      return limit(Limit::Connect, std::max(race.due() - worker_.now(), nanoseconds{1}));
    case Race::State::Lost: {
      const int error = race.error();
      if (ours(error)) return give_up_dialling();
      return fail({Phase::Dial, kind_of(error)}, domain::Refusal::TargetConnectFailed);
    }
    case Race::State::Won:
      break;
  }
  const IpAddress address = race.address();
  upstream_ = &race.take(*this);
  x.race.reset();
  x.dialling = false;
  worker_.counters().dialled();
  if (x.kind == domain::RequestKind::Connect) {
    return begin_tunnel(kEstablished);
  }
  const net::RequestHead& head = remembered();
  if (!x.websocket) upstream_->leads_to({canonical(head), head.port(), address});
  ask(head);
}

}  // namespace proxypool::gateway
