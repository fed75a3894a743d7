// Another configuration for a running controller, through the real programs (CT-1, CT-2).
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "e2e/faults.hpp"
#include "e2e/second_vendor.hpp"
#include "e2e/steady_load.hpp"

namespace proxypool::e2e {
namespace {

namespace fs = std::filesystem;
using support::FixtureProcess;

constexpr const char* kAnyRouting = "  - id: default\n    upstreams: [{id: fixture}]\n";

class Reload : public ::testing::Test {
 protected:
  static std::uint64_t revision(Cluster& cluster) {
    return cluster.admin("/v1/config").at("revision").get<std::uint64_t>();
  }
  static bool comes_to(Cluster& cluster, std::uint64_t wanted) {
    return eventually([&] { return revision(cluster) == wanted; });
  }
  static nlohmann::json reload(Cluster& cluster) {
    const auto reply = cluster.operate("/v1/config:reload");
    EXPECT_EQ(reply.status, 200U) << reply.body;
    return nlohmann::json::parse(reply.body, nullptr, false);
  }
};

TEST_F(Reload, FiveErrorsAreToldAtOnceAndTheOldConfigurationGoesOnServing) {
  Cluster cluster({.controller = "watch: 0s"});
  const auto before = cluster.admin("/v1/config");
  const std::string good = cluster.config();
  cluster.write_config(good +
                       "whatever: 1\n"
                       "clients:\n  - {name: x}\n  - {name: x}\n"
                       "check: {basic: {interval: 5, failureThreshold: 0}}\n"
                       "observability: {logFormat: xml}\n");
  const auto reply = cluster.operate("/v1/config:reload");
  EXPECT_EQ(reply.status, 422U) << reply.body;
  const auto problem = nlohmann::json::parse(reply.body);
  EXPECT_EQ(problem.at("code"), "config_invalid");
  std::set<std::string> paths;
  for (const auto& error : problem.at("errors")) {
    paths.insert(error.at("path"));
    EXPECT_NE(error.at("message").get<std::string>().find("gateway-0.yaml:"), std::string::npos);
    // Each of them stands in the log, too.
    const auto line = cluster.controller().wait_for_line(error.at("path").get<std::string>() + ":");
    EXPECT_TRUE(line && line->find("config_rejected") != std::string::npos) << error;
  }
  EXPECT_EQ(paths,
            (std::set<std::string>{"whatever", "clients[1].name", "check.basic.interval",
                                   "check.basic.failureThreshold", "observability.logFormat"}));
  EXPECT_EQ(cluster.controller_metric("proxypool_config_errors"), 5);
  EXPECT_EQ(cluster.controller_metric("proxypool_config_reloads_total{outcome=\"rejected\"}"), 1);

  const auto after = cluster.admin("/v1/config");
  EXPECT_EQ(after.at("revision"), before.at("revision"));
  EXPECT_EQ(after.at("fingerprint"), before.at("fingerprint"));
  EXPECT_EQ(after.at("rejected").size(), 5U);
  EXPECT_EQ(cluster.get("/bytes/10").status, 200U);
  EXPECT_FALSE(cluster.admin("/v1/status").at("warnings").empty());

  // A trial says the same and counts for nothing.
  EXPECT_EQ(cluster.operate("/v1/config:validate").status, 422U);
  EXPECT_EQ(cluster.controller_metric("proxypool_config_reloads_total{outcome=\"rejected\"}"), 1);
  cluster.write_config(good);
  EXPECT_EQ(reload(cluster).at("outcome"), "unchanged");
  EXPECT_EQ(cluster.controller_metric("proxypool_config_errors"), 0);
}

TEST_F(Reload, BySignalByTheFileAndByTheApiTheRevisionGrows) {
  Cluster cluster({.controller = "watch: 0s"});
  const auto beginning = cluster.admin("/v1/config");
  EXPECT_EQ(beginning.at("revision"), 1U);
  const double hash = cluster.controller_metric("proxypool_config_hash");
  const auto with_tag = [&](const std::string& value) {
    return cluster.config_with("    allowPrivateAddresses: true\n",
                               "    allowPrivateAddresses: true\n    tags: {v: " + value + "}\n");
  };
  const std::string original = cluster.config();
  const auto tagged = [&](const std::string& value) {
    cluster.write_config(original);
    return with_tag(value);
  };

  cluster.write_config(tagged("signal"));
  cluster.controller().signal(SIGHUP);
  EXPECT_TRUE(comes_to(cluster, 2)) << cluster.logs();
  EXPECT_NE(cluster.controller_metric("proxypool_config_hash"), hash);
  EXPECT_NE(cluster.admin("/v1/config").at("fingerprint"), beginning.at("fingerprint"));
  EXPECT_TRUE(cluster.controller().wait_for_line("config_reloaded"));

  // From now on it looks by itself: at a file that was renamed into its place …
  cluster.write_config(tagged("api"));
  auto text = cluster.config_with("watch: 0s", "watch: 100ms");
  cluster.write_config(text);
  EXPECT_EQ(reload(cluster).at("changes").at("sections"),
            nlohmann::json({"controller", "upstreams"}));
  const auto then = [&](const std::string& value) {
    std::string out = text;
    out.replace(out.find("v: api"), 6, "v: " + value);
    return out;
  };
  cluster.write_config(then("renamed"));
  EXPECT_TRUE(comes_to(cluster, 4)) << cluster.logs();
  // … at one that was written to in its place …
  std::ofstream(cluster.config_file()) << then("written");
  EXPECT_TRUE(comes_to(cluster, 5)) << cluster.logs();
  // … and at one behind a link that is turned, as Kubernetes does it.
  const auto data = cluster.folder() / "..data";
  for (const char* name : {"v1", "v2"}) {
    fs::create_directories(cluster.folder() / name);
    std::ofstream(cluster.folder() / name / "pool.yaml") << then(name);
  }
  fs::create_directory_symlink("v1", data);
  fs::create_symlink("..data/pool.yaml", cluster.folder() / "link");
  fs::rename(cluster.folder() / "link", cluster.config_file());
  EXPECT_TRUE(comes_to(cluster, 6)) << cluster.logs();
  fs::create_directory_symlink("v2", cluster.folder() / "..next");
  fs::rename(cluster.folder() / "..next", data);
  EXPECT_TRUE(comes_to(cluster, 7)) << cluster.logs();
  EXPECT_NE(cluster.admin("/v1/config").at("effective").get<std::string>().find("v: v2"),
            std::string::npos);
  EXPECT_EQ(cluster.get("/bytes/10").status, 200U);

  // What counted last counts after a restart under its number.
  cluster.restart_controller();
  EXPECT_EQ(revision(cluster), 7U);
}

TEST_F(Reload, AnUpstreamIsRemovedUnderLoadWithoutAFailedRequest) {
  FixtureProcess second{{"--proxies", "3", "--ttl", "600s"}};
  Cluster cluster({.wait = false,
                   .control_plane = "reportInterval: 100ms",
                   .controller = "watch: 0s",
                   .check = "basic: {interval: 10m}",
                   .fetch = "requestInterval: 100ms",
                   .pool = "minimum: 500\ntarget: 500"});
  ASSERT_TRUE(cluster.serves(3)) << cluster.logs();
  const std::string without = cluster.config();
  std::string with = cluster.config_with(
      kAnyRouting, "  - id: default\n    upstreams: [{id: fixture}, {id: second}]\n");
  std::string item = upstream_of(second, "second");
  std::string indented = "  ";
  for (const char c : item) {
    indented += c;
    if (c == '\n') indented += "  ";
  }
  indented.resize(indented.size() - 2);
  with.insert(with.find("routings:\n"), indented);
  SteadyLoad load(cluster.gateway_port(), cluster.fixture().origin_port(), 8);

  for (int round = 0; round < 3; ++round) {
    cluster.write_config(with);
    auto answer = reload(cluster);
    EXPECT_EQ(answer.at("changes").at("upstreams").at("added"), nlohmann::json({"second"}));
    const auto before = requests_of(second);
    EXPECT_TRUE(eventually([&] { return requests_of(second) > before + 20; })) << cluster.logs();
    EXPECT_TRUE(load.serves(200));

    cluster.write_config(without);
    answer = reload(cluster);
    EXPECT_EQ(answer.at("changes").at("upstreams").at("removed"), nlohmann::json({"second"}));
    EXPECT_TRUE(cluster.serves(3)) << cluster.logs();
    EXPECT_TRUE(load.serves(200));
  }
  // Nothing new reaches it; what was under way has ended.
  EXPECT_TRUE(eventually([&] {
    const auto seen = requests_of(second);
    return load.serves(100) && requests_of(second) == seen;
  }));
  const auto totals = load.stop();
  EXPECT_EQ(totals.wrong, 0U) << totals.first_wrong;
  EXPECT_EQ(totals.refused, 0U) << totals.first_refused;
  EXPECT_EQ(totals.broken, 0U) << totals.first_broken;
  EXPECT_GT(totals.served, 1'000U);
  // It is shown until its proxies are gone, and is not asked any more.
  const auto gone = cluster.admin("/v1/upstreams/second");
  EXPECT_EQ(gone.at("enabled"), false);
  const auto calls = second.stats().at("vendor").at("calls");
  EXPECT_EQ(second.stats().at("vendor").at("calls"), calls);
}

TEST_F(Reload, ARoutingChangesForNewRequestsAndWhatIsUnderWayGoesOn) {
  Cluster cluster({.controller = "watch: 0s"});
  support::HttpClient tunnel(cluster.gateway_port());
  const std::string origin = "127.0.0.1:" + std::to_string(cluster.fixture().origin_port());
  ASSERT_EQ(
      tunnel.exchange("CONNECT " + origin + " HTTP/1.1\r\nHost: " + origin + "\r\n\r\n").status,
      200U);
  cluster.write_config(
      cluster.config_with(kAnyRouting, std::string(kAnyRouting) + "    match: {ports: [1]}\n"));
  EXPECT_EQ(reload(cluster).at("changes").at("routings").at("changed"),
            nlohmann::json({"default"}));
  EXPECT_TRUE(eventually([&] { return code_of(cluster.get("/bytes/10")) == "no_routing"; }));
  EXPECT_EQ(tunnel.exchange("GET /bytes/10 HTTP/1.1\r\nHost: " + origin + "\r\n\r\n").status, 200U);
}

// Of a request to the Admin API with this token.
unsigned status_with(Cluster& cluster, const std::string& token, const std::string& call) {
  return support::http_exchange(cluster.admin_port(),
                                call + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " +
                                    token + "\r\nContent-Length: 0\r\n\r\n")
      .status;
}

TEST_F(Reload, TokensChangeWithTheirFilesAndListenersWaitForARestart) {
  Cluster cluster({.controller = "watch: 100ms"});
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(cluster.folder() / name) << text;
  };
  write("read", "read-token-1");
  write("admin", "admin-token-1");
  const std::string listen = "admin: {listen: 127.0.0.1:" + std::to_string(cluster.admin_port());
  cluster.write_config(cluster.config_with(
      listen, listen + ", auth: {readToken: {file: read}, adminToken: {file: admin}}"));
  const auto answers = [&](const std::string& token, const std::string& call, unsigned status) {
    return eventually([&] { return status_with(cluster, token, call) == status; });
  };
  EXPECT_TRUE(answers("none", "GET /v1/config", 401));
  EXPECT_EQ(status_with(cluster, "read-token-1", "GET /v1/config"), 200U);
  EXPECT_EQ(status_with(cluster, "read-token-1", "POST /v1/config:reload"), 403U);
  EXPECT_EQ(status_with(cluster, "admin-token-1", "POST /v1/config:reload"), 200U);
  write("read", "read-token-2");  // the file of a secret is looked at, too
  EXPECT_TRUE(answers("read-token-2", "GET /v1/config", 200));
  EXPECT_EQ(status_with(cluster, "read-token-1", "GET /v1/config"), 401U);

  cluster.write_config(cluster.config_with(
      "distribution:\n  listen: 127.0.0.1:" + std::to_string(cluster.distribution_port()),
      "distribution:\n  listen: 127.0.0.1:1"));
  EXPECT_TRUE(cluster.controller().wait_for_line("distribution.listen changed"));
  EXPECT_EQ(cluster.controller_metric("proxypool_config_restart_waiting"), 1);
  EXPECT_EQ(cluster.extract(R"({"count": 1})").status, 200U);
}

}  // namespace
}  // namespace proxypool::e2e
