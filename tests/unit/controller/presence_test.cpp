#include "controller/presence.hpp"

#include <gtest/gtest.h>

#include "support/recording_events.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using contract::kLease;

class PresenceTest : public contract::PoolSteps<Stores> {
 protected:
  SessionId enter(const std::string& name) {
    ports::Registration registration;
    registration.worker = WorkerId(name);
    registration.instance = InstanceId("i");
    registration.zone = "z";
    registration.session_ttl = kLease;
    return fixture_.registry().register_worker(registration, Deadline{})->session;
  }
  std::vector<std::string> step() {
    const std::size_t before = events_.lines().size();
    presence_.step(fixture_.clock().now());
    auto lines = events_.lines();
    return {lines.begin() + static_cast<std::ptrdiff_t>(before), lines.end()};
  }

  test::RecordingEvents events_;
  Presence presence_{fixture_.registry(), events_};
};

TEST_F(PresenceTest, AWorkerIsAnnouncedOnceAndMissedWithTheReason) {
  EXPECT_TRUE(step().empty());
  const auto first = enter("w");
  EXPECT_EQ(step(), (std::vector<std::string>{"worker_registered worker=w instance=i session=" +
                                              first.str() + " zone=z"}));
  EXPECT_TRUE(step().empty());
  const auto second = enter("w");
  EXPECT_EQ(
      step(),
      (std::vector<std::string>{
          "worker_lost worker=w session=" + first.str() + " reason=another session took its place",
          "worker_registered worker=w instance=i session=" + second.str() + " zone=z"}));
  EXPECT_TRUE(fixture_.registry().leave(WorkerId("w"), second, Deadline{}));
  EXPECT_EQ(step(), (std::vector<std::string>{"worker_lost worker=w session=" + second.str() +
                                              " reason=it left"}));
}

TEST_F(PresenceTest, ASilentWorkerIsMissed) {
  const auto session = enter("w");
  step();
  advance(kLease);
  EXPECT_EQ(step(), (std::vector<std::string>{"worker_lost worker=w session=" + session.str() +
                                              " reason=it does not report any more"}));
  EXPECT_TRUE(step().empty());
}

TEST_F(PresenceTest, ACheckerIsAnnouncedAndMissedToo) {
  const auto row =
      fixture_.registry().register_checker(CheckerId("c"), InstanceId("i"), 8, kLease, Deadline{});
  ASSERT_TRUE(row);
  EXPECT_EQ(step(), (std::vector<std::string>{"checker_registered checker=c session=" +
                                              row->session.str()}));
  advance(kLease);
  EXPECT_EQ(step().size(), 1U);
  EXPECT_EQ(events_.count(ports::Event::CheckerLost), 1U);
}

}  // namespace
}  // namespace proxypool::controller
