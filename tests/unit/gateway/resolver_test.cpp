// Names without a serving thread that waits (GW-21): how often is asked, what is believed, what is
// the most.
#include "gateway/transport/resolver.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "net/event_loop.hpp"
#include "runtime/manual_clock.hpp"

namespace proxypool::gateway {
namespace {

using Outcome = Resolved::Outcome;
using Answer = Result<std::vector<IpAddress>>;

class ResolverTest : public ::testing::Test {
 protected:
  void make(Resolver::LookUp look_up, Resolver::Limits limits = {2, 8}) {
    resolver_.emplace(clock_, std::move(look_up), seconds(1), limits);
  }
  void TearDown() override {
    open_ = true;
    if (resolver_) resolver_->stop();
  }
  bool asked_for(const std::string& name) { return !resolver_->resolve(name, asker_); }
  Resolved answer(int number) {
    while (answers_ < number) loop_.turn(milliseconds(10));
    return last_;
  }
  // Waits as long as the test wants.
  Answer held() {
    ++inside_;
    while (!open_) std::this_thread::yield();
    return std::vector{IpAddress::v4(1)};
  }

  runtime::ManualClock clock_;
  net::EventLoop loop_;
  std::atomic<int> asked_{0};
  std::atomic<int> inside_{0};
  std::atomic<bool> open_{false};
  int answers_ = 0;
  Resolved last_;
  Resolver::Asker asker_{loop_, [this](const std::string&, const Resolved& resolved) {
                           ++answers_;
                           last_ = resolved;
                         }};
  std::optional<Resolver> resolver_;
};

TEST_F(ResolverTest, AsksOnceForAllAndBelievesForAWhile) {
  const std::vector both{*IpAddress::parse("2001:db8::1"), *IpAddress::parse("192.0.2.1")};
  make([&](const std::string& name, Deadline) -> Answer {
    ++asked_;
    while (!open_) std::this_thread::yield();
    if (name == "gone.example") return Error{ErrorCode::NotFound, Origin::Target, "no"};
    return both;
  });
  EXPECT_TRUE(asked_for("a.example"));
  EXPECT_TRUE(asked_for("a.example")) << "the same look-up";
  open_ = true;
  const Resolved found = answer(1);
  EXPECT_EQ(found.outcome, Outcome::Found);
  EXPECT_EQ(found.addresses, both) << "all of them, in the resolver's order";
  EXPECT_FALSE(asked_for("a.example"));
  EXPECT_EQ(asked_, 1);
  clock_.advance(Resolver::kFresh);
  EXPECT_TRUE(asked_for("a.example")) << "asked anew";
  EXPECT_TRUE(asked_for("gone.example"));
  (void)answer(3);
  const auto gone = resolver_->resolve("gone.example", asker_);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->outcome, Outcome::Unknown);
  EXPECT_TRUE(gone->addresses.empty());
  clock_.advance(Resolver::kFailed);
  EXPECT_TRUE(asked_for("gone.example")) << "a failure is forgotten soon";
}

TEST_F(ResolverTest, TellsLateFromUnknownAndFromBusy) {
  make([](const std::string& name, Deadline) -> Answer {
    if (name == "late") return Error{ErrorCode::DeadlineExceeded, Origin::Target, "no answer"};
    if (name == "busy") return Error{ErrorCode::Exhausted, Origin::Target, "too many"};
    if (name == "empty") return std::vector<IpAddress>{};
    return Error{ErrorCode::Unavailable, Origin::Target, "nobody knows"};
  });
  int number = 0;
  for (const auto& [name, outcome] :
       std::vector<std::pair<std::string, Outcome>>{{"late", Outcome::Late},
                                                    {"busy", Outcome::Busy},
                                                    {"empty", Outcome::Unknown},
                                                    {"other", Outcome::Unknown}}) {
    EXPECT_TRUE(asked_for(name));
    EXPECT_EQ(answer(++number).outcome, outcome) << name;
  }
  clock_.advance(Resolver::kBusy);
  EXPECT_TRUE(asked_for("busy")) << "that passes quickly";
  EXPECT_FALSE(asked_for("late"));
}

// Two at once, eight in line; the eleventh name is told so at once, and nobody waits for it.
TEST_F(ResolverTest, HasAMostOfLookUpsAtOnce) {
  make([&](const std::string&, Deadline) { return held(); });
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(asked_for("running-" + std::to_string(i)));
  while (inside_ < 2) std::this_thread::yield();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(asked_for("waiting-" + std::to_string(i)));
  const auto over = resolver_->resolve("over", asker_);
  ASSERT_TRUE(over);
  EXPECT_EQ(over->outcome, Outcome::Busy);
  EXPECT_TRUE(asked_for("running-0")) << "who asks for the same costs nothing";
  EXPECT_EQ(inside_, 2);
  open_ = true;
  EXPECT_EQ(answer(10).outcome, Outcome::Found);
  EXPECT_TRUE(asked_for("over")) << "and now there is room";
}

TEST_F(ResolverTest, DoesNotLookUpWhatNobodyWaitsForAnyMore) {
  make([&](const std::string&, Deadline) { return held(); });
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(asked_for("running-" + std::to_string(i)));
  while (inside_ < 2) std::this_thread::yield();
  EXPECT_TRUE(asked_for("in-line"));
  clock_.advance(seconds(1));
  open_ = true;
  (void)answer(3);
  const auto late = resolver_->resolve("in-line", asker_);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->outcome, Outcome::Late);
  EXPECT_EQ(inside_, 2);
}

TEST_F(ResolverTest, KeepsOnlySoManyAddressesOfAName) {
  make([](const std::string&, Deadline) -> Answer {
    return std::vector<IpAddress>(1000, IpAddress::v4(1));
  });
  EXPECT_TRUE(asked_for("many.example"));
  EXPECT_EQ(answer(1).addresses.size(), Resolver::kAddressesMax);
}

TEST(NameTable, ForgetsWhatIsNotBelievedFirstAndNeverGrowsBeyondItsMost) {
  NameTable table;
  const TimePoint now{seconds(100)};
  const auto learn = [&](const std::string& name, TimePoint until) {
    table.learn(name, {Outcome::Found, {IpAddress::v4(1)}, until}, now);
  };
  learn("kept", now + seconds(1));
  EXPECT_NE(table.find("kept", now), nullptr);
  EXPECT_EQ(table.find("kept", now + seconds(1)), nullptr);
  EXPECT_EQ(table.find("other", now), nullptr);
  for (std::size_t i = 1; i < NameTable::kNamesMax; ++i) learn("old-" + std::to_string(i), now);
  EXPECT_EQ(table.size(), NameTable::kNamesMax);
  learn("new", now + seconds(1));
  EXPECT_EQ(table.size(), 2U);
  EXPECT_NE(table.find("kept", now), nullptr);
  for (std::size_t i = 0; i < 3 * NameTable::kNamesMax; ++i) {
    learn(std::to_string(i), now + seconds(1));
    ASSERT_LE(table.size(), NameTable::kNamesMax);
  }
}

}  // namespace
}  // namespace proxypool::gateway
