// OP-1: the common command line.
#include "config/cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using test::Environment;
using testing::HasSubstr;
using testing::Not;

Result<CommandLine> parse(Program program, std::vector<const char*> arguments,
                          Environment environment = {}) {
  arguments.insert(arguments.begin(), "program");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data(),
                            test::lookup(std::move(environment)), program);
}

TEST(CommandLineTest, TakesBothSpellingsOfAValue) {
  const auto line = parse(Program::Gateway,
                          {"--config", "a.yaml", "--worker-id=w1", "--control-plane=127.0.0.1:7",
                           "--zone", "z", "--log-format=json", "--check-config"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->config_path, "a.yaml");
  EXPECT_EQ(line->worker_id, "w1");
  EXPECT_EQ(line->control_plane->port, 7);
  EXPECT_EQ(line->zone, "z");
  EXPECT_EQ(line->log_format, LogFormat::Json);
  EXPECT_TRUE(line->check_config);
}

TEST(CommandLineTest, FlagsWinOverTheEnvironmentOverTheFile) {
  const Environment environment = {{"PROXY_POOL_LOG_LEVEL", "warn"},
                                   {"PROXY_POOL_CLUSTER_ID", "from-env"},
                                   {"PROXY_POOL_ZONE", "zone-env"}};
  const auto line = parse(Program::Gateway, {"--cluster-id", "from-flag"}, environment);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->zone, "zone-env");
  const auto loaded = load_configuration(*line, test::lookup(environment));
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  EXPECT_EQ(loaded.config->cluster.id, "from-flag");
  EXPECT_EQ(loaded.config->observability.log_level, LogLevel::Warn);
  EXPECT_EQ(loaded.config->observability.log_format, LogFormat::Text);
}

TEST(CommandLineTest, EveryMistakeIsNamedWithAHint) {
  const auto line = parse(Program::Controller,
                          {"--conifg", "--log-level", "loud", "stray", "--log-format",
                           "--check-config=yes", "--zone=a"},
                          {{"PROXY_POOL_LOG_FORMAT", "xml"}});
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().message,
            "PROXY_POOL_LOG_FORMAT: unknown value \"xml\" (one of text, json)\n"
            "--conifg: unknown option (did you mean --config?)\n"
            "--log-level: unknown value \"loud\" (one of trace, debug, info, warn, error)\n"
            "stray: unexpected argument (options begin with --)\n"
            "--log-format: needs FORMAT\n"
            "--check-config: takes no value\n"
            "--zone: unknown option (--help lists them)\n");
}

TEST(CommandLineTest, OnlyTheControllerInsistsOnAFile) {
  EXPECT_FALSE(parse(Program::Controller, {}));
  EXPECT_TRUE(parse(Program::Controller, {"--hash-password"}));
  EXPECT_TRUE(parse(Program::Controller, {"--hash-key"}));
  EXPECT_TRUE(parse(Program::Controller, {"--help"}));
  EXPECT_TRUE(parse(Program::Controller, {}, {{"PROXY_POOL_CONFIG", "x"}}));
  EXPECT_TRUE(parse(Program::Gateway, {}));
  EXPECT_TRUE(parse(Program::Checker, {}));
}

TEST(CommandLineTest, TheControlPlaneStaysOnTheMachine) {
  const auto line = parse(Program::Gateway, {"--control-plane", "192.0.2.1:9443"});
  ASSERT_FALSE(line);
  EXPECT_THAT(line.error().message, HasSubstr("no loopback address"));
}

TEST(CommandLineTest, HelpShowsGroupsDefaultsAndEnvironment) {
  const auto help = help_text(Program::Gateway);
  for (const char* part :
       {"Usage: proxy-gateway", "Configuration:", "Cluster:", "Logs:", "--worker-id NAME",
        "PROXY_POOL_CONTROL_PLANE_ADDRESS", "default info", "Exit codes"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
  EXPECT_THAT(help, Not(HasSubstr("--hash-password")));
  EXPECT_THAT(help_text(Program::Controller), HasSubstr("--hash-password"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

// CF-3: the check prints what is in force, or every error, and ends with 0 or 2.
TEST(CheckConfig, PrintsTheEffectiveConfigurationOrTheErrors) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_check_config(
                test::load("gateway: {retry: {unsafeBeforeSend: true}}\n" + test::kRest), out, err),
            0);
  EXPECT_THAT(out.str(), HasSubstr("unsafeBeforeSend: true"));
  EXPECT_THAT(out.str(), HasSubstr("lease: 1m"));
  EXPECT_THAT(err.str(), HasSubstr("test.yaml:1:37: warning: gateway.retry.unsafeBeforeSend"));

  std::ostringstream no_out;
  std::ostringstream errors;
  EXPECT_EQ(run_check_config(test::load("gatway: {}\n"), no_out, errors), 2);
  EXPECT_EQ(no_out.str(), "");
  EXPECT_THAT(errors.str(), HasSubstr("gatway: unknown key (did you mean gateway?)"));
}

TEST(CheckConfig, AFileThatCannotBeReadIsAnError) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_check_config(load_file("/no/such/file.yaml"), out, err), 2);
  EXPECT_EQ(err.str(), "/no/such/file.yaml: error: cannot be read: No such file or directory\n");
  EXPECT_EQ(run_check_config(load_file("/tmp"), out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("/tmp: error: is a folder"));
}

}  // namespace
}  // namespace proxypool::config
