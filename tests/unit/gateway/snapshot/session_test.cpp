// The session's life: registration, back-off, what it tells operators, its end (GW-50, CP-7, CP-8).
#include <gtest/gtest.h>

#include "gateway/snapshot/session_metrics.hpp"
#include "unit/gateway/snapshot/session_rig.hpp"

namespace proxypool::gateway {
namespace {

using namespace testing_support;

class SessionLife : public SessionTest {};

TEST_F(SessionLife, ANewWorkerRegistersAndWatches) {
  EXPECT_EQ(watch(), clock_.now()) << "the stream is read at once";
  ASSERT_EQ(control_.registrations.size(), 1U);
  const auto& request = control_.registrations[0];
  EXPECT_EQ(request.cluster_id, "c");
  EXPECT_EQ(request.environment, "e");
  EXPECT_EQ(request.worker, WorkerId("w"));
  EXPECT_EQ(request.instance, InstanceId("i"));
  EXPECT_EQ(request.zone, "z");
  EXPECT_EQ(request.build, "b");
  EXPECT_EQ(request.protocol_version, ports::kProtocolVersion);
  EXPECT_FALSE(request.held_version);
  EXPECT_FALSE(request.draining);
  ASSERT_EQ(control_.watched.size(), 1U);
  EXPECT_EQ(control_.watched[0].first, SessionId("session-1"));
  EXPECT_FALSE(control_.watched[0].second);
  EXPECT_TRUE(session_.status().registered);
}

TEST_F(SessionLife, AReconnectNamesWhatItHoldsAndForHowLong) {  // C18
  serve(4);
  clock_.advance(seconds(20));
  break_stream();
  clock_.advance(seconds(1));
  watch();
  ASSERT_EQ(control_.registrations.size(), 2U);
  const auto& request = control_.registrations[1];
  EXPECT_EQ(request.held_version, (domain::SnapshotVersion{7, 4}));
  EXPECT_EQ(request.held, (std::vector{ProxyId(1), ProxyId(2), ProxyId(3)}));
  EXPECT_EQ(request.held_valid_for, kLease - kMargin - seconds(21));
  EXPECT_EQ(control_.watched[1].second, (domain::SnapshotVersion{7, 4}));
}

TEST_F(SessionLife, AReconnectAfterTheValidityStillNamesWhatItHeld) {  // C18
  serve(4);
  break_stream();
  clock_.advance(kLease);
  watch();
  EXPECT_EQ(control_.registrations[1].held.size(), 3U);
  EXPECT_EQ(control_.registrations[1].held_valid_for, milliseconds(0));
}

// C16: what runs besides what it claims: on lost proxies, and on all of them once the view has
// ended.
TEST_F(SessionLife, AReconnectNamesWhatItWorksOnBesides) {
  serve(4);
  ports::ProxyCount held;
  held.id = ProxyId(1);
  held.active = 2;
  ports::ProxyCount lost;
  lost.id = ProxyId(9);
  lost.active = 1;
  lost.reserved = 1;
  sink_.in_flight = {held, lost};
  break_stream();
  clock_.advance(seconds(1));
  watch();
  EXPECT_EQ(control_.registrations[1].running, (std::vector<domain::RunningOn>{{ProxyId(9), 2}}));
  break_stream();
  clock_.advance(kLease);
  watch();
  EXPECT_EQ(control_.registrations[2].running,
            (std::vector<domain::RunningOn>{{ProxyId(1), 2}, {ProxyId(9), 2}}));
}

TEST_F(SessionLife, BackOffDoublesWithFullJitterUpToItsMaximum) {  // CP-8
  watch();
  push(full(snapshot(1), 0, seconds(600)));
  control_.register_error = refusal(ErrorCode::Unavailable, "nobody there");
  break_stream();
  clock_.advance(milliseconds(250));
  for (const int wait_ms : {500, 1'000, 2'000, 4'000, 8'000, 15'000, 15'000}) {
    const auto calls = control_.registrations.size();
    EXPECT_EQ(watch(), clock_.now() + milliseconds(wait_ms)) << "half of the step";
    EXPECT_EQ(control_.registrations.size(), calls + 1);
    clock_.advance(milliseconds(wait_ms) - nanoseconds(1));
    EXPECT_EQ(watch(), clock_.now() + nanoseconds(1));
    EXPECT_EQ(control_.registrations.size(), calls + 1) << "not a moment before";
    clock_.advance(nanoseconds(1));
  }
  EXPECT_EQ(session_.status().counters.failures, 8U);  // the stream's, too
  EXPECT_EQ(session_.status().warning, "nobody there");
}

TEST_F(SessionLife, AWorkerThatCanServeNothingComesBackWithinSeconds) {  // GW-51, CP-8
  control_.register_error = refusal(ErrorCode::Unavailable, "nobody there");
  for (const int wait_ms : {250, 500, 1'000, 2'000, 2'500, 2'500}) {
    EXPECT_EQ(watch(), clock_.now() + milliseconds(wait_ms)) << "no view yet";
    clock_.advance(milliseconds(wait_ms));
  }
  control_.register_error.reset();
  serve();
  control_.register_error = refusal(ErrorCode::Unavailable, "gone again");
  TimePoint next = break_stream();
  while (clock_.now() < *session_.status().valid_until) {
    clock_.set(next);
    next = watch();
  }
  EXPECT_EQ(next, clock_.now() + milliseconds(2'500)) << "the view has ended";
}

TEST_F(SessionLife, AControllerThatIsBackInTimeIsFoundInTime) {  // GW-51
  serve();
  const TimePoint end = *session_.status().valid_until;
  control_.register_error = refusal(ErrorCode::Unavailable, "gone");
  TimePoint next = break_stream();
  while (next < end) {
    const nanoseconds left = end - clock_.now();
    EXPECT_LE(next - clock_.now(), std::max<nanoseconds>(milliseconds(500), left / 4));
    clock_.set(next);
    next = watch();
  }
}

TEST_F(SessionLife, BackOffStartsAnewOnceAVersionWasApplied) {  // CP-8
  control_.register_error = refusal(ErrorCode::Unavailable, "nobody there");
  for (int i = 0; i < 5; ++i) clock_.set(watch());
  control_.register_error.reset();
  watch();
  EXPECT_EQ(break_stream(), clock_.now() + milliseconds(2'500)) << "registered, and no more";
  clock_.advance(milliseconds(2'500));
  serve();
  EXPECT_EQ(break_stream(), clock_.now() + milliseconds(250));
}

TEST_F(SessionLife, AStreamThatCannotBeOpenedIsAFailureToo) {
  control_.watch_error = refusal(ErrorCode::Unavailable, "no stream");
  EXPECT_EQ(watch(), clock_.now() + milliseconds(250));
  EXPECT_FALSE(session_.status().registered);
  control_.watch_error.reset();
  clock_.advance(milliseconds(250));
  watch();
  EXPECT_TRUE(session_.status().registered);
}

TEST_F(SessionLife, ARefusalBeforeTheFirstViewEndsTheProcess) {  // GW-50
  for (const auto code : {ErrorCode::Unauthenticated, ErrorCode::Forbidden,
                          ErrorCode::InvalidArgument, ErrorCode::Unavailable}) {
    control_.register_error = refusal(code, "no");
    clock_.set(std::max(watch(), clock_.now()));
    EXPECT_EQ(session_.status().terminal, code != ErrorCode::Unavailable);
  }
}

TEST_F(SessionLife, ARefusalLaterEndsItOnlyOnceItsTunnelsHaveEnded) {  // GW-50, C16
  serve();
  const TimePoint end = clock_.now() + kLease + kGrace;
  control_.register_error = refusal(ErrorCode::Forbidden, "another cluster");
  clock_.set(break_stream());
  while (clock_.now() < end) {
    EXPECT_FALSE(session_.status().terminal);
    clock_.set(std::max(watch(), clock_.now()));
  }
  watch();
  EXPECT_TRUE(session_.status().terminal);
  EXPECT_EQ(session_.status().warning, "another cluster");
}

TEST_F(SessionLife, ReadinessFollowsTheValidityAndNotTheConnection) {  // GW-51, C9
  EXPECT_EQ(not_ready(session_, clock_), std::vector<std::string>{"no snapshot yet"});
  serve();
  EXPECT_TRUE(not_ready(session_, clock_).empty());
  clock_.set(break_stream());
  control_.register_error = refusal(ErrorCode::Unavailable, "nobody there");
  watch();
  EXPECT_TRUE(not_ready(session_, clock_).empty()) << "the view still stands";
  EXPECT_EQ(warnings(session_), std::vector<std::string>{"nobody there"});
  clock_.set(*session_.status().valid_until - nanoseconds(1));
  EXPECT_TRUE(not_ready(session_, clock_).empty());
  clock_.advance(nanoseconds(1));
  EXPECT_EQ(not_ready(session_, clock_),
            std::vector<std::string>{"the snapshot is no longer valid: nobody there"});
  control_.register_error.reset();
  serve(2);
  EXPECT_TRUE(not_ready(session_, clock_).empty());
  EXPECT_TRUE(warnings(session_).empty());
}

TEST_F(SessionLife, LeavingSendsTheLastReportAndNothingAfterIt) {  // C17
  serve();
  report();
  session_.drain();
  ASSERT_TRUE(session_.leave(Deadline{}));
  ASSERT_EQ(control_.reports.size(), 2U);
  const auto& last = control_.reports[1];
  EXPECT_TRUE(last.final_report);
  EXPECT_TRUE(last.draining);
  EXPECT_EQ(last.sequence, 2U);
  EXPECT_EQ(last.session, SessionId("session-1"));
  EXPECT_EQ(last.version, (domain::SnapshotVersion{7, 1}));
  EXPECT_TRUE(cancelled());
  clock_.advance(seconds(5));
  report();
  EXPECT_EQ(watch(), kNever);
  EXPECT_EQ(control_.reports.size(), 2U);
  EXPECT_EQ(control_.registrations.size(), 1U);
}

TEST_F(SessionLife, LeavingWithoutASessionSaysNothing) {
  EXPECT_TRUE(session_.leave(Deadline{}));
  EXPECT_TRUE(control_.reports.empty());
}

TEST_F(SessionLife, LeavingSaysWhetherTheControllerHeardIt) {
  serve();
  control_.report_error = refusal(ErrorCode::Unavailable, "gone");
  const Status left = session_.leave(Deadline{});
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().message, "gone");
}

TEST_F(SessionLife, ADrainingWorkerSaysSoWhenItRegistersAndReports) {  // C17
  session_.drain();
  watch();
  report();
  EXPECT_TRUE(control_.registrations[0].draining);
  EXPECT_TRUE(control_.reports[0].draining);
  EXPECT_FALSE(control_.reports[0].final_report);
}

}  // namespace
}  // namespace proxypool::gateway
