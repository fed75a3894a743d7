// The dispatcher routes a request, chooses a proxy and takes a place at it. (GW-31, GW-33)
//
// It reads the view and the counters of this process and asks nobody: no lock, no allocation (once
// a host was seen by a regular expression), no I/O, no walk over proxies.
//
// Cost, as tests/bench/dispatch_bench.cpp measures it in a release build (two cores of 2.1 GHz with
// 1 MiB of cache each, others at work; p50/p99 in ns, 20 of them the timer's; no allocation):
//   choice and reservation  100 proxies  10,000   100,000
//     least_conn            80/90        90/120   90/90
//     two_random_choices    40/60        40/80    40/70
//     least_time            70/100       60/100   70/100
//     consistent_hash       50/100       60/120   50/160
//   acquire()
//     least_conn            220/290      240/450  300/460
//     two_random_choices    140/160      160/390  370/661
//   what least_time learns  40/50        40/70    50/180
// Two threads that do nothing else meet on the same lines: at 100,000 the choice then takes 180/375
// with two_random_choices and 500/1,462 with least_conn. With a cold cache it takes 541/921 and
// 380/1,142. In acquire() at 100,000 the proxy's entry comes from memory, which its request needs
// anyway.
//
// Thread rule: Dispatcher: one thread at a time, one for each serving thread. Allocation: one
// thread
//              at a time; may be released on another one than it was acquired on. Both end before
//              the registry.
// Invariant:   every place that was taken is given back exactly once, by release() or by the end of
//              the allocation. A repeat is counted by PP_BUG_IF and changes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "gateway/dispatch/filtered.hpp"
#include "gateway/dispatch/proxy_entry.hpp"
#include "gateway/dispatch/registry.hpp"
#include "gateway/dispatch/session_table.hpp"
#include "gateway/dispatch/view.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/domain/routing/host_regex.hpp"
#include "proxypool/domain/routing/matcher.hpp"

namespace proxypool::gateway {

// A place at a proxy. Reserved when acquired, active after commit(), given back by release().
class Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&& other) noexcept { take(other); }
  Allocation& operator=(Allocation&& other) noexcept {
    if (this != &other) {
      drop();
      take(other);
    }
    return *this;
  }
  // Gives a place that is still held back, without a verdict on the proxy.
  ~Allocation() { drop(); }

  [[nodiscard]] bool held() const noexcept { return stage_ != Stage::Free; }
  // REQUIRES: it was acquired. Good for as long as the allocation, after release() too.
  [[nodiscard]] const ProxyEntry& proxy() const noexcept { return *entry_; }
  // Where the place is. REQUIRES: it was acquired.
  [[nodiscard]] Binding binding() const noexcept { return {entry_->id, upstream_, member_}; }
  // Asked again right before dialling: the leases of this worker stand, and the proxy was neither
  // revoked nor removed, and is before its end.
  [[nodiscard]] bool still_usable(TimePoint now) const noexcept {
    return held() && registry_->valid(now) && upstream_->members.still_usable(member_, now);
  }
  // The upstream connection stands: the reserved place becomes an active one. Once.
  void commit() noexcept;
  // The time until the answer will say nothing about the proxy: a client's body goes first.
  void leave_untimed() noexcept { timed_ = false; }
  // The head of the final answer has come or the tunnel stands; for least_time. Not `good`: it is
  // one that proxies give themselves when they cannot serve. The first call counts.
  void answered(bool good, TimePoint now) noexcept;
  // Gives the place back with what happened. A failure to dial or to get through the proxy's own
  // handshake counts against the proxy (two in a row bench it), a later one is neutral, none is
  // good.
  void release(domain::Failure failure, TimePoint now) noexcept;

 private:
  friend class Dispatcher;
  enum class Stage : std::uint8_t { Free, Reserved, Active };
  static constexpr std::uint8_t kUncounted = 255;

  void take(Allocation& other) noexcept;
  void drop() noexcept {
    if (held()) give_back(domain::Verdict::Neutral, TimePoint{});
  }
  void give_back(domain::Verdict verdict, TimePoint now) noexcept;
  [[nodiscard]] bool to_be_timed() const noexcept {
    return !answered_ && upstream_->timed.load(std::memory_order_relaxed);
  }

  EntryPointer entry_;
  ProxyRegistry* registry_ = nullptr;
  UpstreamRuntime* upstream_ = nullptr;
  RoutingRuntime* routing_ = nullptr;  // null: the routing has no maximum to count for
  TimePoint taken_at_{};
  std::uint32_t member_ = 0;
  bool timed_ = true;
  bool answered_ = false;
  std::uint8_t stripe_ = kUncounted;
  Stage stage_ = Stage::Free;
};

