// Request heads: reading them, and everything that can be said against a request before a proxy is
// chosen for it. What refuses comes in the order of its cost, and nothing is dialled or resolved
// before all of it has passed.
#include <algorithm>
#include <utility>

#include "gateway/ingress/answer.hpp"
#include "gateway/ingress/connection.hpp"
#include "gateway/ingress/forwarded.hpp"
#include "gateway/worker.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::gateway {
namespace {

// Requests that are answered at once, in one turn, before others get theirs.
constexpr int kRequestsPerTurn = 64;

bool names_a_destination(const net::RequestHead& head) noexcept {
  return head.form() == net::TargetForm::Absolute || head.form() == net::TargetForm::Authority;
}

}  // namespace

void Connection::read_request() {
  for (int handled = 0; state_ == State::Head && !holding(); ++handled) {
    if (handled == kRequestsPerTurn) return worker_.again(*this);
    if ((bytes().empty() || half_head_ != nullptr) && !fill_head()) return;
    auto& parser = half_head_ != nullptr ? *half_head_ : worker_.request_parser();
    if (half_head_ == nullptr) parser.reset();
    switch (parser.parse(bytes())) {
      case net::ParseState::NeedMore:
        if (half_head_ == nullptr) half_head_ = worker_.keep(parser);
        if (parser.begun() && limit_ != Limit::Head) {
          limit(Limit::Head, worker_.settings().head);
        }
        settle();
        break;
      case net::ParseState::Refused:
        begin_refusal(parser.head());
        refuse_malformed(parser.refusal());
        worker_.forget(std::exchange(half_head_, nullptr));
        break;
      case net::ParseState::Done: {
        const std::size_t size = parser.head().size();
        const bool dealt_with = handle(parser.head());
        worker_.forget(std::exchange(half_head_, nullptr));
        if (dealt_with && is_open()) consume(size);
        break;
      }
    }
  }
}

bool Connection::fill_head() {
  switch (receive()) {
    case Read::Bytes:
      return true;
    case Read::Starved:
      return false;
    case Read::End:
    case Read::Broken:
      gone();
      return false;
  }
  return false;
}

// The session that the request belongs to, empty for none; nothing when it is named wrongly. The
// user name goes before the field (R4).
std::optional<std::string_view> Connection::session_of(const net::RequestHead& head,
                                                       const ViewPin& view,
                                                       const Principal& principal) {
  std::string_view session;
  const std::string_view field = view.view->policy().session_header;
  if (!field.empty()) {
    for (const net::Field& candidate : head.fields()) {
      if (!equal_ignoring_case(head.name(candidate), field)) continue;
      const std::string_view value = head.value(candidate);
      if (!session.empty() || !domain::is_session_name(value)) return std::nullopt;
      session = value;
    }
  }
  const bool named = principal.asked != nullptr && !principal.asked->parameters.session.empty();
  return named ? principal.asked->parameters.session : session;
}

// A refusal before the head is whole answers a request of its own, not the one before it.
void Connection::begin_refusal(const net::RequestHead& head) {
  request_id_ = worker_.random().next();
  method_ = head.method();
}

void Connection::refuse_malformed(const net::Refusal& why) {
  may_go_on_ = false;
  refuse(refusal_of(why.status), domain::FailureKind::None, why.reason);
}

bool Connection::handle(const net::RequestHead& head) {
  request_id_ = worker_.random().next();
  method_ = head.method();
  const bool alone = head.framing() == net::Framing::None && method_ != net::Method::Connect;
  may_go_on_ = head.keep_alive() && head.minor_version() == 1 && alone && !draining_;
  const IpAddress source =
      trusted_ ? caller_of(head, source_, worker_.settings().trusted_proxies) : source_;
  if (trusted_ ? !worker_.allows(source) : !source_allowed_) {
    may_go_on_ = false;
    refuse(domain::Refusal::SourceDenied);
    return true;
  }
  if (!names_a_destination(head)) {
    may_go_on_ = false;
    refuse(domain::Refusal::BadRequest, domain::FailureKind::None,
           "this is a proxy: it takes absolute URLs and CONNECT");
    return true;
  }
  ViewPin* const view = worker_.view();
  if (view == nullptr) {
    refuse(domain::Refusal::NotReady);
    return true;
  }
  const auto principal = worker_.authenticate(*view, head, source);
  if (principal.verdict == Principal::Verdict::Pending) {
    state_ = State::Verifying;
    limit(Limit::Verify, worker_.settings().verify);
    worker_.await_verdict(principal.key, source, *this);
    return false;
  }
  if (principal.verdict != Principal::Verdict::Accepted) {
    refuse_principal(principal.verdict, head);
    return true;
  }
  if (principal.asked != nullptr && !principal.asked->fault.empty()) {
    allow_another_try(head);
    refuse(domain::Refusal::BadParameter, domain::FailureKind::None, principal.asked->fault);
    return true;
  }
  const bool last_hop = head.max_forwards() == std::uint32_t{0};
  if (last_hop && (method_ == net::Method::Trace || method_ == net::Method::Options)) {
    answer_last_hop(head);
    return true;
  }
  admit(head, *view, principal);
  return true;
}

// A client that is told to show other credentials tries again on this connection, unless it sent
// tunnel bytes at once: they must not be read as a request.
void Connection::allow_another_try(const net::RequestHead& head) {
  const bool nothing_behind = bytes().size() == head.size();
  if (method_ == net::Method::Connect && nothing_behind) {
    may_go_on_ = head.keep_alive() && head.minor_version() == 1 && !draining_;
  }
}

