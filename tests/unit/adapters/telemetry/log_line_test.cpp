#include "adapters/telemetry/log_line.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace proxypool::telemetry {
namespace {

using ports::Event;
using ports::Field;

const LineHead kHead{WallTime{milliseconds{1'700'000'000'123}}, "gateway", 0};

std::string text(const std::vector<Field>& fields, LineHead head = kHead) {
  return compose_line(Format::Text, head, Event::ProcessReady, fields);
}
std::string json(const std::vector<Field>& fields, LineHead head = kHead) {
  return compose_line(Format::Json, head, Event::ProcessReady, fields);
}
// What follows the time, the level and the name.
std::string tail(const std::vector<Field>& fields) {
  return text(fields).substr(std::string("2023-11-14T22:13:20.123Z INFO  process_ready").size());
}

TEST(LogLineTest, TextBeginsWithTimeLevelAndName) {
  EXPECT_EQ(text({}), "2023-11-14T22:13:20.123Z INFO  process_ready\n");
}

TEST(LogLineTest, JsonCarriesEverythingAsMembers) {
  const std::string line = json({{"a", "x"}, {"n", 7}, {"ok", true}});
  EXPECT_EQ(line,
            "{\"ts\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\",\"process\":\"gateway\","
            "\"event\":\"process_ready\",\"a\":\"x\",\"n\":7,\"ok\":true}\n");
}

TEST(LogLineTest, NumbersKeepTheirSignAndTheirSize) {
  EXPECT_EQ(tail({{"a", -5}, {"b", std::numeric_limits<std::uint64_t>::max()}, {"c", 0.25}}),
            " a=-5 b=18446744073709551615 c=0.25\n");
  EXPECT_EQ(tail({{"c", std::nan("")}}), " c=nan\n");
  EXPECT_TRUE(json({{"c", std::nan("")}}).ends_with(",\"c\":null}\n"));
}

TEST(LogLineTest, DurationsHaveAUnit) {
  EXPECT_EQ(tail({{"a", seconds{90}}, {"b", milliseconds{12}}, {"c", nanoseconds{1'234'567}}}),
            " a=90s b=12ms c=1.235ms\n");
  EXPECT_EQ(tail({{"a", nanoseconds{1'500}}, {"b", nanoseconds{7}}, {"c", nanoseconds{0}}}),
            " a=1.5us b=7ns c=0s\n");
  EXPECT_TRUE(json({{"took", milliseconds{12}}}).ends_with(",\"took_s\":0.012}\n"));
}

TEST(LogLineTest, TextIsQuotedWhereItMustBe) {
  EXPECT_EQ(tail({{"a", "two words"}, {"b", ""}, {"c", "x=y"}, {"d", "say \"hi\""}, {"e", "ok"}}),
            " a=\"two words\" b=\"\" c=\"x=y\" d=\"say \\\"hi\\\"\" e=ok\n");
}

// GW-36, OP-4: nobody's input can forge a line.
TEST(LogLineTest, ControlCharactersNeverReachTheLine) {
  const std::string evil = "a\nb\r\x1b[31m\t\x7f" + std::string(1, '\0');
  EXPECT_EQ(tail({{"a", evil}}), " a=\"a\\nb\\x0d\\x1b[31m\\x09\\x7f\\x00\"\n");
  const std::string line = json({{"a", evil}});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(nlohmann::json::parse(line)["a"], evil);
}

TEST(LogLineTest, BytesThatAreNotUtf8StillGiveJson) {
  for (const std::string bytes : {"\xff", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80",
                                  "\xf4\x90\x80\x80", "\xf0\x9f\x98", "a\x80z"}) {
    const auto line = json({{"a", bytes}});
    ASSERT_TRUE(nlohmann::json::accept(line)) << line;
    EXPECT_NE(nlohmann::json::parse(line)["a"].get<std::string>().find("\xEF\xBF\xBD"),
              std::string::npos);
  }
  const std::string good = "Gr\xC3\xBC\xC3\x9F\x65 \xE4\xB8\xAD\xF0\x9F\x98\x80";
  EXPECT_EQ(nlohmann::json::parse(json({{"a", good}}))["a"], good);
  EXPECT_EQ(tail({{"a", "\xff"}}), " a=\"\\xff\"\n");
}

TEST(LogLineTest, EveryByteGivesAValidLine) {
  for (int c = 0; c < 256; ++c) {
    const std::string value(1, static_cast<char>(c));
    ASSERT_TRUE(nlohmann::json::accept(json({{"a", value}}))) << c;
    const auto line = text({{"a", value}});
    ASSERT_EQ(line.find('\n'), line.size() - 1) << c;
  }
}

// GW-12: memory is bounded, log lines too.
TEST(LogLineTest, LongValuesAreCut) {
  const auto line = tail({{"a", std::string(100'000, 'x')}});
  EXPECT_LT(line.size(), 1'100U);
  EXPECT_TRUE(line.ends_with("x…\n"));
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\xE4\xB8\xAD";  // the cut falls inside a character
  EXPECT_TRUE(nlohmann::json::accept(json({{"a", wide}})));
}

TEST(LogLineTest, SaysHowManyLinesWereLeftOut) {
  const LineHead head{kHead.time, "gateway", 42};
  EXPECT_TRUE(text({}, head).ends_with(" left_out=42\n"));
  EXPECT_TRUE(json({}, head).ends_with(",\"left_out\":42}\n"));
}

}  // namespace
}  // namespace proxypool::telemetry
