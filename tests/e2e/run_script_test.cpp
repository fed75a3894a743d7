// deploy/local/run.sh as a newcomer uses it, on the programs of this build.
#include <gtest/gtest.h>

#include <csignal>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "e2e/run_script.hpp"
#include "e2e/terminal.hpp"
#include "support/child_process.hpp"
#include "support/http_client.hpp"

namespace proxypool::support {
namespace {

constexpr auto kLimit = kScriptLimit;

TEST_F(RunScript, OnceProvesARequestAndEnds) {
  const auto ended = run(script({"--once", "--port", port()}), kLimit);
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  std::smatch token;
  ASSERT_TRUE(std::regex_search(ended.out, token, std::regex("Request: .*/t/(run-[0-9a-f]{16})")));
  EXPECT_NE(ended.out.find("Answer:   200"), std::string::npos) << ended.out;
  EXPECT_TRUE(std::regex_search(ended.out, std::regex("Served by fixture proxy [0-5]:")))
      << ended.out;
  EXPECT_FALSE(left_behind());
}

TEST_F(RunScript, OnceWithAllFixtureProxiesDownFailsAndSaysSo) {
  const auto ended =
      run(script({"--once", "--wait", "3", "--port", port()}, "--fault *=refuse"), kLimit);
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  EXPECT_NE(ended.err.find("no proxy is usable after 3 s"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("none passed its check"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out.find("Answer:   200"), std::string::npos);
}

TEST_F(RunScript, EveryPrintedLineWorks) {
  ChildProcess script(this->script({"--port", port()}));
  ASSERT_TRUE(script.wait_for_line("Ctrl-C stops everything", kLimit)) << script.err();
  EXPECT_EQ(paste_all(script),
            (std::set<std::string>{"rotate", "tunnel", "extract", "lines", "status", "proxies",
                                   "workers", "metrics", "ready"}));
  const std::string out = script.out();
  std::smatch target;
  std::smatch exported;
  ASSERT_TRUE(std::regex_search(out, target, std::regex("rotate .*(http://\\S+)")));
  ASSERT_TRUE(std::regex_search(out, exported, std::regex("(export http_proxy=[^\\n]*)")));
  const auto command = exported[1].str() + "; curl -fsS " + target[1].str();
  const auto used = run({"bash", {"-c", command}, {}, {}});
  EXPECT_EQ(used.code, 0) << used.err;
  EXPECT_EQ(script.stop(kLimit), 0);
}

TEST_F(RunScript, ASecondStartIsRefusedAndALaterOneWorks) {
  ChildProcess first(script({"--port", port()}));
  ASSERT_TRUE(first.wait_for_line("Ctrl-C stops everything", kLimit)) << first.err();
  const auto second = run(script({"--once", "--port", port()}), kLimit);
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("another run.sh uses"), std::string::npos) << second.err;
  EXPECT_EQ(http_get(static_cast<std::uint16_t>(port_ + 4), "/readyz").status, 200U);
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(kLimit), 0);
  const auto later = run(script({"--once", "--port", port()}), kLimit);
  EXPECT_EQ(later.code, 0) << later.err;
}

TEST_F(RunScript, CtrlCStopsEverything) {
  ChildProcess script(this->script({"--port", port()}));
  ASSERT_TRUE(script.wait_for_line("Ctrl-C stops everything", kLimit)) << script.err();
  const auto running = children(script.pid());
  ASSERT_EQ(running.size(), 4U);
  script.signal(SIGINT);
  EXPECT_EQ(script.wait(kLimit), 0);
  for (const auto& [name, process] : running) EXPECT_FALSE(runs(process)) << name;
  EXPECT_FALSE(left_behind());
}

// A terminal sends its signal to everything that runs in the foreground: what is under way must
// still end well, since the gateway goes first and the others when it has.
TEST_F(RunScript, CtrlCAtATerminalLosesNothingAndStopsEverything) {
  Terminal terminal(this->script({"--port", port()}));
  ASSERT_TRUE(terminal.wait_for("Ctrl-C stops everything", kLimit)) << terminal.output();
  const auto running = children(terminal.pid());
  ASSERT_EQ(running.size(), 4U);
  const std::string out = terminal.output();
  std::smatch origin;
  ASSERT_TRUE(std::regex_search(out, origin, std::regex("rotate .*(http://[0-9.:]+)/")));
  // 150 bytes, one each 10 ms: under way for 1.5 s.
  ChildProcess client({"curl",
                       {"-sS", "-x", "http://127.0.0.1:" + port(), "-w", "%{size_download}", "-o",
                        "/dev/null", origin[1].str() + "/drip?ms=10&bytes=150"},
                       {},
                       {}});
  ASSERT_TRUE(eventually([&] {
    return http_get(static_cast<std::uint16_t>(port_ + 4), "/metrics")
               .body.find("\nproxypool_gateway_active_requests 1") != std::string::npos;
  }));
  terminal.type("\x03");
  EXPECT_EQ(client.wait(), 0) << client.err();
  EXPECT_EQ(client.out(), "150");
  EXPECT_EQ(terminal.wait(kLimit), 0) << terminal.output();
  EXPECT_NE(terminal.output().find("Stopping"), std::string::npos) << terminal.output();
  for (const auto& [name, process] : running) EXPECT_FALSE(runs(process)) << name;
  EXPECT_FALSE(left_behind());
}

TEST_F(RunScript, AKilledProgramEndsTheRunAndIsNamed) {
  ChildProcess script(this->script({"--port", port()}));
  ASSERT_TRUE(script.wait_for_line("Ctrl-C stops everything", kLimit)) << script.err();
  auto running = children(script.pid());
  ASSERT_EQ(running.count("proxy-gateway"), 1U);
  ::kill(running["proxy-gateway"], SIGKILL);
  EXPECT_EQ(script.wait(kLimit), 1);
  EXPECT_NE(script.err().find("gateway ended"), std::string::npos) << script.err();
  for (const auto& [name, process] : running) EXPECT_FALSE(runs(process)) << name;
}

TEST_F(RunScript, ATakenPortIsNamedWithItsRemedy) {
  const Listener taken(port_);
  ASSERT_TRUE(taken.bound());
  const auto ended = run(script({"--once", "--port", port()}), kLimit);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("127.0.0.1:" + port()), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("--port"), std::string::npos) << ended.err;
}

TEST_F(RunScript, ABadListIsNamedWithItsLine) {
  const auto file = write("list.txt", "what is this\n");
  const auto ended =
      run(script({"--proxies", file, "--once", "--wait", "3", "--port", port()}), kLimit);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("line 1"), std::string::npos) << ended.err;
}

TEST_F(RunScript, WrongWordsAreRefusedBeforeAnythingStarts) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--twice"}, "unknown option"},
      {{"--proxies"}, "needs a file"},
      {{"--proxies", "/nonexistent/list"}, "cannot read"},
      {{"--port", "many"}, "needs a number"},
      {{"--port", "80"}, "1024"},
      {{"--wait", ""}, "needs a number"},
      {{"--target"}, "needs a URL"},
      {{"--target", "ftp://127.0.0.1/"}, "needs a URL"},
      {{"--target", "http://a:b@127.0.0.1/"}, "needs a URL"},
      {{"--user", "nobody"}, "NAME:PASSWORD"},
      {{"--user", "a:b"}, "goes with --config"},
  };
  for (const auto& [arguments, words] : cases) {
    const auto ended = run(script(arguments), kLimit);
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace proxypool::support
