// Who may use the gateway, as real clients see it, and the answers that the gateway itself gives:
// status, code, Proxy-Status (GW-10, GW-20, GW-36, GW-41).
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using support::Cluster;
using support::ClusterOptions;
using support::Reply;
using support::run;

ClusterOptions with_clients() {
  return e2e::with_crawler("open sesame");
}

std::string code_of(const Reply& reply) {
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  return body.is_object() ? body.value("code", "") : "";
}

TEST(AuthenticatedGateway, LetsTheRightPasswordThroughAndKeepsItToItself) {
  Cluster cluster(with_clients());
  const auto got = run(curl(cluster, {"--proxy-user", "crawler:open sesame", "-w", "%{http_code}",
                                      "-o", "/dev/null", cluster.origin_url("/t/with-password")}));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, "200");
  // Neither the vendor's proxy nor the origin learns the client's password.
  const auto proxy = e2e::seen_at(cluster, "with-password", "proxy");
  EXPECT_EQ("Proxy-Authorization: " + e2e::header_of(proxy, "Proxy-Authorization") + "\r\n",
            cluster.fixture().authorization());
  EXPECT_EQ(e2e::header_of(e2e::seen_at(cluster, "with-password", "origin"), "Proxy-Authorization"),
            "");
}

TEST(AuthenticatedGateway, RefusesAWrongPasswordAndNoPassword) {
  Cluster cluster(with_clients());
  const auto wrong = run(curl(cluster, {"--proxy-user", "crawler:open barley", "-D", "head", "-o",
                                        "body", cluster.origin_url("/t/refused")}));
  EXPECT_EQ(wrong.code, 0) << wrong.err;
  const auto head = support::read_file(cluster.folder() / "head");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 407 ")) << head;
  EXPECT_NE(head.find("Proxy-Authenticate: Basic "), std::string::npos) << head;
  const auto body = nlohmann::json::parse(support::read_file(cluster.folder() / "body"));
  EXPECT_EQ(body.at("code"), "auth_rejected");

  const Reply none = cluster.get("/t/refused");
  EXPECT_EQ(none.status, 407U);
  EXPECT_EQ(code_of(none), "auth_required");
  EXPECT_TRUE(none.header("Proxy-Authenticate").starts_with("Basic realm=")) << none.body;
  EXPECT_TRUE(cluster.fixture().records("refused").at("sightings").empty());
}

// A client that learns from Proxy-Authenticate what to send.
TEST(AuthenticatedGateway, TellsAClientThatAsksHowToProveItself) {
  Cluster cluster(with_clients());
  const auto got = run(curl(cluster, {"--proxy-anyauth", "--proxy-user", "crawler:open sesame",
                                      "-w", "%{http_code} %{num_connects}", "-o", "/dev/null",
                                      cluster.origin_url("/t/asked-first")}));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, "200 1");  // the refusal did not cost the connection
}

TEST(AuthenticatedGateway, RefusesATunnelWithoutAPassword) {
  Cluster cluster(with_clients());
  const auto got = run(curl(cluster, {"--proxytunnel", cluster.origin_url("/t/refused")}));
  EXPECT_EQ(got.code, 56) << got.out;
  EXPECT_NE(got.err.find("407"), std::string::npos) << got.err;
  EXPECT_TRUE(cluster.fixture().records("refused").at("sightings").empty());
}

std::string get_of(std::string_view url) {
  return "GET " + std::string(url) + " HTTP/1.1\r\nHost: x\r\n\r\n";
}

TEST(GeneratedAnswers, NameWhatStoodInTheWay) {
  ClusterOptions options;
  options.routing = "match: {ports: [80, 443, 8000]}";
  Cluster cluster(options);
  // The origin's port is not among them.
  const Reply unrouted = cluster.get("/t/no-routing");
  EXPECT_EQ(unrouted.status, 403U);
  EXPECT_EQ(code_of(unrouted), "no_routing");
  EXPECT_EQ(unrouted.header("Proxy-Status"),
            "proxypool; error=http_request_denied; details=\"no_routing\"");

  const Reply metadata =
      support::http_exchange(cluster.gateway_port(), get_of("http://169.254.169.254/latest"));
  EXPECT_EQ(metadata.status, 403U);
  EXPECT_EQ(code_of(metadata), "target_forbidden");
  EXPECT_EQ(metadata.header("Proxy-Status"),
            "proxypool; error=destination_ip_prohibited; details=\"target_forbidden\"");

  const Reply malformed = support::http_exchange(cluster.gateway_port(),
                                                 "GET /origin-form HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(malformed.status, 400U);
  EXPECT_EQ(code_of(malformed), "bad_request");
}

TEST(GeneratedAnswers, NameWhatTheProxiesDid) {
  Cluster cluster({.proxies = 2, .gateway = "bench: 0s"});
  const auto failing = [&](std::string_view fault) {
    cluster.fixture().control("fault?proxy=*&kind=" + std::string(fault));
    return cluster.get("/t/failing");
  };
  const Reply refused = failing("refuse");
  EXPECT_EQ(refused.status, 502U);
  EXPECT_EQ(code_of(refused), "proxy_connect_failed");
  EXPECT_EQ(refused.header("Proxy-Status"),
            "proxypool; error=connection_refused; details=\"proxy_connect_failed\"");

  const Reply rejected = failing("407");
  EXPECT_EQ(rejected.status, 502U);
  EXPECT_EQ(code_of(rejected), "proxy_auth_rejected");
  EXPECT_EQ(rejected.header("Proxy-Authenticate"), "");  // the vendor's business, not the client's

  const Reply garbled = failing("garbage");
  EXPECT_EQ(garbled.status, 502U);
  EXPECT_EQ(code_of(garbled), "proxy_protocol_error");
  EXPECT_NE(garbled.header("Proxy-Status").find("error=http_protocol_error"), std::string::npos);
}

// Most clients of CONNECT show nothing but the status line.
TEST(GeneratedAnswers, SayTheCodeInTheStatusLineOfARefusedTunnel) {
  Cluster cluster({.proxies = 1});
  cluster.fixture().set_fault(0, "refuse");
  const auto got =
      run(curl(cluster, {"--verbose", "--proxytunnel", cluster.origin_url("/t/tunnel")}));
  EXPECT_EQ(got.code, 56) << got.err;
  EXPECT_NE(got.err.find("502 Bad Gateway (proxy_connect_failed)"), std::string::npos) << got.err;
}

}  // namespace
}  // namespace proxypool
