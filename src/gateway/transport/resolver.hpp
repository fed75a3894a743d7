// What host names mean, found out without a serving thread ever waiting (GW-21).
//
// Two levels: each thread remembers what it was told (names.hpp), and one table for the process
// does the looking up, once for all who ask meanwhile. The system's resolver tells no time to live,
// so that a meaning is believed for kFresh, and an unsuccessful look-up for kFailed. Proxies and
// targets have a resolver each: whatever names clients make up, vendors' names are found.
//
// Thread rule: any thread; an Asker's callback is posted to its loop.
// Limits:      Limits of look-ups at once and waiting; over: Busy, at once, for kBusy.
//              kNamesMax names; over: those that are no longer believed go, or all.
//              kAddressesMax addresses of a name; further ones are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/event_loop.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "runtime/blocking_pool.hpp"

namespace proxypool::gateway {

// What a name means, and until when that is believed.
struct Resolved {
  enum class Outcome : std::uint8_t {
    Found,
    Unknown,  // it means nothing, or nobody could tell
    Late,     // no answer in time
    Busy,     // too many names are being looked up
  };
  Outcome outcome = Outcome::Unknown;
  std::vector<IpAddress> addresses;  // in the order of the resolver; Found: at least one
  TimePoint good_until{};
};

// Names and what they mean; a full table begins anew.
class NameTable {
 public:
  static constexpr std::size_t kNamesMax = 4096;

  // Null when it is not known or no longer believed.
  [[nodiscard]] const Resolved* find(const std::string& name, TimePoint now) const;
  const Resolved& learn(const std::string& name, Resolved resolved, TimePoint now);
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::unordered_map<std::string, Resolved> entries_;
};

class Resolver {
 public:
  struct Limits {
    std::size_t threads;
    std::size_t waiting_max;
  };
  static constexpr Limits kOfProxies{4, 256};
  static constexpr Limits kOfTargets{16, 1024};
  static constexpr std::size_t kAddressesMax = 16;
  static constexpr nanoseconds kFresh = seconds(30);
  static constexpr nanoseconds kFailed = seconds(2);
  static constexpr nanoseconds kBusy = milliseconds(100);

  // One look-up, by whoever can wait: tests bring their own. DeadlineExceeded is Late, Exhausted is
  // Busy.
  using LookUp =
      std::function<Result<std::vector<IpAddress>>(const std::string& name, Deadline deadline)>;
  struct Asker {
    net::EventLoop& loop;
    std::function<void(const std::string& name, const Resolved&)> on_resolved;  // on the loop
  };

  Resolver(const Clock& clock, LookUp look_up, nanoseconds patience, Limits limits);

  // What is known already, or nothing; then the asker's callback comes. REQUIRES: the asker
  // outlives stop().
  [[nodiscard]] std::optional<Resolved> resolve(const std::string& name, Asker& asker);
  void stop() { pool_.stop(); }

 private:
  struct State {
    NameTable known;
    std::unordered_map<std::string, std::vector<Asker*>> running;
  };

  void look_up(const std::string& name, Deadline deadline);
  [[nodiscard]] Result<std::vector<IpAddress>> ask(const std::string& name, Deadline deadline);

  const Clock& clock_;
  const LookUp look_up_;
  const nanoseconds patience_;
  Guarded<State> state_;
  runtime::BlockingPool pool_;
};

}  // namespace proxypool::gateway
