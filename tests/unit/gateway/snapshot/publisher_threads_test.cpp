// Views change under serving threads: nobody reads a freed one, nobody is served by a proxy that
// his view does not name, and every place comes back (GW-32, GW-52). For ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "unit/gateway/snapshot/publisher_rig.hpp"

namespace proxypool::gateway {
namespace {

using namespace testing_support;

constexpr std::uint64_t kWindow = 300;
constexpr std::uint64_t kShift = 100;
constexpr std::uint64_t kVersions = 40;

SnapshotBuilder window(std::uint64_t counter) {
  return version(counter, counter * kShift, kWindow);
}

struct Served {
  std::uint64_t places = 0;
  std::uint64_t foreign = 0;    // not of the view at hand
  std::uint64_t went_back = 0;  // an older view after a newer one
  std::uint64_t sleeps = 0;
};

// One serving thread: a view for each request, some requests that keep theirs, a rest now and then.
Served serve_until(std::atomic<bool>& stop, std::atomic<std::uint64_t>& begun,
                   ProxyRegistry& registry, runtime::SnapshotCell<View>& views, TimePoint now,
                   unsigned thread) {
  runtime::SnapshotCell<View>::Reader reader(views);
  Dispatcher dispatcher(registry, thread);
  SplitMix64 random(thread);
  Served served;
  std::uint64_t newest = 0;
  std::vector<Allocation> held;
  std::shared_ptr<const View> pin;
  while (!stop.load()) {
    if (pin == nullptr || random.below(4) == 0) pin = reader.pin();
    const View* view = reader.get();
    served.went_back += view->version().counter < newest ? 1 : 0;
    newest = view->version().counter;
    if (random.below(2) == 0) view = pin.get();
    auto got = dispatcher.acquire(*view, view->routing(0), {}, now, random);
    if (got.outcome == Acquired::Ok) {
      ++served.places;
      begun.fetch_add(1);
      const auto first = view->version().counter * kShift;
      const auto id = got.allocation.proxy().id.value();
      served.foreign += id < first || id >= first + kWindow ? 1 : 0;
      if (random.below(2) == 0) got.allocation.commit();
      held.push_back(std::move(got.allocation));
    }
    while (held.size() > 100 || (!held.empty() && random.below(2) == 0)) {
      held.back().release({}, now);
      held.pop_back();
    }
    if (random.below(50) == 0) {
      pin.reset();
      reader.offline();
      ++served.sleeps;
      std::this_thread::yield();
      reader.online();
    }
  }
  return served;
}

class PublisherThreads : public PublisherTest {};

TEST_F(PublisherThreads, NothingIsLostOrFreedTooEarlyOverManySwaps) {
  while_waiting_ = [] { std::this_thread::yield(); };
  ASSERT_TRUE(apply(window(1)));
  const auto bugs = bugs_counted();
  const TimePoint now = clock_.now();
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> begun{0};
  std::vector<Served> served(3);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < served.size(); ++t) {
    threads.emplace_back(
        [&, t] { served[t] = serve_until(stop, begun, registry_, views_, now, t); });
  }
  threads.emplace_back([&] {  // the reporter
    while (!stop.load()) {
      for (const auto& count : publisher_.counts()) EXPECT_LE(count.active + count.reserved, 2U);
      (void)publisher_.held();
      publisher_.tick(now);
    }
  });
  for (std::uint64_t counter = 2; counter <= kVersions; ++counter) {
    const auto before = begun.load();
    ASSERT_TRUE(apply(window(counter)));
    publisher_.extend(minute(), {ProxyId(counter * kShift + 7)});
    while (begun.load() < before + 50) std::this_thread::yield();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  for (const auto& one : served) {
    EXPECT_GT(one.places, 50U);
    EXPECT_EQ(one.foreign, 0U);
    EXPECT_EQ(one.went_back, 0U);
    EXPECT_GT(one.sleeps, 0U);
  }
  EXPECT_TRUE(publisher_.counts().empty()) << "every place came back";
  EXPECT_EQ(bugs_counted(), bugs);
  EXPECT_EQ(registry_.slots(), kWindow);
  EXPECT_EQ(views_.reclaim(), 0U) << "no old view is left";
}

}  // namespace
}  // namespace proxypool::gateway
