// One serving thread: its loop, its listener, its connections, and everything they share without a
// lock because nobody else touches it.
//
// Thread rule: listen() and the queries: the owner's thread before run() begins; request_*(): any
//              thread; load(): any thread; all else: the thread inside run().
// Invariant:   when run() has returned, no connection, exchange, place or buffer is left.
// Limits:      connections and requests of the process, shared by its workers: connections beyond
//              are closed on arrival, requests beyond get 503.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/counters.hpp"
#include "gateway/dispatch/dispatcher.hpp"
#include "gateway/dispatch/registry.hpp"
#include "gateway/dispatch/view.hpp"
#include "gateway/dispatch/wait_queue.hpp"
#include "gateway/ingress/authenticator.hpp"
#include "gateway/ingress/connection.hpp"
#include "gateway/ingress/exchange.hpp"
#include "gateway/ingress/sources.hpp"
#include "gateway/ingress/verifier.hpp"
#include "gateway/settings.hpp"
#include "gateway/transport/names.hpp"
#include "gateway/transport/race.hpp"
#include "gateway/transport/slab.hpp"
#include "gateway/transport/upstream.hpp"
#include "gateway/transport/wire.hpp"
#include "net/acceptor.hpp"
#include "net/event_loop.hpp"
#include "net/http/head.hpp"
#include "net/tls.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/domain/traffic/retry.hpp"
#include "runtime/snapshot_cell.hpp"

namespace proxypool::gateway {

// What one thread carries; read by all for the limits and the gauges.
struct alignas(64) Load {
  std::atomic<std::uint32_t> connections{0};
  std::atomic<std::uint32_t> requests{0};  // tunnels not counted
  std::atomic<std::uint32_t> tunnels{0};
  std::atomic<std::uint32_t> waiting{0};  // of the requests
  std::atomic<std::uint32_t> idle_upstreams{0};
  std::atomic<std::uint64_t> regex_misses{0};
  std::atomic<std::uint64_t> filter_misses{0};
  std::atomic<bool> draining{false};  // accepts nothing any more
};

// What the workers of one process share.
struct Common {
  const Settings& settings;
  Counters& counters;
  Verifier& verifier;
  Resolver& proxy_names;
  Resolver& target_names;
  const Race::Dial& dial;  // of targets
  runtime::SnapshotCell<View>& views;
  ProxyRegistry& registry;
  ports::Events& events;
  WaitQueue& waits;
  SessionTable sessions;
  Sources sources;
  std::vector<Load> loads;  // one a worker
  // Requests and tunnels of all of them: the limit holds to the last place.
  alignas(64) std::atomic<std::uint32_t> in_flight{0};
  const std::string challenges;  // of a 407
  // Set before the workers run.
  std::shared_ptr<const net::TlsContext> client_tls;  // null: plain
  std::shared_ptr<const net::TlsContext> proxy_tls;

  Common(const Settings& s, Counters& c, Verifier& v, Resolver& proxies, Resolver& targets,
         const Race::Dial& d, runtime::SnapshotCell<View>& cell, ProxyRegistry& r, ports::Events& e,
         WaitQueue& w, std::uint64_t seed)
      : settings(s),
        counters(c),
        verifier(v),
        proxy_names(proxies),
        target_names(targets),
        dial(d),
        views(cell),
        registry(r),
        events(e),
        waits(w),
        sessions(s.sessions_max, seed),
        sources(s.connections_per_source_max),
        loads(s.threads),
        challenges(gateway::challenges(s.auth)) {}
};

// A view in use by exchanges of one thread: counted without atomics.
struct ViewPin {
  std::shared_ptr<const View> view;
  std::uint64_t number = 0;  // counted by the thread: another view, another number
  std::uint32_t users = 0;
};

class Worker final : private net::Deferred, private WaitQueue::Waker {
 public:
  Worker(Common& common, std::size_t index, std::uint64_t seed);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() override;

  // Opens the listener; port 0 takes a free one.
  [[nodiscard]] Result<std::uint16_t> listen(std::uint16_t port);
  // At a socket that others accept from, too: once there is something to serve, or kPatience has
  // passed.
  [[nodiscard]] Result<std::uint16_t> listen_at(int listener);
  static constexpr nanoseconds kPatience = seconds(5);
  // Serves until request_stop().
  void run();

