// One end of a relay: a non-blocking socket with the bytes that wait on either side of it.
//
// The idea: try first, wait only after EAGAIN. Reads go into the thread's scratch memory; what was
// not used is kept in a borrowed buffer until the next read. Writes go to the socket at once; what
// it does not take is kept, and while something is kept nobody reads from the other end: that is
// the whole back-pressure. Bytes in bulk can go through a pipe instead, which keeps what the socket
// did not take in the same way.
//
// Epoll is edge-triggered, one registration for a socket's life; interest in writing is added with
// the first write that did not fit. A read that came back short has emptied the socket, so that the
// next one waits for an edge.
//
// Behind accept_tls() or connect_tls() and the handshake all of this means the inside of a TLS
// session. What waits to be sent is then ciphertext, and a read goes on until the session has
// nothing left, so that no decrypted byte waits for an edge that does not come. The end is
// close_notify; a bare end of the connection is Broken (truncated()). Each direction ends for
// itself: after the peer's close_notify we may still write, and after ours still read.
//
// Thread rule: the loop's thread.
// Limits:      what is kept of input: Buffer::kBytesMax; of output: what one write could not send,
//              or what one pipe holds.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gateway/transport/buffer.hpp"
#include "gateway/transport/pipe.hpp"
#include "gateway/transport/tls_link.hpp"
#include "net/event_loop.hpp"
#include "net/tls.hpp"
#include "net/unique_fd.hpp"

namespace proxypool::gateway {

// The thread's memory for the bytes in hand. One wire at a time has bytes in `in`.
class Scratch {
 public:
  static constexpr std::size_t kInBytes = std::size_t{68} << 10U;  // what was kept, and 64 KiB
  static constexpr std::size_t kOutBytes = std::size_t{128} << 10U;

  Scratch() : in_(std::make_unique<char[]>(kInBytes)), out_(std::make_unique<char[]>(kOutBytes)) {}
  [[nodiscard]] std::span<char> in() noexcept { return {in_.get(), kInBytes}; }
  // For heads that are being written.
  [[nodiscard]] std::span<char> out() noexcept { return {out_.get(), kOutBytes}; }

 private:
  std::unique_ptr<char[]> in_;   // NOLINT: sized once
  std::unique_ptr<char[]> out_;  // NOLINT: sized once
};

// What the wires of one thread share.
struct Lane {
  net::EventLoop& loop;
  BufferPool buffers;
  Scratch scratch;
  PipePool pipes;
};

class Wire : public net::IoHandler {
 public:
  enum class Read : std::uint8_t { Bytes, Starved, End, Broken };
  enum class Write : std::uint8_t { Sent, Held, Broken };

