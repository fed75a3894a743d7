// The checker's session against a scripted controller, in virtual time.
#include "checker/session.hpp"

#include <gtest/gtest.h>

#include "runtime/manual_clock.hpp"
#include "support/recording_events.hpp"

namespace proxypool::checker {
namespace {

using Tasks = std::vector<domain::CheckTask>;

Error unavailable() {
  return {ErrorCode::Unavailable, Origin::Internal, "nobody there", true};
}
Error stale() {
  return {ErrorCode::Stale, Origin::Client, "register again"};
}

// What the stream will say; outlives the streams that read from it.
struct StreamScript {
  std::deque<Result<Tasks>> coming;
  int cancelled = 0;
};

class ScriptedStream final : public ports::Stream<Tasks> {
 public:
  explicit ScriptedStream(StreamScript& script) : script_(script) {}
  Result<Tasks> next(Deadline /*deadline*/) override {
    if (cancelled_) return unavailable();
    if (script_.coming.empty()) {
      return Error{ErrorCode::DeadlineExceeded, Origin::Internal, "nothing yet", true};
    }
    auto next = std::move(script_.coming.front());
    script_.coming.pop_front();
    return next;
  }
  void cancel() override {
    cancelled_ = true;
    ++script_.cancelled;
  }

 private:
  StreamScript& script_;
  bool cancelled_ = false;
};

class ScriptedControl final : public ports::CheckerControl {
 public:
  Result<ports::RegisterCheckerAnswer> register_checker(
      const ports::RegisterCheckerRequest& request, Deadline /*deadline*/) override {
    ++registrations;
    last_registration = request;
    if (refuse_registration) return *refuse_registration;
    return ports::RegisterCheckerAnswer{SessionId("c-" + std::to_string(registrations)),
                                        milliseconds(60'000)};
  }
  Result<std::unique_ptr<ports::Stream<Tasks>>> watch_tasks(const CheckerId& /*checker*/,
                                                            const SessionId& session) override {
    watched.push_back(session.str());
    return std::unique_ptr<ports::Stream<Tasks>>(std::make_unique<ScriptedStream>(stream));
  }
  Status report_observations(const ports::ObservationReport& report,
                             Deadline /*deadline*/) override {
    reports.push_back(report);
    if (refuse_report) return *refuse_report;
    return ok();
  }

  StreamScript stream;
  std::optional<Error> refuse_registration;
  std::optional<Error> refuse_report;
  int registrations = 0;
  ports::RegisterCheckerRequest last_registration;
  std::vector<std::string> watched;
  std::vector<ports::ObservationReport> reports;
};

SessionSettings settings() {
  SessionSettings settings;
  settings.cluster_id = "local";
  settings.checker = CheckerId("checker-1");
  settings.instance = InstanceId("i-1");
  settings.in_flight_max = 64;
  return settings;
}

domain::Observation seen(std::uint64_t task) {
  domain::Observation observation;
  observation.task_id = task;
  observation.passed = true;
  return observation;
}

class CheckerSession : public testing::Test {
 protected:
  TimePoint watch() { return session.watch_step(clock.now()); }
  TimePoint report() { return session.report_step(clock.now()); }
  void wait(milliseconds time) { clock.advance(time); }

  runtime::ManualClock clock;
  ScriptedControl control;
  test::RecordingEvents events;
  SplitMix64 random{1};
  Tasks offered;
  Session session{settings(),
                  control,
                  [this](Tasks tasks) {
                    for (auto& task : tasks) offered.push_back(std::move(task));
                  },
                  events,
                  clock,
                  random,
                  random};
};

TEST_F(CheckerSession, RegistersOpensItsStreamAndHandsTasksOn) {
  EXPECT_EQ(watch(), clock.now());
  EXPECT_TRUE(session.status().registered);
  EXPECT_EQ(control.last_registration.checker, CheckerId("checker-1"));
  EXPECT_EQ(control.last_registration.in_flight_max, 64U);
  EXPECT_EQ(control.last_registration.levels, std::vector{domain::CheckLevel::Basic});
  EXPECT_EQ(control.watched, std::vector<std::string>{"c-1"});
  control.stream.coming.emplace_back(Tasks(3));
  watch();
  EXPECT_EQ(offered.size(), 3U);
  EXPECT_EQ(session.status().counters.tasks, 3U);
  EXPECT_EQ(watch(), clock.now());  // nothing new is no failure
  EXPECT_EQ(control.registrations, 1);
}

TEST_F(CheckerSession, ObservationsTravelInBatchesNoOlderThanTwoHundredMilliseconds) {
  watch();
  session.observe(seen(1));
  const auto due = report();
  EXPECT_TRUE(control.reports.empty());
  EXPECT_EQ(due, clock.now() + milliseconds(200));
  wait(milliseconds(150));
  session.observe(seen(2));
  wait(milliseconds(50));
  report();
  ASSERT_EQ(control.reports.size(), 1U);
  EXPECT_EQ(control.reports[0].session, SessionId("c-1"));
  EXPECT_EQ(control.reports[0].observations.size(), 2U);
  EXPECT_EQ(session.status().counters.observations_sent, 2U);
}

TEST_F(CheckerSession, AFullBatchDoesNotWait) {
  watch();
  int woken = 0;
  session.on_report_due([&] { ++woken; });
  for (std::uint64_t i = 0; i < 600; ++i) session.observe(seen(i));
  EXPECT_EQ(woken, 2);  // the first one, and the full batch
  report();
  ASSERT_EQ(control.reports.size(), 1U);
  EXPECT_EQ(control.reports[0].observations.size(), 512U);
  EXPECT_EQ(report(), clock.now() + milliseconds(200));
  wait(milliseconds(200));
  report();
  EXPECT_EQ(control.reports.at(1).observations.size(), 88U);
}

TEST_F(CheckerSession, AnIdleSessionIsKeptAliveByEmptyReports) {
  watch();
  EXPECT_EQ(report(), clock.now() + milliseconds(20'000));  // a third of its life
  wait(milliseconds(20'000));
  report();
  ASSERT_EQ(control.reports.size(), 1U);
  EXPECT_TRUE(control.reports[0].observations.empty());
  EXPECT_EQ(report(), clock.now() + milliseconds(20'000));
}

TEST_F(CheckerSession, ABatchThatDidNotArriveIsSentAgainWithBackoff) {
  watch();
  session.observe(seen(1));
  wait(milliseconds(200));
  control.refuse_report = unavailable();
  const auto retry = report();
  EXPECT_LE(retry, clock.now() + milliseconds(500));
  session.observe(seen(2));
  control.refuse_report.reset();
  clock.set(std::max(retry, clock.now()));
  report();
  ASSERT_EQ(control.reports.size(), 2U);
  ASSERT_EQ(control.reports[1].observations.size(), 2U);
  EXPECT_EQ(control.reports[1].observations[0].task_id, 1U);
  EXPECT_EQ(session.status().counters.observations_lost, 0U);
  EXPECT_EQ(session.status().counters.observations_sent, 2U);
}

// CP-7: a replaced session registers again; what it had observed is worthless.
TEST_F(CheckerSession, AStaleSessionRegistersAgain) {
  watch();
  session.observe(seen(1));
  wait(milliseconds(200));
  control.refuse_report = stale();
  report();
  EXPECT_EQ(control.stream.cancelled, 1);
  EXPECT_EQ(session.status().counters.observations_lost, 1U);
  control.refuse_report.reset();
  const auto retry = watch();  // the stream ends
  EXPECT_FALSE(session.status().registered);
  EXPECT_LE(retry, clock.now() + milliseconds(500));
  session.observe(seen(2));  // of a probe that was still running
  clock.set(std::max(retry, clock.now()));
  watch();
  EXPECT_EQ(control.watched, (std::vector<std::string>{"c-1", "c-2"}));
  EXPECT_EQ(session.status().pending, 0U);
  EXPECT_EQ(session.status().counters.observations_lost, 2U);
  session.observe(seen(3));
  wait(milliseconds(500));
  report();
  EXPECT_EQ(control.reports.back().session, SessionId("c-2"));
}

TEST_F(CheckerSession, AStreamThatEndsLeadsToANewSession) {
  watch();
  control.stream.coming.emplace_back(stale());
  clock.set(std::max(watch(), clock.now()));
  watch();
  EXPECT_EQ(control.registrations, 2);
  const auto lines = events.lines();
  EXPECT_EQ(lines.at(0), "session_opened session=c-1");
  EXPECT_EQ(lines.at(1).find("session_lost reason=register again retry_in="), 0U);
  EXPECT_EQ(lines.at(2), "session_opened session=c-2");
}

// CP-8: full jitter from half a second on; no longer than five seconds, since after a restart of
// the controller nothing is served before its first check.
TEST_F(CheckerSession, TriesAgainWithGrowingPausesUpToFiveSeconds) {
  control.refuse_registration = unavailable();
  nanoseconds step = milliseconds(500);
  nanoseconds longest{0};
  for (int i = 0; i < 40; ++i) {
    const auto retry = watch();
    EXPECT_LE(retry - clock.now(), step);
    longest = std::max(longest, retry - clock.now());
    step = std::min<nanoseconds>(step * 2, seconds(5));
    EXPECT_EQ(session.watch_step(retry - nanoseconds(1)), retry);  // not before
    clock.set(retry);
  }
  EXPECT_EQ(control.registrations, 40);
  EXPECT_GT(longest, milliseconds(2'500));
  EXPECT_FALSE(session.status().terminal);
  EXPECT_EQ(session.status().warning, "nobody there");
}

TEST_F(CheckerSession, SessionsThatBreakAtOnceDoNotResetTheBackoffAndLongOnesDo) {
  nanoseconds longest{0};
  for (int i = 0; i < 30; ++i) {
    watch();
    control.stream.coming.emplace_back(unavailable());
    const auto retry = watch();
    longest = std::max(longest, retry - clock.now());
    clock.set(std::max(retry, clock.now()));
  }
  EXPECT_GT(longest, seconds(2));
  watch();
  wait(milliseconds(6'000));
  watch();
  control.stream.coming.emplace_back(unavailable());
  EXPECT_LE(watch(), clock.now() + milliseconds(500));
}

TEST_F(CheckerSession, ARefusalBeforeTheFirstSessionIsTerminalAndLaterOneIsNot) {
  control.refuse_registration = Error{ErrorCode::Forbidden, Origin::Client, "another cluster"};
  watch();
  EXPECT_TRUE(session.status().terminal);
  EXPECT_EQ(session.status().warning, "another cluster");
  clock.advance(seconds(60));
  EXPECT_EQ(watch(), kNever);

  Session second{settings(), control, [](Tasks) {}, events, clock, random, random};
  control.refuse_registration.reset();
  second.watch_step(clock.now());
  control.stream.coming.emplace_back(unavailable());
  const auto retry = second.watch_step(clock.now());
  control.refuse_registration = Error{ErrorCode::Forbidden, Origin::Client, "another cluster"};
  second.watch_step(std::max(retry, clock.now()));
  EXPECT_FALSE(second.status().terminal);
}

TEST_F(CheckerSession, KeepsABoundedNumberOfObservations) {
  for (std::uint64_t i = 0; i < 8'292; ++i) session.observe(seen(i));
  EXPECT_EQ(session.status().pending, 8'192U);
  EXPECT_EQ(session.status().counters.observations_lost, 100U);
}

TEST_F(CheckerSession, DrainingTakesNoMoreTasksAndReportsWhatIsLeft) {
  watch();
  session.drain();
  EXPECT_EQ(control.stream.cancelled, 1);
  EXPECT_EQ(watch(), kNever);
  EXPECT_EQ(watch(), kNever);
  EXPECT_EQ(control.registrations, 1);
  for (std::uint64_t i = 0; i < 600; ++i) session.observe(seen(i));
  ASSERT_TRUE(session.flush(Deadline::after(clock.now(), seconds(1))));
  ASSERT_EQ(control.reports.size(), 2U);
  EXPECT_EQ(control.reports[1].observations.size(), 88U);
  EXPECT_EQ(control.reports[1].session, SessionId("c-1"));
  ASSERT_TRUE(session.flush(Deadline::after(clock.now(), seconds(1))));
  EXPECT_EQ(control.reports.size(), 2U);
}

TEST_F(CheckerSession, FlushingWithoutASessionSendsNothing) {
  session.observe(seen(1));
  EXPECT_TRUE(session.flush(Deadline::after(clock.now(), seconds(1))));
  EXPECT_TRUE(control.reports.empty());
}

}  // namespace
}  // namespace proxypool::checker
