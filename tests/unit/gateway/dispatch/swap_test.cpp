// GW-32, GW-52: snapshots change under load; counters stay, slots do not leak, nobody is served by
// a proxy that its view does not name.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gateway/dispatch/dispatcher.hpp"
#include "unit/gateway/dispatch/snapshots.hpp"

namespace proxypool::gateway {
namespace {

using std::chrono::seconds;
using testing_support::build;
using testing_support::kNow;
using testing_support::kStoreNow;
using testing_support::serve;
using testing_support::SnapshotBuilder;

SnapshotBuilder range(std::uint64_t from, std::uint64_t count, std::uint32_t limit = 2) {
  SnapshotBuilder s;
  s.upstream("up").routing("all", {"up"}).proxies("up", from, count, limit);
  return s;
}
Acquisition acquire(ProxyRegistry& registry, const View& view) {
  static SplitMix64 random(8);
  return Dispatcher(registry, 0).acquire(view, view.routing(0), {}, kNow, random);
}

TEST(Swap, CountersSurviveIt) {  // GW-32
  ProxyRegistry registry;
  const auto first = serve(registry, range(1, 1, 2));
  auto held = acquire(registry, *first);
  held.allocation.commit();
  auto changed = range(1, 1, 2);
  changed.last_proxy().lease_epoch = Epoch(5);
  const auto second = serve(registry, changed);
  EXPECT_EQ(registry.counts()[0].active, 1U);
  EXPECT_EQ(registry.counts()[0].lease_epoch, Epoch(5));
  auto more = acquire(registry, *second);
  EXPECT_EQ(more.outcome, Acquired::Ok);
  EXPECT_EQ(acquire(registry, *second).outcome, Acquired::NoCandidate) << "one and one are two";
}

TEST(Swap, ARemovedProxyDrainsAndThenItsSlotIsFree) {  // GW-32
  ProxyRegistry registry;
  const auto first = serve(registry, range(1, 2));
  auto held = acquire(registry, *first);
  held.allocation.commit();
  const auto second = serve(registry, range(100, 2));
  EXPECT_EQ(registry.slots(), 3U) << "the idle one went at once";
  ASSERT_EQ(registry.counts().size(), 1U);
  EXPECT_TRUE(registry.counts()[0].draining);
  EXPECT_EQ(acquire(registry, *first).outcome, Acquired::NoCandidate) << "not even by the old view";
  EXPECT_EQ(registry.reclaim(), 1U);
  held.allocation.release({}, kNow);
  EXPECT_EQ(registry.reclaim(), 0U);
  EXPECT_EQ(registry.slots(), 2U);
  EXPECT_EQ(held.allocation.proxy().endpoint.port, 1'024) << "its entry outlives slot and view";
}

TEST(Swap, AProxyThatComesBackWhileItDrainsKeepsItsCount) {
  ProxyRegistry registry;
  const auto first = serve(registry, range(1, 1, 2));
  auto held = acquire(registry, *first);
  const auto without = serve(registry, range(5, 1));
  const auto again = serve(registry, range(1, 1, 2));
  EXPECT_FALSE(registry.counts()[0].draining);
  auto more = acquire(registry, *again);
  EXPECT_EQ(more.outcome, Acquired::Ok);
  EXPECT_EQ(acquire(registry, *again).outcome, Acquired::NoCandidate);
}

TEST(Swap, AViewThatIsNotTakenYetChangesNothingForTheOldOne) {
  ProxyRegistry registry;
  const auto first = serve(registry, range(1, 3, 1));
  const auto second = build(registry, range(3, 300, 1)).view;
  std::vector<Allocation> held;
  for (int i = 0; i < 3; ++i) {
    auto got = acquire(registry, *first);
    ASSERT_EQ(got.outcome, Acquired::Ok);
    EXPECT_LE(got.allocation.proxy().id.value(), 3U);
    held.push_back(std::move(got.allocation));
  }
  EXPECT_EQ(acquire(registry, *first).outcome, Acquired::NoCandidate);
  for (int i = 0; i < 299; ++i) {
    auto got = acquire(registry, *second);
    ASSERT_EQ(got.outcome, Acquired::Ok);
    EXPECT_GT(got.allocation.proxy().id.value(), 3U) << "3 is taken by the old view's request";
    held.push_back(std::move(got.allocation));
  }
  EXPECT_EQ(acquire(registry, *second).outcome, Acquired::NoCandidate);
}

TEST(Swap, AnOldViewDoesNotServeTheProxyThatGotItsSlot) {
  ProxyRegistry registry;
  const auto first = serve(registry, range(1, 2));
  const auto second = serve(registry, range(10, 2));
  const auto third = serve(registry, range(20, 2));  // in the slots of 1 and 2
  EXPECT_EQ(acquire(registry, *first).outcome, Acquired::NoCandidate);
  EXPECT_GE(acquire(registry, *third).allocation.proxy().id.value(), 20U);
  EXPECT_TRUE(registry.counts().empty());
}

TEST(Swap, AProxyOfAnotherUpstreamWaitsForItsOldWork) {
  ProxyRegistry registry;
  SnapshotBuilder s;
  s.upstream("x").upstream("y").proxy("x", 1).routing("all", {"x", "y"});
  const auto first = serve(registry, s);
  auto held = acquire(registry, *first);
  s.last_proxy().upstream = UpstreamId("y");
  const auto built = build(registry, s);
  ASSERT_EQ(built.rejected.size(), 1U);
  EXPECT_EQ(built.rejected[0].reason, "still busy under its former upstream");
  registry.adopt(*built.view);
  EXPECT_EQ(acquire(registry, *built.view).outcome, Acquired::NoCandidate);
  held.allocation.release({}, kNow);
  const auto moved = serve(registry, s);
  auto got = acquire(registry, *moved);
  ASSERT_EQ(got.outcome, Acquired::Ok);
  EXPECT_EQ(*got.allocation.proxy().upstream, UpstreamId("y"));
}

TEST(Swap, HeldNamesWhatIsServedAndUntilWhen) {
  ProxyRegistry registry;
  auto s = range(1, 3);
  s.last_proxy().usable_until = kStoreNow + seconds(7);
  const auto view = serve(registry, s);
  registry.revoke(std::vector<ProxyId>{ProxyId(1)});
  auto held = registry.held();
  ASSERT_EQ(held.size(), 2U);
  std::sort(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  EXPECT_EQ(held[0].usable_until, kNever);
  EXPECT_EQ(held[1].id, ProxyId(3));
  EXPECT_EQ(held[1].usable_until, kNow + seconds(7));
}

TEST(Swap, TheRegistryHasAHardCap) {  // GW-32
  ProxyRegistry::Options options;
  options.slots_max = 500;
  ProxyRegistry registry(options);
  std::vector<Allocation> held;
  // Two snapshots of busy proxies leave no slot for anybody else.
  for (const std::uint64_t from : {1U, 1'001U}) {
    const auto view = serve(registry, range(from, 250, 1));
    for (int i = 0; i < 250; ++i) held.push_back(acquire(registry, *view).allocation);
  }
  EXPECT_EQ(registry.slots(), 500U);
  const auto built = build(registry, range(2'001, 3));
  ASSERT_EQ(built.rejected.size(), 3U);
  EXPECT_EQ(built.rejected[0].reason, "no slot is free");
  registry.adopt(*built.view);
  held.clear();
  EXPECT_EQ(registry.reclaim(), 0U);
  EXPECT_EQ(registry.slots(), 0U);
}

// What the swap test's threads share: the current view and who has it.
class Cell {
 public:
  explicit Cell(std::shared_ptr<const View> view) : view_(std::move(view)) {}
  std::shared_ptr<const View> get() {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  void publish(std::shared_ptr<const View> view) {
    const std::lock_guard lock(mutex_);
    view_ = std::move(view);
    version_.fetch_add(1);
  }
  std::atomic<std::uint64_t> version_{1};

 private:
  std::mutex mutex_;
  std::shared_ptr<const View> view_;
};

struct Worker {
  std::atomic<std::uint64_t> seen{0};
  std::uint64_t served = 0;
  std::uint64_t none = 0;
  std::uint64_t foreign = 0;
  std::uint64_t late = 0;
};

// Takes and gives back places by whatever view is current, as a serving thread does.
void work(ProxyRegistry& registry, Cell& cell, Worker& me, std::atomic<bool>& stop, unsigned thread,
          TimePoint& now_shared, std::mutex& now_mutex) {
  Dispatcher dispatcher(registry, thread);
  SplitMix64 random(thread);
  std::vector<Allocation> held;
  std::shared_ptr<const View> view;
  while (!stop.load()) {
    const auto version = cell.version_.load();
    if (version != me.seen.load()) {
      view = cell.get();
      me.seen.store(version);
    }
    TimePoint now;
    {
      const std::lock_guard lock(now_mutex);
      now = now_shared;
    }
    auto got = dispatcher.acquire(*view, view->routing(0), {}, now, random);
    if (got.outcome == Acquired::Ok) {
      ++me.served;
      const auto id = got.allocation.proxy().id.value();
      // Each version names the ids of its own window, see below; ids that end do so at `id` s.
      const auto first = view->version().counter * 100;
      if (id < first || id >= first + 400) ++me.foreign;
      if (id % 7 == 0 && now >= kNow + seconds(id)) ++me.late;
      if (random.below(2) == 0) got.allocation.commit();
      held.push_back(std::move(got.allocation));
    } else {
      ++me.none;
    }
    if (held.size() > 150 || (!held.empty() && random.below(2) == 0)) {
      std::swap(held[random.below(held.size())], held.back());
      held.back().release({static_cast<domain::Phase>(random.below(5)), {}}, now);
      held.pop_back();
    }
  }
  me.seen.store(UINT64_MAX);
}

SnapshotBuilder window(std::uint64_t version) {
  auto s = range(version * 100, 400, 2);
  s.get().version = {1, version};
  for (auto& proxy : s.get().proxies) {
    if (proxy.id.value() % 7 == 0) {
      proxy.usable_until = kStoreNow + seconds(proxy.id.value());
    }
    proxy.suspect = proxy.id.value() % 11 == 0;
  }
  return s;
}

TEST(Swap, UnderLoadNothingLeaksAndNobodyGetsAForeignOrEndedProxy) {
  constexpr std::uint64_t kVersions = 60;
  ProxyRegistry registry;
  TimePoint now = kNow;
  std::mutex now_mutex;
  Cell cell(serve(registry, window(1)));
  registry.extend(kNever);
  std::atomic<bool> stop{false};
  std::vector<Worker> workers(3);
  std::vector<std::thread> threads;
  const auto bugs = bugs_counted();
  for (unsigned t = 0; t < workers.size(); ++t) {
    threads.emplace_back([&, t] { work(registry, cell, workers[t], stop, t, now, now_mutex); });
  }
  std::vector<std::shared_ptr<const View>> old;
  for (std::uint64_t version = 2; version <= kVersions; ++version) {
    auto view = build(registry, window(version), 50).view;
    old.push_back(cell.get());
    cell.publish(view);
    for (auto& worker : workers) {
      while (worker.seen.load() < version) std::this_thread::yield();
    }
    registry.adopt(*view);
    registry.reclaim();
    registry.revoke(std::vector<ProxyId>{ProxyId(version * 100 + 50)});
    (void)registry.counts();
    {
      const std::lock_guard lock(now_mutex);
      now += seconds(100);
    }
    if (old.size() > 3) old.erase(old.begin());
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  for (const auto& worker : workers) {
    EXPECT_GT(worker.served, 100U);
    EXPECT_EQ(worker.foreign, 0U);
    EXPECT_EQ(worker.late, 0U);
  }
  EXPECT_EQ(bugs_counted(), bugs);
  EXPECT_TRUE(registry.counts().empty());
  EXPECT_EQ(registry.reclaim(), 0U);
  EXPECT_EQ(registry.slots(), 400U);
  EXPECT_TRUE(cell.get()->routing(0).upstreams[0]->runtime->members.consistent());
}

}  // namespace
}  // namespace proxypool::gateway
