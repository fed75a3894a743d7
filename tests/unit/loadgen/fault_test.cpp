#include "loadgen/fault.hpp"

#include <gtest/gtest.h>

namespace proxypool::loadgen {
namespace {

TEST(FaultTest, EverySpellingComesBackAsItWasWritten) {
  for (const auto* text : {"none", "refuse", "hang", "slow:200ms", "garbage", "close-before-head",
                           "reset", "reset-on-accept", "reset-in-head", "truncate", "truncate:100",
                           "reset-in-body", "reset-in-body:100", "407", "502"}) {
    const auto fault = parse_fault(text);
    ASSERT_TRUE(fault) << text;
    EXPECT_EQ(to_text(*fault), text);
  }
}

TEST(FaultTest, WrongSpellingsAreRefusedWithTheKnownOnes) {
  for (const auto* text :
       {"", "hangs", "slow", "slow:", "slow:fast", "hang:1s", "truncate:x", "truncate:-1",
        "reset-in-head:5", "reset-in-body:", "99", "100", "600", "HANG"}) {
    const auto fault = parse_fault(text);
    ASSERT_FALSE(fault) << text;
    EXPECT_NE(fault.error().message.find("close-before-head"), std::string::npos) << text;
  }
}

TEST(FaultTest, ARuleNamesOneProxyOrAll) {
  const auto one = parse_fault_rule("12=reset");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->proxy, 12U);
  EXPECT_EQ(one->fault.kind, Fault::Kind::Reset);
  const auto all = parse_fault_rule("*=slow:1s");
  ASSERT_TRUE(all);
  EXPECT_FALSE(all->proxy);
  EXPECT_EQ(all->fault.delay, seconds{1});
  for (const auto* text : {"reset", "=reset", "x=reset", "-1=reset", "1=", "*", "1"}) {
    EXPECT_FALSE(parse_fault_rule(text)) << text;
  }
}

}  // namespace
}  // namespace proxypool::loadgen
