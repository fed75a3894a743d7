// deploy/local/run.sh as a newcomer uses it, on the programs of this build.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "support/child_process.hpp"
#include "support/fixture_process.hpp"
#include "support/http_client.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::support {
namespace {

using std::chrono::seconds;

constexpr seconds kLimit{45};

// A listener on 127.0.0.1 for as long as it lives; bound() tells whether the port was free.
class Listener {
 public:
  explicit Listener(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bound_ = ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
             ::listen(fd_, 1) == 0;
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(fd_); }
  [[nodiscard]] bool bound() const noexcept { return bound_; }

 private:
  int fd_;
  bool bound_ = false;
};

// Seven ports in a row that were free a moment ago, below those that the system hands out itself.
std::uint16_t free_port_range() {
  for (int attempt = 0;; ++attempt) {
    const auto base =
        static_cast<std::uint16_t>(12'000 + (::getpid() * 8 + attempt * 808) % 20'000);
    bool all = true;
    for (std::uint16_t port = base; port < base + 7; ++port) all = all && Listener(port).bound();
    if (all) return base;
  }
}

class RunScript : public testing::Test {
 protected:
  ChildProcess::Options script(std::vector<std::string> arguments, std::string fixture = {}) const {
    arguments.insert(arguments.begin(), "--skip-build");
    ChildProcess::Options options;
    options.program = std::string(PROXYPOOL_SOURCE_DIR) + "/deploy/local/run.sh";
    options.arguments = std::move(arguments);
    options.environment = {"PROXY_POOL_BIN=" + std::string(PROXYPOOL_BIN_DIR),
                           "PROXY_POOL_LOCAL_DIR=" + (folder_.path() / "state").string(),
                           "TMPDIR=" + folder_.path().string(), "PROXY_POOL_FIXTURE=" + fixture};
    options.folder = folder_.path();
    return options;
  }
  [[nodiscard]] std::string port() const { return std::to_string(port_); }
  // Its programs by name, as long as they run.
  static std::map<std::string, pid_t> children(const ChildProcess& script) {
    std::map<std::string, pid_t> out;
    const std::string id = std::to_string(script.pid());
    std::ifstream list("/proc/" + id + "/task/" + id + "/children");
    for (pid_t child = 0; list >> child;) {
      std::ifstream command("/proc/" + std::to_string(child) + "/comm");
      std::string name;
      if (std::getline(command, name) && name.starts_with("proxy-")) out[name] = child;
    }
    return out;
  }
  static bool runs(pid_t process) { return ::kill(process, 0) == 0; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }
  // Nothing of a run stays behind but the state.
  [[nodiscard]] bool left_behind() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().starts_with("proxypool-run.")) return true;
    }
    return false;
  }

  TempDir folder_;
  std::uint16_t port_ = free_port_range();
};

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
  std::istringstream lines(script.out());
  std::set<std::string> names;
  std::string target;
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(" curl ");
    if (!line.starts_with("  ") || at == std::string::npos) continue;
    std::string command = line.substr(at + 1);
    names.insert(line.substr(2, line.find(' ', 2) - 2));
    if (target.empty()) target = command.substr(command.rfind(' ') + 1);
    command.insert(5, "--fail-with-body ");
    const auto ended = run({"bash", {"-c", command}, {}, folder_.path()}, kLimit);
    EXPECT_EQ(ended.code, 0) << line << '\n' << ended.out << ended.err;
    EXPECT_TRUE(!ended.out.empty() || line.starts_with("  ready")) << line;
  }
  EXPECT_EQ(names, (std::set<std::string>{"rotate", "tunnel", "extract", "lines", "status",
                                          "proxies", "workers", "metrics", "ready"}));
  std::smatch exported;
  const std::string out = script.out();
  ASSERT_TRUE(std::regex_search(out, exported, std::regex("(export http_proxy=[^\\n]*)")));
  const auto used = run({"bash", {"-c", exported[1].str() + "; curl -fsS " + target}, {}, {}});
  EXPECT_EQ(used.code, 0) << used.err;
  EXPECT_EQ(script.stop(kLimit), 0);
}

