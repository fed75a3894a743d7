#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <utility>

#include "net/tls.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/base/ip.hpp"

namespace proxypool::net {

// OpenSSL's view of a TlsPipe.
struct PipeBio {
  static BIO* make(TlsSession& session) {
    static const BIO_METHOD* const kMethod = [] {
      BIO_METHOD* const method =
          BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "TLS pipe");
      PP_ASSERT(method != nullptr);
      BIO_meth_set_read_ex(method, read);
      BIO_meth_set_write_ex(method, write);
      BIO_meth_set_ctrl(method, control);
      return method;
    }();
    BIO* const bio = BIO_new(kMethod);
    if (bio == nullptr) return nullptr;
    BIO_set_data(bio, &session);
    BIO_set_init(bio, 1);
    return bio;
  }

  static TlsSession& session_of(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, std::size_t size, std::size_t* got) {
    TlsSession& session = session_of(bio);
    BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    const ssize_t count = session.pipe_.pull(to, size);
    if (count > 0) {
      *got = static_cast<std::size_t>(count);
      if (!std::exchange(session.spoken_, true)) {
        const char first = *to;
        session.plain_text_ = (first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z');
      }
      return 1;
    }
    *got = 0;
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
      return 0;
    }
    session.truncated_ = count == 0;
    session.pipe_error_ = count == 0 ? ECONNRESET : errno;
    return 0;
  }

  static int write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
    BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    TlsSession& session = session_of(bio);
    if (!session.pipe_.push({data, size})) {
      session.pipe_error_ = EPIPE;
      return 0;
    }
    *written = size;
    return 1;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
};

// Tickets ----------------------------------------------------------------------------------------

TlsTickets::~TlsTickets() {
  while (!tickets_.empty()) drop(tickets_.begin());
}

void TlsTickets::drop(Tickets::iterator ticket) noexcept {
  SSL_SESSION_free(ticket->session);
  by_owner_.erase(ticket->whose);
  tickets_.erase(ticket);
}

void TlsTickets::put(std::uint64_t whose, ssl_session_st* session) {
  if (const auto old = by_owner_.find(whose); old != by_owner_.end()) drop(old->second);
  if (tickets_.size() >= kTicketsMax) drop(std::prev(tickets_.end()));
  tickets_.push_front({whose, session});
  by_owner_.emplace(whose, tickets_.begin());
}

ssl_session_st* TlsTickets::take(std::uint64_t whose) {
  const auto found = by_owner_.find(whose);
  if (found == by_owner_.end()) return nullptr;
  SSL_SESSION* const session = found->second->session;
  const bool good = SSL_SESSION_is_resumable(session) == 1;
  if (good) SSL_SESSION_up_ref(session);
  if (!good || SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) drop(found->second);
  return good ? session : nullptr;
}

// Sessions ---------------------------------------------------------------------------------------

TlsSession::TlsSession(const TlsContext& context, TlsPipe& pipe)
    : ssl_(SSL_new(context.context_)), pipe_(pipe) {
  if (ssl_ == nullptr) return;
  BIO* const bio = PipeBio::make(*this);
  if (bio == nullptr) {
    SSL_free(std::exchange(ssl_, nullptr));
    return;
  }
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_ex_data(ssl_, 0, this);
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

std::unique_ptr<TlsSession> TlsSession::accept(const TlsContext& context, TlsPipe& pipe) {
  std::unique_ptr<TlsSession> made(new TlsSession(context, pipe));
  if (made->ssl_ == nullptr) return nullptr;
  SSL_set_accept_state(made->ssl_);
  return made;
}

std::unique_ptr<TlsSession> TlsSession::connect(const TlsContext& context, TlsPipe& pipe,
                                                const TlsPeer& peer) {
  std::unique_ptr<TlsSession> made(new TlsSession(context, pipe));
  if (made->ssl_ == nullptr || !made->name(peer)) return nullptr;
  SSL_set_connect_state(made->ssl_);
  made->tickets_ = peer.tickets;
  made->whose_ = peer.whose;
  if (peer.tickets == nullptr) return made;
  if (SSL_SESSION* const ticket = peer.tickets->take(peer.whose)) {
    SSL_set_session(made->ssl_, ticket);
    SSL_SESSION_free(ticket);
  }
  return made;
}

bool TlsSession::name(const TlsPeer& peer) {
  X509_VERIFY_PARAM* const check = SSL_get0_param(ssl_);
  std::string host(peer.host);
  if (IpAddress::parse(host)) return X509_VERIFY_PARAM_set1_ip_asc(check, host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // What SSL_set_tlsext_host_name does, without its C cast.
  return X509_VERIFY_PARAM_set1_host(check, host.data(), host.size()) == 1 &&
         SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, host.data()) == 1;
}

// A copy: OpenSSL spoils the session of a connection that ends badly.
int TlsSession::on_new_ticket(ssl_st* ssl, ssl_session_st* session) {
  auto* const self = static_cast<TlsSession*>(SSL_get_ex_data(ssl, 0));
  if (self->tickets_ == nullptr) return 0;
  if (SSL_SESSION* const copy = SSL_SESSION_dup(session)) self->tickets_->put(self->whose_, copy);
  return 0;
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    outcome_ = SSL_session_reused(ssl_) == 1 ? TlsOutcome::Resumed : TlsOutcome::Full;
    return Step::Done;
  }
  if (SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ) return Step::Waits;
  outcome_ = judge();
  fail();
  return Step::Failed;
}

TlsOutcome TlsSession::judge() const noexcept {
  if (plain_text_ && SSL_is_server(ssl_) == 1) return TlsOutcome::PlainText;
  if (SSL_get_verify_result(ssl_) != X509_V_OK) return TlsOutcome::Certificate;
  return pipe_error_ != 0 ? TlsOutcome::Lost : TlsOutcome::Protocol;
}

void TlsSession::fail() noexcept {
  error_ = pipe_error_ != 0 ? pipe_error_ : EPROTO;
  ERR_clear_error();
}

bool TlsSession::over() const noexcept {
  return error_ != 0 || (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
}

ssize_t TlsSession::read(char* to, std::size_t size) {
  std::size_t filled = 0;
  ERR_clear_error();
  while (filled < size && error_ == 0) {
    std::size_t got = 0;
    const int result = SSL_read_ex(ssl_, to + filled, size - filled, &got);
    if (result == 1) {
      filled += got;
      continue;
    }
    const int why = SSL_get_error(ssl_, result);
    if (why == SSL_ERROR_ZERO_RETURN) return static_cast<ssize_t>(filled);
    if (why == SSL_ERROR_WANT_READ) {
      if (filled != 0) break;
      errno = EAGAIN;
      return -1;
    }
    fail();
  }
  if (filled != 0) return static_cast<ssize_t>(filled);
  errno = error_;
  return -1;
}

bool TlsSession::write(std::string_view bytes) {
  if (error_ != 0) return false;
  if (bytes.empty()) return true;
  ERR_clear_error();
  std::size_t written = 0;
  if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written) == 1) return true;
  fail();
  return false;
}

bool TlsSession::write_end() {
  if (error_ != 0 || SSL_is_init_finished(ssl_) != 1) return false;
  ERR_clear_error();
  if (SSL_shutdown(ssl_) >= 0) return true;
  fail();
  return false;
}

}  // namespace proxypool::net
