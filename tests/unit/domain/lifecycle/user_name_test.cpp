// The grammar of user names and the filter that comes of it (GW-13, ruling R5).
#include "proxypool/domain/client/user_name.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/random.hpp"

namespace proxypool::domain {
namespace {

std::optional<std::string_view> client(std::string_view user, std::set<std::string_view> names) {
  return client_in(user, [&](std::string_view name) { return names.contains(name); });
}
UserParameters parsed(std::string_view rest) {
  auto result = parse_user_parameters(rest);
  EXPECT_TRUE(result) << rest << ": " << (result ? "" : result.error().message);
  return result ? *std::move(result) : UserParameters{};
}
std::string fault(std::string_view rest) {
  const auto result = parse_user_parameters(rest);
  return result ? "" : result.error().message;
}

TEST(UserName, TheClientIsTheLongestNameThatAHyphenOrTheEndFollows) {
  const std::set<std::string_view> names{"a", "a-b", "a-b-country"};
  EXPECT_EQ(client("a", names), "a");
  EXPECT_EQ(client("a-country-us", names), "a");
  EXPECT_EQ(client("a-b", names), "a-b");
  EXPECT_EQ(client("a-b-city-x", names), "a-b");
  EXPECT_EQ(client("a-b-country-us", names), "a-b-country") << "a name that looks like a parameter";
  EXPECT_EQ(client("a-", names), "a");
  EXPECT_EQ(client("ab", names), std::nullopt);
  EXPECT_EQ(client("b-a", names), std::nullopt);
  EXPECT_EQ(client("-a", names), std::nullopt);
  EXPECT_EQ(client("", names), std::nullopt);
  int asked = 0;
  EXPECT_EQ(client_in(std::string(10'000, '-'), [&](std::string_view) { return ++asked < 0; }),
            std::nullopt);
  EXPECT_LE(asked, 64) << "a long user name costs no more than a long client name";
}

TEST(UserName, TakesEveryParameterOfTheGrammar) {
  const auto all = parsed(
      "-country-us-region-CA-city-Berlin-carrier-x-session-abc123-sesstime-10-tag.k-v-strict");
  EXPECT_EQ(all.filter.attributes, (Attributes{"US", "ca", "berlin", "x"}));
  EXPECT_EQ(all.filter.tags, (Tags{{"k", "v"}}));
  EXPECT_EQ(all.session, "abc123");
  EXPECT_EQ(all.session_time, std::chrono::minutes(10));
  EXPECT_TRUE(all.strict);
  EXPECT_EQ(parsed(""), UserParameters{});
  EXPECT_TRUE(parsed("-strict").strict);
  EXPECT_EQ(parsed("-city-strict").filter.attributes.city, "strict") << "a value is a value";
  EXPECT_EQ(parsed("-city-country-cc-de").filter.attributes, (Attributes{"DE", "", "country", ""}));
}

TEST(UserName, TakesTheSpellingsOfVendors) {
  const auto a = parsed("-cc-de-st-be-sid-s1-ttl-5");
  EXPECT_EQ(a.filter.attributes, (Attributes{"DE", "be", "", ""}));
  EXPECT_EQ(a.session, "s1");
  EXPECT_EQ(a.session_time, std::chrono::minutes(5));
  EXPECT_EQ(parsed("-sessid-s2-lifetime-6"), parsed("-session-s2-sesstime-6"));
  EXPECT_EQ(parsed("-sessionduration-1440").session_time, std::chrono::minutes(1440));
}

TEST(UserName, NamesTheParameterThatIsWrong) {
  struct Case {
    std::string_view rest;
    std::string_view parameter;
  };
  for (const auto& [rest, parameter] : std::vector<Case>{
           {"-", ""},
           {"--country-us", ""},
           {"country-us", "country-us"},
           {"-colour-red", "colour"},
           {"-Country-us", "Country"},
           {"-country", "country"},
           {"-country-", "country"},
           {"-country-usa", "country"},
           {"-country-u1", "country"},
           {"-cc-x", "cc"},
           {"-country-us-cc-de", "cc"},
           {"-country-us-", ""},
           {"-city-", "city"},
           {"-city-a\tb", "city"},
           {"-session-a!b", "session"},
           {"-session-", "session"},
           {"-sid-a-sessid-b", "sessid"},
           {"-sesstime-0", "sesstime"},
           {"-sesstime-1441", "sesstime"},
           {"-sesstime-x", "sesstime"},
           {"-ttl--5", "ttl"},
           {"-tag-v", "tag"},
           {"-tag.-v", "tag."},
           {"-tag.k", "tag.k"},
           {"-tag.k-", "tag.k"},
           {"-tag.k-v-tag.k-w", "tag.k"},
           {"-strict-strict", "strict"},
           {"-strict-yes", "yes"},
       }) {
    EXPECT_EQ(fault(rest).rfind("\"" + std::string(parameter) + "\": ", 0), 0U)
        << rest << ": " << fault(rest);
  }
  EXPECT_EQ(fault("-session-" + std::string(128, 'a')), "");
  EXPECT_NE(fault("-session-" + std::string(129, 'a')), "");
  EXPECT_EQ(fault("-city-" + std::string(64, 'a')), "");
  EXPECT_NE(fault("-city-" + std::string(65, 'a')), "");
  EXPECT_NE(fault("-city-" + std::string(2000, 'a')).find("1024"), std::string::npos);
  std::string tags;
  for (int i = 0; i < 16; ++i) tags += "-tag.k" + std::to_string(i) + "-v";
  EXPECT_EQ(fault(tags), "");
  EXPECT_NE(fault(tags + "-tag.more-v"), "");
}

// Written from values, it reads back as these values, in whatever order and spelling.
TEST(UserName, ReadsBackWhatWasWritten) {
  SplitMix64 random(20'261'130);
  const auto word = [&](std::string_view alphabet, std::size_t longest) {
    std::string out;
    for (auto n = 1 + random.below(longest); n > 0; --n)
      out += alphabet[random.below(alphabet.size())];
    return out;
  };
  for (int round = 0; round < 2'000; ++round) {
    UserParameters wanted;
    std::vector<std::string> parts;
    const auto maybe = [&](auto&& spellings, const std::string& value) {
      if (random.below(2) == 0) return false;
      parts.push_back("-" + std::string(spellings[random.below(std::size(spellings))]) + "-" +
                      value);
      return true;
    };
    const std::string_view countries[] = {"country", "cc"};
    const std::string_view regions[] = {"region", "st"};
    const std::string_view cities[] = {"city"};
    const std::string_view sessions[] = {"session", "sid", "sessid"};
    const std::string_view times[] = {"sesstime", "sessionduration", "lifetime", "ttl"};
    std::string value =
        word("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1) + word("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1);
    if (maybe(countries, lower(value))) wanted.filter.attributes.country = value;
    value = word("abc .,_@/", 64);
    if (maybe(regions, value)) wanted.filter.attributes.region = value;
    value = word("country", 20);
    if (maybe(cities, value)) wanted.filter.attributes.city = value;
    value = word("abcXYZ019._~", 128);
    if (maybe(sessions, value)) wanted.session = value;
    const auto minutes = 1 + random.below(1440);
    if (maybe(times, std::to_string(minutes))) wanted.session_time = std::chrono::minutes(minutes);
    for (auto n = random.below(4); n > 0; --n) {
      const auto key = word("kKtag.", 8);
      value = word("strict1 ", 8);
      if (wanted.filter.tags.emplace(key, value).second)
        parts.push_back("-tag." + key + "-" + value);
    }
    if (random.below(2) == 0) {
      wanted.strict = true;
      parts.emplace_back("-strict");
    }
    std::string text;
    while (!parts.empty()) {
      const auto at = parts.begin() + static_cast<std::ptrdiff_t>(random.below(parts.size()));
      text += *at;
      parts.erase(at);
    }
    ASSERT_EQ(parsed(text), wanted) << text;
  }
}

TEST(ProxyFilter, DemandsWhatItSaysAndNothingElse) {
  const Attributes proxy{"US", "new york", "saint-denis", "alpha"};
  const Tags labels{{"tier", "gold"}, {"kind", "dc"}};
  const auto admits = [&](Attributes asked, Tags tags = {}) {
    return ProxyFilter{std::move(asked), std::move(tags)}.admits(proxy, labels);
  };
  EXPECT_TRUE(admits({}));
  EXPECT_TRUE(admits({"US", "", "", ""}));
  EXPECT_FALSE(admits({"DE", "", "", ""}));
  EXPECT_TRUE(admits({"US", "new_york", "saint_denis", "alpha"})) << "what no user name can hold";
  EXPECT_FALSE(admits({"", "newyork", "", ""}));
  EXPECT_FALSE(admits({"", "", "", "alph"}));
  EXPECT_TRUE(admits({}, {{"tier", "gold"}}));
  EXPECT_FALSE(admits({}, {{"tier", "silver"}}));
  EXPECT_FALSE(admits({}, {{"tier", "gold"}, {"other", "x"}}));
  const std::vector<std::string> settled{"other"};
  EXPECT_TRUE((ProxyFilter{{}, {{"tier", "gold"}, {"other", "x"}}}.admits(proxy, labels, settled)));
  EXPECT_FALSE((ProxyFilter{{"US", "", "", ""}, {}}.admits({}, {}))) << "unknown is not enough";
}

TEST(ProxyFilter, HasAKeyOfItsOwn) {
  const std::vector<ProxyFilter> all{
      {},
      {{"US", "", "", ""}, {}},
      {{"", "us", "", ""}, {}},
      {{"", "", "us", ""}, {}},
      {{"", "", "", "us"}, {}},
      {{"", "a", "b", ""}, {}},
      {{"", "a1:tb", "", ""}, {}},
      {{}, {{"a", "b"}}},
      {{}, {{"a", "b"}, {"c", "d"}}},
      {{}, {{"a", "b1:kc1:vd"}}},
  };
  std::set<std::string> keys;
  for (const auto& filter : all) keys.insert(filter.key());
  EXPECT_EQ(keys.size(), all.size());
  EXPECT_EQ(ProxyFilter{}.key(), "");
  EXPECT_TRUE(ProxyFilter{}.empty());
}

}  // namespace
}  // namespace proxypool::domain
