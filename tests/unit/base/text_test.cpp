#include "proxypool/base/text.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxypool/base/random.hpp"

namespace proxypool {
namespace {

using Parts = std::vector<std::string_view>;

TEST(TextTest, LowersAsciiAlone) {
  EXPECT_EQ(lower("AbZ[@`{é"), "abz[@`{é");
  EXPECT_TRUE(equal_ignoring_case("Content-Length", "cONTENT-lENGTH"));
  EXPECT_FALSE(equal_ignoring_case("a", "ab"));
  EXPECT_FALSE(equal_ignoring_case("[", "{"));  // they differ by the bit that letters differ by
}

TEST(TextTest, TrimsBlanksAtBothEnds) {
  EXPECT_EQ(trim(" \t\r\n a b \n"), "a b");
  EXPECT_EQ(trim(" \t "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(TextTest, SplitsIntoOnePartMoreThanSeparators) {
  EXPECT_EQ(split("a,b,,c", ','), (Parts{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ','), (Parts{""}));
  EXPECT_EQ(split(",", ','), (Parts{"", ""}));
}

TEST(NumberTest, ReadsDigitsAndNothingElse) {
  EXPECT_EQ(parse_number<int>("0"), 0);
  EXPECT_EQ(parse_number<std::uint8_t>("255"), 255);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  for (const auto* text : {"", "-1", "+1", " 1", "1 ", "1a", "0x1", "a"}) {
    EXPECT_EQ(parse_number<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<std::uint8_t>("256"), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>("9223372036854775808"), std::nullopt);
}

TEST(DurationTest, ReadsOneNumberAndOneUnit) {
  EXPECT_EQ(parse_duration("250ms"), milliseconds{250});
  EXPECT_EQ(parse_duration("10s"), seconds{10});
  EXPECT_EQ(parse_duration("5m"), std::chrono::minutes{5});
  EXPECT_EQ(parse_duration("2h"), std::chrono::hours{2});
  EXPECT_EQ(parse_duration("0"), seconds{0});
  EXPECT_EQ(parse_duration("0ms"), seconds{0});
  for (const auto* text : {"", "5", "s", "1.5s", "-1s", "1 s", "1S", "1us", "1d", "1h30m", "1ss"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(DurationTest, StopsAtAHundredYearsInsteadOfOverflowing) {
  EXPECT_TRUE(parse_duration("878400h"));
  EXPECT_FALSE(parse_duration("878401h"));
  EXPECT_FALSE(parse_duration("9223372036854775807h"));
  EXPECT_FALSE(parse_duration("9223372036854775807ms"));
}

TEST(DurationTest, WritesTheShortestSpellingThatReadsBack) {
  for (const auto* text : {"0s", "1ms", "250ms", "1s", "90s", "5m", "2h", "61s", "1001ms", "25h"}) {
    EXPECT_EQ(format_duration(parse_duration(text).value()), text);
  }
  EXPECT_EQ(format_duration(milliseconds{60'000}), "1m");
  EXPECT_EQ(format_duration(nanoseconds{1'999'999}), "1ms");
}

TEST(BytesTest, ReadsAndWritesSizes) {
  EXPECT_EQ(parse_bytes("64KiB"), 65'536U);
  EXPECT_EQ(parse_bytes("2GiB"), 2'147'483'648U);
  EXPECT_EQ(parse_bytes("17"), 17U);
  for (const auto* text : {"0B", "512B", "64KiB", "16MiB", "2GiB", "1025B"}) {
    EXPECT_EQ(format_bytes(parse_bytes(text).value()), text);
  }
  for (const auto* text : {"", "KiB", "1kB", "1KB", "1 KiB", "-1", "1.5MiB", "1TiB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
  EXPECT_TRUE(parse_bytes("17179869183GiB"));
  EXPECT_FALSE(parse_bytes("17179869184GiB"));
}

// RFC 4648 §10.
TEST(Base64Test, GivesThePublishedTexts) {
  const std::vector<std::pair<std::string, std::string>> cases{{"", ""},
                                                               {"f", "Zg=="},
                                                               {"fo", "Zm8="},
                                                               {"foo", "Zm9v"},
                                                               {"foob", "Zm9vYg=="},
                                                               {"fooba", "Zm9vYmE="},
                                                               {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : cases) {
    EXPECT_EQ(base64_encode(plain), text);
    EXPECT_EQ(base64_decode(text), plain);
    EXPECT_EQ(base64_decode(text.substr(0, text.find('='))), plain);
  }
  EXPECT_EQ(base64_encode("\xfb\xff", true), "-_8");
  EXPECT_EQ(base64_encode("\xfb\xff"), "+/8=");
}

TEST(Base64Test, EveryValueHasOneSpelling) {
  for (const auto* text : {"Zh==", "Zm9=", "Z", "Zg=", "Zg===", "Zm8==", "Zm9v=", "=",
                           "====", "Zg==Zg==", "Z g=", "Zg\n", "-_8", "Zm9vYg=a"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

TEST(Base64Test, ReadsBackWhatItWrote) {
  SplitMix64 random(1);
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes(random.below(40), '\0');
    for (char& c : bytes) c = static_cast<char>(random.next());
    ASSERT_EQ(base64_decode(base64_encode(bytes)), bytes);
  }
}

TEST(HexTest, WritesTwoDigitsAByte) {
  EXPECT_EQ(hex(std::string("\x00\x0f\xff", 3)), "000fff");
}

TEST(TimeTextTest, WritesUtcWithMilliseconds) {
  EXPECT_EQ(format_time(WallTime{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(WallTime{milliseconds{1'709'210'096'007}}), "2024-02-29T12:34:56.007Z");
  EXPECT_EQ(format_time(WallTime{milliseconds{-1}}), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_time(WallTime{milliseconds{253'402'300'799'999}}), "9999-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace proxypool