// A place among those that a routing has, and none in a proxy: for what goes direct.
//
// Thread rule: one thread at a time. Invariant: given back exactly once.
class RoutingPlace {
 public:
  RoutingPlace() = default;
  RoutingPlace(RoutingPlace&& other) noexcept
      : registry_(other.registry_),
        routing_(std::exchange(other.routing_, nullptr)),
        first_(other.first_) {}
  RoutingPlace& operator=(RoutingPlace&& other) noexcept {
    std::swap(registry_, other.registry_);
    std::swap(routing_, other.routing_);
    std::swap(first_, other.first_);
    return *this;
  }
  ~RoutingPlace();

 private:
  friend class Dispatcher;
  ProxyRegistry* registry_ = nullptr;
  RoutingRuntime* routing_ = nullptr;  // null: the routing has no maximum to count for
  UpstreamRuntime* first_ = nullptr;   // its first upstream: who waits for a place waits there
};

// The proxies that a request has tried already. (R6)
class ExcludedProxies {
 public:
  static constexpr std::size_t kMax = 16;

  // False when there is no room: the request has had its attempts.
  [[nodiscard]] bool add(ProxyId id) noexcept {
    if (count_ == kMax) return false;
    ids_[count_++] = id;
    return true;
  }
  [[nodiscard]] bool contains(ProxyId id) const noexcept {
    const auto end = ids_.begin() + static_cast<std::ptrdiff_t>(count_);
    return std::find(ids_.begin(), end, id) != end;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::array<ProxyId, kMax> ids_{};
  std::size_t count_ = 0;
};

enum class Acquired : std::uint8_t {
  Ok,
  NoRouting,    // 403 no_routing
  NoCandidate,  // 503 no_candidate: no proxy of the routing has a free place
  RoutingFull,  // 503 overloaded: the routing's own maximum
  NotValid,     // 503 not_ready: the leases of this worker have ended
  InLine,       // others wait for what it asks: behind them
  Stranger,     // 407 auth_rejected: a newer view does not know the client any more
  SessionLost,  // 503 session_lost: the proxy of a session is not in the view any more
};

struct Acquisition {
  Acquired outcome = Acquired::NoRouting;
  const View::Routing* routing = nullptr;  // null: NoRouting; good for as long as the view
  Allocation allocation;                   // held with Ok alone
};

class Dispatcher {
 public:
  // `thread`: a small number, different for each serving thread.
  Dispatcher(ProxyRegistry& registry, unsigned thread) : registry_(registry), thread_(thread) {}

  // The routing that takes the request, or null.
  [[nodiscard]] const View::Routing* route(const View& view, const domain::RouteRequest& request);
  // A place at a proxy of this routing that was not tried yet: the strategy's upstream first, then
  // the others, AVAILABLE proxies before SUSPECT ones. For the first attempt and for retries, which
  // stay within the routing and the view of the first.
  [[nodiscard]] Acquisition acquire(const View& view, const View::Routing& routing,
                                    const ExcludedProxies& tried, TimePoint now, Random& random,
                                    const Wanted& wanted = {});
  // A place at this proxy and no other: NoCandidate if it has none now, SessionLost if it is not
  // one of the routing's proxies that will do, or takes no work any more.
  [[nodiscard]] Acquisition acquire_at(const View& view, const View::Routing& routing,
                                       const Binding& binding, TimePoint now,
                                       const Wanted& wanted = {});
  // Both in one.
  [[nodiscard]] Acquisition acquire(const View& view, const domain::RouteRequest& request,
                                    const ExcludedProxies& tried, TimePoint now, Random& random);

  // A place of this routing alone; nothing when it is full.
  [[nodiscard]] std::optional<RoutingPlace> enter_direct(const View::Routing& routing);

  // Hosts that had to be asked of the regular expressions, since the start.
  [[nodiscard]] std::uint64_t regex_misses() const noexcept { return verdicts_.misses(); }
  // Filters that had to be asked of the view, since the start.
  [[nodiscard]] std::uint64_t filter_misses() const noexcept { return filters_.misses(); }

 private:
  [[nodiscard]] const FilteredRouting* filtered(const View& view, const View::Routing& routing,
                                                const Wanted& wanted);
  [[nodiscard]] std::uint32_t reserve(const View::Upstream& upstream,
                                      const domain::Candidates& from, domain::Balancer balancer,
                                      domain::Tier tier, const ExcludedProxies& tried,
                                      TimePoint now, Random& random, std::uint64_t affinity);
  // Takes one of the routing's own places, if it counts them. False: it is full.
  [[nodiscard]] static bool enter(const View::Routing& routing) noexcept;
  // Gives it back when nothing came of it.
  void leave(const View::Routing& routing) noexcept;
  // Somebody who looked for a place here just now may have missed one.
  void look_again(const UpstreamRuntime& upstream) noexcept;
  [[nodiscard]] Allocation hand_out(const View::Upstream& upstream, std::uint32_t member,
                                    const View::Routing& routing, TimePoint now);

  ProxyRegistry& registry_;
  unsigned thread_;
  domain::HostVerdicts verdicts_;
  FilterCache filters_;
};

}  // namespace proxypool::gateway
