#include "gateway/ingress/connection.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "gateway/ingress/answer.hpp"
#include "gateway/worker.hpp"

namespace proxypool::gateway {
namespace {

// What is read and dropped after an answer that closes (RFC 9112 §9.6).
constexpr std::uint32_t kLingerBytesMax = std::uint32_t{256} << 10U;

}  // namespace

Connection::Connection(Worker& worker, const net::Endpoint& peer, bool source_allowed) noexcept
    : Wire(worker.lane()),
      net::Timer(worker.lane().loop.timers()),
      worker_(worker),
      source_(peer.address),
      source_allowed_(source_allowed) {}

void Connection::start(net::UniqueFd fd) {
  open(std::move(fd), true);
  trusted_ = worker_.trusts(source_);
  if (trusted_ && worker_.settings().proxy_header) {
    state_ = State::ProxyHeader;
    limit(Limit::ProxyHeader, worker_.settings().head);
  } else {
    begin();
  }
  drive();
}

ProxyId Connection::proxy() const noexcept {
  if (exchange_ == nullptr || !exchange_->allocation.held()) return {};
  return exchange_->allocation.proxy().id;
}

// Events -----------------------------------------------------------------------------------------

void Connection::on_io(std::uint32_t events) {
  note(events);
  if ((events & EPOLLOUT) != 0 && holding()) {
    if (flush() == Write::Broken) return gone(true);
    if (limit_ == Limit::Idle) limit(Limit::Idle, worker_.settings().idle);
  }
  // In a tunnel, and before a head, the last bytes still count.
  const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (broken && state_ != State::Head && state_ != State::Tunnel) return gone(true);
  if ((events & EPOLLRDHUP) != 0 && only_waiting()) return gone(true);
  drive();
  if ((events & EPOLLERR) != 0 && state_ == State::Tunnel) gone(true);
}

// Whoever hangs up while nothing of an answer is there yet has lost interest: mostly a client whose
// own time ran out. The place in the proxy is worth more than a client that closes only half.
bool Connection::only_waiting() const noexcept {
  if (state_ == State::Verifying || state_ == State::Waiting || state_ == State::Resolving ||
      state_ == State::Dialling || state_ == State::ProxyHandshake) {
    return true;
  }
  return state_ == State::Asking && exchange_->up.done();
}

void Connection::on_upstream(std::uint32_t events) {
  if (state_ == State::Dialling) {
    if (upstream_ != nullptr && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) dialled();
  } else if ((events & EPOLLOUT) != 0 && upstream_->holding()) {
    if (upstream_->flush() == Write::Broken) {
      // Of a request an answer may still come.
      if (state_ == State::Tunnel) return gone(true);
      // A handshake learns of it by reading.
      exchange_->upload_broken = state_ != State::ProxyHandshake;
    }
    if (limit_ == Limit::Idle) limit(Limit::Idle, worker_.settings().idle);
  }
  drive();
  if ((events & EPOLLERR) != 0 && state_ == State::Tunnel) gone(true);
}

void Connection::verified(Verifier::Verdict verdict) {
  if (state_ != State::Verifying) return;
  state_ = State::Head;
  limit(Limit::Head, worker_.settings().head);
  if (verdict == Verifier::Verdict::Failed) {
    may_go_on_ = false;
    refuse(domain::Refusal::Overloaded);
  }
  drive();
}

void Connection::drive() {
  for (;;) {
    const State before = state_;
    step();
    if (state_ == State::Gone) return;
    if (state_ == before) break;
  }
  if (exchange_ != nullptr) worker_.count_usage(*exchange_);
  settle();
  if (upstream_ != nullptr) upstream_->settle();
  if (!watch()) gone(true);
}

void Connection::step() {
  switch (state_) {
    case State::ProxyHeader:
      return read_proxy_header();
    case State::ClientHandshake:
      return shake_hands();
    case State::ProxyHandshake:
      return secured();
    case State::Head:
      return read_request();
    case State::Asking:
      upload();
      if (state_ == State::Asking) read_answer();
      return;
    case State::Answering:
      upload();
      if (state_ == State::Answering) download();
      return;
    case State::Tunnel:
      return relay();
    case State::Lingering:
      return drop_input();
    case State::Verifying:
    case State::Waiting:
    case State::Resolving:
    case State::Gone:
      return;
    case State::Dialling:
      if (exchange_->race != nullptr) race();
      return;
  }
}

// Time -------------------------------------------------------------------------------------------

void Connection::limit(Limit what, nanoseconds time) {
  limit_ = what;
  auto due = time == nanoseconds{0} ? kNever : Deadline::after(worker_.now(), time).at();
  if (exchange_ != nullptr) due = std::min(due, exchange_->ends_at);
  if (due == kNever) {
    cancel();
  } else {
    arm(due);
  }
}

void Connection::on_timer() {
  if (exchange_ != nullptr && worker_.now() >= exchange_->ends_at) {
    if (state_ == State::Tunnel) return gone();
    return exchange_->committed ? truncate() : refuse(domain::Refusal::TotalTimeout);
  }
  switch (limit_) {
    case Limit::None:
    case Limit::KeepAlive:
    case Limit::Linger:
      return gone();
    case Limit::ProxyHeader:
      worker_.counters().announced(Announcement::Missing);
      return gone(true);
    case Limit::ClientHandshake:
      worker_.counters().client_tls(net::TlsOutcome::Timeout);
      return gone(true);
    case Limit::Head:
      may_go_on_ = false;
      if (half_head_ != nullptr) begin_refusal(half_head_->head());
      refuse(domain::Refusal::RequestTimeout);
      break;
    case Limit::Verify:
      may_go_on_ = false;  // the head is still unread
      refuse(domain::Refusal::Overloaded);
      break;
    case Limit::Wait:
      if (worker_.now() < exchange_->waits_until) return woken();
      worker_.counters().waited(Counters::Wait::TimedOut);
      refuse(domain::Refusal::WaitTimeout);
      break;
    case Limit::Resolve:
      fail({domain::Phase::Dial, domain::FailureKind::Timeout}, domain::Refusal::ResolveTimeout);
      break;
    case Limit::ResolveTarget:
      refuse(domain::Refusal::ResolveTimeout);
      break;
    case Limit::Connect:
      // The next address may have its turn: drive() sees to it.
      if (exchange_->race != nullptr && worker_.now() < exchange_->race->ends_at()) break;
      fail({domain::Phase::Dial, domain::FailureKind::Timeout}, domain::Refusal::ConnectTimeout);
      break;
    case Limit::ProxyHandshake:
      worker_.counters().proxy_tls(net::TlsOutcome::Timeout);
      fail({domain::Phase::ProxyHandshake, domain::FailureKind::Timeout},
           domain::Refusal::TlsTimeout);
      break;
    case Limit::ProxyConnect:
      fail({domain::Phase::ProxyHandshake, domain::FailureKind::Timeout},
           domain::Refusal::ProxyConnectTimeout);
      break;
    case Limit::Expect:
      continue_unasked();
      break;
    case Limit::FirstByte:
      fail({domain::Phase::ResponseHeaders, domain::FailureKind::Timeout},
           domain::Refusal::FirstByteTimeout);
      break;
    case Limit::Idle:
      idled();
      break;
  }
  if (state_ != State::Gone) drive();
}

void Connection::idled() {
  if (state_ == State::Tunnel) return gone();
  if (exchange_->committed) return truncate();
  // Only a body keeps an exchange that was not answered waiting: whose fault is it?
  refuse(upstream_->holding() ? domain::Refusal::IdleTimeout : domain::Refusal::RequestTimeout);
}

// Ends -------------------------------------------------------------------------------------------

void Connection::refuse(domain::Refusal refusal, domain::FailureKind kind, std::string_view detail,
                        nanoseconds retry_after) {
  worker_.counters().answered(refusal);
  const auto& row = contract(refusal);
  const AccessNote* note = exchange_ == nullptr ? nullptr : exchange_->note.get();
  worker_.access_log().refused(note, access_end({}), source_, refusal, detail, worker_.now());
  const bool direct = exchange_ != nullptr && exchange_->direct;
  if (exchange_ != nullptr) {
    may_go_on_ = may_go_on_ && exchange_->up.done();
    end_exchange(true);
  }
  const bool close = row.closes || !may_go_on_ || draining_;
  const auto wait = std::chrono::ceil<std::chrono::seconds>(retry_after);
  const auto answer = write_answer({refusal, kind, method_, close, request_id_, detail,
                                    wait.count(), worker_.challenges(), direct});
  if (send(answer) == Write::Broken) return gone(true);
  if (close) return linger();
  next_request();
}

void Connection::release(domain::Failure failure) {
  Allocation& allocation = exchange_->allocation;
  if (allocation.held()) {
    worker_.tell(*exchange_, failure, request_id_);
    allocation.release(failure, worker_.now());
  }
  exchange_->active = false;
}

std::uint32_t Connection::attempts() const noexcept {
  return static_cast<std::uint32_t>(exchange_->tried.count()) + (exchange_->direct ? 1 : 0);
}

AccessEnd Connection::access_end(std::string_view reason) const {
  AccessEnd end;
  end.request_id = request_id_;
  end.reason = reason;
  if (exchange_ == nullptr) return end;
  const Exchange& x = *exchange_;
  end.proxy = x.last_tried;
  end.attempts = attempts();
  end.direct = x.direct;
  end.status = x.status;
  end.bytes_in = x.bytes_up;
  end.bytes_out = x.bytes_down;
  end.took = worker_.now() - x.began;
  return end;
}

void Connection::log_end(std::string_view reason) {
  if (exchange_->note != nullptr) worker_.access_log().served(*exchange_->note, access_end(reason));
}

void Connection::end_exchange(bool reset_upstream) {
  release({});
  if (upstream_ != nullptr)
    worker_.pool().discard(*std::exchange(upstream_, nullptr), reset_upstream);
  worker_.end_exchange(*std::exchange(exchange_, nullptr), state_ == State::Tunnel);
}

void Connection::next_request() {
  state_ = State::Head;
  limit(Limit::KeepAlive,
        draining_ ? worker_.settings().drain_idle : worker_.settings().keep_alive);
}

void Connection::close_orderly() {
  // Unread bytes would turn the close into a reset, which destroys what is still on its way.
  if (holding() || readable() || !bytes().empty()) return linger();
  gone();
}

void Connection::linger() {
  state_ = State::Lingering;
  lingered_ = 0;
  // What a slow reader has not taken yet is still its answer.
  limit(Limit::Linger, holding() ? worker_.settings().idle : worker_.settings().linger);
}

void Connection::drop_input() {
  if (holding()) return;  // the answer first
  if (!write_shut()) {
    shut_write();
    limit(Limit::Linger, worker_.settings().linger);
  }
  for (;;) {
    lingered_ += static_cast<std::uint32_t>(bytes().size());
    consume(bytes().size());
    if (lingered_ >= kLingerBytesMax) return gone();
    switch (receive()) {
      case Read::Bytes:
        break;
      case Read::Starved:
        return;
      case Read::End:
      case Read::Broken:
        return gone();
    }
  }
}

void Connection::drain() {
  draining_ = true;
  may_go_on_ = false;
  if (limit_ == Limit::KeepAlive) limit(Limit::KeepAlive, worker_.settings().drain_idle);
}

// The time to drain is over. Whoever has no answer yet hears why, as far as his socket takes it.
void Connection::stop() {
  const bool unanswered = exchange_ != nullptr && !exchange_->committed;
  if (unanswered || state_ == State::Verifying) {
    may_go_on_ = false;
    refuse(domain::Refusal::Draining);
  }
  gone(exchange_ != nullptr);
}

void Connection::end_by(TimePoint at) {
  if (exchange_ == nullptr) return;
  exchange_->ends_at = std::min(exchange_->ends_at, at);
  if (!armed() || due() > exchange_->ends_at) arm(exchange_->ends_at);
}

void Connection::gone(bool reset) {
  if (state_ == State::Gone) return;
  if (state_ == State::Verifying || (exchange_ != nullptr && state_ != State::Tunnel)) {
    worker_.counters().aborted();
  }
  if (exchange_ != nullptr) {
    log_end(state_ == State::Tunnel && !reset ? "ok" : "aborted");
    end_exchange(reset);
  }
  state_ = State::Gone;
  cancel();
  close(reset);
  worker_.forget(std::exchange(half_head_, nullptr));
  worker_.gone(*this);
}

}  // namespace proxypool::gateway
