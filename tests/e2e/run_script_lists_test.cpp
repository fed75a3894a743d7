// deploy/local/run.sh with proxies and configurations of the caller's own, and with targets that
// are not the fixture's. A second fixture plays the proxies and the target.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "e2e/run_script.hpp"
#include "e2e/tls_server.hpp"
#include "support/child_process.hpp"
#include "support/fixture_process.hpp"
#include "support/http_client.hpp"

namespace proxypool::support {
namespace {

constexpr auto kLimit = kScriptLimit;

class RunScriptOwn : public RunScript {
 protected:
  static std::string at_origin(const FixtureProcess& own, std::string_view path) {
    return "http://127.0.0.1:" + std::to_string(own.origin_port()) + std::string(path);
  }
  // The proxy that the script says served the request, as its number in the fixture.
  static std::size_t named_proxy(const FixtureProcess& own, const std::string& out) {
    std::smatch port;
    if (!std::regex_search(out, port,
                           std::regex("Served by the proxy at 127\\.0\\.0\\.1:(\\d+)"))) {
      ADD_FAILURE() << "no proxy is named: " << out;
      return 0;
    }
    return number_of(own, static_cast<std::uint16_t>(std::stoul(port[1].str())));
  }
  static std::size_t number_of(const FixtureProcess& own, std::uint16_t port) {
    for (std::size_t i = 0; i < own.proxies(); ++i) {
      if (own.proxy_port(i) == port) return i;
    }
    ADD_FAILURE() << port << " is no proxy of the list";
    return 0;
  }
  // A whole configuration with the proxies of the fixture; `gateway` are further keys of that part.
  [[nodiscard]] std::string own_config(const FixtureProcess& own, const std::string& gateway,
                                       const std::string& sections = {}) const {
    std::filesystem::copy_file(own.upstreams_file(), folder_.path() / "list.txt");
    const auto at = [&](int offset) {
      return "'127.0.0.1:" + std::to_string(port_ + offset) + "'";
    };
    const auto file = write(
        "own.yaml",
        "gateway: {listen: " + at(0) + ", controlPlane: " + at(3) + ", metrics: {listen: " + at(4) +
            "}, target: {allowCIDRs: [127.0.0.0/8]}" + gateway + "}\ndistribution: {listen: " +
            at(1) + "}\nadmin: {listen: " + at(2) + "}\ncontrolPlane: {listen: " + at(3) +
            "}\ncontroller: {metrics: {listen: " + at(5) + "}}\nchecker: {controlPlane: " + at(3) +
            ", metrics: {listen: " + at(6) + "}}\n" + sections +
            "upstreams:\n  - id: mine\n"
            "    provider: {type: file, path: list.txt}\n"
            "    allowPrivateAddresses: true\n"
            "routings:\n  - id: all\n    upstreams: [{id: mine}]\n");
    return file.filename();
  }
};

TEST_F(RunScriptOwn, AListOfYourOwnIsServedInBothSpellings) {
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

// C20: a list of one's own is extractable on one's own machine, and its name may hold anything.
TEST_F(RunScriptOwn, EveryPrintedLineWorksWithAList) {
  FixtureProcess own({"--proxies", "4"});
  const auto file = write("my list, '24 #1.txt", read_file(own.upstreams_file()));
  ChildProcess script(this->script({"--proxies", file, "--port", port()}));
  ASSERT_TRUE(script.wait_for_line("Ctrl-C stops everything", kLimit)) << script.err();
  EXPECT_EQ(paste_all(script),
            (std::set<std::string>{"rotate", "tunnel", "extract", "lines", "status", "proxies",
                                   "workers", "metrics", "ready"}));
  EXPECT_EQ(script.stop(kLimit), 0);
}

// The only proxy stays with the gateway, and no line is printed that would give nothing.
TEST_F(RunScriptOwn, AListOfOneProxyIsNotOfferedForExtraction) {
  FixtureProcess own({"--proxies", "1"});
  ChildProcess script(this->script({"--proxies", own.upstreams_file(), "--port", port()}));
  ASSERT_TRUE(script.wait_for_line("Ctrl-C stops everything", kLimit)) << script.err();
  EXPECT_EQ(paste_all(script), (std::set<std::string>{"rotate", "tunnel", "status", "proxies",
                                                      "workers", "metrics", "ready"}));
  EXPECT_EQ(script.stop(kLimit), 0);
}

TEST_F(RunScriptOwn, ATargetOfYourOwnProvesAListWithoutTheFixture) {
  FixtureProcess own({"--proxies", "3"});
  const auto url = at_origin(own, "/t/mine?a=1&b=2");
  const auto list = own.upstreams_file();
  const auto ended =
      run(script({"--proxies", list, "--target", url, "--once", "--port", port()}), kLimit);
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_NE(ended.out.find(" '" + url + "'\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("Answer:   200"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("Starting the fixture"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("record"), std::string::npos) << "nothing is known of that origin";
  const auto served = own.records("mine").at("proxies");
  ASSERT_EQ(served.size(), 1U) << own.records("mine").dump();
  EXPECT_EQ(served.at(0), named_proxy(own, ended.out));
}

TEST_F(RunScriptOwn, AnHttpsTargetIsReachedThroughATunnel) {
  FixtureProcess own({"--proxies", "2"});
  const e2e::TlsServer server("-www");
  auto options = script(
      {"--proxies", own.upstreams_file(), "--target", server.url("/"), "--once", "--port", port()});
  options.environment.push_back("SSL_CERT_FILE=" + server.certificate());
  const auto ended = run(std::move(options), kLimit);
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("Answer:   200"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("s_server"), std::string::npos) << ended.out;
  EXPECT_GT(own.proxy_stats(named_proxy(own, ended.out)).at("tunnels"), 0);
}

// The proxy that was dialled last counts, not one that failed before it.
TEST_F(RunScriptOwn, TheProxyThatServedIsNamedAfterARetry) {
  FixtureProcess own({"--proxies", "3"});
  ChildProcess script(this->script({"--proxies", own.upstreams_file(), "--target",
                                    at_origin(own, "/status/204"), "--port", port()}));
  ASSERT_TRUE(script.wait_for_line("Ctrl-C stops everything", kLimit)) << script.err();
  std::vector<std::size_t> owned;  // the third one is the reserve for extractions
  ASSERT_TRUE(eventually([&] {
    const auto admin = static_cast<std::uint16_t>(port_ + 2);
    const auto proxies = nlohmann::json::parse(http_get(admin, "/v1/proxies").body);
    owned.clear();
    for (const auto& proxy : proxies.at("items")) {
      if (proxy.at("ownership") == "owned") owned.push_back(number_of(own, proxy.at("port")));
    }
    return owned.size() == 2;
  }));
  own.set_fault(owned[0], "close-before-head");
  const auto tried = [&] { return own.proxy_stats(owned[0]).at("requests").get<int>(); };
  const auto before = tried();
  std::smatch logs;
  const std::string out = script.out();
  ASSERT_TRUE(std::regex_search(out, logs, std::regex("Logs are in (\\S+)\\.")));
  Finished ended;
  ASSERT_TRUE(eventually([&] {
    ended = run({std::string(PROXYPOOL_SOURCE_DIR) + "/deploy/local/request.py",
                 {"127.0.0.1:" + port(), at_origin(own, "/t/again"), logs.str(1) + "/gateway.log",
                  "127.0.0.1:" + std::to_string(port_ + 2)},
                 {},
                 {}});
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    return tried() > before;
  }));
  EXPECT_EQ(named_proxy(own, ended.out), owned[1]);
  EXPECT_EQ(script.stop(kLimit), 0);
}

TEST_F(RunScriptOwn, ATargetThatAnswersBadlyFailsAndIsNamed) {
  FixtureProcess own({"--proxies", "2"});
  const auto url = at_origin(own, "/status/503");
  const auto ended =
      run(script({"--proxies", own.upstreams_file(), "--target", url, "--once", "--port", port()}),
          kLimit);
  EXPECT_EQ(ended.code, 1) << ended.out;
  EXPECT_NE(ended.err.find(url), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("503"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out.find("Served"), std::string::npos) << ended.out;
}

// 0.0.0.0 leads to this machine, but is no loopback address; nothing leaves the machine, since the
// proxies answer every request themselves.
TEST_F(RunScriptOwn, AListOfRemoteProxiesIsProvedAtAPublicTarget) {
  FixtureProcess own({"--proxies", "2", "--fault", "*=418"});
  auto list = read_file(own.upstreams_file());
  list.replace(list.find("127.0.0.1"), 9, "0.0.0.0");
  const auto ended =
      run(script({"--proxies", write("list.txt", list), "--once", "--port", port()}), kLimit);
  EXPECT_EQ(ended.code, 1) << ended.out;
  EXPECT_NE(ended.out.find("not all on this machine"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("--target"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("curl -x http://127.0.0.1:" + port() + " http://example.com/\n"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.err.find("418"), std::string::npos) << ended.err;
}

TEST_F(RunScriptOwn, AConfigurationOfYourOwnIsUsedInItsPlace) {
  FixtureProcess own({"--proxies", "1"});
  const auto file = own_config(own, "");
  const auto ended =
      run(script({"--config", file, "--once", "--target", at_origin(own, "/t/whole")}), kLimit);
  ASSERT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "state")) << "relative to where it started";
  EXPECT_EQ(own.records("whole").at("proxies").size(), 1U) << ended.out;
  EXPECT_EQ(named_proxy(own, ended.out), 0U);
}

TEST_F(RunScriptOwn, AConfigurationIsNotProvedWithoutATarget) {
  FixtureProcess own({"--proxies", "1"});
  const auto ended = run(script({"--config", own_config(own, ""), "--once"}), kLimit);
  EXPECT_EQ(ended.code, 2) << ended.out;
  EXPECT_NE(ended.err.find("--target URL"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out.find("Starting"), std::string::npos) << ended.out;
}

TEST_F(RunScriptOwn, AGatewayThatAsksForCredentialsGetsThem) {
  FixtureProcess own({"--proxies", "1"});
  const auto file = own_config(own, ", auth: {mode: usernamePassword}",
                               "clients:\n  - name: me\n"
                               "    credentials: {gateway: {env: OWN_PASSWORD}}\n");
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"--config", file, "--once", "--target", at_origin(own, "/t/auth")};
    all.insert(all.end(), more.begin(), more.end());
    auto options = script(std::move(all));
    options.environment.emplace_back("OWN_PASSWORD=open: sesame");
    return run(std::move(options), kLimit);
  };
  const auto without = with({});
  EXPECT_EQ(without.code, 2) << without.out;
  EXPECT_NE(without.err.find("--user NAME:PASSWORD"), std::string::npos) << without.err;
  EXPECT_EQ(without.out.find("Starting"), std::string::npos) << without.out;
  const auto wrong = with({"--user", "me:closed"});
  EXPECT_EQ(wrong.code, 1) << wrong.out;
  EXPECT_NE(wrong.err.find("407"), std::string::npos) << wrong.err;
  const auto right = with({"--user", "me:open: sesame"});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_EQ(right.out.find("sesame"), std::string::npos) << "a password is shown: " << right.out;
  EXPECT_EQ(own.records("auth").at("proxies").size(), 1U);
}

}  // namespace
}  // namespace proxypool::support
