#include "adapters/provider_template/extract.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace proxypool::provider_template {
namespace {

using config::MapValue;

const WallTime kNow{milliseconds{1'700'000'000'000}};

MapValue item(std::vector<std::string> path) {
  MapValue value;
  value.path = std::move(path);
  return value;
}
MapValue constant(std::string text) {
  MapValue value;
  value.kind = MapValue::Kind::Constant;
  value.text = std::move(text);
  return value;
}

// host and port from members of these names.
config::MapConfig by_members() {
  config::MapConfig map;
  map.host = item({"ip"});
  map.port = item({"port"});
  return map;
}

Extracted json(std::string_view text, const config::MapConfig& map,
               std::vector<std::string> from = {}) {
  config::RecordsConfig records;
  records.from = std::move(from);
  auto extracted = extract_json(text, records, map, kNow);
  EXPECT_TRUE(extracted);
  return extracted ? *std::move(extracted) : Extracted{};
}

TEST(ExtractLines, EachLineIsAProxyAndCommentsAreNone) {
  const auto out = extract_lines(
      "\xEF\xBB\xBF# a list\r\n192.0.2.1:8080\r\n\n  http://u:p@host.example:3128 \n"
      "192.0.2.2:80:name:pa:ss\nno proxy\n",
      {}, kNow);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->records, 4U);
  EXPECT_EQ(out->invalid, 1U);
  EXPECT_EQ(out->first_invalid, "line 6");
  ASSERT_EQ(out->candidates.size(), 3U);
  EXPECT_EQ(out->candidates[0].endpoint,
            (domain::Endpoint{domain::Scheme::Http, "192.0.2.1", 8080}));
  EXPECT_EQ(out->candidates[1].endpoint.host, "host.example");
  EXPECT_EQ(out->candidates[1].credential.username, "u");
  EXPECT_EQ(out->candidates[2].credential.password.reveal(), "pa:ss");
  EXPECT_FALSE(out->candidates[0].expires_at);
}

TEST(ExtractLines, AFormOfItsOwnIsRead) {
  config::MapConfig map;
  map.as = config::EndpointExpression{item({}), config::ProxyForm::UserPassHostPort};
  map.country = constant("de");
  const auto out = extract_lines("me:secret:192.0.2.1:80", map, kNow);
  ASSERT_TRUE(out && out->candidates.size() == 1);
  EXPECT_EQ(out->candidates[0].credential.username, "me");
  EXPECT_EQ(out->candidates[0].endpoint.port, 80);
  EXPECT_EQ(out->candidates[0].attributes.country, "DE");
}

// CT-12, CT-14: nested lists, objects of records, and everything that a map can name.
TEST(ExtractJson, RecordsAreFoundByThePathAndMembersByTheMap) {
  auto map = by_members();
  map.host = item({"net", "ip"});
  map.username = item({"user"});
  map.password = constant("pw");
  map.city = item({"geo", "city"});
  map.tags.emplace_back("plan", item({"plan"}));
  const auto out = json(R"({"data":{"list":[
      {"net":{"ip":"192.0.2.7"},"port":8000,"user":"u","geo":{"city":"New York"},"plan":7},
      {"net":{"ip":"Host.Example."},"port":"81","user":null}]}})",
                        map, {"data", "list"});
  ASSERT_EQ(out.candidates.size(), 2U);
  EXPECT_EQ(out.candidates[0].endpoint.host, "192.0.2.7");
  EXPECT_EQ(out.candidates[0].endpoint.port, 8000);
  EXPECT_EQ(out.candidates[0].credential.username, "u");
  EXPECT_EQ(out.candidates[0].credential.password.reveal(), "pw");
  EXPECT_EQ(out.candidates[0].attributes.city, "new york");
  EXPECT_EQ(out.candidates[0].tags.at("plan"), "7");
  EXPECT_EQ(out.candidates[1].endpoint.host, "host.example");
  EXPECT_TRUE(out.candidates[1].tags.empty());
  EXPECT_EQ(
      json(R"({"1":{"ip":"192.0.2.1","port":1},"2":{"ip":"192.0.2.2","port":2}})", by_members())
          .candidates.size(),
      2U);
  EXPECT_EQ(json(R"({"data":null})", by_members(), {"data"}).records, 0U);
}

