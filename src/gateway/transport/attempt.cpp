// Attempts: a place in a proxy, a connection to it, the request's head, and the head of the answer.
// Until that has come (or the 200 of a CONNECT went out) everything can be tried again.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "gateway/ingress/connection.hpp"
#include "gateway/transport/dial_error.hpp"
#include "gateway/worker.hpp"
#include "net/http/rewrite.hpp"
#include "net/socket.hpp"
#include "proxypool/domain/traffic/outcome.hpp"

namespace proxypool::gateway {
namespace {

using domain::FailureKind;
using domain::Phase;

std::string_view name_of(net::Method method) noexcept {
  switch (method) {
    case net::Method::Get:
      return "GET";
    case net::Method::Head:
      return "HEAD";
    case net::Method::Options:
      return "OPTIONS";
    case net::Method::Trace:
      return "TRACE";
    case net::Method::Connect:
      return "CONNECT";
    default:
      return "other";
  }
}

std::uint64_t credential_tag(const ProxyEntry& proxy) noexcept {
  return proxy.credential ? std::hash<domain::CredentialVersion>{}(proxy.credential->version) : 0;
}

// The entry has the whole header line.
std::string_view authorization_value(const ProxyEntry& proxy) noexcept {
  constexpr std::string_view kName = "Proxy-Authorization: ";
  std::string_view line = proxy.authorization();
  if (line.empty()) return line;
  line.remove_prefix(kName.size());
  line.remove_suffix(2);
  return line;
}

}  // namespace

// A place, and a connection
// ------------------------------------------------------------------------

void Connection::attempt(const net::RequestHead& head) {
  Exchange& x = *exchange_;
  x.attempt_began = worker_.now();
  x.answer_started = x.reused = false;
  x.status = 0;
  if (!target_may_pass(head)) return;
  if (!x.direct && !x.allocation.held() && !place(head)) return;
  connect(head);
}

bool Connection::place(const net::RequestHead& head) {
  Exchange& x = *exchange_;
  const Acquired outcome = worker_.acquire(head, x);
  if (outcome == Acquired::Ok) return true;
  if (worker_.may_wait(x, outcome)) {
    wait_for_place(head);
  } else {
    refuse_place(outcome);
  }
  return false;
}

void Connection::connect(const net::RequestHead& head) {
  Exchange& x = *exchange_;
  if (x.direct) return go_direct(head);
  // Leases may have ended while the request waited.
  if (!x.allocation.still_usable(worker_.now())) {
    release({});
    return refuse(x.last_refusal.value_or(domain::Refusal::NoCandidate), x.last_kind);
  }
  const ProxyEntry& proxy = x.allocation.proxy();
  if (x.has_body) x.allocation.leave_untimed();
  x.last_tried = proxy.id;
  x.routed = x.routing->runtime;
  if (x.note != nullptr) {
    x.note->routing = x.routing->id.str();
    x.note->upstream = proxy.upstream->str();
  }
  const UpstreamKey key{proxy.id, credential_tag(proxy), x.client_tag, x.session.tag()};
  const bool reusable = worker_.settings().reuse && x.kind == domain::RequestKind::Http &&
                        !x.websocket && !x.fresh_retry_used;
  if (reusable) upstream_ = worker_.pool().take(key, *this);
  if (upstream_ != nullptr) {
    x.reused = true;
    worker_.counters().reused();
    return ask(head);
  }
  if (proxy.address) return dial(head, *proxy.address);
  const Resolved* const known =
      worker_.proxy_names().find(proxy.endpoint.host, worker_.now(), *this);
  if (known == nullptr) {
    remember(head);
    state_ = State::Resolving;
    return limit(Limit::Resolve, worker_.settings().resolve);
  }
  if (known->outcome == Resolved::Outcome::Busy) return give_up_dialling();
  if (known->addresses.empty()) {
    return fail({Phase::Dial, FailureKind::Unreachable}, domain::Refusal::ProxyConnectFailed);
  }
  dial(head, known->addresses.front());
}

void Connection::resolved() {
  if (state_ != State::Resolving) return;
  attempt_again();
  if (state_ != State::Gone) drive();
}

void Connection::dial(const net::RequestHead& head, const IpAddress& address) {
  Exchange& x = *exchange_;
  const ProxyEntry& proxy = x.allocation.proxy();
  net::Connecting connecting = net::start_connect({address, proxy.endpoint.port});
  if (!connecting.fd) {
    if (ours(connecting.error)) return give_up_dialling();
    return fail({Phase::Dial, kind_of(connecting.error)}, domain::Refusal::ProxyConnectFailed);
  }
  worker_.counters().dialled();
  x.dialling = true;
  upstream_ =
      worker_.pool().make({proxy.id, credential_tag(proxy), x.client_tag, x.session.tag()}, *this);
  upstream_->open(std::move(connecting.fd), false);
  if (proxy.endpoint.scheme == domain::Scheme::Https) return secure(head);
  ask(head);
}

void Connection::remember(const net::RequestHead& head) {
  Buffer& kept = exchange_->head;
  if (kept.empty()) kept.append(lane_.buffers, bytes().substr(0, head.size()));
}

// TLS first: nothing of the request leaves before the proxy has shown who it is (GW-40).
void Connection::secure(const net::RequestHead& head) {
  remember(head);
  const ProxyEntry& proxy = exchange_->allocation.proxy();
  const net::TlsPeer peer{proxy.endpoint.host, proxy.id.value(), &worker_.tickets()};
  if (!upstream_->connect_tls(worker_.proxy_tls(), peer)) return give_up_dialling();
  if (upstream_->handshake() == net::TlsSession::Step::Failed) {
    return fail({Phase::Dial, kind_of(upstream_->error())}, domain::Refusal::ProxyConnectFailed);
  }
  if (!upstream_->watch()) return give_up_dialling();
  const bool connecting = upstream_->holding();
  state_ = connecting ? State::Dialling : State::ProxyHandshake;
  limit(connecting ? Limit::Connect : Limit::ProxyHandshake,
        connecting ? worker_.settings().connect : worker_.settings().tls_handshake);
}

void Connection::secured() {
  if (!upstream_->readable()) return;
  const auto step = upstream_->handshake();
  if (step == net::TlsSession::Step::Waits) return;
  const auto outcome = upstream_->tls_outcome();
  worker_.counters().proxy_tls(outcome);
  if (step == net::TlsSession::Step::Failed) {
    const bool lost = outcome == net::TlsOutcome::Lost;
    return fail({Phase::ProxyHandshake, lost ? FailureKind::Reset : FailureKind::Protocol},
                domain::Refusal::ProxyConnectFailed);
  }
  exchange_->dialling = false;
  ask(remembered());
}

void Connection::ask(const net::RequestHead& head) {
  Exchange& x = *exchange_;
  net::RequestRewrite how;
  how.to_proxy = !x.direct;
  if (!x.direct) how.proxy_authorization = authorization_value(x.allocation.proxy());
  // Fields for the gateway alone: a caller's session is nobody else's business (R4), and neither is
  // what a trusted proxy tells us of its clients (GW-5).
  std::array<std::string_view, 2> stays_here;
  std::size_t kept = 0;
  const std::string_view session_field = x.view->view->policy().session_header;
  if (!session_field.empty()) stays_here[kept++] = session_field;
  if (trusted_) stays_here[kept++] = "X-Forwarded-For";
  how.strip = std::span(stays_here).first(kept);
  how.upgrade = x.websocket;
  const auto out = lane_.scratch.out();
  const std::size_t size = net::write_request(head, how, out);
  PP_ASSERT(size != 0);
  const auto sent = upstream_->send({out.data(), size});
  x.bytes_up += x.head_up = size;
  if (sent != Write::Broken && !upstream_->watch()) return give_up_dialling();
  if (sent == Write::Broken) {
    const auto kind = kind_of(upstream_->error());
    if (x.dialling) return fail({Phase::Dial, kind}, domain::Refusal::ProxyConnectFailed);
    return fail({Phase::ResponseHeaders, FailureKind::Reset}, domain::Refusal::ProxyProtocolError);
  }
  if (x.dialling && upstream_->unsent() == size) {
    state_ = State::Dialling;
    return limit(Limit::Connect, worker_.settings().connect);
  }
  connected();
}

// This machine is short of something: no proxy is to blame, and another one would not help.
void Connection::give_up_dialling() {
  release({});
  refuse(domain::Refusal::Overloaded);
}

void Connection::dialled() {
  const std::size_t unsent = upstream_->unsent();
  if (upstream_->flush() == Write::Broken) {
    return fail({Phase::Dial, kind_of(upstream_->error())}, domain::Refusal::ProxyConnectFailed);
  }
  if (upstream_->unsent() == unsent) return;
  if (!upstream_->secure()) return connected();
  state_ = State::ProxyHandshake;
  limit(Limit::ProxyHandshake, worker_.settings().tls_handshake);
}

void Connection::connected() {
  Exchange& x = *exchange_;
  x.dialling = false;
  if (!x.direct && !std::exchange(x.active, true)) x.allocation.commit();
  state_ = State::Asking;
  await_answer();
}

void Connection::await_answer() {
  const Exchange& x = *exchange_;
  const Settings& settings = worker_.settings();
  if (x.kind == domain::RequestKind::Connect) {
    limit(Limit::ProxyConnect, settings.proxy_connect);
  } else if (x.up.done() || x.upload_broken) {
    limit(Limit::FirstByte, settings.first_byte);
  } else if (x.awaits_continue) {
    limit(Limit::Expect, settings.expect_wait);
  } else {
    limit(Limit::Idle, settings.idle);
  }
}

// Failures
// -----------------------------------------------------------------------------------------

void Connection::fail(domain::Failure failure, domain::Refusal refusal) {
  Exchange& x = *exchange_;
  if (x.direct) refusal = domain::without_proxy(refusal);
  domain::FailedAttempt failed;
  failed.kind = x.kind;
  failed.method = name_of(method_);
  failed.has_body = x.has_body;
  failed.failure = failure;
  failed.bytes_sent = !x.dialling;
  failed.answer_started = x.answer_started;
  failed.committed = x.committed;
  failed.reused_connection = x.reused;
  failed.fresh_retry_used = x.fresh_retry_used;
  failed.attempts = attempts();
  worker_.counters().failed(failure.phase);
  const auto decision = domain::decide_retry(failed, worker_.retry_policy(x));
  if (upstream_ != nullptr) worker_.pool().discard(*std::exchange(upstream_, nullptr), true);
  x.race.reset();
  if (std::exchange(x.dialling, false)) x.bytes_up -= x.head_up;  // it has not left
  x.head_up = 0;
  forget_answer();
  // A failed attempt ends the session's binding; a second try at the same proxy is none (R4).
  const bool lost = decision != domain::RetryDecision::SameProxyFresh && worker_.leave_session(x);
  if (lost && x.strict) {
    release(failure);
    return refuse(domain::Refusal::SessionLost, failure.kind);
  }
  if (decision == domain::RetryDecision::Stop || x.head.empty()) {
    release(failure);
    return refuse(refusal, failure.kind);
  }
  worker_.counters().retried();
  if (decision == domain::RetryDecision::SameProxyFresh) {
    x.fresh_retry_used = true;
  } else {
    release(failure);
    x.fresh_retry_used = false;
    x.last_kind = failure.kind;
    x.last_refusal = refusal;
  }
  attempt_again();
}

void Connection::attempt_again() {
  attempt(remembered());
}

const net::RequestHead& Connection::remembered() {
  net::RequestParser& parser = worker_.request_parser();
  parser.reset();
  const auto state = parser.parse(exchange_->head.view());
  PP_ASSERT(state == net::ParseState::Done);
  return parser.head();
}

void Connection::forget_answer() noexcept {
  if (exchange_ != nullptr) worker_.forget(std::exchange(exchange_->half_answer, nullptr));
}

// The head of the answer
// ---------------------------------------------------------------------------

void Connection::read_answer() {
  while (state_ == State::Asking && !holding()) {
    Exchange& x = *exchange_;
    if ((upstream_->bytes().empty() || x.half_answer != nullptr) && !fill_answer()) return;
    x.answer_started = true;
    auto& parser = x.half_answer != nullptr ? *x.half_answer : worker_.response_parser();
    if (x.half_answer == nullptr) parser.reset({method_, x.websocket});
    switch (parser.parse(upstream_->bytes())) {
      case net::ParseState::NeedMore:
        if (x.half_answer == nullptr) x.half_answer = worker_.keep(parser);
        upstream_->settle();
        break;
      case net::ParseState::Refused:
        return fail({answer_phase(), FailureKind::Protocol}, domain::Refusal::ProxyProtocolError);
      case net::ParseState::Done:
        on_answer(parser.head());
        break;
    }
  }
}

bool Connection::fill_answer() {
  switch (upstream_->receive()) {
    case Read::Bytes:
      return true;
    case Read::Starved:
      return false;
    case Read::End:
    case Read::Broken:
      fail({answer_phase(), FailureKind::Reset}, domain::Refusal::ProxyProtocolError);
      return false;
  }
  return false;
}

domain::Phase Connection::answer_phase() const noexcept {
  return exchange_->kind == domain::RequestKind::Connect ? Phase::ProxyHandshake
                                                         : Phase::ResponseHeaders;
}

void Connection::on_answer(const net::ResponseHead& head) {
  Exchange& x = *exchange_;
  x.bytes_down += head.size();
  if (head.interim()) {
    pass_interim(head);
  } else {
    x.status = static_cast<std::uint16_t>(head.status());
    x.latency = std::chrono::duration_cast<milliseconds>(worker_.now() - x.attempt_began);
    if (x.kind == domain::RequestKind::Connect && head.framing() != net::Framing::Tunnel) {
      const bool credentials = head.status() == 407;
      return fail(
          {Phase::ProxyHandshake, credentials ? FailureKind::AuthRejected : FailureKind::Other},
          credentials ? domain::Refusal::ProxyAuthRejected : domain::Refusal::ProxyRefused);
    }
    if (head.status() == 407) {
      return fail({Phase::ResponseHeaders, FailureKind::AuthRejected},
                  domain::Refusal::ProxyAuthRejected);
    }
    if (head.framing() == net::Framing::Tunnel) {
      open_tunnel(head);
    } else {
      begin_answer(head);
    }
  }
  forget_answer();
}

void Connection::pass_interim(const net::ResponseHead& head) {
  Exchange& x = *exchange_;
  const std::size_t size = head.size();
  const bool asked_by_us = head.status() == 100 && x.continue_sent;
  if (head.status() == 100) x.awaits_continue = false;
  if (!x.http_1_0 && x.kind == domain::RequestKind::Http && !asked_by_us) {
    const auto out = lane_.scratch.out();
    const std::size_t written = net::write_response(head, {}, out);
    PP_ASSERT(written != 0);
    x.committed = true;
    if (send({out.data(), written}) == Write::Broken) return gone(true);
  }
  upstream_->consume(size);
  await_answer();
}

void Connection::continue_unasked() {
  Exchange& x = *exchange_;
  x.awaits_continue = false;
  x.continue_sent = true;
  if (send("HTTP/1.1 100 Continue\r\n\r\n") == Write::Broken) return gone(true);
  limit(Limit::Idle, worker_.settings().idle);
}

void Connection::begin_answer(const net::ResponseHead& head) {
  Exchange& x = *exchange_;
  x.allocation.answered(!domain::may_be_the_vendors(x.status), worker_.now());
  x.committed = true;
  x.head.clear();
  worker_.confirm_session(x);
  worker_.let_go_of_view(x);
  x.upstream_keeps = head.keep_alive();
  x.down = BodyFlow(head.framing(), head.content_length(), x.http_1_0);
  may_go_on_ =
      may_go_on_ && !draining_ && x.up.done() && head.framing() != net::Framing::UntilClose;
  net::ResponseRewrite how;
  how.close = !may_go_on_;
  how.http_1_0 = x.http_1_0;
  const auto out = lane_.scratch.out();
  const std::size_t size = net::write_response(head, how, out);
  PP_ASSERT(size != 0);
  upstream_->consume(head.size());
  state_ = State::Answering;
  limit(Limit::Idle, worker_.settings().idle);
  send_down({out.data(), size});
}

void Connection::open_tunnel(const net::ResponseHead& head) {
  std::string_view answer = kEstablished;
  if (exchange_->kind == domain::RequestKind::Http) {
    const auto out = lane_.scratch.out();
    answer = {out.data(), net::write_response(head, {}, out)};
  }
  upstream_->consume(head.size());
  begin_tunnel(answer);
}

void Connection::begin_tunnel(std::string_view answer) {
  Exchange& x = *exchange_;
  x.allocation.answered(true, worker_.now());
  const Settings& settings = worker_.settings();
  x.committed = true;
  x.head.clear();
  worker_.confirm_session(x);
  worker_.let_go_of_view(x);
  worker_.tunnel_begins();
  worker_.counters().tunnelled();
  may_go_on_ = false;
  state_ = State::Tunnel;
  if (settings.tunnel_age_max != nanoseconds{0}) {
    x.ends_at = std::min(x.ends_at, worker_.now() + settings.tunnel_age_max);
  }
  limit(Limit::Idle, settings.idle);
  send_down(answer);
}

}  // namespace proxypool::gateway