void Connection::refuse_principal(Principal::Verdict verdict, const net::RequestHead& head) {
  allow_another_try(head);
  switch (verdict) {
    case Principal::Verdict::Missing:
      return refuse(domain::Refusal::AuthRequired);
    case Principal::Verdict::Limited:
      return refuse(domain::Refusal::ClientLimited, domain::FailureKind::None,
                    "too many wrong passwords or keys from this source");
    case Principal::Verdict::Full:
      return refuse(domain::Refusal::Overloaded, domain::FailureKind::None,
                    "too many passwords are being checked");
    case Principal::Verdict::Stranger:
      may_go_on_ = false;
      return refuse(domain::Refusal::SourceDenied, domain::FailureKind::None,
                    "this source address is no client's");
    default:
      return refuse(domain::Refusal::AuthRejected);
  }
}

void Connection::answer_last_hop(const net::RequestHead& head) {
  if (send(write_last_hop(head, !may_go_on_)) == Write::Broken) return gone(true);
  worker_.counters().answered_locally();
  if (!may_go_on_) return linger();
  next_request();
}

// GW-12, GW-14: what the client may have, before anything is looked up for it. True: counted if it
// has a limit of requests at once; false: refused.
bool Connection::within_limits(const ViewPin& view, const Principal& principal,
                               domain::ClientUse*& entered) {
  if (principal.client == domain::RouteRequest::kNoClient) return true;
  domain::ClientUse& use = view.view->use_of(principal.client);
  if (use.over_quota(worker_.now())) {
    refuse(domain::Refusal::QuotaExceeded, domain::FailureKind::None,
           "the client has moved as many bytes today as it may",
           use.over_until.load(std::memory_order_relaxed) - worker_.now());
    return false;
  }
  const domain::SnapshotClient& client = view.view->clients()[principal.client];
  if (client.in_flight_max != 0 && !use.enter(client.in_flight_max)) {
    refuse(domain::Refusal::ClientLimited, domain::FailureKind::None,
           "the client has as many requests at once as it may");
    return false;
  }
  if (client.in_flight_max != 0) entered = &use;
  if (client.rate_per_second == 0) return true;
  const auto wait = use.rate.take(client.rate_per_second, client.burst, worker_.now());
  if (!wait) return true;
  if (entered != nullptr) std::exchange(entered, nullptr)->leave();
  refuse(domain::Refusal::ClientLimited, domain::FailureKind::None,
         "the client has had as many requests a second as it may", *wait);
  return false;
}

void Connection::admit(const net::RequestHead& head, ViewPin& view, const Principal& principal) {
  const Settings& settings = worker_.settings();
  if (!worker_.may_begin()) return refuse(domain::Refusal::Overloaded);
  const auto verdict = view.view->targets().check_host(head.host(), head.port());
  if (verdict == domain::TargetVerdict::BadHost) {
    may_go_on_ = false;
    return refuse(domain::Refusal::BadRequest, domain::FailureKind::None, "invalid host");
  }
  if (verdict != domain::TargetVerdict::Allowed) return refuse(domain::Refusal::TargetForbidden);
  if (head.framing() == net::Framing::Length && settings.body_bytes_max != 0 &&
      head.content_length() > settings.body_bytes_max) {
    return refuse(domain::Refusal::BodyTooLarge);
  }
  const auto session = session_of(head, view, principal);
  if (!session) {
    may_go_on_ = false;
    return refuse(domain::Refusal::BadRequest, domain::FailureKind::None,
                  "the name of a session is 1 to 128 of A-Z a-z 0-9 . _ ~ -, given once");
  }
  domain::ClientUse* use = nullptr;
  if (!within_limits(view, principal, use)) return;
  exchange_ = worker_.begin_exchange(view);
  if (exchange_ == nullptr) {
    if (use != nullptr) use->leave();
    return refuse(domain::Refusal::Overloaded);
  }
  exchange_->use = use;
  Exchange& x = *exchange_;
  x.kind =
      method_ == net::Method::Connect ? domain::RequestKind::Connect : domain::RequestKind::Http;
  x.http_1_0 = head.minor_version() == 0;
  x.has_body = head.framing() != net::Framing::None;
  x.websocket = head.upgrades_to_websocket();
  x.awaits_continue = head.expects_continue() && x.has_body && !x.http_1_0;
  x.client = principal.client;
  x.client_tag = principal.tag;
  worker_.open_account(x);
  x.asked = principal.asked;
  x.session = SessionName(*session);
  x.strict = principal.asked != nullptr && principal.asked->parameters.strict;
  x.up = BodyFlow(head.framing(), head.content_length(), false, settings.body_bytes_max);
  if (settings.total != nanoseconds{0}) x.ends_at = worker_.now() + settings.total;
  if (x.kind == domain::RequestKind::Connect ||
      domain::repeatable(head.method_text(), x.has_body) ||
      view.view->policy().unsafe_before_send) {
    x.head.append(lane_.buffers, bytes().substr(0, head.size()));
  }
  if (worker_.access_log().next()) {
    x.note = std::make_unique<AccessNote>();
    const auto& clients = view.view->clients();
    if (x.client < clients.size()) x.note->client = clients[x.client].name.str();
    x.note->method = std::string(head.method_text());
    x.note->target = std::string(head.host()) + ":" + std::to_string(head.port());
  }
  may_go_on_ =
      head.keep_alive() && !x.http_1_0 && !draining_ && x.kind == domain::RequestKind::Http;
  attempt(head);
}

}  // namespace proxypool::gateway
