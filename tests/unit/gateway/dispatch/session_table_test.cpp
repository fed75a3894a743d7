// Sessions of clients and their proxies (GW-34, R4), against a model that keeps a plain list.
#include "gateway/dispatch/session_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "proxypool/base/random.hpp"

namespace proxypool::gateway {
namespace {

using std::chrono::minutes;

constexpr TimePoint kStart{seconds(1'000)};
constexpr nanoseconds kIdle = seconds(600);

class SessionTableTest : public testing::Test {
 protected:
  SessionKey key(std::string_view name, std::uint64_t client = 7) {
    return {client, &routing_, name};
  }
  Binding at(std::uint64_t proxy) {
    return {ProxyId(proxy), &upstream_, static_cast<std::uint32_t>(proxy)};
  }
  RoutingRuntime routing_;
  RoutingRuntime other_routing_;
  UpstreamRuntime upstream_{UpstreamId("up")};
};

TEST_F(SessionTableTest, ASessionIsOfOneClientInOneRouting) {
  SessionTable table(100, 1);
  (void)table.bind(key("s"), at(1), kStart, kIdle);
  const auto found = table.find(key("s"), {kIdle, {}}, kStart);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->binding, at(1));
  EXPECT_FALSE(table.find(key("s", 8), {kIdle, {}}, kStart)) << "another client";
  EXPECT_FALSE(table.find(key("t"), {kIdle, {}}, kStart));
  EXPECT_FALSE(table.find({7, &other_routing_, "s"}, {kIdle, {}}, kStart));
  EXPECT_EQ(table.numbers().hits, 1U);
  EXPECT_EQ(table.numbers().misses, 3U);
}

TEST_F(SessionTableTest, EndsAfterItsIdleTimeAndAtItsAge) {
  SessionTable table(100, 1);
  const SessionTable::Life life{kIdle, minutes(20)};
  (void)table.bind(key("s"), at(1), kStart, kIdle);
  TimePoint now = kStart + kIdle - nanoseconds(1);
  EXPECT_TRUE(table.find(key("s"), life, now)) << "and this is a use";
  now += kIdle - nanoseconds(1);
  EXPECT_TRUE(table.find(key("s"), life, now));
  EXPECT_FALSE(table.find(key("s"), life, kStart + minutes(20))) << "used, and yet too old";
  (void)table.bind(key("s"), at(2), now, kIdle);
  EXPECT_FALSE(table.find(key("s"), {kIdle, {}}, now + kIdle));
  EXPECT_EQ(table.numbers().sessions, 0U);
  (void)table.bind(key("s"), at(3), now, kIdle);
  table.touch(key("s"), ProxyId(3), now + kIdle - nanoseconds(1));
  EXPECT_TRUE(table.find(key("s"), {kIdle, {}}, now + kIdle)) << "the end of a request is a use";
}

TEST_F(SessionTableTest, OnlyTheProxyThatItIsBoundToCanLoseIt) {
  SessionTable table(100, 1);
  EXPECT_EQ(table.bind(key("s"), at(1), kStart, kIdle).binding, at(1));
  EXPECT_EQ(table.bind(key("s"), at(2), kStart, kIdle).binding, at(1)) << "the first one stands";
  EXPECT_FALSE(table.drop(key("s"), ProxyId(2)));
  EXPECT_TRUE(table.find(key("s"), {kIdle, {}}, kStart));
  EXPECT_FALSE(table.drop(key("s"), ProxyId(1))) << "it has served nobody yet";
  EXPECT_FALSE(table.find(key("s"), {kIdle, {}}, kStart));
  (void)table.bind(key("s"), at(2), kStart, kIdle);
  table.confirm(key("s"), ProxyId(1));
  EXPECT_FALSE(table.find(key("s"), {kIdle, {}}, kStart)->confirmed);
  table.confirm(key("s"), ProxyId(2));
  EXPECT_TRUE(table.find(key("s"), {kIdle, {}}, kStart)->confirmed);
  EXPECT_TRUE(table.drop(key("s"), ProxyId(2)));
}

TEST_F(SessionTableTest, IsBoundedInEveryShard) {
  SessionTable table(65'536, 12'345);
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    (void)table.bind(key("session-" + std::to_string(i)), at(1), kStart, kIdle);
  }
  EXPECT_LE(table.numbers().sessions, 65'536U);
  EXPECT_EQ(table.numbers().sessions + table.numbers().evictions, 200'000U);
  EXPECT_GT(table.numbers().sessions, 65'000U) << "the shards fill evenly";
  EXPECT_TRUE(table.find(key("session-199999"), {kIdle, {}}, kStart));
  EXPECT_FALSE(table.find(key("session-0"), {kIdle, {}}, kStart));
}

// The model: the last used first.
struct Modelled {
  std::string name;
  Binding binding;
  TimePoint began;
  TimePoint used;
  bool confirmed = false;
};

TEST_F(SessionTableTest, DoesWhatAListWouldDo) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SplitMix64 random(seed);
    const std::size_t most = 1 + random.below(8);
    SessionTable table(most, seed);
    std::vector<Modelled> model;
    std::uint64_t evictions = 0;
    TimePoint now = kStart;
    for (int step = 0; step < 3'000; ++step) {
      now += seconds(random.below(60));
      const std::string name = "s" + std::to_string(random.below(12));
      const ProxyId proxy(1 + random.below(3));
      const auto entry = std::find_if(model.begin(), model.end(),
                                      [&](const Modelled& m) { return m.name == name; });
      const bool known = entry != model.end();
      const auto use = [&] {
        entry->used = now;
        std::rotate(model.begin(), entry, entry + 1);
      };
      switch (random.below(5)) {
        case 0: {
          const nanoseconds age = random.below(2) == 0 ? nanoseconds{0} : minutes(15);
          const auto found = table.find(key(name), {kIdle, age}, now);
          const bool live = known && now - entry->used < kIdle &&
                            (age == nanoseconds{0} || now - entry->began < age);
          ASSERT_EQ(found.has_value(), live) << seed << ":" << step;
          if (live) {
            EXPECT_EQ(found->binding, entry->binding);
            EXPECT_EQ(found->confirmed, entry->confirmed);
            use();
          } else if (known) {
            model.erase(entry);
          }
          break;
        }
        case 1: {
          const auto stands = table.bind(key(name), at(proxy.value()), now, kIdle);
          if (known) {
            EXPECT_EQ(stands.binding, entry->binding);
            break;
          }
          EXPECT_EQ(stands.binding, at(proxy.value()));
          for (int i = 0; i < 2 && !model.empty() && now - model.back().used >= kIdle; ++i) {
            model.pop_back();
          }
          if (model.size() >= most) {
            model.pop_back();
            ++evictions;
          }
          model.insert(model.begin(), {name, at(proxy.value()), now, now});
          break;
        }
        case 2:
          table.confirm(key(name), proxy);
          if (known && entry->binding.proxy == proxy) entry->confirmed = true;
          break;
        case 3:
          table.touch(key(name), proxy, now);
          if (known && entry->binding.proxy == proxy) use();
          break;
        default: {
          const bool mine = known && entry->binding.proxy == proxy;
          EXPECT_EQ(table.drop(key(name), proxy), mine && entry->confirmed) << seed << ":" << step;
          if (mine) model.erase(entry);
        }
      }
      ASSERT_EQ(table.numbers().sessions, model.size()) << seed << ":" << step;
      ASSERT_EQ(table.numbers().evictions, evictions);
    }
  }
}

// However many threads begin a session at once, all see one proxy.
TEST_F(SessionTableTest, ThreadsAgreeOnOneProxy) {
  SessionTable table(1'000, 5);
  constexpr int kThreads = 4;
  constexpr int kRounds = 2'000;
  std::vector<std::vector<std::uint64_t>> seen(kThreads);
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready != kThreads) std::this_thread::yield();
      for (int i = 0; i < kRounds; ++i) {
        const std::string name = "s" + std::to_string(i % 500);
        const auto stands =
            table.bind(key(name), at(static_cast<std::uint64_t>(t) + 1), kStart, kIdle);
        seen[static_cast<std::size_t>(t)].push_back(stands.binding.proxy.value());
        table.touch(key(name), stands.binding.proxy, kStart);
        (void)table.find(key(name), {kIdle, {}}, kStart);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(seen[static_cast<std::size_t>(t)], seen[0]);
  EXPECT_EQ(table.numbers().sessions, 500U);
}

}  // namespace
}  // namespace proxypool::gateway
