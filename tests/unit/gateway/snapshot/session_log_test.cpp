// What an operator reads about a session (GW-50, GW-51).
#include "gateway/snapshot/session_log.hpp"

#include <gtest/gtest.h>

#include "support/recording_events.hpp"
#include "unit/gateway/snapshot/session_rig.hpp"

namespace proxypool::gateway {
namespace {

using namespace testing_support;
using ports::Event;

class SessionLogTest : public SessionTest {
 protected:
  void look() { log_.look(clock_.now()); }
  std::size_t count(Event event) { return events_.count(event); }
  std::string last() { return events_.lines().empty() ? "" : events_.lines().back(); }

  test::RecordingEvents events_;
  SessionLog log_{session_, sink_, events_};
};

TEST_F(SessionLogTest, SaysOnceThatASessionStandsAndWhatItServes) {
  look();
  EXPECT_TRUE(events_.lines().empty());
  watch();
  look();
  EXPECT_EQ(last(), "session_opened session=session-1");
  push(full(snapshot(4)));
  look();
  EXPECT_EQ(last().find("snapshot_applied generation=7 version=4 proxies=3 valid_for="), 0U)
      << last();
  look();
  EXPECT_EQ(events_.lines().size(), 2U) << "nothing has changed";
}

TEST_F(SessionLogTest, SaysWhySomethingIsLostRefusedOrOver) {
  serve(1);
  look();
  break_stream();
  look();
  EXPECT_EQ(last(), "session_lost session=session-1 reason=broken");
  clock_.advance(kLease);
  look();
  EXPECT_EQ(last(), "snapshot_expired version=1");
  look();
  EXPECT_EQ(count(Event::SnapshotExpired), 1U);
  watch();
  look();
  EXPECT_EQ(last(), "session_opened session=session-2");
  auto bad = full(snapshot(2));
  bad.digest = {};
  push(bad);
  look();
  EXPECT_EQ(last(), "snapshot_refused reason=snapshot refused: the digest does not match");
}

TEST_F(SessionLogTest, SaysThatNobodyAnswersOnceForEachReason) {
  control_.register_error = refusal(ErrorCode::Unavailable, "nobody there");
  for (int i = 0; i < 3; ++i) {
    watch();
    look();
    clock_.advance(seconds(60));
  }
  EXPECT_EQ(events_.lines(), (std::vector<std::string>{"session_lost reason=nobody there"}));
}

}  // namespace
}  // namespace proxypool::gateway
