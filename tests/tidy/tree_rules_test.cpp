// The rules on the tree, each on trees of a few files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> said(const Problems& problems) {
  std::vector<std::string> out;
  for (const auto& problem : problems) out.push_back(to_string(problem));
  return out;
}

TEST(OwnHeaderRuleTest, ASourceIncludesItsHeaderFirst) {
  EXPECT_THAT(check_own_header_first({{"src/net/a.hpp", ""},
                                      {"src/net/a.cpp", "// x\n#include \"net/a.hpp\"\n"},
                                      {"src/net/b.cpp", "#include <vector>\n"}}),
              IsEmpty());
  EXPECT_THAT(said(check_own_header_first(
                  {{"src/net/a.hpp", ""},
                   {"src/net/a.cpp", "#include <vector>\n#include \"net/a.hpp\"\n"}})),
              ElementsAre("src/net/a.cpp: the first include must be \"net/a.hpp\" [own-header]"));
}

TEST(UnbuiltRuleTest, ASourceIsNamedInItsFolderOrAbove) {
  EXPECT_THAT(
      check_sources_are_built({{"tests/unit/CMakeLists.txt", "pp_test(x SOURCES x_test.cpp)"},
                               {"tests/unit/x_test.cpp", ""},
                               {"src/CMakeLists.txt", "pp_library(y\n  SOURCES net/y.cpp\n"},
                               {"src/net/y.cpp", ""},
                               {"main.cpp", ""},
                               {"CMakeLists.txt", "main.cpp"}}),
      IsEmpty());
}

TEST(UnbuiltRuleTest, AForgottenTestIsFound) {
  EXPECT_THAT(said(check_sources_are_built(
                  {{"tests/unit/CMakeLists.txt", "SOURCES an_x_test.cpp x_test.cpp.in"},
                   {"tests/unit/x_test.cpp", ""}})),
              ElementsAre("tests/unit/x_test.cpp: no CMakeLists.txt names this source [unbuilt]"));
}

TEST(UnbuiltRuleTest, AHelperMayNameASource) {
  EXPECT_THAT(check_sources_are_built(
                  {{"cmake/Targets.cmake", "${PROJECT_SOURCE_DIR}/tests/fuzz/main.cpp)"},
                   {"tests/fuzz/main.cpp", ""}}),
              IsEmpty());
}

TEST(MachinePathRuleTest, PathsOfAMachineAreFound) {
  const std::string home = std::string("/ho") + "me/";
  EXPECT_THAT(said(check_machine_paths({{"a.md", "x\nsee " + home + "me/x\n"}})),
              ElementsAre(HasSubstr("a.md:2: ")));
  EXPECT_THAT(check_machine_paths({{"a.md", "src" + home + "x and /usr/bin\n"}}), IsEmpty());
}

TEST(LeftoverRuleTest, RemindersAreFound) {
  EXPECT_THAT(said(check_leftovers({{"a.cpp", std::string("// TO") + "DO: x\n"}})),
              ElementsAre(HasSubstr("a.cpp:1: ")));
  EXPECT_THAT(check_leftovers({{"a.cpp", "// to do\n"}}), IsEmpty());
}

TEST(DocumentRuleTest, LinksLeadSomewhere) {
  const Tree tree{
      {"README.md", "# R\n[a](docs/a.md) [b](docs/) [c](https://x.example/y) [d](#x)\n"},
      {"docs/a.md", "# A\n[up](../README.md#r) and [gone](gone.md)\n"}};
  EXPECT_THAT(said(check_documents(tree)),
              ElementsAre("docs/a.md:2: nothing is at gone.md [link]"));
}

TEST(DocumentRuleTest, ADocumentHasOneTitle) {
  EXPECT_THAT(check_documents({{"a.md", "# A\n```sh\n# a comment\n```\n## B\n"}}), IsEmpty());
  EXPECT_THAT(check_documents({{"a.md", "# A\n# B\n"}}), testing::SizeIs(1));
  EXPECT_THAT(check_documents({{"a.md", "## B\n"}}), testing::SizeIs(1));
}

TEST(RequirementRuleTest, TestsThatAreNamedExist) {
  const Tree tree{{"docs/requirements.md",
                   "| id | test |\n| --- | --- |\n| GW-1 | `XTest.Works` `YTest.Works` |\n"},
                  {"tests/x_test.cpp", "TEST(XTest, Works) {}\nTEST_F(YTest,\n       Fails) {}\n"}};
  EXPECT_THAT(said(check_requirements(tree)),
              ElementsAre("docs/requirements.md:3: there is no test YTest.Works [requirement]"));
}

TEST(RequirementRuleTest, AnIdStandsOnce) {
  const Tree tree{{"docs/requirements.md", "| GW-1 | a |\n| GW-10 | see GW-1 |\n| GW-1 | b |\n"}};
  EXPECT_THAT(said(check_requirements(tree)),
              ElementsAre("docs/requirements.md:3: GW-1 is named twice [requirement]"));
}

TEST(RequirementRuleTest, ATestProvesAnIdThatIsKnown) {
  const std::string unknown = std::string("GW") + "-99";
  const Tree tree{{"docs/requirements.md", "| GW-1 | a |\n"},
                  {"tests/a_test.cpp", "// GW-1, UTF-8, SHA-256\n// " + unknown + "\n"}};
  EXPECT_THAT(said(check_requirements(tree)),
              ElementsAre("tests/a_test.cpp: " + unknown +
                          " is not in docs/requirements.md [requirement]"));
  EXPECT_THAT(check_requirements({}), testing::SizeIs(1));
}

TEST(ExceptionTest, ExcusesItsRuleInItsFileAlone) {
  const Problems problems{{"a.cpp", 1, "ban", "x"},
                          {"a.cpp", 2, "ban", "y"},
                          {"a.cpp", 3, "include", "z"},
                          {"b.cpp", 4, "ban", "w"}};
  EXPECT_THAT(said(without_exceptions(problems, {{"a.cpp", "ban", "because"}})),
              ElementsAre("a.cpp:3: z [include]", "b.cpp:4: w [ban]"));
}

TEST(ExceptionTest, OneThatIsNotNeededIsAProblem) {
  EXPECT_THAT(said(without_exceptions({}, {{"a.cpp", "ban", "because"}})),
              ElementsAre(HasSubstr("is not needed any more")));
}

}  // namespace
}  // namespace proxypool::tidy
