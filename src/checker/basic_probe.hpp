// One BASIC probe (CT-31): connect to the proxy, over TLS when it is an https one, ask it for a
// tunnel, read the whole answer head.
//
// Every well-formed answer but 407 passes: it proves that the proxy speaks and accepts us, whatever
// it thinks of the target. What is our own fault (no descriptor left, no look-up) is no observation
// at all: it would condemn a proxy for it.
//
// Thread rule: the loop's thread. `done` is called once, last of all, and may destroy the probe.
// Limits:      the task's timeout from the construction on; an answer head as the codec says.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/event_loop.hpp"
#include "net/http/head.hpp"
#include "net/socket.hpp"
#include "net/tls.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/domain/health/observation.hpp"

namespace proxypool::checker {

// CONNECT with Basic credentials when there are any.
SecretString connect_request(const domain::CheckTask& task);

// What a failed connect says about the proxy; nothing when it says something about us.
std::optional<domain::FailureKind> classify_connect(int error) noexcept;

class BasicProbe final : public net::IoHandler, private net::TlsPipe {
 public:
  // Nothing: our own fault.
  using Done = std::function<void(std::optional<domain::Observation>)>;

  // The time runs; dial() or fail_lookup() follows. `tls` outlives the probe; null: plain HTTP.
  BasicProbe(net::EventLoop& loop, domain::CheckTask task, const net::TlsContext* tls, Done done);
  BasicProbe(const BasicProbe&) = delete;
  BasicProbe& operator=(const BasicProbe&) = delete;
  ~BasicProbe();

  [[nodiscard]] const domain::CheckTask& task() const noexcept { return task_; }
  [[nodiscard]] Deadline deadline() const noexcept { return Deadline(timer_.due()); }

  // Tries one address after the other until one connects. REQUIRES: at least one.
  void dial(std::vector<net::Endpoint> addresses);
  // The proxy's name could not be turned into an address.
  void fail_lookup(const Error& error);

 private:
  void on_io(std::uint32_t events) override;
  void on_deadline();
  ssize_t pull(char* to, std::size_t size) noexcept override;
  bool push(std::string_view ciphertext) override;

  void dial_next();
  void speak_tls(std::uint32_t events);
  // Whether the session stands, with the request in it.
  bool secure();
  // Sends what waits; false when that ended the probe.
  bool send_ciphertext();
  void send_request();
  void receive();
  // Whether the bytes decided the probe.
  bool parse();
  void close_socket() noexcept;
  void pass();
  void fail(domain::Phase phase, domain::FailureKind kind);
  void finish(std::optional<domain::Observation> observation);

  net::EventLoop& loop_;
  const domain::CheckTask task_;
  const net::TlsContext* const tls_;
  Done done_;
  const TimePoint started_;
  net::MemberTimer<&BasicProbe::on_deadline> timer_;
  std::vector<net::Endpoint> addresses_;
  std::size_t next_address_ = 0;
  bool connected_ = false;
  net::UniqueFd fd_;
  std::unique_ptr<net::TlsSession> session_;  // null: plain, or not connected yet
  bool secured_ = false;
  std::string ciphertext_;  // not sent yet
  SecretString request_;
  std::string_view unsent_;  // of request_
  std::string answer_;
  net::ResponseParser parser_;
};

}  // namespace proxypool::checker
