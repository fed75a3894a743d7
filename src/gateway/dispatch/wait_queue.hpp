// Requests that wait for a place, in the order in which they came. (R8)
//
// A place that becomes free wakes one waiter, and the waiter looks for itself: nothing is handed
// over, so nothing can be handed to somebody who has gone. Four rules keep it fair and awake:
//
//   1. Whoever would take what somebody before him in the same line waits for, waits behind him.
//   2. A waiter that is first for what it asks looks once more after it has joined, and one that
//      was woken in vain looks once more after it sleeps again. The counts that make givers call
//      place_free() are raised before that look: either it sees the place, or the giver sees it.
//   3. Who was woken in vain wakes the next one that may do with less or other; what neither can
//      use stays.
//   4. Who leaves, served or not, wakes the next one: its wake-up may have been for two.
//
// So for everyone asleep with a place that would do, somebody is awake who takes that place or
// passes the wake-up on.
//
// Thread rule: any thread; a Waker's wake() must not call back. Locks for as long as it takes to
//              walk one line; who does not wait locks nothing.
// Limits:      waiters_max of the routing in its line; then join() says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gateway/dispatch/registry.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::gateway {

class WaitQueue final : public PlaceListener {
 public:
  // The thread of a waiter. Outlives its waiters.
  class Waker {
   public:
    virtual void wake(std::uint64_t ticket) = 0;

   protected:
    Waker() = default;
    Waker(const Waker&) = default;
    Waker& operator=(const Waker&) = default;
    ~Waker() = default;
  };
  struct Waiter {
    RoutingRuntime* routing = nullptr;        // whose line it joins
    std::vector<UpstreamRuntime*> upstreams;  // of which a place would do
    std::string_view wants;                   // what it asks beyond that; empty: nothing
    Waker* waker = nullptr;
  };
  struct Joined {
    std::uint64_t ticket = 0;
    bool first = false;  // nobody before it waits for what it wants
  };

  // Joins the end of its line; nothing when `waiters_max` are in it.
  [[nodiscard]] std::optional<Joined> join(Waiter waiter, std::uint32_t waiters_max);
  // Whether somebody in this line waits for what `wants` could take.
  [[nodiscard]] bool before(const RoutingRuntime& routing, std::string_view wants) const;
  // A woken waiter found nothing; it looks once more, and then calls pass_on().
  void rest(std::uint64_t ticket);
  void pass_on(std::uint64_t ticket);
  // A waiter goes, with a place or without.
  void leave(std::uint64_t ticket);
  // Everything may be different: a new view.
  void wake_all();
  void place_free(const UpstreamRuntime& upstream) noexcept override;

  [[nodiscard]] std::size_t size() const;

 private:
  struct Record {
    std::uint64_t ticket;
    RoutingRuntime* routing;
    std::vector<UpstreamRuntime*> upstreams;
    std::string wants;
    Waker* waker;
    bool woken = false;
    [[nodiscard]] bool can_use(const UpstreamRuntime& upstream) const noexcept;
    [[nodiscard]] bool meets(const Record& other) const noexcept;  // some upstream in common
    // Whatever `other` could take, this one could take.
    [[nodiscard]] bool covers(const Record& other) const noexcept {
      return routing == other.routing && (wants.empty() || wants == other.wants);
    }
  };
  using Records = std::list<Record>;
  struct Line {
    Records records;
    std::map<std::string, std::size_t, std::less<>> wants;  // how many want this
  };
  struct State {
    std::uint64_t last_ticket = 0;
    std::unordered_map<const RoutingRuntime*, Line> lines;
    std::unordered_map<std::uint64_t, Records::iterator> by_ticket;

    [[nodiscard]] static bool before(const Line& line, std::string_view wants);
    // Wakes the one with the smallest ticket that `fits`. One that is awake already has a look
    // still to come: waking the next one instead would let it overtake.
    template <class Fits>
    void wake_first(Fits&& fits);
  };

  Guarded<State> state_;
};

}  // namespace proxypool::gateway
