// The TLS session of a wire, and what lies between the two: ciphertext comes straight from the
// wire's socket and goes where the wire keeps what it has not sent.
//
// Everything that a wire sends in one call becomes one write to the socket, whatever number of
// records it is.
//
// Thread rule: the loop's thread.
// Limits:      Buffer::kBytesMax of ciphertext that the socket does not take; over (a peer that
//              makes the session talk and does not listen): the connection is broken.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "gateway/transport/buffer.hpp"
#include "net/tls.hpp"

namespace proxypool::gateway {

class TlsLink final : private net::TlsPipe {
 public:
  // What the session gets of its wire.
  struct Ends {
    int fd;
    Buffer& unsent;
    BufferPool& buffers;
  };
  // Null when memory runs out.
  [[nodiscard]] static std::unique_ptr<TlsLink> accept(const Ends& ends,
                                                       const net::TlsContext& context);
  [[nodiscard]] static std::unique_ptr<TlsLink> connect(const Ends& ends,
                                                        const net::TlsContext& context,
                                                        const net::TlsPeer& peer);

  [[nodiscard]] net::TlsSession& session() noexcept { return *session_; }
  [[nodiscard]] const net::TlsSession& session() const noexcept { return *session_; }

  // Ciphertext that was received before there was a session.
  void begin_with(std::string_view ciphertext);
  // The socket may have more than when it was last found empty. `hung_up`: no edge comes any more.
  void look_again(bool hung_up) noexcept {
    drained_ = false;
    hung_up_ = hung_up;
  }
  // Encrypts into the wire's buffer; false: the connection is broken.
  [[nodiscard]] bool write(std::span<const iovec> pieces);
  // close_notify, once and unless withheld.
  void say_end() noexcept;
  void withhold_notify() noexcept { silent_ = true; }

 private:
  explicit TlsLink(const Ends& ends) noexcept : ends_(ends) {}
  ssize_t pull(char* to, std::size_t size) noexcept override;
  bool push(std::string_view ciphertext) override;

  const Ends ends_;
  std::unique_ptr<net::TlsSession> session_;
  Buffer ahead_;
  bool drained_ = false;  // the last receive came back short: only an edge brings more
  bool hung_up_ = false;
  bool silent_ = false;
};

}  // namespace proxypool::gateway
