#include "checker/basic_probe.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "proxypool/base/host.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::checker {

using domain::FailureKind;
using domain::Phase;

SecretString connect_request(const domain::CheckTask& task) {
  const std::string target = bracketed(task.target_host) + ":" + std::to_string(task.target_port);
  std::string text = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  if (!task.credential.username.empty() || !task.credential.password.empty()) {
    std::string pair = task.credential.username + ":";
    pair += task.credential.password.reveal();
    text += "Proxy-Authorization: Basic " + base64_encode(pair) + "\r\n";
  }
  return SecretString(text + "\r\n");
}

std::optional<FailureKind> classify_connect(int error) noexcept {
  switch (error) {
    case ECONNREFUSED:
      return FailureKind::Refused;
    case ETIMEDOUT:
      return FailureKind::Timeout;
    case ECONNRESET:
    case EPIPE:
      return FailureKind::Reset;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
      return FailureKind::Unreachable;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENETDOWN:
    case EADDRNOTAVAIL:  // no local port left
    case EPERM:          // a packet filter of this machine
    case EACCES:
      return std::nullopt;
    default:
      return FailureKind::Other;
  }
}

BasicProbe::BasicProbe(net::EventLoop& loop, domain::CheckTask task, const net::TlsContext* tls,
                       Done done)
    : loop_(loop),
      task_(std::move(task)),
      tls_(tls),
      done_(std::move(done)),
      started_(loop.now()),
      timer_(loop.timers(), *this),
      request_(connect_request(task_)),
      unsent_(request_.reveal()) {
  parser_.reset({net::Method::Connect, false});
  timer_.arm(Deadline::after(started_, task_.timeout).at());
}

BasicProbe::~BasicProbe() {
  close_socket();
}

void BasicProbe::dial(std::vector<net::Endpoint> addresses) {
  PP_ASSERT(!addresses.empty());
  addresses_ = std::move(addresses);
  dial_next();
}

void BasicProbe::dial_next() {
  const net::Endpoint& address = addresses_[next_address_++];
  net::Connecting connecting = net::start_connect(address);
  fd_ = std::move(connecting.fd);
  if (fd_ && !loop_.add(fd_.get(), EPOLLOUT, *this)) return finish(std::nullopt);
  if (fd_) return;  // also when it is connected already: then on_io() comes at once
  const auto kind = classify_connect(connecting.error);
  if (!kind) return finish(std::nullopt);
  if (next_address_ < addresses_.size()) return dial_next();
  fail(Phase::Dial, *kind);
}

void BasicProbe::fail_lookup(const Error& error) {
  switch (error.code) {
    case ErrorCode::NotFound:
      return fail(Phase::Dial, FailureKind::Unreachable);
    case ErrorCode::DeadlineExceeded:
      return fail(Phase::Dial, FailureKind::Timeout);
    default:
      return finish(std::nullopt);  // nobody could tell
  }
}

void BasicProbe::on_io(std::uint32_t events) {
  if (!connected_) {
    const int error = net::take_socket_error(fd_.get());
    if (error != 0) {
      close_socket();
      const auto kind = classify_connect(error);
      if (!kind) return finish(std::nullopt);
      if (next_address_ < addresses_.size()) return dial_next();
      return fail(Phase::Dial, *kind);
    }
    connected_ = true;
    if (tls_ != nullptr) {
      session_ = net::TlsSession::connect(*tls_, *this, {task_.endpoint.host, 0, nullptr});
      if (!session_) return finish(std::nullopt);
    }
  }
  if (session_) return speak_tls(events);
  // What the proxy has already said counts more than what we still have to say.
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) return receive();
  send_request();
}

void BasicProbe::send_request() {
  while (!unsent_.empty()) {
    const auto sent = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return fail(Phase::ProxyHandshake, FailureKind::Reset);
      if (!loop_.modify(fd_.get(), EPOLLIN | EPOLLOUT, *this)) return finish(std::nullopt);
      return;
    }
    unsent_.remove_prefix(static_cast<std::size_t>(sent));
  }
  if (!loop_.modify(fd_.get(), EPOLLIN, *this)) return finish(std::nullopt);
}

// Level-triggered: what the session has taken in is read at once, the rest shows up again.
void BasicProbe::speak_tls(std::uint32_t events) {
  if (!secured_ && !secure()) return;
  if (!send_ciphertext()) return;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
}

