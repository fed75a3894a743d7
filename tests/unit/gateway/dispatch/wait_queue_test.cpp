// Requests that wait for a place: their order, and that none sleeps while its place is free (R8).
#include "gateway/dispatch/wait_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gateway/dispatch/dispatcher.hpp"
#include "unit/gateway/dispatch/snapshots.hpp"

namespace proxypool::gateway {
namespace {

using testing_support::kNow;
using testing_support::serve;
using testing_support::SnapshotBuilder;

struct Noted final : WaitQueue::Waker {
  void wake(std::uint64_t ticket) override { woken.push_back(ticket); }
  std::vector<std::uint64_t> woken;
};

class WaitQueueTest : public testing::Test {
 protected:
  std::uint64_t join(RoutingRuntime& routing, std::vector<UpstreamRuntime*> upstreams,
                     std::string_view wants = {}, std::uint32_t most = 100) {
    const auto joined = queue_.join({&routing, std::move(upstreams), wants, &waker_}, most);
    first_ = joined && joined->first;
    return joined ? joined->ticket : 0;
  }
  std::vector<std::uint64_t> woken() { return std::exchange(waker_.woken, {}); }

  Noted waker_;
  WaitQueue queue_;
  RoutingRuntime a_;
  RoutingRuntime b_;
  UpstreamRuntime up_{UpstreamId("up")};
  UpstreamRuntime other_{UpstreamId("other")};
  bool first_ = false;
};

using Tickets = std::vector<std::uint64_t>;

TEST_F(WaitQueueTest, WakesOneForEachPlaceInTheOrderOfComing) {
  const auto one = join(a_, {&up_});
  EXPECT_TRUE(first_);
  const auto two = join(a_, {&up_});
  EXPECT_FALSE(first_) << "somebody is before it";
  const auto three = join(a_, {&up_});
  EXPECT_EQ(up_.waiters, 3U);
  queue_.place_free(other_);
  EXPECT_EQ(woken(), Tickets{});
  queue_.place_free(up_);
  queue_.place_free(up_);
  EXPECT_EQ(woken(), Tickets{one}) << "the next one must not overtake it";
  queue_.leave(one);
  EXPECT_EQ(woken(), Tickets{two}) << "who leaves wakes the next one: there may be two places";
  queue_.leave(two);
  EXPECT_EQ(woken(), Tickets{three});
  queue_.leave(three);
  EXPECT_EQ(woken(), Tickets{});
  EXPECT_EQ(up_.waiters, 0U);
  EXPECT_EQ(a_.waiters, 0U);
  EXPECT_EQ(queue_.size(), 0U);
}

TEST_F(WaitQueueTest, HasAMaximumForEachRouting) {
  EXPECT_NE(join(a_, {&up_}, {}, 1), 0U);
  EXPECT_EQ(join(a_, {&up_}, {}, 1), 0U);
  EXPECT_NE(join(b_, {&up_}, {}, 1), 0U);
}

TEST_F(WaitQueueTest, AWakeUpInVainGoesToWhoeverMayUseThePlace) {
  const auto german = join(a_, {&up_}, "DE");
  const auto german_too = join(a_, {&up_}, "DE");
  EXPECT_FALSE(first_);
  const auto american = join(a_, {&up_}, "US");
  EXPECT_TRUE(first_) << "nobody waits for what it wants";
  const auto any = join(a_, {&up_});
  EXPECT_TRUE(first_);
  EXPECT_TRUE(queue_.before(a_, "FR")) << "whoever takes anything would take a French one";
  queue_.place_free(up_);
  EXPECT_EQ(woken(), Tickets{german});
  queue_.rest(german);
  queue_.pass_on(german);
  EXPECT_EQ(woken(), Tickets{american}) << "another German one would wake in vain as well";
  queue_.rest(american);
  queue_.pass_on(american);
  EXPECT_EQ(woken(), Tickets{any});
  queue_.rest(any);
  queue_.pass_on(any);
  EXPECT_EQ(woken(), Tickets{}) << "nobody can use it";
  queue_.leave(any);
  EXPECT_EQ(woken(), Tickets{german}) << "the first who sleeps";
  queue_.leave(german_too);
  queue_.leave(german);
  queue_.leave(american);
}

TEST_F(WaitQueueTest, TwoRoutingsOfOneUpstreamWakeInTheOrderOfComing) {
  const auto one = join(a_, {&up_});
  const auto two = join(b_, {&other_, &up_});
  const auto three = join(a_, {&up_});
  queue_.place_free(up_);
  EXPECT_EQ(woken(), Tickets{one});
  queue_.rest(one);
  queue_.pass_on(one);
  EXPECT_EQ(woken(), Tickets{two}) << "the routing may have been full, the upstream not";
  queue_.place_free(other_);
  EXPECT_EQ(woken(), Tickets{}) << "it is awake already";
  queue_.wake_all();
  EXPECT_EQ(woken(), (Tickets{one, three}));
  for (const auto ticket : {one, two, three}) queue_.leave(ticket);
}

// Threads that take, hold, give back and wait, as serving threads do it. Whoever waits has no time
// limit: a lost wake-up ends in a test that hangs, and the places of each proxy are never exceeded.
class Server final : WaitQueue::Waker {
 public:
  Server(unsigned number, WaitQueue& queue, ProxyRegistry& registry,
         std::shared_ptr<const View> view)
      : queue_(queue), view_(std::move(view)), dispatcher_(registry, number), random_(number + 1) {}

