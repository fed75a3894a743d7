#include "gateway/worker.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "gateway/ingress/forwarded.hpp"
#include "net/socket.hpp"

namespace proxypool::gateway {
namespace {

void add(std::atomic<std::uint32_t>& number, std::uint32_t n) noexcept {
  // One writer: a load and a store do.
  number.store(number.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// A client that sends faster than its proxy takes is held back by receive_max, not by what the
// system allows (tens of MiB for each). It is enough for 160 Mbit/s over 100 ms.
constexpr net::ListenOptions kListenOptions{.reuse_port = true, .receive_max = 2 << 20};

}  // namespace

Worker::Worker(Common& common, std::size_t index, std::uint64_t seed)
    : common_(common),
      load_(common.loads[index]),
      pool_(lane_, common.settings.idle_upstreams_max, common.settings.upstream_idle,
            load_.idle_upstreams),
      random_(seed),
      dispatcher_(common.registry, static_cast<unsigned>(index)),
      authenticator_(common.verifier, asker_, common.settings.auth),
      access_log_(common.events, common.settings.access_log_one_in),
      usage_(common.registry.usage_sheets().sheet(index)),
      outcomes_(common.registry.outcome_rings().ring(index)),
      asker_{loop_, [this](const CredentialKey& key,
                           Verifier::Verdict verdict) { on_verdict(key, verdict); }},
      patience_(loop_.timers(), *this),
      proxy_names_(common.proxy_names, loop_),
      target_names_(common.target_names, loop_) {}

Worker::~Worker() {
  stop();
  on_turn();
  pins_.clear();
}

Result<std::uint16_t> Worker::listen(std::uint16_t port) {
  PP_TRY(net::UniqueFd listener,
         net::listen_tcp({common_.settings.listen.address, port}, kListenOptions));
  take_listener(std::move(listener));
  return acceptor_->port();
}

Result<std::uint16_t> Worker::listen_at(int listener) {
  net::UniqueFd own(::fcntl(listener, F_DUPFD_CLOEXEC, 0));
  if (!own) {
    return Error{ErrorCode::Exhausted, Origin::Internal,
                 "no descriptor left for a thread's listener: raise the limit of open files "
                 "(`ulimit -n`, LimitNOFILE=)"};
  }
  net::adopt_listener(own.get(), kListenOptions);
  take_listener(std::move(own));
  shares_listener_ = true;
  return acceptor_->port();
}

void Worker::take_listener(net::UniqueFd listener) {
  acceptor_.emplace(
      loop_, std::move(listener),
      [this](net::UniqueFd fd, const auto& peer) { on_accept(std::move(fd), peer); },
      [this] { counters().out_of_descriptors(); });
}

void Worker::begin_to_accept() {
  patience_.cancel();
  accepting_ = true;
  if (acceptor_) acceptor_->resume();
}

void Worker::run() {
  reader_.emplace(common_.views);
  client_tls_ = common_.client_tls;
  if (shares_listener_) {
    patience_.arm_after(kPatience);
    refresh();
  } else {
    begin_to_accept();
  }
  loop_.run();
  stop();
  on_turn();
  pins_.clear();
  reader_.reset();
}

// From other threads
// -------------------------------------------------------------------------------

void Worker::request_drain() {
  loop_.post([this] { drain(); });
}
void Worker::request_stop() {
  loop_.post([this] { stop(); });
  loop_.stop();
}
void Worker::request_client_tls(std::shared_ptr<const net::TlsContext> context) {
  loop_.post([this, context = std::move(context)]() mutable { client_tls_ = std::move(context); });
}
void Worker::request_refresh() {
  loop_.post([this] { refresh(); });
}
void Worker::request_end_tunnels(std::shared_ptr<const std::vector<ProxyId>> proxies,
                                 TimePoint at) {
  loop_.post([this, proxies = std::move(proxies), at] { end_tunnels(proxies.get(), at); });
}

void Worker::request_end_over_quota() {
  loop_.post([this] { end_over_quota(); });
}

void Worker::drain() {
  draining_ = true;
  patience_.cancel();
  // What has reached the queue was promised an answer, by others if they go on accepting.
  if (acceptor_) shares_listener_ ? acceptor_->close() : acceptor_->finish();
  for (Connection* c = first_; c != nullptr; c = c->next_) c->drain();
  load_.draining.store(true);
}

void Worker::stop() {
  draining_ = true;
  patience_.cancel();
  if (acceptor_) acceptor_->close();
  while (first_ != nullptr) first_->stop();
  pool_.clear();
}

void Worker::refresh() {
  if (!reader_) return;
  const ViewPin* newest = view();
  if (!accepting_ && !draining_ && newest != nullptr && newest->view->proxies() != 0) {
    begin_to_accept();
  }
}

void Worker::end_tunnels(const std::vector<ProxyId>* proxies, TimePoint at) {
  for (Connection* c = first_; c != nullptr; c = c->next_) {
    const ProxyId proxy = c->proxy();
    if (proxy == ProxyId()) continue;
    if (proxies != nullptr && !std::binary_search(proxies->begin(), proxies->end(), proxy)) {
      continue;
    }
    c->end_by(at);
  }
}

void Worker::end_over_quota() {
  for (Connection* c = first_; c != nullptr; c = c->next_) {
    if (c->state_ != Connection::State::Tunnel) continue;
    const domain::ClientUse* const payer = c->exchange_->account;
    if (payer != nullptr && payer->over_quota(now())) c->end_by(now());
  }
}

// Connections
// --------------------------------------------------------------------------------------

void Worker::on_accept(net::UniqueFd fd, const net::Endpoint& peer) {
  if (sum(&Load::connections) >= common_.settings.connections_max) {
    counters().turned_away();
    return;
  }
  counters().accepted();
  add(load_.connections, 1);
  Connection* connection = connections_.make(*this, peer, allows(peer.address));
  connection->next_ = first_;
  if (first_ != nullptr) first_->previous_ = connection;
  first_ = connection;
  if (draining_) connection->drain();
  connection->start(std::move(fd));
}

bool Worker::count_source(Connection& connection) {
  if (connection.trusted_) return true;
  connection.source_counted_ = common_.sources.enter(connection.source_);
  if (!connection.source_counted_) counters().turned_away();
  return connection.source_counted_;
}

bool Worker::allows(const IpAddress& source) const noexcept {
  const auto& ranges = common_.settings.allow_cidrs;
  return ranges.empty() || contains(ranges, source);
}

bool Worker::trusts(const IpAddress& peer) const noexcept {
  return contains(common_.settings.trusted_proxies, peer);
}

void Worker::gone(Connection& connection) {
  (connection.previous_ == nullptr ? first_ : connection.previous_->next_) = connection.next_;
  if (connection.next_ != nullptr) connection.next_->previous_ = connection.previous_;
  if (connection.again_) std::erase(again_, &connection);
  std::erase_if(verifying_, [&](const auto& w) { return w.connection == &connection; });
  proxy_names_.forget(connection);
  target_names_.forget(connection);
  add(load_.connections, UINT32_MAX);
  if (connection.source_counted_) common_.sources.leave(connection.source_);
  dead_.push_back(&connection);
  loop_.defer(*this);
}

void Worker::again(Connection& connection) {
  if (std::exchange(connection.again_, true)) return;
  again_.push_back(&connection);
  loop_.defer(*this);
}

void Worker::on_turn() {
  for (Connection* connection : std::exchange(dead_, {})) connections_.destroy(connection);
  // A connection that ends meanwhile takes itself out of again_.
  for (std::size_t left = again_.size(); left > 0 && !again_.empty(); --left) {
    Connection* connection = again_.front();
    again_.erase(again_.begin());
    connection->again_ = false;
    connection->drive();
  }
}

// Requests
// -----------------------------------------------------------------------------------------

ViewPin* Worker::view() {
  const View* newest = reader_->get();
  if (pins_.empty() || pins_.back()->view.get() != newest) {
    if (!pins_.empty() && pins_.back()->users == 0) pins_.pop_back();
    auto pin = std::make_unique<ViewPin>();
    pin->view = reader_->pin();
    pin->number = ++views_seen_;
    pins_.push_back(std::move(pin));
  }
  ViewPin* current = pins_.back().get();
  if (current->view == nullptr || !common_.registry.valid(now())) return nullptr;
  return current;
}

void Worker::unpin(ViewPin& pin) noexcept {
  if (--pin.users != 0 || &pin == pins_.back().get()) return;
  std::erase_if(pins_, [&](const auto& held) { return held.get() == &pin; });
}

Principal Worker::authenticate(const ViewPin& view, const net::RequestHead& head,
                               const IpAddress& source) {
  const net::Field* field = head.find(net::FieldId::ProxyAuthorization);
  const auto value = field == nullptr ? std::string_view{} : head.value(*field);
  const bool parameters = view.view->policy().username_parameters;
  return authenticator_.check({view.view->principals(), view.number, parameters}, value, source,
                              now());
}

void Worker::await_verdict(const CredentialKey& key, const IpAddress& source,
                           Connection& connection) {
  verifying_.push_back({key, &connection, source});
}

std::vector<Connection*> Worker::take_verifying(const CredentialKey& key) {
  std::vector<Connection*> out;
  std::erase_if(verifying_, [&](const Waiting& w) {
    if (w.key != key) return false;
    out.push_back(w.connection);
    return true;
  });
  return out;
}

void Worker::on_verdict(const CredentialKey& key, Verifier::Verdict verdict) {
  const auto first = std::find_if(verifying_.begin(), verifying_.end(),
                                  [&](const auto& waiting) { return waiting.key == key; });
  if (verdict == Verifier::Verdict::Rejected && first != verifying_.end()) {
    authenticator_.charge(first->source, now());
  }
  const auto ready = take_verifying(key);
  for (Connection* connection : ready) connection->verified(verdict);
}

bool Worker::may_begin() const noexcept {
  return common_.in_flight.load(std::memory_order_relaxed) < common_.settings.in_flight_max;
}

std::uint64_t Worker::sum(std::atomic<std::uint32_t> Load::*number) const noexcept {
  std::uint64_t total = 0;
  for (const Load& load : common_.loads) total += (load.*number).load(std::memory_order_relaxed);
  return total;
}

domain::RetryPolicy Worker::retry_policy(const Exchange& exchange) const noexcept {
  const bool one_way = exchange.routing == nullptr || exchange.direct;
  const std::uint32_t most = one_way ? 1 : exchange.routing->attempts_max;
  // Without a view its answer has begun, and nothing is repeated any more.
  const bool unsafe = exchange.view != nullptr && exchange.view->view->policy().unsafe_before_send;
  return {std::min<std::uint32_t>(most, ExcludedProxies::kMax), unsafe};
}

void Worker::let_go_of_view(Exchange& exchange) noexcept {
  exchange.routing = nullptr;
  if (exchange.view != nullptr) unpin(*std::exchange(exchange.view, nullptr));
}

Exchange* Worker::begin_exchange(ViewPin& view) {
  // Another thread may have taken the last place since may_begin().
  if (common_.in_flight.fetch_add(1, std::memory_order_relaxed) >= common_.settings.in_flight_max) {
    common_.in_flight.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  Exchange* exchange = exchanges_.make();
  exchange->view = &view;
  ++view.users;
  exchange->began = now();
  add(load_.requests, 1);
  return exchange;
}

void Worker::tell(const Exchange& x, domain::Failure failure, std::uint64_t request_id) noexcept {
  if (x.routed == nullptr) return;
  const ProxyEntry& proxy = x.allocation.proxy();
  const domain::TrafficOutcome what{proxy.id, x.kind, failure, x.status, x.first_byte, x.latency};
  if (!sampler_.wants(what, now())) return;
  outcomes_.put({what, proxy.lease_epoch, x.routed, request_id, now()});
}

void Worker::open_account(Exchange& exchange) {
  if (exchange.client == domain::RouteRequest::kNoClient) return;
  exchange.account = &exchange.view->view->use_of(exchange.client);
  usage_.cell(exchange.account->number).add({0, 0, 1});
}

void Worker::count_usage(Exchange& x) noexcept {
  if (x.account == nullptr || x.dialling) return;
  const domain::Usage all{x.bytes_up, x.bytes_down, 0};
  if (all == x.accounted) return;
  usage_.cell(x.account->number).add(all.since(x.accounted));
  x.accounted = all;
}

void Worker::tunnel_begins() noexcept {
  add(load_.requests, UINT32_MAX);
  add(load_.tunnels, 1);
}

void Worker::end_exchange(Exchange& exchange, bool tunnel) noexcept {
  if (std::exchange(exchange.dialling, false)) exchange.bytes_up -= exchange.head_up;
  count_usage(exchange);
  counters().bytes(exchange.bytes_up, exchange.bytes_down);
  end_session_use(exchange);
  leave_line(exchange);
  if (exchange.use != nullptr) exchange.use->leave();
  add(tunnel ? load_.tunnels : load_.requests, UINT32_MAX);
  common_.in_flight.fetch_sub(1, std::memory_order_relaxed);
  forget(exchange.half_answer);
  let_go_of_view(exchange);
  exchanges_.destroy(&exchange);
}

}  // namespace proxypool::gateway