TEST(ExtractJson, EveryUnitOfAnExpiryIsUnderstood) {
  auto map = by_members();
  map.expires.emplace();
  const auto end_of = [&](std::string_view value, config::TimeUnit unit, bool after) {
    map.expires->after.reset();
    map.expires->epoch.reset();
    (after ? map.expires->after : map.expires->epoch) = item({"end"});
    map.expires->unit = unit;
    const std::string text = R"([{"ip":"192.0.2.1","port":1,"end":)" + std::string(value) + "}]";
    const auto out = json(text, map);
    return out.candidates.empty() ? std::optional<WallTime>{} : out.candidates[0].expires_at;
  };
  using config::TimeUnit;
  EXPECT_EQ(end_of("90", TimeUnit::S, true), kNow + seconds{90});
  EXPECT_EQ(end_of("\"90\"", TimeUnit::Ms, true), kNow + milliseconds{90});
  EXPECT_EQ(end_of("1.5", TimeUnit::Min, true), kNow + seconds{90});
  EXPECT_EQ(end_of("2", TimeUnit::H, true), kNow + seconds{7200});
  EXPECT_EQ(end_of("1700000060", TimeUnit::S, false), kNow + seconds{60});
  EXPECT_EQ(end_of("1700000000005", TimeUnit::Ms, false), kNow + milliseconds{5});
  EXPECT_EQ(end_of("null", TimeUnit::S, true), std::nullopt);
  for (const char* wrong : {"-1", "\"soon\"", "1e300", "\"nan\""}) {
    const auto out = json(R"([{"ip":"192.0.2.1","port":1,"end":)" + std::string(wrong) + "}]", map);
    EXPECT_EQ(out.invalid, 1U) << wrong;
  }
}

TEST(ExtractJson, ARecordThatIsNoProxyIsCountedAndNothingElse) {
  auto map = by_members();
  map.username = item({"user"});
  const auto out = json(R"([{"ip":"192.0.2.1","port":0}, {"ip":"192.0.2.1","port":70000},
      {"ip":"","port":1}, {"port":1}, 7, null, "text", [], {"ip":"a b","port":1},
      {"ip":"192.0.2.1","port":1,"user":"a:b"}, {"ip":"192.0.2.1","port":1,"user":"a\nb"}])",
                        map);
  EXPECT_EQ(out.records, 11U);
  EXPECT_EQ(out.invalid, 11U);
  EXPECT_EQ(out.first_invalid, "record 1");
  map.scheme = item({"scheme"});
  EXPECT_EQ(json(R"([{"ip":"192.0.2.1","port":1,"scheme":"socks5"}])", map).invalid, 1U);  // C8
}

TEST(ExtractJson, AnAnswerThatIsNotWhatWasConfiguredIsAnError) {
  const auto fails = [](std::string_view text, std::vector<std::string> from = {}) {
    config::RecordsConfig records;
    records.from = std::move(from);
    return !extract_json(text, records, by_members(), kNow);
  };
  EXPECT_TRUE(fails("<html>"));
  EXPECT_TRUE(fails("{\"data\":[]", {"data"}));
  EXPECT_TRUE(fails("{\"other\":[]}", {"data"}));
  EXPECT_TRUE(fails("[]", {"data"}));
  EXPECT_TRUE(fails("7"));
  EXPECT_TRUE(fails(std::string(100'000, '[')));
}

// What is read goes into messages that must be UTF-8: one bad byte must not stop a whole snapshot.
TEST(Extract, TextsAreWholeUtf8Characters) {
  const auto lines = extract_lines(
      "192.0.2.1:80:us\xff"
      "er:pw\n192.0.2.1:80:\xc3\xa9:pw\n",
      {}, kNow);
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->invalid, 1U);
  ASSERT_EQ(lines->candidates.size(), 1U);
  EXPECT_EQ(lines->candidates[0].credential.username, "\xc3\xa9");
  auto map = by_members();
  map.city = item({"city"});
  const std::string long_name = std::string(63, 'x') + "\xc3\xa9";
  const auto cut = json(R"([{"ip":"192.0.2.1","port":1,"city":")" + long_name + "\"}]", map);
  ASSERT_EQ(cut.candidates.size(), 1U);
  EXPECT_EQ(cut.candidates[0].attributes.city, std::string(63, 'x'));
}

}  // namespace
}  // namespace proxypool::provider_template
