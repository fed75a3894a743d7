// What workers' traffic does to the health of proxies (CT-32, ruling "Health defaults").
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "controller/health.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using contract::proxy_ids;
using domain::ProxyState;

class TrafficHealthTest : public contract::PoolSteps<Stores> {
 protected:
  TrafficHealthTest() {
    auto config = std::make_shared<config::Config>();
    config->upstreams.resize(1);
    config->upstreams[0].id = UpstreamId("a");
    service_ = std::make_unique<HealthService>(
        HealthSettings{}, config,
        HealthDeps{fixture_.pool(), fixture_.registry(), fixture_.clock()});
    supply("a", proxy_ids(1, 3));
    assign(owner_, proxy_ids(1, 2));
    advance(seconds(10));
  }
  ports::HealthRow row(std::uint64_t id) {
    const auto rows = pool().read_health({ProxyId(id)}, Deadline{});
    EXPECT_TRUE(rows && rows->size() == 1);
    return rows->front();
  }
  ports::Outcome failed(std::uint64_t id, milliseconds age = {}) {
    ports::Outcome outcome;
    outcome.what.proxy = ProxyId(id);
    outcome.what.failure = {domain::Phase::Dial, domain::FailureKind::Refused};
    outcome.lease_epoch = row(id).lease_epoch;
    outcome.age = age;
    return outcome;
  }
  ports::Outcome served(std::uint64_t id, milliseconds age = {}) {
    ports::Outcome outcome = failed(id, age);
    outcome.what.failure = {};
    outcome.what.status = 200;
    return outcome;
  }
  void tell(std::vector<ports::Outcome> outcomes, const char* worker = "w") {
    ASSERT_TRUE(service_->take_traffic(WorkerId(worker), std::move(outcomes), Deadline{}));
  }

  const ports::LeaseHolder owner_ = contract::holder("w");
  std::unique_ptr<HealthService> service_;
};

TEST_F(TrafficHealthTest, AFailureMakesASuspectAndThreeMakeItUnhealthy) {
  tell({failed(1)});
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Suspect);
  EXPECT_EQ(state(ProxyId(2)), ProxyState::Available);
  advance(seconds(3));
  tell({failed(1), failed(1, milliseconds(1500))});
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Unhealthy);
  EXPECT_EQ(service_->counters().traffic_failures, 3U);
}

TEST_F(TrafficHealthTest, RequestsThatFailTogetherAreOneFact) {
  tell({failed(1), failed(1), failed(1), failed(1)});
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Suspect);
  EXPECT_EQ(service_->counters().traffic_ignored, 3U);
}

TEST_F(TrafficHealthTest, ASuccessPutsTheNextProbeOff) {
  const StoreTime before = row(1).record.next_check_at;
  advance(seconds(5));
  tell({served(1)});
  EXPECT_GT(row(1).record.next_check_at, before);
  EXPECT_EQ(row(1).record.last_success_at, now());
  EXPECT_EQ(service_->counters().traffic_successes, 1U);
}

TEST_F(TrafficHealthTest, ASuccessBringsASuspectBack) {
  tell({failed(1)});
  advance(seconds(2));
  tell({served(1)});
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
}

TEST_F(TrafficHealthTest, WhatHappenedFirstCountsFirst) {
  tell({served(1, milliseconds(100)), failed(1, milliseconds(3000))});
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
  tell({failed(1, milliseconds(5000))});
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available) << "older than what is known";
}

TEST_F(TrafficHealthTest, OnlyTheOwnersWordUnderItsLeaseCounts) {
  tell({failed(1)}, "another");
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
  auto old = failed(1);
  old.lease_epoch = Epoch(old.lease_epoch.value() + 1);
  tell({old});
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Available);
  tell({failed(3)});
  EXPECT_EQ(state(ProxyId(3)), ProxyState::Available) << "nobody owns it";
  EXPECT_EQ(service_->counters().traffic_ignored, 3U);
}

TEST_F(TrafficHealthTest, AVendorsRefusalCountsAndItsNeutralAnswersDoNot) {
  auto answer = served(1);
  for (const int status : {429, 502, 503, 504}) {
    answer.what.status = static_cast<std::uint16_t>(status);
    tell({answer});
  }
  EXPECT_EQ(service_->counters().traffic_ignored, 4U);
  answer.what.status = 407;
  answer.what.failure = {domain::Phase::ResponseHeaders, domain::FailureKind::AuthRejected};
  tell({answer});
  EXPECT_EQ(state(ProxyId(1)), ProxyState::Suspect);
}

TEST_F(TrafficHealthTest, AProxyThatIsGoneIsNobodysBusiness) {
  auto gone = failed(1);
  gone.what.proxy = ProxyId(99);
  tell({gone, failed(2)});
  EXPECT_EQ(state(ProxyId(2)), ProxyState::Suspect);
}

}  // namespace
}  // namespace proxypool::controller
