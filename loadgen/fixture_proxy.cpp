// One connection to a fixture proxy: absolute-form requests, CONNECT tunnels, faults.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "loadgen/exchange.hpp"
#include "loadgen/fixture_state.hpp"
#include "loadgen/url.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::loadgen {
namespace {

using asio::experimental::awaitable_operators::operator&&;
using asio::experimental::awaitable_operators::operator||;

constexpr seconds kDialTimeout{5};
constexpr std::uint64_t kUnlimited = UINT64_MAX;
constexpr std::uint64_t kTunnelTruncatedAfter = 1024;  // where the fault names no number

bool is_loopback(const Authority& target) {
  IoError error;
  const auto address = asio::ip::make_address(target.host, error);
  if (!error) return address.is_loopback();
  return equal_ignoring_case(target.host, "localhost");
}

// A connection to the origin, known to the journal by its local port.
class OriginLink {
 public:
  OriginLink(FixtureStatePtr state, StreamPtr stream, unsigned proxy)
      : state_(std::move(state)), stream_(std::move(stream)), port_(stream_->local().port()) {
    state_->dialled[port_] = proxy;
  }
  OriginLink(const OriginLink&) = delete;
  OriginLink& operator=(const OriginLink&) = delete;
  ~OriginLink() {
    stream_->close();
    state_->dialled.erase(port_);
  }
  [[nodiscard]] const StreamPtr& stream() const noexcept { return stream_; }

 private:
  FixtureStatePtr state_;
  StreamPtr stream_;
  std::uint16_t port_;
};

class ProxySession {
 public:
  ProxySession(FixtureStatePtr state, std::shared_ptr<FixtureProxy> proxy, StreamPtr client)
      : state_(std::move(state)), proxy_(std::move(proxy)), client_(std::move(client)) {}

  awaitable<void> run();

 private:
  // Each answers whether the connection can serve another request.
  awaitable<bool> serve(Request request, InFlight& in_flight);
  awaitable<bool> tunnel(const Fault& fault, InFlight& in_flight);
  awaitable<bool> forward(Exchange& exchange, Url url, const Fault& fault, InFlight& in_flight);
  awaitable<bool> refuse(Exchange& exchange, unsigned status, std::string_view why,
                         InFlight& in_flight);

  // Plays a fault that leaves no answer or a wrong one. true: serve as usual.
  awaitable<bool> pass_fault(Exchange& exchange, const Fault& fault, InFlight& in_flight);
  awaitable<bool> send_head(const Authority& target, const std::string& head);
  awaitable<bool> open_origin(const Authority& target);

  awaitable<void> send_body(Exchange& exchange, bool& whole);
  enum class Relayed : std::uint8_t { Whole, Closed, NoAnswer };
  awaitable<Relayed> relay_answer(const Request& request, const Fault& fault, InFlight& in_flight);
  awaitable<bool> relay_body(std::string prefix, BodyScanner body, std::uint64_t keep,
                             InFlight& in_flight);
  awaitable<void> copy(StreamPtr from, StreamPtr to, std::uint64_t keep, int& open,
                       InFlight& in_flight);

  [[nodiscard]] bool authorized(const Request& request) const;
  void remember(const Request& request);