  explicit Wire(Lane& lane) noexcept : lane_(lane) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Takes the socket; nothing is registered yet. `readable`: try to read before any event says so.
  void open(net::UniqueFd fd, bool readable) noexcept;
  // From now on edges arrive. False when the kernel refuses.
  [[nodiscard]] bool watch(bool writing = false) noexcept;
  // Ends both directions at once; `reset` tells the peer that it did not end well.
  void close(bool reset = false) noexcept;
  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(fd_); }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  // Bytes received and not yet used. Good until the next call of a method of any wire.
  [[nodiscard]] std::string_view bytes() const noexcept {
    return in_scratch_ != 0 ? std::string_view(lane_.scratch.in().data() + scratch_at_, in_scratch_)
                            : kept_.view();
  }
  // The same, writable: a body may be decoded in place.
  [[nodiscard]] char* data() noexcept {
    return in_scratch_ != 0 ? lane_.scratch.in().data() + scratch_at_ : kept_.data();
  }
  // Receives more behind bytes(). REQUIRES: bytes().size() < kKeptMax.
  [[nodiscard]] Read receive();
  static constexpr std::size_t kKeptMax = std::size_t{128} << 10U;
  // Bytes at the front have been used.
  void consume(std::size_t bytes) noexcept;
  // Moves what was not used out of the scratch. Before anybody else receives.
  void settle();
  // Receives into the pipe, without TLS. REQUIRES: bytes().empty(), in_bulk().
  [[nodiscard]] Read receive(Pipe& pipe) noexcept;
  // The last read was a large one: a pipe will carry the next ones cheaper.
  [[nodiscard]] bool in_bulk() const noexcept { return in_bulk_; }
  static constexpr std::size_t kBulkBytes = std::size_t{16} << 10U;
  // Whether receive() may find something.
  [[nodiscard]] bool readable() const noexcept { return readable_ && !ended_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  // Sends the pieces in order; keeps what does not fit.
  [[nodiscard]] Write send(std::span<iovec> pieces);
  [[nodiscard]] Write send(std::string_view bytes);
  // Sends what is in the pipe, and keeps the pipe while something is left in it.
  // REQUIRES: !holding(), !secure().
  [[nodiscard]] Write send(PipePointer pipe);
  // Sends more of what was kept.
  [[nodiscard]] Write flush();
  [[nodiscard]] bool holding() const noexcept { return !unsent_.empty() || pipe_ != nullptr; }
  [[nodiscard]] std::size_t unsent() const noexcept { return unsent_.size(); }
  // The end of what is sent, once it has left.
  void shut_write() noexcept;
  [[nodiscard]] bool write_shut() const noexcept { return write_shut_; }

  // TLS from now on, as the server or the client of it; what was received and not used is its
  // beginning. False when there is no memory for it. Nothing is sent before handshake().
  [[nodiscard]] bool accept_tls(const net::TlsContext& context);
  [[nodiscard]] bool connect_tls(const net::TlsContext& context, const net::TlsPeer& peer);
  // Goes on with the handshake; Waits: for an edge, or for flush(). Failed: tls_outcome() says of
  // what, and error() whether a write to the socket did it.
  [[nodiscard]] net::TlsSession::Step handshake();
  [[nodiscard]] bool secure() const noexcept { return tls_ != nullptr; }
  // REQUIRES: secure().
  [[nodiscard]] net::TlsOutcome tls_outcome() const noexcept {
    return error_ != 0 ? net::TlsOutcome::Lost : tls_->session().outcome();
  }
  // The connection has ended without close_notify.
  [[nodiscard]] bool truncated() const noexcept {
    return tls_ != nullptr && tls_->session().truncated();
  }
  // What follows is no clean end: no close_notify.
  void withhold_notify() noexcept {
    if (tls_ != nullptr) tls_->withhold_notify();
  }

  // Why the last call said Broken; 0 when there was none.
  [[nodiscard]] int error() const noexcept { return error_; }

  // Keeps the flags of an edge; the owner then looks at readable() and holding().
  void note(std::uint32_t events) noexcept;

 protected:
  ~Wire() { close(); }

  Lane& lane_;

 private:
  // Below this what was kept moves in front of what comes, so that one read can be large.
  static constexpr std::size_t kMoveMax = 4096;

  [[nodiscard]] ssize_t take(char* to, std::size_t size) {
    if (tls_ != nullptr) [[unlikely]]
      return take_secured(to, size);
    return ::recv(fd_.get(), to, size, 0);
  }
  [[nodiscard]] Read received(ssize_t got, std::size_t size);
  [[nodiscard]] Write flush_pipe() noexcept;
  [[nodiscard]] Write broken() noexcept;
  void keep(std::span<iovec> pieces, std::size_t sent);
  [[nodiscard]] Write watch_writes() noexcept;

  [[nodiscard]] bool start_tls(std::unique_ptr<TlsLink> link);
  [[nodiscard]] ssize_t take_secured(char* to, std::size_t size);
  [[nodiscard]] Write send_secured(std::span<iovec> pieces);
  [[nodiscard]] Write flush_secured();
  void end_tls(bool reset) noexcept;

  net::UniqueFd fd_;
  bool watched_ : 1 = false;
  bool watching_writes_ : 1 = false;
  bool readable_ : 1 = false;
  bool hung_up_ : 1 = false;  // an end or an error waits behind the bytes
  bool ended_ : 1 = false;
  bool write_shut_ : 1 = false;
  bool in_bulk_ : 1 = false;
  std::int16_t error_ = 0;
  std::uint32_t scratch_at_ = 0;
  std::uint32_t in_scratch_ = 0;
  Buffer kept_;
  Buffer unsent_;
  PipePointer pipe_;              // goes before unsent_; null: empty
  std::unique_ptr<TlsLink> tls_;  // null: plain
};

}  // namespace proxypool::gateway