  // Stops accepting; connections end with what they are doing.
  void request_drain();
  // Ends everything.
  void request_stop();
  // Takes the newest view even if no request comes.
  void request_refresh();
  // For the connections that come from now on.
  void request_client_tls(std::shared_ptr<const net::TlsContext> context);
  // What is open through one of these proxies (sorted; null: any) ends at `at` (ruling C16).
  void request_end_tunnels(std::shared_ptr<const std::vector<ProxyId>> proxies, TimePoint at);
  // Tunnels of clients whose quota is used up end now (GW-14).
  void request_end_over_quota();

  // For connections.
  [[nodiscard]] const Settings& settings() const noexcept { return common_.settings; }
  [[nodiscard]] Counters& counters() noexcept { return common_.counters; }
  [[nodiscard]] Lane& lane() noexcept { return lane_; }
  [[nodiscard]] UpstreamPool& pool() noexcept { return pool_; }
  [[nodiscard]] AccessLog& access_log() noexcept { return access_log_; }
  [[nodiscard]] Random& random() noexcept { return random_; }
  [[nodiscard]] TimePoint now() const noexcept { return lane_.loop.now(); }
  // Counts a connection for its source, which is known now; false: that has as many as it may. A
  // trusted proxy brings many sources and is not counted.
  [[nodiscard]] bool count_source(Connection& connection);
  void again(Connection& connection);
  void gone(Connection& connection);
  [[nodiscard]] bool allows(const IpAddress& source) const noexcept;
  [[nodiscard]] bool trusts(const IpAddress& peer) const noexcept;
  [[nodiscard]] std::string_view challenges() const noexcept { return common_.challenges; }
  // What clients' TLS begins with; null: they speak plain HTTP.
  [[nodiscard]] const net::TlsContext* client_tls() const noexcept { return client_tls_.get(); }
  [[nodiscard]] const net::TlsContext& proxy_tls() const noexcept { return *common_.proxy_tls; }
  [[nodiscard]] net::TlsTickets& tickets() noexcept { return tickets_; }

  // The current view; null when there is none or its validity has ended.
  [[nodiscard]] ViewPin* view();
  [[nodiscard]] Principal authenticate(const ViewPin& view, const net::RequestHead& head,
                                       const IpAddress& source);
  // `source` pays for a wrong password.
  void await_verdict(const CredentialKey& key, const IpAddress& source, Connection& connection);
  // Of proxies whose vendor names a host, and of targets.
  [[nodiscard]] Names& proxy_names() noexcept { return proxy_names_; }
  [[nodiscard]] Names& target_names() noexcept { return target_names_; }
  [[nodiscard]] const Race::Dial& dial() const noexcept { return common_.dial; }

  // Whether the process can take another request.
  [[nodiscard]] bool may_begin() const noexcept;
  // Null: it cannot.
  [[nodiscard]] Exchange* begin_exchange(ViewPin& view);
  // Finds the exchange's routing; false: there is none.
  [[nodiscard]] bool route(const net::RequestHead& head, Exchange& exchange);
  // Takes a place in a proxy that the exchange did not try yet, or makes it direct.
  [[nodiscard]] Acquired acquire(const net::RequestHead& head, Exchange& exchange);
  // Whether a request that got this outcome waits for a better one (R8).
  [[nodiscard]] bool may_wait(const Exchange& exchange, Acquired outcome) const noexcept;
  // The line of its routing; nothing when that is full.
  [[nodiscard]] std::optional<WaitQueue::Joined> join_line(Connection& connection,
                                                           Exchange& exchange);
  void leave_line(Exchange& exchange) noexcept;
  void rest(std::uint64_t ticket) { common_.waits.rest(ticket); }
  void pass_on(std::uint64_t ticket) { common_.waits.pass_on(ticket); }
  // Who has waited begins with the newest view. Ok, NotValid or Stranger.
  [[nodiscard]] Acquired renew_view(Exchange& exchange);
  // When a place may come without anybody's giving one back: a bench ends.
  [[nodiscard]] TimePoint next_look(const Exchange& exchange) const noexcept;
  // The session's proxy has answered.
  void confirm_session(Exchange& exchange);
  // The session's proxy failed: it is bound to it no more. Whether that proxy had served it.
  [[nodiscard]] bool leave_session(Exchange& exchange);
  [[nodiscard]] domain::RetryPolicy retry_policy(const Exchange& exchange) const noexcept;
  // How its attempt ended, for the controller. REQUIRES: its place is still held.
  void tell(const Exchange& exchange, domain::Failure failure, std::uint64_t request_id) noexcept;
  // Its client pays for it from now on.
  void open_account(Exchange& exchange);
  // What it has moved since it was last counted.
  void count_usage(Exchange& exchange) noexcept;
  // The exchange chooses no more.
  void let_go_of_view(Exchange& exchange) noexcept;
  void tunnel_begins() noexcept;
  void end_exchange(Exchange& exchange, bool tunnel) noexcept;

