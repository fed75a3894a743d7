// The addresses of proxies whose vendor names a host, without a serving thread ever waiting.
//
// Two levels: each thread remembers what it was told, and one table for the process does the
// looking up, once for all who ask meanwhile. Vendor names are few and long-lived; what a name
// means is believed for kFresh, and an unsuccessful look-up for kFailed.
//
// Thread rule: Resolver: any thread; an Asker's callback is posted to its loop. AddressBook: the
//              loop's thread.
// Limits:      kThreads look-ups at once and kQueueMax waiting; over: as if the name had no
// address.
//              kNamesMax names in each table; over: the table begins anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/event_loop.hpp"
#include "net/socket.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "runtime/blocking_pool.hpp"

namespace proxypool::gateway {

// What a name means, and until when that is believed. No address: it means nothing.
struct Resolved {
  std::optional<IpAddress> address;
  TimePoint good_until{};
};

class Resolver {
 public:
  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kQueueMax = 256;
  static constexpr std::size_t kNamesMax = 4096;
  static constexpr nanoseconds kFresh = seconds(30);
  static constexpr nanoseconds kFailed = seconds(2);

  // One look-up, by whoever can wait: tests bring their own.
  using LookUp = std::function<Result<IpAddress>(const std::string& name, Deadline deadline)>;
  struct Asker {
    net::EventLoop& loop;
    std::function<void(const std::string& name, const Resolved&)> on_resolved;  // on the loop
  };

  Resolver(const Clock& clock, LookUp look_up, nanoseconds patience);

  // What is known already, or nothing; then the asker's callback comes. REQUIRES: the asker
  // outlives stop().
  [[nodiscard]] std::optional<Resolved> resolve(const std::string& name, Asker& asker);
  void stop() { pool_.stop(); }

 private:
  struct State {
    std::unordered_map<std::string, Resolved> known;
    std::unordered_map<std::string, std::vector<Asker*>> running;
  };

  void look_up(const std::string& name);

  const Clock& clock_;
  const LookUp look_up_;
  const nanoseconds patience_;
  Guarded<State> state_;
  runtime::BlockingPool pool_;
};

// What one thread knows.
class AddressBook {
 public:
  // Null when it is not known or no longer good.
  [[nodiscard]] const Resolved* find(const std::string& name, TimePoint now) const {
    const auto found = entries_.find(name);
    if (found == entries_.end() || now >= found->second.good_until) return nullptr;
    return &found->second;
  }
  void learn(const std::string& name, const Resolved& resolved) {
    if (entries_.size() >= Resolver::kNamesMax) entries_.clear();
    entries_.insert_or_assign(name, resolved);
  }

 private:
  std::unordered_map<std::string, Resolved> entries_;
};

}  // namespace proxypool::gateway
