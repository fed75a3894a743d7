// One user of the load: a connection, and one request after the other on it.
//
// Thread rule: one thread at a time, that of its executor; Budget: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "loadgen/load.hpp"
#include "loadgen/stream.hpp"
#include "loadgen/tls.hpp"

namespace proxypool::loadgen {

// What all users work from. Immutable while they run.
struct LoadPlan {
  LoadOptions options;
  Tcp::endpoint connect_to;
  std::string request;          // head and body as they go out
  std::string connect_request;  // CONNECT, when TLS goes through a proxy; else empty
  std::shared_ptr<ClientTls> tls;
};

// What is left to do, and how far it went.
struct Budget {
  std::atomic<std::uint64_t> left{0};
  TimePoint end = kNever;
  std::atomic<bool> interrupted{false};
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> failed{0};

  // Takes one request; false: there is none left.
  bool take(TimePoint now) noexcept;
};

class LoadUser {
 public:
  LoadUser(const LoadPlan& plan, Budget& budget, LoadReport& report)
      : plan_(plan), budget_(budget), report_(report) {}

  awaitable<void> run();
  // Ends what is under way.
  void abort();

 private:
  struct Outcome {
    LoadError error = LoadError::None;
    bool answered = false;  // a byte of the answer had come
    bool reusable = false;
  };

  awaitable<void> request_once();
  awaitable<Outcome> attempt(TimePoint begin);
  awaitable<LoadError> open(TimePoint begin);
  awaitable<Outcome> exchange(std::string_view request, std::string_view method);
  awaitable<Outcome> read_answer(std::string_view method);
  awaitable<LoadError> read_body(const Response& response, Framing framing);
  [[nodiscard]] bool expected(unsigned status) const;
  void count(std::map<std::string, std::uint64_t>& counts, std::string value);

  const LoadPlan& plan_;
  Budget& budget_;
  LoadReport& report_;
  StreamPtr stream_;
  unsigned status_ = 0;  // of the last answer
  TimePoint head_at_{};  // when its head was complete
};

}  // namespace proxypool::loadgen
