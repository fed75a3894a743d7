// The error contract through the real programs: who asks, and in which state the gateway is (GW-10,
// GW-12, GW-13, GW-34, GW-36, GW-53).
#include <gtest/gtest.h>

#include <csignal>

#include "e2e/error_contract.hpp"
#include "proxypool/base/text.hpp"
#include "support/eventually.hpp"

namespace proxypool::e2e {
namespace {

using support::Cluster;
using support::ClusterOptions;
using testing::FakeProxy;

const std::string kOk = "ok.vendor.example";

std::string as(const std::string& user, const std::string& password = "sesame") {
  return "Proxy-Authorization: Basic " + base64_encode(user + ":" + password) + "\r\n";
}

ClusterOptions with_vendors(const std::vector<const FakeProxy*>& vendors) {
  ClusterOptions out;
  out.proxies = 1;
  out.wait = false;
  out.check = "basic: {interval: 1h, failureThreshold: 100}";
  out.routing = "match: {hosts: [fixture.example]}";
  int number = 0;
  for (const FakeProxy* vendor : vendors) {
    const std::string id = "vendor-" + std::to_string(number++);
    out.upstreams += "- {id: " + id + ", provider: {type: static, proxies: ['127.0.0.1:" +
                     std::to_string(vendor->port()) + "']}}\n";
    out.routings += "- {id: " + id + ", match: {hosts: ['*." +
                    (number == 1 ? std::string("vendor") : id) +
                    ".example']}, upstreams: [{id: " + id + "}]}\n";
  }
  return out;
}

// From 127.0.0.9.
Peer from_elsewhere(Stage& stage, std::string_view request) {
  net::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7f000009);
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  PP_ASSERT(::bind(fd.get(), at, sizeof address) == 0);
  address.sin_port = htons(stage.cluster.gateway_port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  PP_ASSERT(::connect(fd.get(), at, sizeof address) == 0);
  Peer peer(std::move(fd));
  peer.send(request);
  return peer;
}

// The same case for a plain request and for a tunnel. A tunnel that another password may open is
// asked for again on the same connection.
std::vector<Case> both(Refusal refusal, const std::string& name, const std::string& fields) {
  const bool again = domain::contract(refusal).status == 407;
  return {raw(name, refusal, get(kOk, fields), false),
          raw_connect("CONNECT, " + name, refusal, connect_to(kOk, fields), !again)};
}

// Each after `before`.
std::vector<Case> both_after(const std::function<void(Stage&)>& before, Refusal refusal,
                             const std::string& name, const std::string& fields) {
  auto out = both(refusal, name, fields);
  for (Case& each : out) {
    each.provoke = [before, last = each.provoke](Stage& stage) {
      before(stage);
      return last(stage);
    };
  }
  return out;
}

std::vector<Case> unproven() {
  std::vector<Case> out;
  const auto add = [&](const std::vector<Case>& cases) {
    out.insert(out.end(), cases.begin(), cases.end());
  };
  add(both(Refusal::AuthRequired, "no credentials", ""));
  add(both(Refusal::AuthRejected, "a wrong password", as("crawler", "barley")));
  add(both(Refusal::AuthRejected, "nobody of that name", as("stranger")));
  add(both(Refusal::BadParameter, "a wrong parameter", as("crawler-country-usa")));
  for (const bool connect : {false, true}) {
    out.push_back({connect ? "CONNECT from elsewhere" : "GET from elsewhere", Refusal::SourceDenied,
                   connect,
                   [connect](Stage& stage) {
                     return from_elsewhere(stage, connect ? connect_to(kOk) : get(kOk));
                   },
                   true});
  }
  return out;
}

std::vector<Case> limited() {
  std::vector<Case> out;
  const auto add = [&](const std::vector<Case>& cases) {
    out.insert(out.end(), cases.begin(), cases.end());
  };
  // The verdict comes with the answer to a report.
  add(both_after(
      [](Stage& stage) {
        EXPECT_TRUE(support::eventually([&] {
          return ask(stage, get(kOk, as("spent"))).answer().starts_with("HTTP/1.1 429 ");
        }));
      },
      Refusal::QuotaExceeded, "more bytes than a day has", as("spent")));
  add({raw("more chunks than may be", Refusal::BodyTooLarge,
           "POST http://silent.vendor.example/ HTTP/1.1\r\nHost: x\r\n" + as("crawler") +
               "Transfer-Encoding: chunked\r\n\r\n800\r\n" + std::string(2048, 'x') + "\r\n")});
  // Two in the same second.
  add(both_after(
      [](Stage& stage) {
        Peer first = ask(stage, get(kOk, as("slow")));
        (void)first.answer();
      },
      Refusal::ClientLimited, "a second request in one second", as("slow")));
  add(both_after([](Stage& stage) { hold_tunnel(stage, kOk, as("single")); },
                 Refusal::ClientLimited, "a second request at once", as("single")));
  add(both_after(
      [](Stage& stage) {
        hold_tunnel(stage, kOk, as("crawler"));
        hold_tunnel(stage, kOk, as("crawler"));
      },
      Refusal::Overloaded, "the gateway being full", as("crawler")));
  return out;
}

// Once the session's proxy is gone.
std::vector<Case> sessions() {
  const std::string host = "ok.vendor-1.example";
  return {raw("a strict session", Refusal::SessionLost, get(host, as("crawler-session-a1-strict")),
              false),
          raw_connect("CONNECT in a strict session", Refusal::SessionLost,
                      connect_to(host, as("crawler-session-b2-strict")))};
}

}  // namespace

std::vector<Case> access_cases() {
  std::vector<Case> out;
  for (const auto& part : {unproven(), limited(), sessions()}) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

std::vector<Case> viewless_cases() {
  return {raw("GET", Refusal::NotReady, get(kOk), false),
          raw_connect("CONNECT", Refusal::NotReady, connect_to(kOk))};
}

std::vector<Case> draining_cases() {
  return {raw("GET without an answer", Refusal::Draining, get("silent.vendor.example")),
          raw_connect("CONNECT without an answer", Refusal::Draining,
                      connect_to("silent.vendor.example")),
          raw("GET in the line", Refusal::Draining, get("waits.example")),
          raw_connect("CONNECT in the line", Refusal::Draining, connect_to("waits.example"))};
}

namespace {

class AccessStage {
 public:
  AccessStage() {
    EXPECT_TRUE(cluster_.serves(3)) << cluster_.logs();
    stage_.served = kOk;
    stage_.credentials = as("crawler");
  }

  // Two sessions stand, and then their proxy goes.
  void lose_sessions() {
    const std::string host = "ok.vendor-1.example";
    EXPECT_TRUE(ask(stage_, get(host, as("crawler-session-a1-strict")))
                    .answer()
                    .starts_with("HTTP/1.1 200 "));
    hold_tunnel(stage_, host, as("crawler-session-b2-strict"));
    stage_.held.clear();
    second_.stop();
  }
  Stage& stage() { return stage_; }

 private:
  static std::string client(const std::string& name, const std::string& limits) {
    return "  - {name: " + name + ", credentials: {gateway: {env: PASSWORD}}, limits: {" + limits +
           "}}\n";
  }
  ClusterOptions options() {
    ClusterOptions out = with_vendors({&first_, &second_});
    out.environment = {"PASSWORD=sesame"};
    out.control_plane = "reportInterval: 200ms";
    out.gateway =
        "bench: 0s\n"
        "auth: {mode: usernamePassword}\n"
        "access: {allowCIDRs: [127.0.0.1]}\n"
        "limits: {maxInFlight: 2, maxBodyBytes: 1KiB}";
    out.top_level = "clients:\n" + client("crawler", "") +
                    client("slow", "requestsPerSecond: 1, burst: 1") +
                    client("single", "maxInFlight: 1") + client("spent", "bytesPerDay: 500");
    return out;
  }

  FakeProxy first_{play_vendor};
  FakeProxy second_{play_vendor};
  Cluster cluster_{options()};
  Stage stage_{cluster_};
};

TEST(ErrorContract, WhoeverIsNotKnownOrNotWelcomeIsToldHowItIs) {
  AccessStage access;
  expect_each(unproven(), access.stage());
}

TEST(ErrorContract, WhoeverAsksForTooMuchIsToldWhenToComeBack) {
  AccessStage access;
  expect_each(limited(), access.stage());
}

TEST(ErrorContract, AStrictSessionWhoseProxyIsGoneIsLost) {
  AccessStage access;
  access.lose_sessions();
  expect_each(sessions(), access.stage());
}

TEST(ErrorContract, AGatewayThatKnowsNothingYetIsNotReady) {
  const FakeProxy vendor(play_vendor);
  Cluster cluster(with_vendors({&vendor}));
  cluster.controller().kill();
  cluster.gateway().kill();
  cluster.start_gateway(0);
  ASSERT_TRUE(
      support::eventually([&] { return support::HttpClient(cluster.gateway_port()).connected(); }));
  Stage stage{cluster};
  expect_each(viewless_cases(), stage);
}

// What has no answer when the time to drain is over gets one from the gateway.
TEST(ErrorContract, WhatIsNotAnsweredWhenAGatewayGoesIsTold) {
  const FakeProxy vendor(play_vendor);
  auto options = with_vendors({&vendor});
  options.gateway = "drain: {timeout: 500ms}";
  options.upstreams += "- {id: never, provider: {type: static, proxies: ['127.0.0.1:" +
                       std::to_string(testing::closed_port()) + "']}}\n";
  options.routings +=
      "- {id: waits, match: {hosts: [waits.example]}, upstreams: [{id: never}],\n"
      "   onUnavailable: wait, waitTimeout: 1m, maxWaiters: 9}\n";
  Cluster cluster(options);
  ASSERT_TRUE(cluster.serves(2)) << cluster.logs();
  Stage stage{cluster};
  const auto cases = draining_cases();
  std::vector<Peer> peers;
  for (const Case& expected : cases) peers.push_back(expected.provoke(stage));
  ASSERT_TRUE(support::eventually([&] {
    return cluster.gateway_metric("proxypool_gateway_active_requests") ==
           static_cast<double>(cases.size());
  }));
  cluster.gateway().signal(SIGTERM);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name);
    expect_answer(cases[i], peers[i], stage);
  }
  EXPECT_EQ(cluster.gateway().wait(), 0) << cluster.logs();
}

}  // namespace
}  // namespace proxypool::e2e
