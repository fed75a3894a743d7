// What every ManagementStore promises. An adapter's test instantiates the suite with a fixture that
// has `ports::ManagementStore& store()` and `void reopen()` (a restart of the process).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "proxypool/ports/management_store.hpp"

namespace proxypool::contract {

template <class Fixture>
class ManagementStoreContract : public ::testing::Test {
 protected:
  ports::ManagementStore& store() { return fixture_.store(); }
  Fixture fixture_;
};

TYPED_TEST_SUITE_P(ManagementStoreContract);

TYPED_TEST_P(ManagementStoreContract, AnUnknownUpstreamIsEnabledAndNeverWritten) {
  const auto state = this->store().upstream_state(UpstreamId("acme"), Deadline{});
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->enabled);
  EXPECT_EQ(state->revision, 0U);
}

TYPED_TEST_P(ManagementStoreContract, AWriteIsThereAfterARestart) {
  ports::UpstreamState state;
  state.upstream = UpstreamId("acme");
  state.enabled = false;
  state.spent_total = 77;
  ASSERT_TRUE(this->store().put_upstream_state(state, std::nullopt, Deadline{}));
  ports::RoutingState routing;
  routing.routing = RoutingId("r");
  routing.current = UpstreamId("b");
  ASSERT_TRUE(this->store().put_routing_state(routing, std::nullopt, Deadline{}));
  this->fixture_.reopen();
  const auto read = this->store().upstream_state(UpstreamId("acme"), Deadline{});
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->enabled);
  EXPECT_EQ(read->spent_total, 77U);
  EXPECT_EQ(read->revision, 1U);
  EXPECT_EQ(this->store().routing_state(RoutingId("r"), Deadline{})->current, UpstreamId("b"));
}

// AD-2: two writers never both win, and a refused write changes nothing.
TYPED_TEST_P(ManagementStoreContract, OfTwoWritersWithOneRevisionOneIsRefused) {
  ports::UpstreamState state;
  state.upstream = UpstreamId("acme");
  state.spent_total = 1;
  ASSERT_TRUE(this->store().put_upstream_state(state, std::nullopt, Deadline{}));
  state.spent_total = 2;  // still with revision 0
  ports::AuditEntry entry;
  entry.action = "x";
  const auto second = this->store().put_upstream_state(state, entry, Deadline{});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Conflict);
  EXPECT_EQ(this->store().upstream_state(state.upstream, Deadline{})->spent_total, 1U);
  EXPECT_TRUE(this->store().audit(0, 10, Deadline{})->empty());
}

TYPED_TEST_P(ManagementStoreContract, ConcurrentWritersEachWinExactlyOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 10;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int won = 0; won < kRounds;) {
        auto state = this->store().upstream_state(UpstreamId("acme"), Deadline{});
        ASSERT_TRUE(state);
        ++state->spent_total;
        if (this->store().put_upstream_state(*state, std::nullopt, Deadline{})) ++won;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto state = this->store().upstream_state(UpstreamId("acme"), Deadline{});
  EXPECT_EQ(state->spent_total, kThreads * kRounds);
  EXPECT_EQ(state->revision, kThreads * kRounds);
}

// AD-1: effect and audit are one transaction; the audit reads newest first, page by page.
TYPED_TEST_P(ManagementStoreContract, TheAuditIsWrittenWithItsEffectAndReadNewestFirst) {
  for (int i = 0; i < 5; ++i) {
    auto state = this->store().upstream_state(UpstreamId("acme"), Deadline{});
    state->enabled = !state->enabled;
    ports::AuditEntry entry;
    entry.actor = "operator";
    entry.action = "upstream." + std::to_string(i);
    ASSERT_TRUE(this->store().put_upstream_state(*state, entry, Deadline{}));
  }
  this->fixture_.reopen();
  const auto first = this->store().audit(0, 2, Deadline{});
  ASSERT_TRUE(first);
  ASSERT_EQ(first->size(), 2U);
  EXPECT_EQ((*first)[0].action, "upstream.4");
  EXPECT_EQ((*first)[1].action, "upstream.3");
  const auto next = this->store().audit((*first)[1].sequence, 10, Deadline{});
  ASSERT_EQ(next->size(), 3U);
  EXPECT_EQ((*next)[0].action, "upstream.2");
}

TYPED_TEST_P(ManagementStoreContract, TheSameFingerprintKeepsItsRevision) {
  EXPECT_FALSE(*this->store().config_revision(Deadline{}));
  const WallTime at{milliseconds{1000}};
  EXPECT_EQ(this->store().activate_config("aa", at, Deadline{})->revision, 1U);
  EXPECT_EQ(this->store().activate_config("aa", at, Deadline{})->revision, 1U);
  EXPECT_EQ(this->store().activate_config("bb", at, Deadline{})->revision, 2U);
  this->fixture_.reopen();
  const auto revision = this->store().config_revision(Deadline{});
  ASSERT_TRUE(revision && *revision);
  EXPECT_EQ((*revision)->fingerprint, "bb");
}

