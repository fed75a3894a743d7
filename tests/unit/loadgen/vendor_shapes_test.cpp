#include "loadgen/vendor_shapes.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace proxypool::loadgen {
namespace {

Offer offer() {
  Offer out;
  out.index = 4;
  out.host = "127.0.0.1";
  out.port = 8080;
  out.user = "u";
  out.password = "p";
  out.expires_ms = 1'796'009'692'518;
  out.ttl_s = 30;
  out.country = "DE";
  out.region = "BE";
  out.city = "Berlin";
  out.carrier = "beta";
  return out;
}

nlohmann::json json_of(VendorShape shape) {
  const Offer one = offer();
  return nlohmann::json::parse(offer_answer(shape, {&one, 1}).body);
}
std::string text_of(VendorShape shape, const Offer& one) {
  return offer_answer(shape, {&one, 1}).body;
}

TEST(VendorShapesTest, TextLinesComeInThreeSpellings) {
  EXPECT_EQ(text_of(VendorShape::TextLines, offer()), "127.0.0.1:8080\r\n");
  EXPECT_EQ(text_of(VendorShape::TextColon, offer()), "127.0.0.1:8080:u:p\r\n");
  EXPECT_EQ(text_of(VendorShape::TextUrl, offer()), "http://u:p@127.0.0.1:8080\r\n");
  Offer open = offer();
  open.user.clear();
  EXPECT_EQ(text_of(VendorShape::TextColon, open), "127.0.0.1:8080\r\n");
  EXPECT_EQ(text_of(VendorShape::TextUrl, open), "http://127.0.0.1:8080\r\n");
}

TEST(VendorShapesTest, JsonShapesNestAndTellTheExpiryInFiveWays) {
  const auto list = json_of(VendorShape::JsonList);
  EXPECT_EQ(list.at("/code"_json_pointer), 0);
  EXPECT_EQ(list.at("/data/list/0/ip"_json_pointer), "127.0.0.1");
  EXPECT_EQ(list.at("/data/list/0/port"_json_pointer), 8080);
  EXPECT_EQ(list.at("/data/list/0/expire_time"_json_pointer), "2026-11-30T03:34:52.518Z");
  EXPECT_EQ(list.at("/data/list/0/country"_json_pointer), "DE");
  const auto array = json_of(VendorShape::JsonArray);
  EXPECT_EQ(array.at("/0/port"_json_pointer), "8080");
  EXPECT_EQ(array.at("/0/ttl"_json_pointer), 30);
  const auto strings = json_of(VendorShape::JsonStrings);
  EXPECT_EQ(strings.at("/data/proxy_list/0"_json_pointer), "127.0.0.1:8080,30");
  const auto map = json_of(VendorShape::JsonMap);
  EXPECT_EQ(map.at("/list/1005/unixtime_end"_json_pointer), 1'796'009'692);
  const auto millis = json_of(VendorShape::JsonMillis);
  EXPECT_EQ(millis.at("/result/items/0/endpoint"_json_pointer), "127.0.0.1:8080");
  EXPECT_EQ(millis.at("/result/items/0/expired"_json_pointer), 1'796'009'692'518);
}

TEST(VendorShapesTest, ErrorsAreMostlyToldWithStatus200) {
  for (const auto* path : {"/text", "/text/colon", "/text/url", "/json/list", "/json/strings",
                           "/json/map", "/json/millis"}) {
    const auto answer = error_answer(*shape_at(path));
    EXPECT_EQ(answer.status, 200U) << path;
    EXPECT_NE(answer.body.find("too many calls"), std::string::npos) << path;
  }
  const auto array = error_answer(VendorShape::JsonArray);
  EXPECT_EQ(array.status, 429U);
  EXPECT_EQ(array.retry_after_s, 2U);
  EXPECT_FALSE(shape_at("/json/other"));
}

TEST(VendorShapesTest, NothingLeftIsAnEmptyBodyAnEmptyListOrACode) {
  EXPECT_EQ(empty_answer(VendorShape::TextLines).body, "");
  EXPECT_EQ(empty_answer(VendorShape::JsonArray).body, "[]\n");
  const auto list = nlohmann::json::parse(empty_answer(VendorShape::JsonList).body);
  EXPECT_TRUE(list.at("/data/list"_json_pointer).empty());
  const auto strings = nlohmann::json::parse(empty_answer(VendorShape::JsonStrings).body);
  EXPECT_EQ(strings.at("/code"_json_pointer), 115);
}

}  // namespace
}  // namespace proxypool::loadgen
