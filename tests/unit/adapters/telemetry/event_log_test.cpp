#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "adapters/telemetry/telemetry.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/base/concurrent.hpp"
#include "runtime/manual_clock.hpp"
#include "support/recording_events.hpp"

namespace proxypool::telemetry {
namespace {

using ports::Event;
using ports::Level;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class EventLogTest : public testing::Test {
 protected:
  void open(Level level, std::size_t queue_lines_max = 8192) {
    telemetry = make_telemetry({.process = "test",
                                .level = level,
                                .format = Format::Text,
                                .queue_lines_max = queue_lines_max,
                                .write =
                                    [this](std::string_view line) {
                                      before_write();
                                      lines.with([&](auto& all) { all.emplace_back(line); });
                                    }},
                               clock);
  }
  // Ends the log: what was queued is written by then.
  std::vector<std::string> written() {
    telemetry.reset();
    return lines.with([](const auto& all) { return all; });
  }
  std::string metric(const std::string& name) {
    const std::string text = telemetry->metrics().render();
    const auto at = text.find("\n" + name + " ") + name.size() + 2;
    return text.substr(at, text.find('\n', at) - at);
  }

  runtime::ManualClock clock;
  std::function<void()> before_write = [] {};
  Guarded<std::vector<std::string>> lines;
  std::unique_ptr<Telemetry> telemetry;
};

TEST_F(EventLogTest, WritesAnEventAsALine) {
  open(Level::Info);
  telemetry->events().emit(Event::RoutingSwitched, {{"routing", "cn"}, {"from", "a"}, {"to", "b"}});
  EXPECT_THAT(written(), ElementsAre("2023-11-14T22:13:20.000Z INFO  routing_switched routing=cn "
                                     "from=a to=b\n"));
}

TEST_F(EventLogTest, WritesTheLevelAndAbove) {
  open(Level::Warn);
  EXPECT_FALSE(telemetry->events().enabled(Level::Info));
  telemetry->events().emit(Event::ProcessReady);
  telemetry->events().emit(Event::StoreFailed);
  telemetry->set_level(Level::Debug);
  telemetry->events().emit(Event::ProcessReady);
  EXPECT_THAT(written(), ElementsAre(HasSubstr("store_failed"), HasSubstr("process_ready")));
}

TEST_F(EventLogTest, TheEndWritesWhatIsStillQueued) {
  open(Level::Info);
  for (int i = 0; i < 1000; ++i) telemetry->events().emit(Event::ProcessReady, {{"after", i}});
  const auto all = written();
  ASSERT_EQ(all.size(), 1000U);
  EXPECT_THAT(all.back(), EndsWith("after=999\n"));
}

TEST_F(EventLogTest, AFullQueueDropsTheOldestAndCountsThem) {
  std::latch writing(1);
  std::latch go_on(1);
  before_write = [&, first = true]() mutable {
    if (first) {
      writing.count_down();
      go_on.wait();
    }
    first = false;
  };
  open(Level::Info, 4);
  telemetry->events().emit(Event::ProcessReady, {{"after", -1}});
  writing.wait();
  for (int i = 0; i < 10; ++i) telemetry->events().emit(Event::ProcessReady, {{"after", i}});
  EXPECT_EQ(metric("proxypool_log_dropped_total"), "6");
  go_on.count_down();
  EXPECT_THAT(written(),
              ElementsAre(EndsWith("after=-1\n"), EndsWith("after=6\n"), EndsWith("after=7\n"),
                          EndsWith("after=8\n"), EndsWith("after=9\n")));
}

// OP-4: rate-limited per message.
TEST_F(EventLogTest, AFloodOfOneEventIsCountedNotWritten) {
  open(Level::Info);
  for (int i = 0; i < 100; ++i) telemetry->events().emit(Event::Overloaded);
  telemetry->events().emit(Event::ProcessReady);
  EXPECT_EQ(metric("proxypool_log_suppressed_total"), "99");
  clock.advance(seconds{1});
  telemetry->events().emit(Event::Overloaded);
  EXPECT_THAT(written(), ElementsAre(EndsWith("overloaded\n"), HasSubstr("process_ready"),
                                     EndsWith("overloaded left_out=99\n")));
}

TEST_F(EventLogTest, AFieldThatTheTableDoesNotKnowIsABugOfOurs) {
  open(Level::Info);
  const auto bugs = bugs_counted();
  telemetry->events().emit(Event::ProcessReady, {{"after", 1}});
  EXPECT_EQ(bugs_counted(), bugs);
  telemetry->events().emit(Event::ProcessReady, {{"afterwards", 1}});
  EXPECT_EQ(bugs_counted(), bugs + 1);
}

TEST_F(EventLogTest, ManyThreadsWriteWholeLines) {
  open(Level::Info);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) telemetry->events().emit(Event::ProcessReady, {{"after", i}});
    });
  }
  for (auto& thread : threads) thread.join();
  const auto all = written();
  EXPECT_EQ(all.size(), 1000U);
  for (const auto& line : all) ASSERT_EQ(line.find('\n'), line.size() - 1);
}

TEST(EventTableTest, NamesDiffer) {
  for (const auto& a : ports::kEvents) {
    for (const auto& b : ports::kEvents) {
      ASSERT_TRUE(a.event == b.event || a.name != b.name) << a.name;
    }
  }
}

TEST(EventTableTest, KnowsItsFieldsWhole) {
  EXPECT_TRUE(ports::has_field(Event::RoutingSwitched, "routing"));
  EXPECT_TRUE(ports::has_field(Event::RoutingSwitched, "reason"));
  EXPECT_FALSE(ports::has_field(Event::RoutingSwitched, "rout"));
  EXPECT_FALSE(ports::has_field(Event::RoutingSwitched, ""));
}

TEST(RecordingEventsTest, KeepsWhatWasSaid) {
  test::RecordingEvents events;
  ports::Events& port = events;
  port.emit(Event::RoutingSwitched, {{"routing", "cn"}, {"from", std::string("a")}});
  EXPECT_THAT(events.lines(), ElementsAre("routing_switched routing=cn from=a"));
  EXPECT_EQ(events.count(Event::RoutingSwitched), 1U);
}

}  // namespace
}  // namespace proxypool::telemetry
