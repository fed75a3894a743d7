// Runtime reports: their content, their rhythm, and what becomes of the answers (CP-7, C12).
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "unit/gateway/snapshot/session_rig.hpp"

namespace proxypool::gateway {
namespace {

using namespace testing_support;

class SessionReports : public SessionTest {};

TEST_F(SessionReports, ThereIsNoneWithoutASession) {
  EXPECT_EQ(report(), clock_.now() + milliseconds(100));
  EXPECT_TRUE(control_.reports.empty());
}

TEST_F(SessionReports, SayWhatIsInFlightUnderTheVersionAcknowledgedInThisSession) {  // C12
  watch();
  report();
  EXPECT_EQ(control_.reports[0].version, domain::SnapshotVersion{}) << "nothing is acknowledged";
  push(full(snapshot(5)));
  sink_.in_flight = {{ProxyId(2), Epoch(1), 3, 1, false}};
  clock_.advance(seconds(1));
  report();
  ASSERT_EQ(control_.reports.size(), 2U);
  const auto& sent = control_.reports[1];
  EXPECT_EQ(sent.worker, WorkerId("w"));
  EXPECT_EQ(sent.session, SessionId("session-1"));
  EXPECT_EQ(sent.sequence, 2U);
  EXPECT_EQ(sent.version, (domain::SnapshotVersion{7, 5}));
  EXPECT_EQ(sent.epoch, Epoch(1));
  EXPECT_FALSE(sent.draining);
  EXPECT_FALSE(sent.final_report);
  ASSERT_EQ(sent.counts.size(), 1U);
  EXPECT_EQ(sent.counts[0].id, ProxyId(2));
  EXPECT_EQ(sent.counts[0].active, 3U);
  EXPECT_EQ(sent.counts[0].reserved, 1U);
  EXPECT_EQ(session_.status().counters.reports, 2U);
}

TEST_F(SessionReports, KeepTheIntervalThatTheControllerWants) {
  serve();
  const TimePoint start = clock_.now();
  EXPECT_EQ(report(), start + seconds(1));
  clock_.advance(milliseconds(999));
  EXPECT_EQ(report(), start + seconds(1));
  EXPECT_EQ(control_.reports.size(), 1U);
  clock_.advance(milliseconds(1));
  report();
  EXPECT_EQ(control_.reports.size(), 2U);
}

TEST_F(SessionReports, ANewSessionCountsFromOneAndKnowsNoVersion) {  // CP-7
  serve();
  report();
  clock_.set(break_stream());
  watch();
  clock_.advance(seconds(1));
  report();
  const auto& sent = control_.reports.back();
  EXPECT_EQ(sent.session, SessionId("session-2"));
  EXPECT_EQ(sent.sequence, 1U);
  EXPECT_EQ(sent.version, domain::SnapshotVersion{});
  EXPECT_EQ(sent.epoch, Epoch());
}

TEST_F(SessionReports, AnAnswerCanRevoke) {
  serve();
  control_.revoke = {ProxyId(1), ProxyId(3)};
  report();
  EXPECT_EQ(sink_.revoked, control_.revoke);
}

TEST_F(SessionReports, AStaleSessionIsLeftAtOnce) {  // CP-7
  serve();
  control_.report_error = refusal(ErrorCode::Stale, "the session was replaced");
  report();
  EXPECT_TRUE(cancelled()) << "the watcher is woken";
  clock_.set(watch());
  watch();
  EXPECT_EQ(control_.registrations.size(), 2U);
}

TEST_F(SessionReports, AFailureOfOneReportIsNoReasonToRegisterAgain) {
  serve();
  control_.report_error = refusal(ErrorCode::Unavailable, "busy");
  EXPECT_EQ(report(), clock_.now() + seconds(1));
  EXPECT_FALSE(cancelled());
  EXPECT_TRUE(session_.status().registered);
  EXPECT_EQ(session_.status().warning, "busy");
  control_.report_error.reset();
  clock_.advance(seconds(1));
  report();
  EXPECT_EQ(control_.reports.back().sequence, 2U) << "sequences only grow";
}

TEST_F(SessionReports, ALateAnswerToAReplacedSessionTouchesNothing) {  // CP-7
  serve();
  control_.during_report = [&] {
    clock_.set(break_stream());
    watch();
  };
  control_.report_error = refusal(ErrorCode::Stale, "the session was replaced");
  report();
  EXPECT_EQ(control_.registrations.size(), 2U);
  EXPECT_FALSE(cancelled()) << "the new stream goes on";
  EXPECT_TRUE(session_.status().registered);
}

TEST_F(SessionReports, WatcherReporterAndOnlookersMayMeet) {  // for ThreadSanitizer
  serve();
  std::atomic<bool> stop{false};
  std::thread reporter([&] {
    TimePoint at = clock_.now();
    while (!stop.load()) at = session_.report_step(std::max(at, clock_.now()));
  });
  std::thread onlooker([&] {
    while (!stop.load()) {
      (void)session_.status();
      session_.cancel();
      std::this_thread::yield();
    }
  });
  for (std::uint64_t version = 2; version < 200; ++version) {
    control_.line.with(
        [&](Line& line) { line.pushes.emplace_back(ports::Push(full(snapshot(version)))); });
    for (int i = 0; i < 4; ++i) {
      session_.watch_step(clock_.now());
      clock_.advance(milliseconds(200));
    }
  }
  stop = true;
  reporter.join();
  onlooker.join();
  EXPECT_GT(control_.reports.size(), 10U);
  EXPECT_GT(session_.status().counters.registrations, 1U);
}

// GW-14: neither lost nor counted twice, whatever becomes of an answer.
class SessionUsage : public SessionTest {
 protected:
  void next_report() {
    clock_.advance(seconds(1));
    report();
  }
  [[nodiscard]] const domain::UsageBatch& last() const { return control_.reports.back().usage; }
  const ClientName ann_{"ann"};
  const ClientName bob_{"bob"};
};

TEST_F(SessionUsage, ABatchIsSentAgainUnchangedUntilItIsKept) {
  serve();
  report();
  EXPECT_EQ(last(), domain::UsageBatch{}) << "nobody has moved anything";
  sink_.moved = {{ann_, {10, 20, 1}}};
  control_.report_error = refusal(ErrorCode::DeadlineExceeded, "the answer was lost");
  next_report();
  const domain::UsageBatch first = last();
  EXPECT_NE(first.number, 0U);
  EXPECT_EQ(first.clients, (std::vector<domain::ClientUsage>{{ann_, {10, 20, 1}}}));
  sink_.moved = {{ann_, {15, 20, 2}}, {bob_, {1, 0, 1}}};
  next_report();
  EXPECT_EQ(last(), first);
  control_.report_error.reset();
  control_.keeps_usage = false;  // the controller's store is away
  next_report();
  EXPECT_EQ(last(), first);
  control_.keeps_usage = true;
  next_report();
  EXPECT_EQ(last(), first);
  next_report();
  EXPECT_EQ(last().number, first.number + 1);
  EXPECT_EQ(last().clients,
            (std::vector<domain::ClientUsage>{{ann_, {5, 0, 1}}, {bob_, {1, 0, 1}}}));
  next_report();
  EXPECT_EQ(last(), domain::UsageBatch{});
}

TEST_F(SessionUsage, NumbersGoOnOverSessionsAndProcesses) {
  serve();
  control_.keeps_usage = false;
  sink_.moved = {{ann_, {10, 20, 1}}};
  report();
  const domain::UsageBatch first = last();
  clock_.set(break_stream());
  watch();
  next_report();
  EXPECT_EQ(control_.reports.back().session, SessionId("session-2"));
  EXPECT_EQ(last(), first);
  clock_.advance(seconds(1));
  Session next(settings(), control_, sink_, *crypto_, clock_, random_);
  next.watch_step(clock_.now());
  next.report_step(clock_.now());
  EXPECT_GT(last().number, first.number) << "a process of the same name that started later";
}

TEST_F(SessionUsage, TheLastReportsBringWhatIsLeft) {
  serve();
  control_.keeps_usage = false;
  sink_.moved = {{ann_, {10, 0, 1}}};
  report();
  control_.keeps_usage = true;
  sink_.moved = {{ann_, {17, 0, 1}}};
  ASSERT_TRUE(session_.leave(Deadline{}));
  ASSERT_EQ(control_.reports.size(), 3U);
  EXPECT_EQ(control_.reports[1].usage, control_.reports[0].usage);
  EXPECT_FALSE(control_.reports[1].final_report);
  EXPECT_TRUE(control_.reports[2].final_report);
  EXPECT_EQ(control_.reports[2].usage.clients,
            (std::vector<domain::ClientUsage>{{ann_, {7, 0, 0}}}));
}

TEST_F(SessionUsage, ManyClientsComeInSeveralBatches) {
  serve();
  for (std::size_t i = 0; i < domain::kUsageBatchClientsMax + 1; ++i) {
    sink_.moved.push_back({ClientName("c" + std::to_string(i)), {1, 0, 1}});
  }
  report();
  EXPECT_EQ(last().clients.size(), domain::kUsageBatchClientsMax);
  next_report();
  EXPECT_EQ(last().clients.size(), 1U);
}

TEST_F(SessionUsage, VerdictsAreObeyedUntilTheDayEnds) {
  serve();
  control_.over_quota = {ann_};
  report();
  EXPECT_EQ(sink_.without_quota, std::vector{ann_});
  EXPECT_EQ(sink_.quota_until, clock_.now() + std::chrono::hours(1));
  control_.report_error = refusal(ErrorCode::Unavailable, "away");
  next_report();
  EXPECT_EQ(sink_.without_quota, std::vector{ann_}) << "no answer changes nothing";
  control_.report_error.reset();
  control_.over_quota.clear();
  next_report();
  EXPECT_TRUE(sink_.without_quota.empty());
}

// How attempts ended, told beside the reports (CP-7).
class SessionOutcomes : public SessionTest {
 protected:
  void happen(std::uint64_t proxies) {
    for (std::uint64_t i = 1; i <= proxies; ++i) {
      ports::Outcome outcome;
      outcome.what.proxy = ProxyId(i);
      sink_.outcomes.push_back(outcome);
    }
  }
  TimePoint tell() { return session_.outcome_step(clock_.now()); }
};

TEST_F(SessionOutcomes, AreToldInBatchesOfASession) {
  happen(1);
  tell();
  EXPECT_TRUE(control_.told.empty()) << "there is no session yet";
  serve(5);
  happen(ports::kOutcomesMax);
  EXPECT_EQ(tell(), clock_.now()) << "there may be more";
  EXPECT_GT(tell(), clock_.now());
  tell();
  ASSERT_EQ(control_.told.size(), 2U);
  EXPECT_EQ(control_.told[0].session, SessionId("session-1"));
  EXPECT_EQ(control_.told[0].sequence, 1U);
  EXPECT_EQ(control_.told[0].version, (domain::SnapshotVersion{7, 5}));
  EXPECT_EQ(control_.told[0].outcomes.size(), ports::kOutcomesMax);
  EXPECT_EQ(control_.told[1].sequence, 2U);
  EXPECT_EQ(control_.told[1].outcomes.size(), 1U);
  EXPECT_EQ(session_.status().counters.outcomes_told, ports::kOutcomesMax + 1);
}

TEST_F(SessionOutcomes, ALostAnswerIsMadeGoodByTheSameBatch) {
  serve();
  happen(3);
  control_.outcome_error = refusal(ErrorCode::DeadlineExceeded, "lost");
  control_.outcome_error->retryable = true;
  tell();
  happen(2);
  control_.outcome_error.reset();
  tell();
  tell();
  ASSERT_EQ(control_.told.size(), 3U);
  EXPECT_EQ(control_.told[1].sequence, control_.told[0].sequence);
  EXPECT_EQ(control_.told[1].outcomes.size(), 3U);
  EXPECT_EQ(control_.told[2].sequence, control_.told[0].sequence + 1);
  EXPECT_EQ(session_.status().counters.outcomes_told, 5U);
  EXPECT_EQ(session_.status().counters.outcomes_lost, 0U);
}

TEST_F(SessionOutcomes, OldNewsIsGivenUp) {
  serve();
  happen(3);
  control_.outcome_error = refusal(ErrorCode::Unavailable, "away");
  control_.outcome_error->retryable = true;
  for (int i = 0; i < 5; ++i) tell();
  EXPECT_EQ(control_.told.size(), 3U);
  EXPECT_EQ(session_.status().counters.outcomes_lost, 3U);
  happen(1);
  tell();
  clock_.set(break_stream());
  watch();
  control_.outcome_error.reset();
  tell();
  EXPECT_EQ(session_.status().counters.outcomes_lost, 4U) << "it was of the session before";
  happen(1);
  tell();
  EXPECT_EQ(control_.told.back().session, SessionId("session-2"));
  EXPECT_EQ(control_.told.back().sequence, 1U);
}

}  // namespace
}  // namespace proxypool::gateway
