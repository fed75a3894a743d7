// DIRECT and the target policy through the real programs (GW-20, GW-21, GW-34, GW-41, GW-42, the
// DIRECT rows of the error contract), on a network of the test's own (support/test_network.cpp):
// any name and any address may be asked for, and nothing leaves this machine.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"
#include "support/raw_sockets.hpp"
#include "support/target_samples.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using support::Cluster;
using support::ClusterOptions;
using support::Reply;
using support::run;
using testing::FakeProxy;
using testing::Peer;
using List = std::vector<std::string>;

// The file that the programs' network is read from, and what they did there.
class Network {
 public:
  Network() { write(); }
  void add(const std::string& line) {
    text_ += line + "\n";
    write();
  }
  // What was done since the last call, in order, without a word in front: "dial" or "name".
  List done(const std::string& word) {
    List out;
    std::ifstream log(path() + ".log");
    log.seekg(read_);
    for (std::string line; std::getline(log, line);) {
      read_ += static_cast<std::streamoff>(line.size()) + 1;
      if (line.starts_with(word + " ")) out.push_back(line.substr(word.size() + 1));
    }
    return out;
  }
  [[nodiscard]] List environment() const {
    return {"PROXYPOOL_TEST_NETWORK=" + path(),
            "LD_PRELOAD=" PROXYPOOL_BIN_DIR "/../tests/libtest_network.so"};
  }

 private:
  [[nodiscard]] std::string path() const { return (folder_.path() / "network").string(); }
  void write() const {
    // As a whole: the programs read it at any time.
    std::ofstream(path() + ".new") << text_;
    std::filesystem::rename(path() + ".new", path());
  }

  support::TempDir folder_;
  std::string text_;
  std::streamoff read_ = 0;
};

// Hosts under direct.example, and addresses, go direct; what is under proxied.example goes through
// the fixture's proxies.
ClusterOptions directly(const Network& network, const std::string& target = "") {
  ClusterOptions options;
  options.proxies = 1;
  options.target = target;
  options.gateway =
      "transport: {resolve: 500ms, connect: 500ms, firstByte: 500ms}\n"
      "accessLog: {oneIn: 1}";
  options.routing = "match: {hosts: [\"*.proxied.example\"]}";
  options.top_level = "  - id: away\n    upstreams: []\n    onUnavailable: direct\n";
  options.environment = network.environment();
  return options;
}

std::string code_of(const Reply& reply) {
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  return body.is_object() ? body.value("code", "") : "";
}