  FixtureStatePtr state_;
  std::shared_ptr<FixtureProxy> proxy_;
  StreamPtr client_;
  std::unique_ptr<OriginLink> origin_;
  Authority origin_target_;
};

bool ProxySession::authorized(const Request& request) const {
  const auto& options = state_->options;
  if (!options.require_auth) return true;
  const auto header = request.fields.find("proxy-authorization");
  if (!header || !equal_ignoring_case(header->substr(0, 6), "basic ")) return false;
  const auto given = base64_decode(trim(header->substr(6)));
  return given && *given == options.user + ":" + std::string(options.password.reveal());
}

void ProxySession::remember(const Request& request) {
  const auto token = token_of(request.target, request.fields);
  if (!token) return;
  Sighting seen;
  seen.place = "proxy";
  seen.proxy = proxy_->index;
  seen.method = request.method;
  seen.target = request.target;
  seen.fields = request.fields.all();
  seen.peer = to_text(client_->peer());
  seen.at_ms = runtime::wall_now().time_since_epoch().count();
  state_->journal.remember(*token, std::move(seen));
}

awaitable<void> ProxySession::run() {
  auto& counters = proxy_->counters;
  ++counters.connections;
  const auto until = proxy_->offered_until_ms;
  if (until != 0 && runtime::wall_now().time_since_epoch().count() > until)
    ++counters.late_connections;
  for (;;) {
    const auto head = co_await read_head(client_);
    if (head.outcome != HeadText::Outcome::Ok) co_return;
    InFlight in_flight(proxy_);
    auto request = parse_request(head.text);
    if (!request) {
      Exchange broken{client_, Request{}, BodyScanner{Framing{}}};
      broken.request.minor = 0;
      co_await refuse(broken, 400, request.error().message, in_flight);
      co_return;
    }
    remember(*request);
    if (!co_await serve(*std::move(request), in_flight)) co_return;
  }
}

awaitable<bool> ProxySession::serve(Request request, InFlight& in_flight) {
  const bool connect = request.method == "CONNECT";
  const auto framing = connect ? Result<Framing>(Framing{}) : framing_of(request);
  Exchange exchange{client_, std::move(request), BodyScanner{framing.value_or(Framing{})}};
  const Fault fault = proxy_->fault;
  if (!co_await pass_fault(exchange, fault, in_flight)) {
    co_return client_->is_open() && keeps_alive(exchange.request) && exchange.body.done();
  }
  if (!framing) co_return co_await refuse(exchange, 400, framing.error().message, in_flight);
  if (!authorized(exchange.request)) {
    ++proxy_->counters.wrong_credentials;
    co_return co_await refuse(exchange, 407, "wrong credentials", in_flight);
  }
  if (connect) {
    const auto target = parse_authority(exchange.request.target, 443);
    if (!target) co_return co_await refuse(exchange, 400, "CONNECT needs host:port", in_flight);
    if (!co_await open_origin(*target)) {
      co_return co_await refuse(exchange, 502, "the target cannot be reached", in_flight);
    }
    co_return co_await tunnel(fault, in_flight);
  }
  auto url = parse_url(exchange.request.target);
  if (!url || url->scheme != "http") {
    co_return co_await refuse(exchange, 400, "this is a proxy: send an absolute http URL",
                              in_flight);
  }
  co_return co_await forward(exchange, *std::move(url), fault, in_flight);
}

awaitable<bool> ProxySession::pass_fault(Exchange& exchange, const Fault& fault,
                                         InFlight& in_flight) {
  using enum Fault::Kind;
  const auto kind = fault.kind;
  if (kind == None || fault.cuts()) co_return true;
  if (kind == Slow) {
    const bool there = co_await client_->pause(fault.delay);
    co_return there;
  }
  if (kind == Status) {
    co_await refuse(exchange, fault.status, "told to fail", in_flight);
    co_return false;
  }
  if (kind == Hang) co_await client_->discard();
  if (kind == ResetInHead) co_await client_->write("HTTP/1.1 200 OK\r\nX-Half: ");
  if (kind == Reset || kind == ResetInHead || kind == ResetOnAccept) client_->reset();
  in_flight.release();
  if (kind == Garbage) co_await client_->write("\x16\x03\x01 this is not HTTP\r\n\r\n");
  if (client_->is_open()) co_await client_->close_gently();
  co_return false;
}

awaitable<bool> ProxySession::refuse(Exchange& exchange, unsigned status, std::string_view why,
                                     InFlight& in_flight) {
  in_flight.release();
  Answer answer;
  answer.status = status;
  answer.content_type = "text/plain";
  answer.body = "fixture proxy " + std::to_string(proxy_->index) + ": " + std::string(why) + "\n";
  answer.fields.add("X-Fixture-Proxy", std::to_string(proxy_->index));
  if (status == 407) answer.fields.add("Proxy-Authenticate", "Basic realm=\"fixture\"");
  co_return co_await send(exchange, std::move(answer));
}

awaitable<bool> ProxySession::open_origin(const Authority& target) {
  IoError error;
  auto endpoint = state_->origin_endpoint();
  if (is_loopback(target)) {
    const auto address = asio::ip::make_address(target.host, error);
    endpoint = {error ? asio::ip::make_address("127.0.0.1") : address, target.port};
  }
  origin_.reset();
  const auto dialled = co_await dial(endpoint, kDialTimeout);
  if (!dialled.stream) co_return false;
  origin_ = std::make_unique<OriginLink>(state_, dialled.stream, proxy_->index);
  origin_target_ = target;
  co_return true;
}

// --- CONNECT ---------------------------------------------------------------------------------

awaitable<bool> ProxySession::tunnel(const Fault& fault, InFlight& in_flight) {
  ++proxy_->counters.tunnels;
  const std::string head =
      "HTTP/1.1 200 Connection established\r\nX-Fixture-Proxy: " + std::to_string(proxy_->index) +
      "\r\n\r\n";
  const IoError failed = co_await client_->write(head);
  if (failed) co_return false;
  const auto keep = fault.cuts() ? fault.keep.value_or(kTunnelTruncatedAfter) : kUnlimited;
  int open = 2;
  const auto origin = origin_->stream();
  co_await (copy(client_, origin, kUnlimited, open, in_flight) &&
            copy(origin, client_, keep, open, in_flight));
  co_return false;
}

awaitable<void> ProxySession::copy(StreamPtr from, StreamPtr to, std::uint64_t keep, int& open,
                                   InFlight& in_flight) {
  for (;;) {
    IoError error = co_await from->fill_if_empty();
    if (error == asio::error::eof) {
      if (--open == 0) in_flight.release();
      to->end_output();
      co_return;
    }
    const auto bytes = from->buffered().substr(0, keep);
    if (!error) error = co_await to->write(bytes);
    if (error || bytes.size() == keep) {
      in_flight.release();
      if (error || proxy_->fault.kind == Fault::Kind::ResetInBody) {
        to->reset();
      } else {
        to->close();
      }
      from->reset();
      co_return;
    }
    if (keep != kUnlimited) keep -= bytes.size();
    from->consume(bytes.size());
  }
}

// --- absolute form ---------------------------------------------------------------------------

// On the open connection when it leads there, else on a new one.
awaitable<bool> ProxySession::send_head(const Authority& target, const std::string& head) {
  if (!origin_ || origin_target_ != target || !origin_->stream()->is_open()) {
    const bool opened = co_await open_origin(target);
    if (!opened) co_return false;
  }
  const IoError error = co_await origin_->stream()->write(head);
  co_return !error;
}

awaitable<bool> ProxySession::forward(Exchange& exchange, Url url, const Fault& fault,
                                      InFlight& in_flight) {
  Request onward = exchange.request;
  onward.target = url.target;
  onward.fields.erase_hop_by_hop();
  onward.fields.add("Via", "1.1 fixture-proxy-" + std::to_string(proxy_->index));
  const std::string head = to_text(onward);
  const bool bodiless = exchange.body.done();
  const bool was_open = origin_ != nullptr;
  for (bool again = was_open && bodiless;; again = false) {
    const bool sent = co_await send_head(url.authority, head);
    if (!sent) {
      origin_.reset();
      if (again) continue;
      co_return co_await refuse(exchange, 502, "the target cannot be reached", in_flight);
    }
    bool whole = bodiless;
    const auto first =
        co_await (relay_answer(exchange.request, fault, in_flight) || send_body(exchange, whole));
    if (first.index() == 1) co_return false;  // the client has gone
    const auto relayed = std::get<0>(first);
    if (relayed == Relayed::Whole && whole) co_return keeps_alive(exchange.request);
    origin_.reset();
    if (relayed != Relayed::NoAnswer) {
      if (client_->is_open()) co_await client_->close_gently();
      co_return false;
    }
    // An origin may end an idle connection at any time: once more, on a new one.
    if (again) continue;
    co_return co_await refuse(exchange, 502, "the target gave no answer", in_flight);
  }
}

// Passes the request body on, then waits; returns only when the client has gone.
awaitable<void> ProxySession::send_body(Exchange& exchange, bool& whole) {
  bool origin_reads = true;
  auto& body = exchange.body;
  while (!body.done()) {
    const IoError failed = co_await client_->fill_if_empty();
    if (failed) co_return;
    const auto step = body.take(client_->buffered());
    if (step.malformed) co_return;
    const auto raw = client_->buffered().substr(0, step.consumed);
    if (origin_reads) {
      const IoError error = co_await origin_->stream()->write(raw);
      origin_reads = !error;
    }
    client_->consume(step.consumed);
  }
  whole = origin_reads;
  co_await client_->wait_gone();
}

awaitable<ProxySession::Relayed> ProxySession::relay_answer(const Request& request,
                                                            const Fault& fault,
                                                            InFlight& in_flight) {
  const auto origin = origin_->stream();
  for (;;) {
    const auto head = co_await read_head(origin);
    if (head.outcome != HeadText::Outcome::Ok) co_return Relayed::NoAnswer;
    auto response = parse_response(head.text);
    if (!response) co_return Relayed::NoAnswer;
    if (response->status / 100 == 1) {
      const IoError failed = co_await client_->write(head.text);
      if (failed) co_return Relayed::Closed;
      continue;
    }
    const auto framing = framing_of(*response, request.method);
    if (!framing) co_return Relayed::NoAnswer;
    const bool reusable = keeps_alive(*response);
    response->fields.erase_hop_by_hop();
    response->fields.add("X-Fixture-Proxy", std::to_string(proxy_->index));
    const bool alive = keeps_alive(request) && framing->kind != Framing::Kind::UntilClose;
    if (!alive) response->fields.add("Connection", "close");
    if (alive && request.minor == 0) response->fields.add("Connection", "keep-alive");
    const auto keep = fault.cuts() ? fault.keep.value_or(framing->length / 2) : kUnlimited;
    std::string text = to_text(*response);
    const BodyScanner body(*framing);
    const bool whole = co_await relay_body(std::move(text), body, keep, in_flight);
    if (!whole) {
      if (fault.kind == Fault::Kind::ResetInBody) client_->reset();
      client_->close();
      co_return Relayed::Closed;
    }
    if (!reusable || !alive) origin_->stream()->close();
    co_return alive ? Relayed::Whole : Relayed::Closed;
  }
}

// Sends `prefix` and the body behind it, of that at most `keep` bytes. false: cut short.
awaitable<bool> ProxySession::relay_body(std::string prefix, BodyScanner body, std::uint64_t keep,
                                         InFlight& in_flight) {
  const auto origin = origin_->stream();
  for (bool first = true; first || !body.done(); first = false) {
    if (origin->buffered().empty() && !body.done() && (!first || prefix.empty())) {
      const auto error = co_await origin->fill();
      if (error == asio::error::eof && body.ends_with_connection()) break;
      if (error) co_return false;
    }
    std::size_t raw = 0;
    while (!body.done() && raw < origin->buffered().size()) {
      const auto step = body.take(origin->buffered().substr(raw));
      if (step.malformed) co_return false;
      raw += step.consumed;
    }
    const auto allowed = static_cast<std::size_t>(std::min<std::uint64_t>(raw, keep));
    prefix.append(origin->buffered().substr(0, allowed));
    const bool cut = allowed < raw || (allowed == keep && !body.done());
    if (cut || body.done()) in_flight.release();
    const IoError error = co_await client_->write(prefix);
    if (error || cut) co_return false;
    prefix.clear();
    origin->consume(raw);
    if (keep != kUnlimited) keep -= allowed;
  }
  in_flight.release();
  co_return true;
}

}  // namespace

awaitable<void> serve_proxy(FixtureStatePtr state, std::shared_ptr<FixtureProxy> proxy,
                            StreamPtr client) {
  if (state->tls) {
    const IoError failed = co_await client->accept_tls(state->tls);
    if (failed) co_return;
  }
  if (proxy->fault.kind == Fault::Kind::ResetOnAccept) {
    ++proxy->counters.connections;
    client->reset();
    co_return;
  }
  ProxySession session(std::move(state), std::move(proxy), std::move(client));
  co_await session.run();
}

}  // namespace proxypool::loadgen