  void wake(std::uint64_t ticket) override {
    inbox_.with([&](auto& inbox) { inbox.push_back(ticket); });
  }
  // Serves so many requests to their ends.
  void run(int requests) {
    while (done_ < requests) {
      for (const auto ticket : inbox_.with([](auto& in) { return std::exchange(in, {}); })) {
        woken(ticket);
      }
      const bool more = begun_ < requests && waiting_.size() < 20 && held_.size() < 8;
      if (more && random_.below(2) == 0) {
        ++begun_;
        arrive(random_.below(3) == 0 ? &german_ : nullptr);
      } else if (!held_.empty()) {
        held_.pop_front();
        ++done_;
      } else {
        std::this_thread::yield();
      }
    }
  }
  [[nodiscard]] std::size_t waited() const { return waited_; }

 private:
  struct Waiting {
    std::uint64_t ticket;
    const domain::ProxyFilter* filter;
  };
  std::string_view wants(const domain::ProxyFilter* filter) const {
    return filter == nullptr ? std::string_view{} : std::string_view(german_key_);
  }
  bool look(const domain::ProxyFilter* filter) {
    auto got =
        dispatcher_.acquire(*view_, view_->routing(0), {}, kNow, random_, {filter, wants(filter)});
    if (got.outcome != Acquired::Ok) return false;
    held_.push_back(std::move(got.allocation));
    return true;
  }
  void arrive(const domain::ProxyFilter* filter) {
    const View::Routing& routing = view_->routing(0);
    if (!queue_.before(*routing.runtime, wants(filter)) && look(filter)) return;
    ++waited_;
    const auto joined =
        queue_.join({routing.runtime, {routing.upstreams[0]->runtime}, wants(filter), this}, 1'000);
    ASSERT_TRUE(joined);
    if (joined->first && look(filter)) return queue_.leave(joined->ticket);
    waiting_.push_back({joined->ticket, filter});
  }
  void woken(std::uint64_t ticket) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Waiting& w) { return w.ticket == ticket; });
    if (found == waiting_.end()) return;
    const Waiting waiter = *found;
    // Some go away instead, as clients do.
    const bool leaves = random_.below(10) == 0;
    if (leaves || look(waiter.filter)) {
      queue_.leave(ticket);
      waiting_.erase(found);
      if (leaves) ++done_;
      return;
    }
    queue_.rest(ticket);
    if (look(waiter.filter)) {
      queue_.leave(ticket);
      waiting_.erase(found);
      return;
    }
    queue_.pass_on(ticket);
  }

  WaitQueue& queue_;
  std::shared_ptr<const View> view_;
  Dispatcher dispatcher_;
  SplitMix64 random_;
  const domain::ProxyFilter german_{{"DE", "", "", ""}, {}};
  const std::string german_key_ = german_.key();
  Guarded<std::vector<std::uint64_t>> inbox_;
  std::vector<Waiting> waiting_;
  std::deque<Allocation> held_;
  int begun_ = 0;
  int done_ = 0;
  std::size_t waited_ = 0;
};

void serve_with_waiters(std::uint64_t proxies, std::uint32_t in_flight_max) {
  WaitQueue queue;
  ProxyRegistry registry({seconds(2), &queue});
  SnapshotBuilder s;
  s.upstream("up").proxies("up", 1, proxies).routing("all", {"up"});
  for (auto& proxy : s.get().proxies) {
    if (proxy.id.value() % 2 == 0) proxy.attributes.country = "DE";
  }
  s.last_routing().in_flight_max = in_flight_max;
  const auto view = serve(registry, s);
  constexpr int kRequests = 3'000;
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    servers.push_back(std::make_unique<Server>(i, queue, registry, view));
  }
  for (auto& server : servers) threads.emplace_back([&] { server->run(kRequests); });
  for (auto& thread : threads) thread.join();
  std::size_t waited = 0;
  for (const auto& server : servers) waited += server->waited();
  EXPECT_GT(waited, 100U) << "there was something to wait for";
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(registry.counts().size(), 0U);
  EXPECT_EQ(view->routing(0).runtime->in_flight.load(), 0U);
}

TEST(WaitQueueThreads, NobodySleepsWhileAPlaceOfHisIsFree) {
  serve_with_waiters(4, 0);
}
TEST(WaitQueueThreads, NorWhileTheRoutingHasOne) {
  serve_with_waiters(6, 3);
}
TEST(WaitQueueThreads, NorWhenTheIndexOfLoadsIsInUse) {
  serve_with_waiters(domain::Members::kScanMax + 2, 5);
}

}  // namespace
}  // namespace proxypool::gateway
