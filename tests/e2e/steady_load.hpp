// What the tests of faults under load share: a load whose every answer is verified, and what a
// gateway holds, to be compared before and after.
//
// Thread rule: one thread, that of the test; the load runs on threads of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "support/cluster.hpp"

namespace proxypool::e2e {

// Clients that ask the fixture's origin for what only they can have asked for: a GET whose answer
// names its token, a POST that comes back byte by byte, and both through tunnels.
class SteadyLoad {
 public:
  struct Totals {
    std::uint64_t served = 0;   // the right answer, whole
    std::uint64_t refused = 0;  // the gateway said that it could not
    std::uint64_t broken = 0;   // no whole answer, and visibly so
    std::uint64_t wrong = 0;    // anything else
    std::string first_refused;
    std::string first_broken;
    std::string first_wrong;
    std::chrono::milliseconds slowest{0};  // of those served
  };

  SteadyLoad(std::uint16_t gateway, std::uint16_t origin, unsigned clients);
  SteadyLoad(const SteadyLoad&) = delete;
  SteadyLoad& operator=(const SteadyLoad&) = delete;
  ~SteadyLoad() { (void)stop(); }

  [[nodiscard]] Totals so_far() const;
  Totals stop();
  // Lets it serve so many more, and waits for that.
  bool serves(std::uint64_t more);

 private:
  struct Client;
  void run(unsigned number);
  void note(const std::string& name, const Client& client);

  const std::uint16_t gateway_;
  const std::string origin_;
  std::atomic<bool> stopping_{false};
  mutable Guarded<Totals> totals_;
  std::vector<std::thread> threads_;
};

// What a gateway process holds.
struct Holdings {
  int descriptors = 0;  // without what it keeps for reuse: connections and pipes
  double requests = 0;
  double waiting = 0;
  double tunnels = 0;
  double connections = 0;
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

class Watch {
 public:
  Watch(pid_t gateway, std::uint16_t metrics) : pid_(gateway), metrics_(metrics) {}

  [[nodiscard]] Holdings holdings() const;
  [[nodiscard]] int descriptors() const;
  [[nodiscard]] int pipe_ends() const;
  // Whether, in time, it holds exactly what it held then.
  [[nodiscard]] ::testing::AssertionResult back_to(const Holdings& before) const;
  [[nodiscard]] std::uint64_t resident_bytes() const;
  // Processor time that it has used so far.
  [[nodiscard]] std::chrono::milliseconds used() const;

 private:
  pid_t pid_;
  std::uint16_t metrics_;
};

// Sanitizers keep what was freed and put zones around what is there: sizes mean nothing then.
bool sizes_count();

// Whether all places in proxies are free again, as far as the controller knows.
bool all_places_free(support::Cluster& cluster, double places);

}  // namespace proxypool::e2e
