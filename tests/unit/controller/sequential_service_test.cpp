// Sequential switching over the management store (CT-40).
#include "controller/sequential.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/recording_events.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using domain::Exhaustion;

const RoutingId kRouting("r");

class SequentialServiceTest : public ::testing::Test {
 protected:
  SequentialServiceTest() {
    for (const char* id : {"a", "b", "c"}) config_.upstreams.emplace_back().id = UpstreamId(id);
    add_routing("r", {"a", "b", "c"});
    begin();
  }
  void add_routing(const std::string& id, const std::vector<std::string>& upstreams) {
    auto& routing = config_.routings.emplace_back();
    routing.id = RoutingId(id);
    routing.strategy = domain::Strategy::Sequential;
    for (const auto& name : upstreams) routing.upstreams.push_back({UpstreamId(name), 1});
  }
  void begin() {
    service_ = std::make_unique<SequentialService>(
        std::make_shared<const config::Config>(config_),
        SequentialDeps{stores_.management(), stores_.clock(), events_, [this] { ++changes_; }});
    EXPECT_TRUE(service_->settle(Deadline{}));
  }
  void deplete(const std::string& id) {
    EXPECT_TRUE(service_->depleted(UpstreamId(id), Deadline{}));
  }
  void enable(const std::string& id, bool enabled) {
    auto state = *stores_.management().upstream_state(UpstreamId(id), Deadline{});
    state.enabled = enabled;
    EXPECT_TRUE(stores_.management().put_upstream_state(state, std::nullopt, Deadline{}));
    EXPECT_TRUE(service_->settle(Deadline{}));
  }
  ports::RoutingState state(const RoutingId& id = kRouting) {
    return *stores_.management().routing_state(id, Deadline{});
  }
  std::string at(const RoutingId& id = kRouting) {
    const auto now = state(id);
    return (now.current ? now.current->str() : "-") + (now.enabled ? "" : " off");
  }
  Result<ports::RoutingState> switch_to(const std::string& to,
                                        std::optional<std::uint64_t> revision = std::nullopt) {
    return service_->switch_routing({kRouting, revision, "somebody"}, UpstreamId(to), Deadline{});
  }
  [[nodiscard]] std::uint64_t count(SwitchReason reason) const {
    return service_->switches(kRouting, reason);
  }

  Stores stores_;
  test::RecordingEvents events_;
  config::Config config_;
  int changes_ = 0;
  std::unique_ptr<SequentialService> service_;
};

TEST_F(SequentialServiceTest, WhatIsUsedUpMovesTheRoutingOnOnce) {
  EXPECT_EQ(at(), "a");
  deplete("a");
  EXPECT_EQ(at(), "b");
  deplete("a");  // the same fact, told again
  deplete("a");
  EXPECT_EQ(at(), "b");
  deplete("c");  // not where it stands
  EXPECT_EQ(at(), "b");
  EXPECT_EQ(count(SwitchReason::Depleted), 1U);
  EXPECT_EQ(events_.lines(),
            (std::vector<std::string>{"routing_switched routing=r from=a to=b reason=depleted"}));
}

// Many at once: one compare-and-set wins, the others see where it stands now.
TEST_F(SequentialServiceTest, OfManyThreadsThatReportOneEndOneMovesIt) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 20; ++round) deplete("a");
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(at(), "b");
  EXPECT_EQ(count(SwitchReason::Depleted), 1U);
}

TEST_F(SequentialServiceTest, EachRoutingThatStandsThereMovesForItself) {
  add_routing("other", {"b", "a"});
  add_routing("last", {"c", "a"});
  begin();
  deplete("b");
  EXPECT_EQ(at(), "a");
  EXPECT_EQ(at(RoutingId("other")), "a");
  deplete("a");
  EXPECT_EQ(at(), "b");
  EXPECT_EQ(at(RoutingId("other")), "a off");
  EXPECT_EQ(at(RoutingId("last")), "c");
}

TEST_F(SequentialServiceTest, AtTheEndItStops) {
  for (const char* id : {"a", "b", "c"}) deplete(id);
  EXPECT_EQ(at(), "c off");
  EXPECT_EQ(count(SwitchReason::Exhausted), 1U);
  deplete("c");
  EXPECT_EQ(count(SwitchReason::Exhausted), 1U);
  // Where it goes on is an operator's word.
  ASSERT_TRUE(switch_to("a"));
  ASSERT_TRUE(service_->enable_routing({kRouting, std::nullopt, "somebody"}, true, Deadline{}));
  EXPECT_EQ(at(), "a");
}

