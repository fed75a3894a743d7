// One client connection: a state machine over two wires.
//
//   (ProxyHeader) ─→ (ClientHandshake) ─→ Head
//   Head ─→ (Verifying ─→ Head) ─→ (Resolving) ─→ (Waiting) ─→ (Resolving) ─→ Dialling
//   Dialling ─→ (ProxyHandshake) ─→ Asking   or, for a CONNECT without a proxy, ─→ Tunnel
//   Asking ─→ Answering ─→ Head …   or ─→ Tunnel
//   anything ─→ Lingering ─→ gone
//
// The idea: events only set flags; drive() looks at the state and does everything that is possible
// now, until nothing is. So it does not matter in which order, how often or in what company events
// arrive. What belongs to a request lives in an Exchange, which an idle connection does not have.
//
// Thread rule: the loop's thread.
// Invariant:   an exchange, a place (in a proxy, or in the routing of what goes direct) and an
//              upstream connection are held from Dialling until the end of the answer or of the
//              tunnel, and given back exactly once.
// Limits:      one request at a time; further ones wait in the socket. At most kRoundsPerTurn reads
//              a direction and turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gateway/ingress/authenticator.hpp"
#include "gateway/ingress/exchange.hpp"
#include "gateway/transport/upstream.hpp"
#include "gateway/transport/wire.hpp"
#include "net/http/head.hpp"
#include "net/proxy_header.hpp"
#include "net/socket.hpp"
#include "net/timer.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/domain/traffic/error_contract.hpp"
#include "proxypool/domain/traffic/target_policy.hpp"

namespace proxypool::gateway {

class Worker;

class Connection final : public Wire, private UpstreamUser, private net::Timer {
 public:
  Connection(Worker& worker, const net::Endpoint& peer, bool source_allowed) noexcept;

  // Takes the socket and does what is possible at once.
  void start(net::UniqueFd fd);
  // Does what is possible now; called again by whoever made more possible.
  void drive();
  // The password check that this connection waited for is done.
  void verified(Verifier::Verdict verdict);
  // There may be a place now (R8).
  void woken();
  // The name that this connection waits for was looked up.
  void resolved();
  // No further request after the one that is going on.
  void drain();
  // Ends everything now.
  void stop();
  // What goes through a proxy that this worker lost ends at `at` (ruling C16).
  void end_by(TimePoint at);

  // Of the place that this connection holds; no id: it holds none.
  [[nodiscard]] ProxyId proxy() const noexcept;

 private:
  friend class Worker;  // its lists
  enum class State : std::uint8_t {
    ProxyHeader,      // a trusted peer says whose connection it is
    ClientHandshake,  // TLS
    Head,
    Verifying,
    Waiting,
    Resolving,
    Dialling,
    ProxyHandshake,  // TLS
    Asking,
    Answering,
    Tunnel,
    Lingering,
    Gone,
  };
  // What the timer stands for.
  enum class Limit : std::uint8_t {
    None,
    ProxyHeader,
    ClientHandshake,
    KeepAlive,
    Head,
    Verify,
    Wait,
    Resolve,
    ResolveTarget,
    Connect,
    ProxyHandshake,
    ProxyConnect,
    Expect,
    FirstByte,
    Idle,
    Linger,
  };
  static constexpr int kRoundsPerTurn = 16;
  static constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

  void on_io(std::uint32_t events) override;
  void on_upstream(std::uint32_t events) override;
  void on_timer() override;
  void step();
  [[nodiscard]] bool only_waiting() const noexcept;
  void limit(Limit what, nanoseconds time);

  // What comes before the first request (ingress/opening.cpp).
  void read_proxy_header();
  void announced(const net::ProxyHeader& header);
  void begin();
  void shake_hands();