class Direct : public ::testing::Test {
 protected:
  void start(const std::string& target = "") {
    cluster_ = std::make_unique<Cluster>(directly(network_, target));
  }
  Reply get(const std::string& authority, const std::string& path = "/") {
    return support::http_exchange(cluster_->gateway_port(), "GET http://" + authority + path +
                                                                " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  // The status line.
  std::string connect(const std::string& authority) {
    Peer peer = Peer::dial(cluster_->gateway_port());
    peer.send("CONNECT " + authority + " HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string head = peer.until("\r\n\r\n");
    return head.substr(0, head.find("\r\n"));
  }
  void expect(const Reply& reply, unsigned status, const std::string& code,
              const std::string& error) {
    EXPECT_EQ(reply.status, status) << code;
    EXPECT_EQ(code_of(reply), code) << reply.body;
    EXPECT_EQ(reply.header("Proxy-Status"),
              "proxypool; error=" + error + "; next-hop=direct; details=\"" + code + "\"");
  }

  Network network_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(Direct, GoesStraightToTheOriginAndTellsItNothingGW34) {
  start("allowCIDRs: [127.0.0.0/8]");
  const auto got = run(curl(*cluster_, {"-w", "%{http_code}", "-o", "/dev/null", "--proxy-user",
                                        "u:p", cluster_->origin_url("/t/straight")}));
  EXPECT_EQ(got.out, "200") << got.err;
  const auto records = cluster_->fixture().records("straight").at("sightings");
  ASSERT_EQ(records.size(), 1U) << records;
  EXPECT_EQ(records[0].at("place"), "origin");
  EXPECT_EQ(e2e::header_of(records[0], "Proxy-Authorization"), "");
  EXPECT_EQ(e2e::header_of(records[0], "Via"), "");

  const auto tunnelled = run(curl(*cluster_, {"--proxytunnel", "-w", "%{http_code}", "-o",
                                              "/dev/null", cluster_->origin_url("/t/tunnelled")}));
  EXPECT_EQ(tunnelled.out, "200") << tunnelled.err;
  EXPECT_EQ(cluster_->fixture().records("tunnelled").at("sightings").size(), 1U);
  EXPECT_EQ(cluster_->gateway_metric("proxypool_gateway_direct_total"), 2);
  EXPECT_TRUE(cluster_->gateway().wait_for_line("upstream=direct")) << cluster_->logs();
}

TEST_F(Direct, StepsInWhileNoProxyIsAvailableGW34) {
  ClusterOptions options;
  options.proxies = 1;
  options.concurrency = 1;
  options.routing = "onUnavailable: direct";
  Cluster cluster(options);
  e2e::Load load(cluster, "/slow?ms=2000", {"--requests", "1", "--concurrency", "1"});
  ASSERT_TRUE(support::eventually(
      [&] { return cluster.gateway_metric("proxypool_gateway_active_requests") == 1; }));
  EXPECT_EQ(cluster.get("/t/stepped-in").status, 200U);
  EXPECT_EQ(e2e::seen_at(cluster, "stepped-in", "proxy"), nullptr);
  EXPECT_EQ(load.report().at("requests").at("failed"), 0);
  EXPECT_EQ(cluster.get("/t/proxied").status, 200U);
  EXPECT_NE(e2e::seen_at(cluster, "proxied", "proxy"), nullptr);
}

// The rows of the error contract that only DIRECT has.
TEST_F(Direct, ErrorsNameTheTargetGW41GW42) {
  FakeProxy origin([](Peer& peer, int) {
    const std::string head = peer.until("\r\n\r\n");
    const auto is = [&](const std::string& path) { return head.starts_with("GET " + path); };
    if (is("/407")) peer.send("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
    if (is("/401")) peer.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
    if (is("/garbage")) peer.send("SSH-2.0-server\r\n\r\n");
    if (is("/silent")) (void)peer.all();
  });
  auto full = net::listen_tcp({IpAddress::v4(0x7f000001), 0}, {.backlog = 0});
  ASSERT_TRUE(full);
  Peer filler = Peer::dial(net::local_port(full->get()));
  network_.add("name here.direct.example 203.0.113.1");
  network_.add("name nowhere.direct.example");
  network_.add("name closed.direct.example 203.0.113.2");
  network_.add("name unanswered.direct.example 203.0.113.3");
  network_.add("slow slow.direct.example");
  network_.add("dial 203.0.113.1 " + std::to_string(origin.port()));
  network_.add("dial 203.0.113.2 " + std::to_string(testing::closed_port()));
  network_.add("dial 203.0.113.3 " + std::to_string(net::local_port(full->get())));
  start();
  expect(get("nowhere.direct.example"), 502, "dns_failed", "dns_error");
  expect(get("closed.direct.example"), 502, "target_connect_failed", "connection_refused");
  expect(get("here.direct.example", "/407"), 502, "target_protocol_error", "http_protocol_error");
  expect(get("here.direct.example", "/garbage"), 502, "target_protocol_error",
         "http_protocol_error");
  expect(get("here.direct.example", "/lost"), 502, "target_protocol_error",
         "connection_terminated");
  EXPECT_EQ(get("here.direct.example", "/401").status, 401U);
  expect(get("slow.direct.example"), 504, "resolve_timeout", "dns_timeout");
  expect(get("unanswered.direct.example"), 504, "connect_timeout", "connection_timeout");
  expect(get("here.direct.example", "/silent"), 504, "first_byte_timeout", "http_response_timeout");
  // A client of CONNECT sees the status line.
  EXPECT_EQ(connect("nowhere.direct.example:443"), "HTTP/1.1 502 Bad Gateway (dns_failed)");
  EXPECT_EQ(connect("closed.direct.example:443"),
            "HTTP/1.1 502 Bad Gateway (target_connect_failed)");
  EXPECT_EQ(connect("slow.direct.example:443"), "HTTP/1.1 504 Gateway Timeout (resolve_timeout)");
}

TEST_F(Direct, AnAddressThatDoesNotAnswerCostsAQuarterOfASecondGW21) {
  auto full = net::listen_tcp({IpAddress::v4(0x7f000001), 0}, {.backlog = 0});
  ASSERT_TRUE(full);
  Peer filler = Peer::dial(net::local_port(full->get()));
  FakeProxy origin(testing::answering("second"));
  network_.add("name two.direct.example 203.0.113.1 203.0.113.2");
  network_.add("dial 203.0.113.1 " + std::to_string(net::local_port(full->get())));
  network_.add("dial 203.0.113.2 " + std::to_string(origin.port()));
  start();
  EXPECT_EQ(get("two.direct.example").body, "second");
  EXPECT_EQ(network_.done("dial"), (List{"203.0.113.1 80", "203.0.113.2 80"}));
}

// The table of GW-20. Both ways: where names and literals go direct, and where they go to a proxy
// and are resolved here before.
class Targets : public Direct {
 protected:
  static constexpr std::string_view kForbidden = "HTTP/1.1 403 Forbidden (target_forbidden)";
  bool refused(const std::string& host) {
    const Reply reply = get(host);
    return reply.status == 403 && code_of(reply) == "target_forbidden" &&
           reply.header("Proxy-Status").find("error=destination_ip_prohibited") !=
               std::string::npos &&
           connect(host + ":443") == kForbidden;
  }
};

TEST_F(Targets, TheForbiddenOnesAreRefusedHoweverTheyAreReachedGW20) {
  int number = 0;
  for (const auto& sample : testing::kForbiddenTargets) {
    const auto address = testing::address_of(sample.host);
    if (!address) continue;
    const std::string name = "n" + std::to_string(++number);
    network_.add("name " + name + ".direct.example " + address->str());
    network_.add("name " + name + ".proxied.example " + address->str());
  }
  network_.add("name mixed.proxied.example 203.0.113.1 10.0.0.1");
  start("resolveBeforeProxy: true");
  for (const auto& sample : testing::kForbiddenTargets) {
    EXPECT_TRUE(refused(std::string(sample.host))) << sample.host;
  }
  EXPECT_EQ(network_.done("name"), List{}) << "nothing of this had to be resolved";
  for (int i = 1; i <= number; ++i) {
    EXPECT_TRUE(refused("n" + std::to_string(i) + ".direct.example")) << i;
    EXPECT_TRUE(refused("n" + std::to_string(i) + ".proxied.example")) << i;
  }
  EXPECT_TRUE(refused("mixed.proxied.example")) << "the proxy might take the other one";
  EXPECT_EQ(network_.done("dial"), List{});
  EXPECT_EQ(cluster_->gateway_metric("proxypool_gateway_upstream_connects_total"), 0);
}

TEST_F(Targets, ThePublicOnesPassGW20) {
  FakeProxy origin(testing::answering("passed"));
  network_.add("dial * " + std::to_string(origin.port()));
  int number = 0;
  for (const auto target : testing::kPublicTargets) {
    const std::string name = "n" + std::to_string(++number) + ".direct.example";
    network_.add("name " + name + " " + testing::address_of(target)->str());
  }
  start();
  number = 0;
  for (const auto target : testing::kPublicTargets) {
    // Where IPv6 cannot be dialled at all, that it was tried says enough.
    const bool v4 = testing::address_of(target)->is_v4();
    for (const std::string& host :
         {std::string(target), "n" + std::to_string(++number) + ".direct.example"}) {
      const Reply reply = get(host);
      EXPECT_TRUE(reply.body == "passed" || (!v4 && code_of(reply) == "target_connect_failed"))
          << host << ": " << reply.body;
      const std::string status = connect(host + ":443");
      EXPECT_TRUE(status.starts_with("HTTP/1.1 200 ") ||
                  (!v4 && status.ends_with("(target_connect_failed)")))
          << host << ": " << status;
      if (v4) {
        const std::string address = testing::address_of(target)->str();
        EXPECT_EQ(network_.done("dial"), (List{address + " 80", address + " 443"})) << host;
      }
      (void)network_.done("dial");
    }
  }
}

// A public address when it is judged, this machine from then on.
TEST_F(Targets, ANameThatChangesBetweenCheckAndDialGainsNothingGW20) {
  FakeProxy origin(testing::answering("public"));
  network_.add("dial 203.0.113.1 " + std::to_string(origin.port()));
  network_.add("name a.direct.example 203.0.113.1 then 127.0.0.1");
  network_.add("name b.direct.example 203.0.113.1 then 169.254.169.254");
  start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get("a.direct.example").body, "public");
  EXPECT_EQ(connect("b.direct.example:80"), "HTTP/1.1 200 Connection established");
  const List dialled = network_.done("dial");
  EXPECT_FALSE(dialled.empty());
  for (const auto& to : dialled) EXPECT_EQ(to, "203.0.113.1 80");
}

}  // namespace
}  // namespace proxypool
