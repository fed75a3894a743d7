// Ruling R2: hostRegex is RE2 over the whole host.
#include "gateway/dispatch/host_regex.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace proxypool::gateway {
namespace {

using domain::HostRegex;

std::vector<std::uint32_t> matched(const std::vector<HostRegex>& patterns, std::string_view host) {
  auto set = compile_host_regexes(patterns);
  EXPECT_TRUE(set);
  std::vector<std::uint32_t> rules;
  (*set)->match(host, rules);
  std::sort(rules.begin(), rules.end());
  return rules;
}

TEST(HostRegex, MatchesTheWholeHostAndIgnoresCase) {
  const std::vector<HostRegex> patterns{{"shop[0-9]+\\.example", 3}, {"shop.*", 5}, {"EXAMPLE", 7}};
  using Rules = std::vector<std::uint32_t>;
  EXPECT_EQ(matched(patterns, "shop12.example"), (Rules{3, 5}));
  EXPECT_EQ(matched(patterns, "shop12.example.org"), (Rules{5}));
  EXPECT_EQ(matched(patterns, "myshop12.example"), Rules{});
  EXPECT_EQ(matched(patterns, "example"), (Rules{7}));
  EXPECT_EQ(matched(patterns, ""), Rules{});
}

TEST(HostRegex, SaysWhichPatternIsWrongAndWhy) {
  const std::vector<HostRegex> patterns{{"fine", 0}, {"a(b", 1}};
  const auto set = compile_host_regexes(patterns);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(set.error().message.find("a(b"), std::string::npos);
  EXPECT_NE(set.error().message.find("missing"), std::string::npos);
}

}  // namespace
}  // namespace proxypool::gateway
