#include "loadgen/options.hpp"

#include <gtest/gtest.h>

namespace proxypool::loadgen {
namespace {

struct Parsed {
  std::uint64_t count = 1;
  nanoseconds wait{0};
  bool on = true;
  std::string url;

  Result<Options::Outcome> parse(std::vector<std::string> arguments) {
    return options().parse(arguments);
  }
  Options options() {
    Options out("program [options] URL", "Does things.");
    out.group("First");
    out.value("--count", "N", "how many", "1", number_into(count, 1, 100));
    out.value("--wait", "DURATION", "how long", "", duration_into(wait));
    out.flag("--no-thing", "without the thing", on, false);
    out.positional("URL", "where", text_into(url));
    return out;
  }
};

TEST(OptionsTest, ValuesStandBehindABlankOrAnEqualsSign) {
  Parsed parsed;
  const auto outcome = parsed.parse({"--count", "7", "http://h", "--wait=250ms", "--no-thing"});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(*outcome, Options::Outcome::Run);
  EXPECT_EQ(parsed.count, 7U);
  EXPECT_EQ(parsed.wait, milliseconds{250});
  EXPECT_FALSE(parsed.on);
  EXPECT_EQ(parsed.url, "http://h");
}

// OP-1
TEST(OptionsTest, AnUnknownOptionNamesTheNearestOne) {
  Parsed parsed;
  const auto outcome = parsed.parse({"--cuont", "7"});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "unknown option --cuont; did you mean --count?");
  EXPECT_EQ(parsed.parse({"--zzzzzzzz"}).error().message, "unknown option --zzzzzzzz");
}

TEST(OptionsTest, MistakesSayWhatWouldBeRight) {
  Parsed parsed;
  EXPECT_EQ(parsed.parse({"--count", "0"}).error().message,
            "--count: '0' is not a whole number from 1 to 100");
  EXPECT_EQ(parsed.parse({"--count"}).error().message, "--count needs a value: N");
  EXPECT_EQ(parsed.parse({"--no-thing=1"}).error().message, "--no-thing takes no value");
  EXPECT_EQ(parsed.parse({"a", "b"}).error().message, "unexpected argument 'b'");
  EXPECT_NE(parsed.parse({"--wait", "10"}).error().message.find("250ms"), std::string::npos);
}

// OP-1
TEST(OptionsTest, HelpIsGroupedAndShowsDefaults) {
  const auto help = Parsed{}.options().help();
  EXPECT_NE(help.find("Usage: program [options] URL\n"), std::string::npos);
  EXPECT_NE(help.find("\nFirst:\n  --count N                   how many (default 1)\n"),
            std::string::npos)
      << help;
  EXPECT_EQ(*Parsed{}.parse({"--count", "3", "--help"}), Options::Outcome::Help);
  EXPECT_EQ(*Parsed{}.parse({"--version"}), Options::Outcome::Version);
}

}  // namespace
}  // namespace proxypool::loadgen
