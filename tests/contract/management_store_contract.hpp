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

REGISTER_TYPED_TEST_SUITE_P(ManagementStoreContract, AnUnknownUpstreamIsEnabledAndNeverWritten,
                            AWriteIsThereAfterARestart, OfTwoWritersWithOneRevisionOneIsRefused,
                            ConcurrentWritersEachWinExactlyOnce,
                            TheAuditIsWrittenWithItsEffectAndReadNewestFirst,
                            TheSameFingerprintKeepsItsRevision);

}  // namespace proxypool::contract