bool BasicProbe::secure() {
  switch (session_->handshake()) {
    case net::TlsSession::Step::Waits:
      (void)send_ciphertext();
      return false;
    case net::TlsSession::Step::Failed: {
      const bool lost = session_->outcome() == net::TlsOutcome::Lost;
      fail(Phase::ProxyHandshake, lost ? FailureKind::Reset : FailureKind::Protocol);
      return false;
    }
    case net::TlsSession::Step::Done:
      break;
  }
  secured_ = true;
  if (session_->write(request_.reveal())) return true;
  fail(Phase::ProxyHandshake, FailureKind::Reset);
  return false;
}

ssize_t BasicProbe::pull(char* to, std::size_t size) noexcept {
  return ::recv(fd_.get(), to, size, 0);
}

bool BasicProbe::push(std::string_view ciphertext) {
  constexpr std::size_t kUnsentMax = std::size_t{64} << 10U;  // nobody reads over there
  if (ciphertext_.size() + ciphertext.size() > kUnsentMax) return false;
  ciphertext_ += ciphertext;
  return true;
}

bool BasicProbe::send_ciphertext() {
  while (!ciphertext_.empty()) {
    const auto sent = ::send(fd_.get(), ciphertext_.data(), ciphertext_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0 && errno != EINTR) {
      fail(Phase::ProxyHandshake, FailureKind::Reset);
      return false;
    }
    if (sent > 0) ciphertext_.erase(0, static_cast<std::size_t>(sent));
  }
  if (loop_.modify(fd_.get(), EPOLLIN | (ciphertext_.empty() ? 0U : EPOLLOUT), *this)) return true;
  finish(std::nullopt);
  return false;
}

void BasicProbe::receive() {
  std::array<char, 4096> bytes;
  while (true) {
    const auto got = session_ ? session_->read(bytes.data(), bytes.size())
                              : ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      answer_.append(bytes.data(), static_cast<std::size_t>(got));
      if (parse()) return;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    // An orderly end in the middle of an answer is a broken answer.
    const bool broken = got == 0 && !answer_.empty();
    return fail(Phase::ProxyHandshake, broken ? FailureKind::Protocol : FailureKind::Reset);
  }
}

bool BasicProbe::parse() {
  while (true) {
    switch (parser_.parse(answer_)) {
      case net::ParseState::NeedMore:
        return false;
      case net::ParseState::Refused:
        fail(Phase::ProxyHandshake, FailureKind::Protocol);
        return true;
      case net::ParseState::Done:
        break;
    }
    if (!parser_.head().interim()) break;
    answer_.erase(0, parser_.head().size());
    parser_.reset({net::Method::Connect, false});
  }
  if (parser_.head().status() == 407) {
    fail(Phase::ProxyHandshake, FailureKind::AuthRejected);
  } else {
    pass();
  }
  return true;
}

void BasicProbe::on_deadline() {
  fail(connected_ ? Phase::ProxyHandshake : Phase::Dial, FailureKind::Timeout);
}

void BasicProbe::pass() {
  domain::Observation observation;
  observation.task_id = task_.task_id;
  observation.proxy = task_.proxy;
  observation.level = task_.level;
  observation.passed = true;
  observation.latency = std::chrono::duration_cast<milliseconds>(loop_.now() - started_);
  finish(observation);
}

void BasicProbe::fail(Phase phase, FailureKind kind) {
  domain::Observation observation;
  observation.task_id = task_.task_id;
  observation.proxy = task_.proxy;
  observation.level = task_.level;
  observation.failure = {phase, kind};
  observation.latency = std::chrono::duration_cast<milliseconds>(loop_.now() - started_);
  finish(observation);
}

void BasicProbe::close_socket() noexcept {
  loop_.forget(*this);
  if (secured_ && session_->write_end()) {
    // The proxy's log need not speak of an attack; whether this gets through is of no matter.
    (void)::send(fd_.get(), ciphertext_.data(), ciphertext_.size(), MSG_NOSIGNAL);
  }
  secured_ = false;
  fd_.reset();
}

void BasicProbe::finish(std::optional<domain::Observation> observation) {
  timer_.cancel();
  close_socket();
  const Done done = std::move(done_);
  done(observation);
}

}  // namespace proxypool::checker
