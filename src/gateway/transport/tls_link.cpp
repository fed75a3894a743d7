#include "gateway/transport/tls_link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace proxypool::gateway {
namespace {

// What encryption adds: 22 or 29 bytes to each record of at most 16 KiB.
constexpr std::size_t kRecordBytes = std::size_t{16} << 10U;
constexpr std::size_t kRecordExtra = 64;

}  // namespace

std::unique_ptr<TlsLink> TlsLink::accept(const Ends& ends, const net::TlsContext& context) {
  std::unique_ptr<TlsLink> link(new TlsLink(ends));
  link->session_ = net::TlsSession::accept(context, *link);
  return link->session_ == nullptr ? nullptr : std::move(link);
}

std::unique_ptr<TlsLink> TlsLink::connect(const Ends& ends, const net::TlsContext& context,
                                          const net::TlsPeer& peer) {
  std::unique_ptr<TlsLink> link(new TlsLink(ends));
  link->session_ = net::TlsSession::connect(context, *link, peer);
  return link->session_ == nullptr ? nullptr : std::move(link);
}

void TlsLink::begin_with(std::string_view ciphertext) {
  ahead_.append(ends_.buffers, ciphertext);
}

ssize_t TlsLink::pull(char* to, std::size_t size) noexcept {
  if (!ahead_.empty()) {
    const std::size_t count = std::min(size, ahead_.size());
    std::memcpy(to, ahead_.data(), count);
    ahead_.consume(count);
    return static_cast<ssize_t>(count);
  }
  if (drained_) {
    errno = EAGAIN;
    return -1;
  }
  const ssize_t got = ::recv(ends_.fd, to, size, 0);
  drained_ = got > 0 && static_cast<std::size_t>(got) < size && !hung_up_;
  return got;
}

bool TlsLink::push(std::string_view ciphertext) {
  if (ends_.unsent.size() + ciphertext.size() > Buffer::kBytesMax) return false;
  ends_.unsent.append(ends_.buffers, ciphertext);
  return true;
}

bool TlsLink::write(std::span<const iovec> pieces) {
  std::size_t room = 0;
  for (const iovec& piece : pieces) {
    if (piece.iov_len == 0) continue;
    room += piece.iov_len + (1 + piece.iov_len / kRecordBytes) * kRecordExtra;
  }
  if (room == 0) return true;
  Buffer& out = ends_.unsent;
  // One block that is large enough, instead of one after the other.
  if (out.size() + room <= Buffer::kBytesMax) (void)out.room(ends_.buffers, room);
  bool good = true;
  for (const iovec& piece : pieces) {
    good = good && session_->write({static_cast<const char*>(piece.iov_base), piece.iov_len});
  }
  if (out.size() == 0) out.clear();
  return good;
}

void TlsLink::say_end() noexcept {
  if (!std::exchange(silent_, true)) (void)session_->write_end();
}

}  // namespace proxypool::gateway
