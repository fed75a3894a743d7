// A wrong configuration at the program itself: everything that is wrong at once, each with its
// place and, where one is known, a hint; the exit code is 2 and nothing has begun (CF-3).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::support {
namespace {

constexpr auto kFiveMistakes =
    "storage: {stateDir: state}\n"
    "admin: {listen: 127.0.0.1:0}\n"
    "gateway:\n"
    "  listn: 127.0.0.1:8080\n"
    "  bench: 2 seconds\n"
    "upstreams:\n"
    "  - id: acme\n"
    "    provider: {type: static, proxies: ['192.0.2.1:80']}\n"
    "    pool: {minimum: 50, target: 10}\n"
    "routings:\n"
    "  - id: all\n"
    "    strategy: round_robbin\n"
    "    upstreams: [{id: acm}]\n";

class CheckConfigProgram : public testing::TestWithParam<std::string> {};

// How it is started: with --check-config, or to serve.
std::vector<std::string> arguments(bool only_check) {
  std::vector<std::string> out{"--config", "wrong.yaml"};
  if (only_check) out.emplace_back("--check-config");
  return out;
}

TEST_P(CheckConfigProgram, ShowsFiveMistakesWithPlacesAndHintsAndEndsWith2) {
  for (const bool only_check : {true, false}) {
    const TempDir folder;
    std::ofstream(folder.path() / "wrong.yaml") << kFiveMistakes;
    const auto ended = run({GetParam(), arguments(only_check), {}, folder.path()});
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(
        ended.err,
        "wrong.yaml:4:3: error: gateway.listn: unknown key (did you mean listen?)\n"
        "wrong.yaml:5:10: error: gateway.bench: expected a duration, found \"2 seconds\" (a "
        "number and one of ms, s, m, h: 250ms, 30s, 5m, 2h)\n"
        "wrong.yaml:9:21: error: upstreams[0].pool.minimum: minimum must not be greater than "
        "target\n"
        "wrong.yaml:12:15: error: routings[0].strategy: unknown value \"round_robbin\" (did "
        "you mean round_robin?)\n"
        "wrong.yaml:13:22: error: routings[0].upstreams[0].id: there is no upstream named acm "
        "(did you mean acme?)\n");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "state"));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, CheckConfigProgram,
                         testing::Values("proxy-controller", "proxy-gateway", "proxy-checker"),
                         [](const auto& program) {
                           return program.param.substr(sizeof "proxy-" - 1);
                         });

// Its exit code tells a script whether the file is right.
TEST(CheckConfigOfARightFile, EndsWith0AndBeginsNothing) {
  const TempDir folder;
  std::ofstream(folder.path() / "right.yaml")
      << "storage: {stateDir: state}\n"
         "upstreams: [{id: a, provider: {type: static, proxies: ['192.0.2.1:80']}}]\n"
         "routings: [{id: all, upstreams: [{id: a}]}]\n";
  const auto ended =
      run({"proxy-controller", {"--config", "right.yaml", "--check-config"}, {}, folder.path()});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("\nupstreams:"), std::string::npos) << ended.out;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "state"));
}

}  // namespace
}  // namespace proxypool::support
