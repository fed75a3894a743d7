// What comes before the first request: who a trusted peer says is calling (GW-3), and TLS (GW-2).
#include "gateway/ingress/connection.hpp"
#include "gateway/worker.hpp"

namespace proxypool::gateway {

void Connection::read_proxy_header() {
  while (state_ == State::ProxyHeader) {
    const Read read = receive();
    if (read == Read::Starved) return;
    if (read != Read::Bytes) return gone();
    const auto header = net::parse_proxy_header(bytes());
    if (header.state == net::ParseState::Refused) {
      worker_.counters().announced(Announcement::Malformed);
      return gone(true);
    }
    if (header.state == net::ParseState::Done) return announced(header);
    settle();
  }
}

void Connection::announced(const net::ProxyHeader& header) {
  worker_.counters().announced(header.source ? Announcement::Taken : Announcement::Local);
  consume(header.size);
  if (header.source) {
    source_ = header.source->address;
    source_allowed_ = worker_.allows(source_);
    trusted_ = worker_.trusts(source_);
  }
  begin();
}

void Connection::begin() {
  if (!worker_.count_source(*this)) return gone();
  const net::TlsContext* const tls = worker_.client_tls();
  if (tls == nullptr) {
    state_ = State::Head;
    return limit(Limit::KeepAlive, worker_.settings().keep_alive);
  }
  if (!accept_tls(*tls)) return gone(true);
  state_ = State::ClientHandshake;
  limit(Limit::ClientHandshake, worker_.settings().tls_handshake);
}

void Connection::shake_hands() {
  if (!readable()) return;
  const auto step = handshake();
  if (step == net::TlsSession::Step::Waits) return;
  worker_.counters().client_tls(tls_outcome());
  if (step == net::TlsSession::Step::Failed) return gone();
  next_request();
}

}  // namespace proxypool::gateway