  // One parser for the whole thread; a head that comes in pieces keeps a copy.
  [[nodiscard]] net::RequestParser& request_parser() noexcept { return request_parser_; }
  [[nodiscard]] net::ResponseParser& response_parser() noexcept { return response_parser_; }
  [[nodiscard]] net::RequestParser* keep(const net::RequestParser& parser) {
    return half_heads_.make(parser);
  }
  [[nodiscard]] net::ResponseParser* keep(const net::ResponseParser& parser) {
    return half_answers_.make(parser);
  }
  void forget(net::RequestParser* parser) noexcept {
    if (parser != nullptr) half_heads_.destroy(parser);
  }
  void forget(net::ResponseParser* parser) noexcept {
    if (parser != nullptr) half_answers_.destroy(parser);
  }

 private:
  using Views = runtime::SnapshotCell<View>;
  // A connection that waits for an answer from another thread.
  struct Waiting {
    CredentialKey key;
    Connection* connection;
    IpAddress source{};
  };
  [[nodiscard]] std::vector<Connection*> take_verifying(const CredentialKey& key);

  [[nodiscard]] Acquired choose(const View& view, Exchange& exchange);
  [[nodiscard]] Acquired choose_in_session(const View& view, Exchange& exchange);
  void end_session_use(const Exchange& exchange);
  void lose_session(const SessionKey& key, const SessionTable::Found& found);
  [[nodiscard]] Acquired take(Exchange& exchange, Acquisition acquisition);
  void wake(std::uint64_t ticket) override;
  void on_wake(std::uint64_t ticket);
  void on_turn() override;
  void take_listener(net::UniqueFd listener);
  void begin_to_accept();
  void on_accept(net::UniqueFd fd, const net::Endpoint& peer);
  void on_verdict(const CredentialKey& key, Verifier::Verdict verdict);
  void drain();
  void stop();
  void refresh();
  void end_tunnels(const std::vector<ProxyId>* proxies, TimePoint at);
  void end_over_quota();
  [[nodiscard]] std::uint64_t sum(std::atomic<std::uint32_t> Load::*number) const noexcept;
  void unpin(ViewPin& pin) noexcept;

  Common& common_;
  Load& load_;
  net::EventLoop loop_;
  Lane lane_{loop_, {}, {}, {}};
  net::TlsTickets tickets_;
  std::shared_ptr<const net::TlsContext> client_tls_;
  UpstreamPool pool_;
  SplitMix64 random_;
  Slab<Connection> connections_;
  Slab<Exchange> exchanges_;
  Slab<net::RequestParser> half_heads_;
  Slab<net::ResponseParser> half_answers_;
  net::RequestParser request_parser_;
  net::ResponseParser response_parser_;
  Dispatcher dispatcher_;
  Authenticator authenticator_;
  AccessLog access_log_;
  UsageSheet& usage_;
  OutcomeRing& outcomes_;
  OutcomeSampler sampler_;
  Verifier::Asker asker_;
  std::optional<net::Acceptor> acceptor_;
  net::MemberTimer<&Worker::begin_to_accept> patience_;
  bool shares_listener_ = false;  // with other processes
  bool accepting_ = false;
  std::optional<Views::Reader> reader_;
  std::vector<std::unique_ptr<ViewPin>> pins_;  // the last one is current
  Names proxy_names_;
  Names target_names_;
  std::vector<Waiting> verifying_;
  std::unordered_map<std::uint64_t, Connection*> in_line_;  // by ticket
  std::vector<Connection*> again_;
  std::vector<Connection*> dead_;
  Connection* first_ = nullptr;
  std::uint64_t views_seen_ = 0;
  bool draining_ = false;
};

}  // namespace proxypool::gateway
