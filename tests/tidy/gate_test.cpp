// The gate is what the documents say that it is (QA-2, QA-3).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {
namespace {

class Gate : public ::testing::Test {
 protected:
  const std::string& file(const std::string& path) { return tree_.at(path); }
  nlohmann::json preset(const std::string& name) {
    const auto presets = nlohmann::json::parse(file("CMakePresets.json"));
    for (const auto& one : presets.at("configurePresets")) {
      if (one.at("name") == name) return one.at("cacheVariables");
    }
    return {};
  }
  const Tree tree_ = read_tree(PROXYPOOL_SOURCE_DIR);
};

TEST_F(Gate, IsTheScriptWithoutAShortcut) {
  const std::string& gate = file(".ci/run");
  EXPECT_NE(gate.find("tests/run.sh\" \"$@\""), std::string::npos) << gate;
  EXPECT_EQ(gate.find("--quick"), std::string::npos) << gate;
}

TEST_F(Gate, RunsEveryTestAndBothSanitizers) {
  const std::string& script = file("tests/run.sh");
  for (const char* part :
       {"run_tests debug -LE long", "run_tests asan -L 'unit|contract|e2e' -LE long",
        "build tsan pp_tsan_tests", "run_tests tsan -LE long", "clang-format-14 --dry-run"}) {
    EXPECT_NE(script.find(part), std::string::npos) << part;
  }
}

TEST_F(Gate, BuildsWithBothCompilers) {
  EXPECT_EQ(preset("asan").at("CMAKE_CXX_COMPILER"), "clang++-16");
  EXPECT_EQ(preset("asan").at("PROXYPOOL_SANITIZE"), "address;undefined");
  EXPECT_EQ(preset("tsan").at("PROXYPOOL_SANITIZE"), "thread");
  for (const char* gcc : {"debug", "tsan"}) {
    EXPECT_FALSE(preset(gcc).contains("CMAKE_CXX_COMPILER")) << gcc;
  }
}

}  // namespace
}  // namespace proxypool::tidy
