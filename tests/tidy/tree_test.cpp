// Every rule on every file of the repository.
#include <gtest/gtest.h>

#include <string>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {
namespace {

Problems all_problems(const Tree& tree) {
  Problems problems;
  const auto add = [&](Problems more) {
    problems.insert(problems.end(), more.begin(), more.end());
  };
  for (const auto& [path, text] : tree) {
    add(check_includes(path, text));
    add(check_bans(path, text));
    add(check_lengths(path, text));
    add(check_header(path, text));
  }
  add(check_own_header_first(tree));
  add(check_sources_are_built(tree));
  add(check_machine_paths(tree));
  add(check_leftovers(tree));
  add(check_documents(tree));
  add(check_requirements(tree));
  return problems;
}

TEST(TreeTest, TheTreeIsInShape) {
  const Tree tree = read_tree(PROXYPOOL_SOURCE_DIR);
  ASSERT_TRUE(tree.contains("CMakeLists.txt"));
  ASSERT_TRUE(tree.contains("include/proxypool/base/result.hpp"));
  ASSERT_FALSE(tree.contains(".git"));
  for (const Problem& problem : without_exceptions(all_problems(tree), exceptions())) {
    ADD_FAILURE() << to_string(problem);
  }
}

TEST(TreeTest, EveryExceptionHasAReason) {
  for (const Exception& exception : exceptions()) {
    EXPECT_GT(exception.reason.size(), 20U) << exception.path;
  }
}

}  // namespace
}  // namespace proxypool::tidy