TEST_F(SequentialServiceTest, OrBeginsAnew) {
  config_.routings[0].exhaustion = Exhaustion::Loop;
  begin();
  for (const char* id : {"a", "b", "c"}) deplete(id);
  EXPECT_EQ(at(), "a");
}

TEST_F(SequentialServiceTest, OrStaysWithTheLast) {
  config_.routings[0].exhaustion = Exhaustion::StayLast;
  begin();
  for (const char* id : {"a", "b", "c", "c"}) deplete(id);
  EXPECT_EQ(at(), "c");
  EXPECT_EQ(count(SwitchReason::Depleted), 2U);
}

TEST_F(SequentialServiceTest, WhatIsDisabledIsPassedOverForGood) {
  enable("b", false);
  deplete("a");
  EXPECT_EQ(at(), "c");
  begin();
  ASSERT_TRUE(switch_to("a"));
  enable("a", false);
  EXPECT_EQ(at(), "c");
  EXPECT_EQ(count(SwitchReason::Skipped), 1U);
  enable("a", true);
  EXPECT_EQ(at(), "c");
}

TEST_F(SequentialServiceTest, WithNobodyToGoToItKeepsItsPlace) {
  ASSERT_TRUE(switch_to("c"));
  enable("c", false);
  EXPECT_EQ(at(), "c");
  enable("c", true);
  EXPECT_EQ(at(), "c");
}

TEST_F(SequentialServiceTest, ARestartFindsItWhereItWas) {
  deplete("a");
  stores_.restart();
  begin();
  EXPECT_EQ(at(), "b");
  // What another configuration no longer names is where it does not stand.
  config_.routings[0].upstreams.erase(config_.routings[0].upstreams.begin() + 1);
  service_->configure(std::make_shared<const config::Config>(config_));
  ASSERT_TRUE(service_->settle(Deadline{}));
  EXPECT_EQ(at(), "a");
}

TEST_F(SequentialServiceTest, AnOperatorMovesItUnderTheSameFence) {
  const auto seen = state().revision;
  deplete("a");
  const auto late = switch_to("c", seen);  // decided on a state that has passed
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::Stale);
  EXPECT_EQ(at(), "b");
  const auto done = switch_to("c", state().revision);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->current, UpstreamId("c"));
  deplete("b");  // and the vendor's end that comes late moves nothing
  EXPECT_EQ(at(), "c");
  EXPECT_EQ(count(SwitchReason::Operator), 1U);
  const auto same = switch_to("c", state().revision);
  ASSERT_TRUE(same);
  EXPECT_EQ(count(SwitchReason::Operator), 1U);
}

TEST_F(SequentialServiceTest, AnOperatorIsToldWhatCannotBe) {
  enable("b", false);
  EXPECT_EQ(switch_to("b").error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(switch_to("nowhere").error().code, ErrorCode::InvalidArgument);
  const auto unknown =
      service_->switch_routing({RoutingId("x"), std::nullopt, "y"}, UpstreamId("a"), Deadline{});
  EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
  config_.routings[0].strategy = domain::Strategy::First;
  service_->configure(std::make_shared<const config::Config>(config_));
  EXPECT_EQ(switch_to("c").error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(at(), "a");
}

TEST_F(SequentialServiceTest, WhatHappenedIsWrittenDownWithItsActor) {
  deplete("a");
  ASSERT_TRUE(switch_to("c"));
  ASSERT_TRUE(service_->enable_routing({kRouting, std::nullopt, "somebody"}, false, Deadline{}));
  const auto history = service_->routing_history(kRouting, Deadline{});
  ASSERT_TRUE(history);
  ASSERT_EQ(history->size(), 3U);
  EXPECT_EQ(history->at(0).action, "routing.disable");
  EXPECT_EQ(history->at(1).actor, "somebody");
  EXPECT_EQ(history->at(1).detail, R"({"from":"b","to":"c","enabled":true,"reason":"operator"})");
  EXPECT_EQ(history->at(2).actor, "controller");
  EXPECT_EQ(history->at(2).detail, R"({"from":"a","to":"b","enabled":true,"reason":"depleted"})");
}

}  // namespace
}  // namespace proxypool::controller
