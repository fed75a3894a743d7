#include "gateway/transport/wire.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/socket.hpp"

namespace proxypool::gateway {
namespace {

constexpr std::uint32_t kReads = EPOLLIN | EPOLLRDHUP | EPOLLET;

}  // namespace

// An idle tunnel has two of them.
static_assert(sizeof(void*) != 8 || sizeof(Wire) == 64);

void Wire::open(net::UniqueFd fd, bool readable) noexcept {
  fd_ = std::move(fd);
  watched_ = watching_writes_ = hung_up_ = ended_ = write_shut_ = in_bulk_ = false;
  error_ = 0;
  readable_ = readable;
}

bool Wire::watch(bool writing) noexcept {
  if (watched_) return true;
  writing = writing || holding();
  watching_writes_ = writing;
  watched_ = lane_.loop.add(fd_.get(), kReads | (writing ? EPOLLOUT : 0U), *this);
  return watched_;
}

void Wire::close(bool reset) noexcept {
  if (!fd_) return;
  lane_.loop.forget(*this);
  if (tls_ != nullptr) end_tls(reset);
  if (reset) net::reset_on_close(fd_.get());
  fd_.reset();
  in_scratch_ = 0;
  kept_.clear();
  unsent_.clear();
  pipe_.reset();
  ended_ = true;
}

void Wire::note(std::uint32_t events) noexcept {
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
}

Wire::Read Wire::receive() {
  if (ended_) return Read::End;
  if (!readable_) return Read::Starved;
  settle();
  const std::size_t held = kept_.size();
  if (held > kMoveMax) {
    char* to = kept_.room(lane_.buffers, kMoveMax);
    const std::size_t size = kept_.spare();
    const ssize_t got = take(to, size);
    if (got > 0) kept_.grew(static_cast<std::size_t>(got));
    return received(got, size);
  }
  char* to = lane_.scratch.in().data();
  const std::size_t size = Scratch::kInBytes - held;
  const ssize_t got = take(to + held, size);
  if (got > 0) {
    in_bulk_ = static_cast<std::size_t>(got) == size && tls_ == nullptr;
    if (held > 0) {  // memcpy takes no null pointer, not even for nothing
      std::memcpy(to, kept_.view().data(), held);
      kept_.clear();
    }
    scratch_at_ = 0;
    in_scratch_ = static_cast<std::uint32_t>(held + static_cast<std::size_t>(got));
  }
  return received(got, size);
}

Wire::Read Wire::receive(Pipe& pipe) noexcept {
  if (ended_) return Read::End;
  if (!readable_) return Read::Starved;
  const ssize_t got = pipe.fill_from(fd_.get());
  // What comes in small pieces is cheaper to copy. That nothing is there for a moment says nothing.
  if (got > 0) in_bulk_ = static_cast<std::size_t>(got) >= kBulkBytes;
  return received(got, 0);  // only EAGAIN shows that the socket is empty
}

Wire::Read Wire::received(ssize_t got, std::size_t size) {
  if (got > 0) {
    if (static_cast<std::size_t>(got) < size && !hung_up_) readable_ = false;
    return Read::Bytes;
  }
  if (got == 0) {
    ended_ = true;
    return Read::End;
  }
  if (errno != EAGAIN && errno != EINTR) {
    error_ = static_cast<std::int16_t>(errno);
    return Read::Broken;
  }
  readable_ = false;
  return Read::Starved;
}

void Wire::consume(std::size_t bytes) noexcept {
  if (in_scratch_ == 0) {
    kept_.consume(bytes);
    return;
  }
  scratch_at_ += static_cast<std::uint32_t>(bytes);
  in_scratch_ -= static_cast<std::uint32_t>(bytes);
}

void Wire::settle() {
  if (in_scratch_ == 0) return;
  kept_.append(lane_.buffers, {lane_.scratch.in().data() + scratch_at_, in_scratch_});
  in_scratch_ = 0;
}

Wire::Write Wire::send(std::string_view bytes) {
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  return send({&piece, 1});
}

Wire::Write Wire::send(std::span<iovec> pieces) {
  if (tls_ != nullptr) [[unlikely]]
    return send_secured(pieces);
  if (holding()) {
    keep(pieces, 0);
    return flush();
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t sent = pieces.size() == 1
                           ? ::send(fd_.get(), pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL)
                           : ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return broken();
  keep(pieces, sent < 0 ? 0 : static_cast<std::size_t>(sent));
  return holding() ? watch_writes() : Write::Sent;
}

Wire::Write Wire::send(PipePointer pipe) {
  pipe_ = std::move(pipe);
  const Write sent = flush_pipe();
  return sent == Write::Held ? watch_writes() : sent;
}

Wire::Write Wire::flush_pipe() noexcept {
  while (pipe_->held() != 0) {
    if (pipe_->drain_to(fd_.get()) < 0) return errno == EAGAIN ? Write::Held : broken();
  }
  pipe_.reset();
  return Write::Sent;
}

Wire::Write Wire::watch_writes() noexcept {
  if (watched_ && !watching_writes_) {
    watching_writes_ = lane_.loop.modify(fd_.get(), kReads | EPOLLOUT, *this);
    if (!watching_writes_) return broken();
  }
  return Write::Held;
}

Wire::Write Wire::flush() {
  if (pipe_ != nullptr) {
    const Write piped = flush_pipe();
    if (piped != Write::Sent) return piped;
  }
  while (!unsent_.empty()) {
    const auto waiting = unsent_.view();
    const ssize_t sent = ::send(fd_.get(), waiting.data(), waiting.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? Write::Held : broken();
    unsent_.consume(static_cast<std::size_t>(sent));
  }
  if (write_shut_) ::shutdown(fd_.get(), SHUT_WR);
  return Write::Sent;
}

Wire::Write Wire::broken() noexcept {
  error_ = static_cast<std::int16_t>(errno);
  return Write::Broken;
}

void Wire::keep(std::span<iovec> pieces, std::size_t sent) {
  for (const iovec& piece : pieces) {
    const std::size_t skip = std::min(sent, piece.iov_len);
    sent -= skip;
    unsent_.append(lane_.buffers,
                   {static_cast<const char*>(piece.iov_base) + skip, piece.iov_len - skip});
  }
}

void Wire::shut_write() noexcept {
  if (write_shut_ || !fd_) return;
  write_shut_ = true;
  if (tls_ != nullptr) {
    tls_->say_end();
    if (flush_secured() == Write::Held) return;  // flush() shuts it then
  }
  ::shutdown(fd_.get(), SHUT_WR);
}

// TLS --------------------------------------------------------------------------------------------

bool Wire::accept_tls(const net::TlsContext& context) {
  return start_tls(TlsLink::accept({fd_.get(), unsent_, lane_.buffers}, context));
}

bool Wire::connect_tls(const net::TlsContext& context, const net::TlsPeer& peer) {
  return start_tls(TlsLink::connect({fd_.get(), unsent_, lane_.buffers}, context, peer));
}

bool Wire::start_tls(std::unique_ptr<TlsLink> link) {
  if (link == nullptr) return false;
  link->begin_with(bytes());
  consume(bytes().size());
  tls_ = std::move(link);
  readable_ = true;
  return true;
}

net::TlsSession::Step Wire::handshake() {
  using Step = net::TlsSession::Step;
  tls_->look_again(hung_up_);
  Step step = tls_->session().handshake();
  // Behind the handshake more may lie in the session already. Before, only an edge brings more.
  if (step == Step::Waits) readable_ = false;
  const int error = errno;
  if (holding() && flush_secured() == Write::Broken) return Step::Failed;
  errno = error;
  return step;
}

ssize_t Wire::take_secured(char* to, std::size_t size) {
  const std::size_t waiting = unsent_.size();
  tls_->look_again(hung_up_);
  const ssize_t got = tls_->session().read(to, size);
  const int error = errno;
  // No edge comes for an end that lies in the session.
  if (tls_->session().over()) hung_up_ = true;
  // A session has things to say of its own; if they do not get through, the next read says so.
  if (unsent_.size() > waiting) (void)flush_secured();
  errno = error;
  return got;
}

Wire::Write Wire::send_secured(std::span<iovec> pieces) {
  if (!tls_->write(pieces)) {
    errno = EPIPE;
    return broken();
  }
  return flush_secured();
}

Wire::Write Wire::flush_secured() {
  const Write flushed = flush();
  return flushed == Write::Held ? watch_writes() : flushed;
}

void Wire::end_tls(bool reset) noexcept {
  if (!reset && !write_shut_ && !holding()) {
    tls_->say_end();
    if (holding()) (void)flush();
  }
  tls_.reset();
}

}  // namespace proxypool::gateway
