#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/node.hpp"
#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using test::kRest;
using test::load;
using testing::HasSubstr;
using testing::IsEmpty;

std::string errors_of(const std::string& text) {
  std::vector<Problem> problems;
  parse_yaml(text, problems);
  return format_problems("f", problems, Severity::Error);
}

TEST(Yaml, DuplicateKeysAreReportedWhereTheSecondStands) {
  EXPECT_EQ(load("gateway: {bench: 1s}\ngateway: {bench: 2s}\n" + kRest).format_errors(),
            "test.yaml:2:1: error: gateway: this key stands here twice\n");
  EXPECT_EQ(load("gateway:\n  bench: 1s\n  threads: 2\n  bench: 2s\n" + kRest).format_errors(),
            "test.yaml:4:3: error: gateway.bench: this key stands here twice\n");
}

TEST(Yaml, MergeKeysAreRefusedAndAliasesWork) {
  EXPECT_THAT(load("admin: {<<: {listen: 127.0.0.1:1}}\n" + kRest).format_errors(),
              HasSubstr("1:9: error: admin.<<: merge keys are not supported"));
  const auto aliased = load(R"(
gateway: {access: &office {allowCIDRs: [10.0.0.0/8]}}
distribution: {access: *office}
)" + kRest);
  ASSERT_TRUE(aliased.config) << aliased.format_errors();
  EXPECT_EQ(aliased.config->distribution.access.allow_cidrs.size(), 1U);
}

TEST(Yaml, SyntaxErrorsHaveTheirPlace) {
  EXPECT_THAT(errors_of("a: [1, 2\nb: 3\n"), HasSubstr("f:2:"));
  EXPECT_THAT(errors_of("a: *nowhere\n"), HasSubstr("f:1:4: error: "));
  EXPECT_THAT(errors_of("a: \"unclosed\n"), HasSubstr("not YAML"));
  EXPECT_THAT(errors_of("\ta: 1\n"), HasSubstr("f:1:"));
}

TEST(Yaml, ASecondDocumentIsRefused) {
  EXPECT_THAT(errors_of("a: 1\n---\nb: 2\n"), HasSubstr("a second document begins here"));
}

TEST(Yaml, BadUtf8HasItsPlace) {
  EXPECT_EQ(errors_of("a: 1\nb: x\xff\n"), "f:2:5: error: the text is not UTF-8\n");
  EXPECT_THAT(errors_of("a: \xc0\xaf\n"), HasSubstr("not UTF-8"));      // overlong
  EXPECT_THAT(errors_of("a: \xed\xa0\x80\n"), HasSubstr("not UTF-8"));  // surrogate
  EXPECT_THAT(errors_of("a: ä€𝄞\n"), IsEmpty());
}

TEST(Yaml, GrowthByAliasesIsBounded) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) text += (k == 0 ? "" : ", ") + before;
    text += "]\n";
  }
  EXPECT_THAT(errors_of(text), HasSubstr("too large or too deep"));
}

TEST(Yaml, DepthIsBoundedAndCyclesEnd) {
  EXPECT_THAT(errors_of("a: " + std::string(40, '[') + std::string(40, ']')),
              HasSubstr("too large or too deep"));
  EXPECT_FALSE(errors_of("a: " + std::string(20'000, '[')).empty());
  EXPECT_FALSE(errors_of("a: &x [*x]\n").empty());
}

TEST(Yaml, AFileThatIsTooLargeIsRefused) {
  EXPECT_THAT(errors_of("a: " + std::string(5'000'000, 'x')), HasSubstr("larger than 4 MiB"));
}

TEST(Yaml, KeysAreTexts) {
  EXPECT_THAT(errors_of("{[a]: 1}\n"), HasSubstr("a key must be"));
}

TEST(Yaml, TagsAreRefused) {
  EXPECT_THAT(errors_of("a: !!int 3\n"), HasSubstr("tags such as"));
}

struct Typed {
  std::string text;
  NodeKind kind;
};
class CoreSchema : public testing::TestWithParam<Typed> {};

TEST_P(CoreSchema, DecidesTheTypeOfAPlainScalar) {
  std::vector<Problem> problems;
  const auto node = parse_yaml("a: " + GetParam().text + "\n", problems);
  ASSERT_TRUE(node);
  EXPECT_EQ(node->find("a")->kind, GetParam().kind) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Yaml, CoreSchema,
    testing::Values(Typed{"", NodeKind::Null}, Typed{"~", NodeKind::Null},
                    Typed{"null", NodeKind::Null}, Typed{"true", NodeKind::Bool},
                    Typed{"yes", NodeKind::Text}, Typed{"12", NodeKind::Number},
                    Typed{"-12", NodeKind::Number}, Typed{"0x1f", NodeKind::Number},
                    Typed{"0o17", NodeKind::Number}, Typed{"1.5e3", NodeKind::Number},
                    Typed{".5", NodeKind::Number}, Typed{".", NodeKind::Text},
                    Typed{"1e", NodeKind::Text}, Typed{"12:30", NodeKind::Text},
                    Typed{"1_000", NodeKind::Text}, Typed{"\"12\"", NodeKind::Text},
                    Typed{"'~'", NodeKind::Text}, Typed{".nan", NodeKind::Number},
                    Typed{"10.0.0.1", NodeKind::Text}, Typed{"|\n  12", NodeKind::Text}));

TEST(Yaml, WhatIsWrittenIsReadBack) {
  for (const std::string text :
       {"plain",       "12",          "true",         "~",  "",     " blank ", "a: b", "#c",
        "- x",         "*x",          "&x",           "[x", "{x",   "x,y",     "ä",    "quote\"s",
        "back\\slash", "line\nbreak", "127.0.0.1:80", "a:", "0x1f", "null",    "%x",   "@x",
        "`x",          "!x",          "yes"}) {
    const Node node =
        Node::map()
            .set("key", Node::of(text))
            .set(text + "k",
                 Node::list({Node::of(text),
                             Node::map().set("a", Node::of(text)).set("b", Node::list()),
                             Node::list({Node::of(text)})}));
    std::vector<Problem> problems;
    const auto yaml = to_yaml(node);
    const auto read = parse_yaml(yaml, problems);
    ASSERT_TRUE(read) << yaml << format_problems("f", problems, Severity::Error);
    EXPECT_EQ(to_json(*read, true), to_json(node, true)) << yaml;
  }
}

TEST(Problems, HintsAreCloseNamesOnly) {
  const std::vector<std::string> known = {"listen", "threads", "useSuspect"};
  EXPECT_EQ(nearest_name("listn", known), "listen");
  EXPECT_EQ(nearest_name("lisetn", known), "listen");
  EXPECT_EQ(nearest_name("LISTEN", known), "listen");
  EXPECT_EQ(nearest_name("usesuspect", known), "useSuspect");
  EXPECT_EQ(nearest_name("something", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(name_hint("x", known), "one of listen, threads, useSuspect");
}

}  // namespace
}  // namespace proxypool::config