inline domain::UsageBatch usage_batch(std::uint64_t number,
                                      std::vector<domain::ClientUsage> clients) {
  return {number, std::move(clients)};
}

constexpr WallTime day_at(int day, int hour = 0) {
  return WallTime{domain::Day{std::chrono::days{20'000 + day}} + std::chrono::hours{hour}};
}

// GW-14: what a worker sends again because an answer was lost counts once, after a restart too.
TYPED_TEST_P(ManagementStoreContract, ABatchOfUsageCountsOnce) {
  const InstanceId one("one");
  const ClientName ann("ann");
  const auto first = usage_batch(5, {{ann, {10, 20, 1}}, {ClientName("bob"), {1, 1, 1}}});
  const auto added = this->store().add_usage(one, first, day_at(0, 1), Deadline{});
  ASSERT_TRUE(added);
  EXPECT_TRUE(added->fresh);
  EXPECT_EQ(added->today, (std::vector<domain::Usage>{{10, 20, 1}, {1, 1, 1}}));
  for (int i = 0; i < 2; ++i) {
    const auto again = this->store().add_usage(one, first, day_at(0, 2), Deadline{});
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->fresh);
    EXPECT_EQ(again->today, added->today);
    this->fixture_.reopen();
  }
  const auto older = usage_batch(4, {{ann, {1000, 0, 1}}});
  EXPECT_EQ(this->store().add_usage(one, older, day_at(0, 3), Deadline{})->today.front(),
            (domain::Usage{10, 20, 1}));
  const auto other = this->store().add_usage(InstanceId("two"), usage_batch(1, {{ann, {5, 5, 1}}}),
                                             day_at(0, 4), Deadline{});
  EXPECT_EQ(other->today.front(), (domain::Usage{15, 25, 2}))
      << "another process counts for itself";
  EXPECT_EQ(this->store()
                .add_usage(one, usage_batch(6, {{ann, {1, 0, 0}}}), day_at(0, 5), Deadline{})
                ->today.front(),
            (domain::Usage{16, 25, 2}));
  EXPECT_EQ(this->store().usage_on(domain::day_of(day_at(0)), Deadline{})->size(), 2U);
}

TYPED_TEST_P(ManagementStoreContract, UsageIsKeptByDayForAWeek) {
  const ClientName ann("ann");
  for (int day = 0; day < 12; ++day) {
    const auto number = static_cast<std::uint64_t>(day) + 1;
    ASSERT_TRUE(this->store().add_usage(InstanceId("one"),
                                        usage_batch(number, {{ann, {number, 0, 1}}}),
                                        day_at(day, 23), Deadline{}));
  }
  this->fixture_.reopen();
  const auto days = this->store().usage(ann, Deadline{});
  ASSERT_TRUE(days);
  ASSERT_EQ(days->size(), std::size_t{domain::kUsageDaysKept});
  EXPECT_EQ(days->front(), (domain::DayUsage{domain::day_of(day_at(11)), {12, 0, 1}}));
  EXPECT_EQ(days->back(), (domain::DayUsage{domain::day_of(day_at(4)), {5, 0, 1}}));
  EXPECT_TRUE(this->store().usage(ClientName("bob"), Deadline{})->empty());
  EXPECT_TRUE(this->store().usage_on(domain::day_of(day_at(12)), Deadline{})->empty());
}

TYPED_TEST_P(ManagementStoreContract, UsageStaysRightWhenItsLogIsMadeShorter) {
  const std::string long_name(60, 'n');
  std::vector<domain::ClientUsage> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back({ClientName(long_name + std::to_string(i)), {1, 2, 3}});
  }
  constexpr std::uint64_t kBatches = 40;  // 4 MiB of records
  for (std::uint64_t number = 1; number <= kBatches; ++number) {
    ASSERT_TRUE(this->store().add_usage(InstanceId("one"), usage_batch(number, clients), day_at(0),
                                        Deadline{}));
  }
  this->fixture_.reopen();
  const auto day = this->store().usage_on(domain::day_of(day_at(0)), Deadline{});
  ASSERT_EQ(day->size(), clients.size());
  for (const auto& row : *day) {
    EXPECT_EQ(row.usage, (domain::Usage{kBatches, 2 * kBatches, 3 * kBatches}));
  }
  EXPECT_EQ(this->store()
                .add_usage(InstanceId("one"), usage_batch(kBatches, clients), day_at(0), Deadline{})
                ->today.front()
                .requests,
            3 * kBatches)
      << "the fence is still there";
}

REGISTER_TYPED_TEST_SUITE_P(ManagementStoreContract, AnUnknownUpstreamIsEnabledAndNeverWritten,
                            AWriteIsThereAfterARestart, OfTwoWritersWithOneRevisionOneIsRefused,
                            ConcurrentWritersEachWinExactlyOnce,
                            TheAuditIsWrittenWithItsEffectAndReadNewestFirst,
                            TheSameFingerprintKeepsItsRevision, ABatchOfUsageCountsOnce,
                            UsageIsKeptByDayForAWeek, UsageStaysRightWhenItsLogIsMadeShorter);

}  // namespace proxypool::contract