TEST_F(RunScript, AListOfYourOwnIsServedInBothSpellings) {
  FixtureProcess own({"--proxies", "2"});
  std::string list;
  std::ifstream spelled(own.upstreams_file());
  std::string first;
  std::string second;
  ASSERT_TRUE(std::getline(spelled, first) && std::getline(spelled, second));
  std::smatch parts;  // http://user:password@host:port
  ASSERT_TRUE(std::regex_match(second, parts, std::regex("http://([^:]+):([^@]+)@([^/]+?)/?")));
  const auto file = write("list.txt", "# mine\n" + first + "\n" + parts[3].str() + ":" +
                                          parts[1].str() + ":" + parts[2].str() + "\n");
  ChildProcess script(this->script({"--proxies", file, "--port", port()}));
  ASSERT_TRUE(script.wait_for_line("Ctrl-C stops everything", kLimit)) << script.err();
  const std::string url = "http://127.0.0.1:" + std::to_string(own.origin_port()) + "/";
  const auto both = eventually([&] {
    EXPECT_EQ(http_exchange(port_, "GET " + url + " HTTP/1.1\r\nHost: x\r\n\r\n").status, 200U);
    return own.proxy_stats(0).at("requests") > 0 && own.proxy_stats(1).at("requests") > 0;
  });
  EXPECT_TRUE(both) << own.stats().dump();
  EXPECT_EQ(script.stop(kLimit), 0);
  const auto once = run(this->script({"--proxies", file, "--once", "--port", port()}), kLimit);
  EXPECT_EQ(once.code, 0) << once.err;
  EXPECT_NE(once.out.find("A proxy of your list served"), std::string::npos) << once.out;
}

TEST_F(RunScript, AConfigurationOfYourOwnIsUsedInItsPlace) {
  FixtureProcess own({"--proxies", "1"});
  std::filesystem::copy_file(own.upstreams_file(), folder_.path() / "list.txt");
  const auto at = [&](int offset) { return "127.0.0.1:" + std::to_string(port_ + offset); };
  const auto file = write(
      "own.yaml", "gateway: {listen: '" + at(0) + "', controlPlane: '" + at(3) +
                      "', metrics: {listen: '" + at(4) + "'}}\ndistribution: {listen: '" + at(1) +
                      "'}\nadmin: {listen: '" + at(2) + "'}\ncontrolPlane: {listen: '" + at(3) +
                      "'}\ncontroller: {metrics: {listen: '" + at(5) +
                      "'}}\nchecker: {controlPlane: '" + at(3) + "', metrics: {listen: '" + at(6) +
                      "'}}\nupstreams:\n  - id: mine\n"
                      "    provider: {type: file, path: list.txt}\n"
                      "    allowPrivateAddresses: true\n"
                      "routings:\n  - id: all\n    upstreams: [{id: mine}]\n");
  const auto ended = run(script({"--config", file.filename(), "--once"}), kLimit);
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "state")) << "relative to where it started";
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
  const auto running = children(script);
  ASSERT_EQ(running.size(), 4U);
  script.signal(SIGINT);
  EXPECT_EQ(script.wait(kLimit), 0);
  for (const auto& [name, process] : running) EXPECT_FALSE(runs(process)) << name;
  EXPECT_FALSE(left_behind());
}

TEST_F(RunScript, AKilledProgramEndsTheRunAndIsNamed) {
  ChildProcess script(this->script({"--port", port()}));
  ASSERT_TRUE(script.wait_for_line("Ctrl-C stops everything", kLimit)) << script.err();
  auto running = children(script);
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
  };
  for (const auto& [arguments, words] : cases) {
    const auto ended = run(script(arguments), kLimit);
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace proxypool::support
