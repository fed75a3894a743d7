// TLS without sockets: contexts that many connections share, and the session of one connection.
//
// The idea: a session reads and writes ciphertext through a TlsPipe, whoever that is. The pipe
// takes every byte it is given and keeps what its socket does not take, so that a write is never
// half done: OpenSSL's rule of the same buffer for the second try, and its "wants to write" in the
// middle of a read, do not exist here. A read takes ciphertext straight from the socket, without
// the copy through a memory BIO, and OpenSSL's own socket BIO would write without MSG_NOSIGNAL.
//
// TLS 1.2 and 1.3; no compression, no renegotiation, no early data. An end without close_notify is
// a reset (ECONNRESET), never an end.
//
// Thread rule: TlsContext: any thread, immutable. TlsSession, TlsTickets: one thread at a time.
// Limits:      TlsTickets holds kTicketsMax; one more drops the oldest.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

struct ssl_ctx_st;
struct ssl_st;
struct ssl_session_st;

namespace proxypool::net {

enum class TlsVersion : std::uint8_t { Tls12, Tls13 };

// What a handshake came to; a label of metrics.
enum class TlsOutcome : std::uint8_t {
  Full,
  Resumed,
  PlainText,    // the client speaks, but not TLS
  Certificate,  // the server's is not trusted, or is another name's
  Protocol,     // anything else that the two could not agree on
  Lost,         // the connection ended
  Timeout,
};
inline constexpr std::size_t kTlsOutcomes = 7;

constexpr std::string_view to_string(TlsOutcome outcome) noexcept {
  constexpr std::string_view kNames[kTlsOutcomes] = {
      "full", "resumed", "plain_text", "certificate", "protocol", "lost", "timeout"};
  return kNames[static_cast<std::size_t>(outcome)];
}

struct TlsServerOptions {
  std::string certificate_file;  // PEM: the certificate, then its intermediates
  std::string key_file;          // PEM, without a pass phrase
  TlsVersion version_min = TlsVersion::Tls12;
};

class TlsContext {
 public:
  // A certificate and a key that fit and are valid now; speaks http/1.1 by ALPN. The error says
  // what is wrong with which file.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> server(
      const TlsServerOptions& options);
  // Trusts the system's authorities, which SSL_CERT_FILE and SSL_CERT_DIR replace, or those of a
  // PEM file.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> client(
      const std::string& ca_file = {});
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  // The end of a server's certificate.
  [[nodiscard]] WallTime valid_until() const noexcept { return valid_until_; }

 private:
  friend class TlsSession;
  explicit TlsContext(ssl_ctx_st* context) noexcept : context_(context) {}

  ssl_ctx_st* context_;
  WallTime valid_until_{};
};

// A session's socket.
class TlsPipe {
 public:
  // As recv(2) without waiting: bytes, 0 for the end, -1 with errno.
  virtual ssize_t pull(char* to, std::size_t size) noexcept = 0;
  // Takes all of it, now or later; false when the connection is of no more use.
  virtual bool push(std::string_view ciphertext) = 0;

 protected:
  TlsPipe() = default;
  TlsPipe(const TlsPipe&) = default;
  TlsPipe& operator=(const TlsPipe&) = default;
  ~TlsPipe() = default;
};

// What servers gave us to shorten the next handshake, by whose they are.
class TlsTickets {
 public:
  static constexpr std::size_t kTicketsMax = 4096;

  TlsTickets() = default;
  TlsTickets(const TlsTickets&) = delete;
  TlsTickets& operator=(const TlsTickets&) = delete;
  ~TlsTickets();

  [[nodiscard]] std::size_t size() const noexcept { return tickets_.size(); }

 private:
  friend class TlsSession;
  struct Ticket {
    std::uint64_t whose;
    ssl_session_st* session;
  };
  using Tickets = std::list<Ticket>;

  // Takes the reference.
  void put(std::uint64_t whose, ssl_session_st* session);
  // A reference, or null. A TLS 1.3 ticket serves once, an older session until it ends.
  [[nodiscard]] ssl_session_st* take(std::uint64_t whose);
  void drop(Tickets::iterator ticket) noexcept;

  Tickets tickets_;  // the newest first
  std::unordered_map<std::uint64_t, Tickets::iterator> by_owner_;
};

struct TlsPeer {
  std::string_view host;          // what the certificate must name; a name is announced (SNI)
  std::uint64_t whose = 0;        // of the tickets
  TlsTickets* tickets = nullptr;  // outlives the session; null: no resumption
};

class TlsSession {
 public:
  enum class Step : std::uint8_t { Done, Waits, Failed };

  // Null when memory runs out. REQUIRES: the pipe outlives the session.
  [[nodiscard]] static std::unique_ptr<TlsSession> accept(const TlsContext& context, TlsPipe& pipe);
  [[nodiscard]] static std::unique_ptr<TlsSession> connect(const TlsContext& context, TlsPipe& pipe,
                                                           const TlsPeer& peer);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Goes on with the handshake; Waits: for bytes from the pipe. Then outcome() tells.
  [[nodiscard]] Step handshake();
  [[nodiscard]] TlsOutcome outcome() const noexcept { return outcome_; }

  // As recv(2): bytes, 0 for close_notify, -1 with errno; EAGAIN: the pipe has no more. Fills `to`
  // as far as it can: fewer bytes than `size` mean that the pipe is empty, or over().
  [[nodiscard]] ssize_t read(char* to, std::size_t size);
  // The end or an error is what the next read() says.
  [[nodiscard]] bool over() const noexcept;
  // Puts all of it into the pipe.
  [[nodiscard]] bool write(std::string_view bytes);
  // Nothing will be written any more.
  [[nodiscard]] bool write_end();
  // The peer's last word was no close_notify.
  [[nodiscard]] bool truncated() const noexcept { return truncated_; }

 private:
  friend class TlsContext;
  friend struct PipeBio;
  TlsSession(const TlsContext& context, TlsPipe& pipe);

  static int on_new_ticket(ssl_st* ssl, ssl_session_st* session);
  [[nodiscard]] bool name(const TlsPeer& peer);
  [[nodiscard]] TlsOutcome judge() const noexcept;
  void fail() noexcept;

  ssl_st* ssl_;
  TlsPipe& pipe_;
  TlsTickets* tickets_ = nullptr;
  std::uint64_t whose_ = 0;
  TlsOutcome outcome_ = TlsOutcome::Lost;
  bool spoken_ = false;      // the peer has sent something
  bool plain_text_ = false;  // and it began like text, not like TLS
  bool truncated_ = false;
  int error_ = 0;  // errno of what broke the session; 0: nothing has
  int pipe_error_ = 0;
};

}  // namespace proxypool::net