  // Request heads (ingress/request.cpp).
  void read_request();
  [[nodiscard]] bool fill_head();
  // Whether the head was dealt with; not while its credentials are being checked.
  [[nodiscard]] bool handle(const net::RequestHead& head);
  void begin_refusal(const net::RequestHead& head);
  void refuse_malformed(const net::Refusal& why);
  [[nodiscard]] static std::optional<std::string_view> session_of(const net::RequestHead& head,
                                                                  const ViewPin& view,
                                                                  const Principal& principal);
  void allow_another_try(const net::RequestHead& head);
  void refuse_principal(Principal::Verdict verdict, const net::RequestHead& head);
  void answer_last_hop(const net::RequestHead& head);
  [[nodiscard]] bool within_limits(const ViewPin& view, const Principal& principal,
                                   domain::ClientUse*& entered);
  void admit(const net::RequestHead& head, ViewPin& view, const Principal& principal);

  // Attempts (transport/attempt.cpp).
  void attempt(const net::RequestHead& head);
  [[nodiscard]] bool place(const net::RequestHead& head);
  // Waiting (transport/waiting.cpp).
  void wait_for_place(const net::RequestHead& head);
  void look_for_place(const net::RequestHead& head);
  void sleep_in_line();
  void refuse_place(Acquired outcome);
  void connect(const net::RequestHead& head);
  // Attempts once more, or goes on with the attempt that waited.
  void attempt_again();
  void dial(const net::RequestHead& head, const IpAddress& address);
  // What is asked for is needed again later.
  void remember(const net::RequestHead& head);
  [[nodiscard]] const net::RequestHead& remembered();
  void secure(const net::RequestHead& head);
  void secured();
  void ask(const net::RequestHead& head);
  void give_up_dialling();
  void dialled();
  void connected();
  void await_answer();
  void fail(domain::Failure failure, domain::Refusal refusal);
  void read_answer();
  [[nodiscard]] bool fill_answer();
  [[nodiscard]] domain::Phase answer_phase() const noexcept;
  void on_answer(const net::ResponseHead& head);
  void pass_interim(const net::ResponseHead& head);
  void continue_unasked();
  void begin_answer(const net::ResponseHead& head);
  void open_tunnel(const net::ResponseHead& head);
  void begin_tunnel(std::string_view answer);
  void forget_answer() noexcept;

  // Targets that are resolved and dialled here (transport/direct.cpp).
  [[nodiscard]] bool target_may_pass(const net::RequestHead& head);
  [[nodiscard]] const std::vector<IpAddress>* target_addresses(const net::RequestHead& head);
  void go_direct(const net::RequestHead& head);
  [[nodiscard]] bool take_kept(const net::RequestHead& head, const domain::TargetPolicy& targets);
  void race();

  // Bodies and tunnels (transport/relay.cpp).
  void upload();
  void upload_refused(int status);
  void download();
  void send_down(std::string_view head);
  void relay();
  [[nodiscard]] bool relay(Wire& from, Wire& to, std::uint64_t& bytes);
  void truncate();
  void finish();

  // Ends (ingress/connection.cpp).
  void refuse(domain::Refusal refusal, domain::FailureKind kind = domain::FailureKind::None,
              std::string_view detail = {}, nanoseconds retry_after = {});
  void release(domain::Failure failure);
  // Different ways tried.
  [[nodiscard]] std::uint32_t attempts() const noexcept;
  [[nodiscard]] AccessEnd access_end(std::string_view reason) const;
  void log_end(std::string_view reason);
  void end_exchange(bool reset_upstream);
  void next_request();
  void close_orderly();
  void linger();
  void drop_input();
  void gone(bool reset = false);
  void idled();

  Worker& worker_;
  Exchange* exchange_ = nullptr;
  Upstream* upstream_ = nullptr;
  net::RequestParser* half_head_ = nullptr;
  IpAddress source_;
  State state_ = State::Head;
  Limit limit_ = Limit::None;
  net::Method method_ = net::Method::Get;
  bool source_allowed_;
  bool source_counted_ = false;
  bool trusted_ = false;    // source_ is a proxy whose word about its clients is taken
  bool may_go_on_ = false;  // another request can follow the one at hand
  bool draining_ = false;
  bool again_ = false;  // in the list of those that go on in the next turn
  std::uint32_t lingered_ = 0;
  std::uint64_t request_id_ = 0;
  Connection* previous_ = nullptr;  // in the worker's list
  Connection* next_ = nullptr;
};

}  // namespace proxypool::gateway
