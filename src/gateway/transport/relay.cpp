// Bodies and tunnels: what flows between the two wires once the heads are through.
//
// A side is read only while the other one takes what was read before; what a socket does not take
// waits in one borrowed buffer. That is all the memory that a slow peer can hold.
#include <array>
#include <utility>

#include "gateway/ingress/answer.hpp"
#include "gateway/ingress/connection.hpp"
#include "gateway/worker.hpp"

namespace proxypool::gateway {

void Connection::upload() {
  Exchange& x = *exchange_;
  for (int round = 0; !x.up.done() && !x.upload_broken && !upstream_->holding(); ++round) {
    if (round == kRoundsPerTurn) return worker_.again(*this);
    if (bytes().empty() || x.up_starved) {
      const Read read = receive();
      if (read == Read::Starved) return;
      // The request ends in the middle: whatever was sent of it must not count as whole.
      if (read != Read::Bytes) return gone(true);
    }
    const auto step = x.up.take(data(), bytes().size());
    if (step.state == BodyFlow::State::Refused) return upload_refused(x.up.refusal_status());
    x.awaits_continue = false;
    if (step.size != 0) {
      x.bytes_up += step.size;
      x.upload_broken = upstream_->send(bytes().substr(0, step.size)) == Write::Broken;
    }
    x.up_starved = step.used == 0;
    consume(step.used);
    if (state_ == State::Asking) {
      await_answer();
    } else {
      limit(Limit::Idle, worker_.settings().idle);
    }
  }
}

void Connection::upload_refused(int status) {
  may_go_on_ = false;
  if (exchange_->committed) return truncate();
  refuse(refusal_of(status), domain::FailureKind::None, "invalid request body");
}

void Connection::download() {
  Exchange& x = *exchange_;
  for (int round = 0; state_ == State::Answering && !holding(); ++round) {
    if (x.down.done()) return finish();
    if (round == kRoundsPerTurn) return worker_.again(*this);
    if (upstream_->bytes().empty() || x.down_starved) {
      const Read read = upstream_->receive();
      if (read == Read::Starved) return;
      if (read == Read::End && x.down.ends_with_connection()) return finish();
      if (read != Read::Bytes) return truncate();
    }
    send_down({});
  }
}

// Sends the head, if there is one, and what is there of the body, in one call.
void Connection::send_down(std::string_view head) {
  Exchange& x = *exchange_;
  BodyFlow::Step step;
  const bool tunnel = state_ == State::Tunnel;
  const std::size_t there = upstream_->bytes().size();
  if (tunnel) {
    step = {BodyFlow::State::More, there, there};
  } else if (there != 0) {
    step = x.down.take(upstream_->data(), there);
  }
  const bool refused = step.state == BodyFlow::State::Refused;
  std::array<iovec, 2> pieces;
  std::size_t count = 0;
  if (!head.empty()) pieces[count++] = {const_cast<char*>(head.data()), head.size()};
  if (step.size != 0 && !refused) {
    pieces[count++] = {const_cast<char*>(upstream_->bytes().data()), step.size};
  }
  x.bytes_down += step.size;
  if (count != 0 && send({pieces.data(), count}) == Write::Broken) return gone(true);
  if (refused) return truncate();
  x.down_starved = there != 0 && step.used == 0;
  upstream_->consume(step.used);
  if (tunnel && step.used != 0) x.first_byte = true;
  if (!tunnel) limit(Limit::Idle, worker_.settings().idle);
}

// The answer breaks off. Framed bodies show it by themselves; one that ends with the connection
// does not, and a reset does.
void Connection::truncate() {
  const bool has_own_end = !exchange_->down.ends_with_connection() && !exchange_->http_1_0;
  worker_.counters().truncated();
  log_end("truncated");
  end_exchange(true);
  gone(!has_own_end);
}

void Connection::finish() {
  Exchange& x = *exchange_;
  worker_.counters().served(worker_.now() - x.began);
  log_end("ok");
  release({});
  const bool clean = x.upstream_keeps && x.up.done() && x.down.done() && !x.websocket &&
                     upstream_->bytes().empty() && !upstream_->holding() &&
                     !upstream_->readable() && !upstream_->ended();
  const bool body_left = !x.up.done();
  if (clean && worker_.settings().reuse) {
    worker_.pool().give(*std::exchange(upstream_, nullptr));
  }
  end_exchange(false);
  if (body_left) return linger();
  if (!may_go_on_ || draining_) return close_orderly();
  next_request();
}

void Connection::relay() {
  Exchange& x = *exchange_;
  const bool up = relay(*this, *upstream_, x.bytes_up);
  if (state_ != State::Tunnel) return;
  const bool down = relay(*upstream_, *this, x.bytes_down);
  if (state_ != State::Tunnel) return;
  x.first_byte = x.first_byte || down;
  if (up || down) limit(Limit::Idle, worker_.settings().idle);
  const std::uint64_t bytes_max = worker_.settings().tunnel_bytes_max;
  const bool used_up = bytes_max != 0 && x.bytes_up + x.bytes_down >= bytes_max;
  const bool over = ended() && upstream_->ended() && !holding() && !upstream_->holding();
  if (over || used_up) gone();
}

// One direction; whether bytes moved.
bool Connection::relay(Wire& from, Wire& to, std::uint64_t& bytes) {
  bool moved = false;
  for (int round = 0; !to.holding(); ++round) {
    if (round == kRoundsPerTurn) {
      worker_.again(*this);
      break;
    }
    PipePointer pipe;
    if (from.bytes().empty()) {
      if (from.in_bulk() && !to.secure()) pipe = lane_.pipes.take();
      const Read read = pipe != nullptr ? from.receive(*pipe) : from.receive();
      if (read == Read::Starved) break;
      if (read == Read::End) {
        to.shut_write();
        break;
      }
      if (read == Read::Broken) {
        // TLS without close_notify: what came before it goes through, but as no clean end.
        if (from.truncated()) to.withhold_notify();
        gone(!from.truncated());
        break;
      }
    }
    const bool piped = pipe != nullptr;
    const std::size_t size = piped ? pipe->held() : from.bytes().size();
    const Write sent = piped ? to.send(std::move(pipe)) : to.send(from.bytes());
    if (sent == Write::Broken) {
      gone(true);
      break;
    }
    if (!piped) from.consume(size);
    bytes += size;
    moved = true;
  }
  return moved;
}

}  // namespace proxypool::gateway
