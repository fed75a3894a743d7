#include "runtime/group.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/manual_clock.hpp"

namespace proxypool::runtime {
namespace {

class GroupTest : public testing::Test {
 protected:
  Member member(const std::string& name) {
    return {.name = name,
            .start = [this, name]() -> Status {
              calls.push_back("start " + name);
              if (name == failing) return Error{ErrorCode::Unavailable, Origin::Internal, "port"};
              return ok();
            },
            .stop_intake = [this, name] { calls.push_back("intake " + name); },
            .drain =
                [this, name](Deadline) {
                  calls.push_back("drain " + name);
                  clock.advance(seconds{1});
                  return name != busy;
                },
            .stop = [this, name] { calls.push_back("stop " + name); }};
  }
  Group::Report record() {
    return [this](const StageReport& report) {
      reports.push_back(std::string(to_string(report.stage)) + " " + std::string(report.member) +
                        (report.complete ? "" : " incomplete") + " " +
                        std::to_string(report.took / milliseconds{1}) + std::string(report.error));
    };
  }

  ManualClock clock;
  std::string failing;
  std::string busy;
  std::vector<std::string> calls;
  std::vector<std::string> reports;
};

using Texts = std::vector<std::string>;

TEST_F(GroupTest, ShutsDownInStagesAndInReverse) {
  Group group(clock, record());
  group.add(member("a"));
  group.add(member("b"));
  ASSERT_TRUE(group.start());
  EXPECT_EQ(calls, (Texts{"start a", "start b"}));
  calls.clear();
  EXPECT_TRUE(group.shutdown(Deadline{}));
  EXPECT_EQ(calls, (Texts{"intake b", "intake a", "drain b", "drain a", "stop b", "stop a"}));
  EXPECT_TRUE(group.shutdown(Deadline{}));
  EXPECT_EQ(calls.size(), 6U);
}

TEST_F(GroupTest, AFailedStartStopsWhatStoodBefore) {
  failing = "b";
  {
    Group group(clock, record());
    for (const char* name : {"a", "b", "c"}) group.add(member(name));
    const Status status = group.start();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "port");
  }
  EXPECT_EQ(calls, (Texts{"start a", "start b", "intake a", "drain a", "stop a"}));
  EXPECT_EQ(reports[1], "start b incomplete 0port");
}

TEST_F(GroupTest, ReportsWhatDidNotDrain) {
  busy = "b";
  Group group(clock, record());
  group.add(member("a"));
  group.add(member("b"));
  ASSERT_TRUE(group.start());
  EXPECT_FALSE(group.shutdown(Deadline{}));
  EXPECT_EQ(reports, (Texts{"start a 0", "start b 0", "stop_intake b 0", "stop_intake a 0",
                            "drain b incomplete 1000", "drain a 1000", "stop b 0", "stop a 0"}));
}

TEST_F(GroupTest, AMemberMayHaveNothingToDo) {
  Group group(clock, record());
  group.add({.name = "quiet", .start = {}, .stop_intake = {}, .drain = {}, .stop = {}});
  ASSERT_TRUE(group.start());
  EXPECT_TRUE(group.shutdown(Deadline{}));
  EXPECT_EQ(reports, (Texts{"start quiet 0"}));
}

TEST_F(GroupTest, TheEndOfTheGroupStopsItsMembers) {
  {
    Group group(clock, record());
    group.add(member("a"));
    ASSERT_TRUE(group.start());
  }
  EXPECT_EQ(calls.back(), "stop a");
}

}  // namespace
}  // namespace proxypool::runtime
