// The table of destinations through a whole gateway (GW-20): as written and as what a name means,
// for plain requests and tunnels, through a proxy and direct. Dials are the test's own, so that
// public addresses can be asked for.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "direct_fixture.hpp"
#include "support/target_samples.hpp"

namespace proxypool::gateway {
namespace {

using testing::address_of;
using testing::kForbiddenTargets;
using testing::kPublicTargets;
using testing::TargetClass;
using List = std::vector<std::string>;

bool forbidden(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 403 Forbidden") &&
         answer.find("\"code\":\"target_forbidden\"") != std::string::npos &&
         answer.find("error=destination_ip_prohibited") != std::string::npos;
}

// A server that answers requests and opens tunnels.
FakeProxy::Script serving() {
  return [](Peer& peer, int) {
    for (std::string head = peer.until("\r\n\r\n"); !head.empty(); head = peer.until("\r\n\r\n")) {
      peer.send(head.starts_with("CONNECT ") ? "HTTP/1.1 200 OK\r\n\r\n"
                                             : "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  };
}

enum class Way { Proxy, Direct };

class GatewayTargets : public DirectTest, public ::testing::WithParamInterface<Way> {
 protected:
  // A gateway that goes this way, and whoever stands at its end.
  FakeProxy& world() {
    FakeProxy& end = origin(serving());
    if (GetParam() == Way::Proxy) {
      rig_.snapshot.routings.front().upstreams.push_back({UpstreamId("vendor"), 1});
      rig_.snapshot.policy.resolve_before_proxy = true;
      rig_.add({.port = end.port()});
    }
    start();
    return end;
  }
  bool plain_refused(const std::string& authority) { return forbidden(ask(get_of(authority))); }
  bool tunnel_refused(const std::string& host) {
    const std::string answer = ask(connect_to(host + ":443"));
    return forbidden(answer) && answer.starts_with("HTTP/1.1 403 Forbidden (target_forbidden)\r\n");
  }
  bool plain_passes(const std::string& authority) {
    return ask(get_of(authority)).starts_with("HTTP/1.1 200 ");
  }
  bool tunnel_passes(const std::string& host) {
    Peer c = client();
    c.send(connect_to(host + ":443"));
    return c.until("\r\n\r\n").starts_with("HTTP/1.1 200 ");
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, GatewayTargets, ::testing::Values(Way::Proxy, Way::Direct),
                         [](const auto& way) {
                           return way.param == Way::Proxy ? "ThroughAProxy" : "Direct";
                         });

TEST_P(GatewayTargets, WhatIsForbiddenAsWrittenIsRefusedAndNothingIsAskedGW20) {
  FakeProxy& end = world();
  for (const auto& sample : kForbiddenTargets) {
    const std::string host(sample.host);
    EXPECT_TRUE(plain_refused(host)) << host;
    EXPECT_TRUE(plain_refused(host + ":8080")) << host;
    EXPECT_TRUE(tunnel_refused(host)) << host;
  }
  EXPECT_EQ(looked_up(), List{});
  EXPECT_EQ(dialled(), List{});
  EXPECT_EQ(end.connections(), 0);
}

TEST_P(GatewayTargets, ANameThatMeansSomethingForbiddenIsRefusedAndNothingIsDialledGW20) {
  int number = 0;
  for (const auto& sample : kForbiddenTargets) {
    const auto address = address_of(sample.host);
    if (!address) continue;
    means("n" + std::to_string(++number) + ".example", {address->str()});
  }
  ASSERT_GE(number, 60);
  FakeProxy& end = world();
  for (int i = 1; i <= number; ++i) {
    const std::string host = "n" + std::to_string(i) + ".example";
    EXPECT_TRUE(plain_refused(host)) << host;
    EXPECT_TRUE(tunnel_refused(host)) << host;
  }
  EXPECT_EQ(looked_up().size(), static_cast<std::size_t>(number)) << "both forms share a look-up";
  EXPECT_EQ(dialled(), List{});
  EXPECT_EQ(end.connections(), 0);
}

TEST_P(GatewayTargets, WhatIsPublicPassesAsWrittenGW20) {
  FakeProxy& end = world();
  for (const auto target : kPublicTargets) {
    const std::string host(target);
    EXPECT_TRUE(plain_passes(host)) << host;
    EXPECT_TRUE(tunnel_passes(host)) << host;
    if (GetParam() == Way::Proxy) continue;
    const net::Endpoint to{*address_of(target), 80};
    EXPECT_EQ(dialled(), (List{to.str(), net::Endpoint{to.address, 443}.str()})) << host;
  }
  EXPECT_EQ(looked_up(), List{});
  EXPECT_GT(end.connections(), 0);
}

TEST_P(GatewayTargets, ANameThatMeansSomethingPublicPassesGW20) {
  for (std::size_t i = 0; i < std::size(kPublicTargets); ++i) {
    means("n" + std::to_string(i) + ".example", {address_of(kPublicTargets[i])->str()});
  }
  FakeProxy& end = world();
  for (std::size_t i = 0; i < std::size(kPublicTargets); ++i) {
    const std::string host = "n" + std::to_string(i) + ".example";
    EXPECT_TRUE(plain_passes(host)) << kPublicTargets[i];
    EXPECT_TRUE(tunnel_passes(host)) << kPublicTargets[i];
    if (GetParam() == Way::Proxy) continue;
    const net::Endpoint to{*address_of(kPublicTargets[i]), 80};
    EXPECT_EQ(dialled(), (List{to.str(), net::Endpoint{to.address, 443}.str()}));
  }
  EXPECT_EQ(looked_up().size(), std::size(kPublicTargets));
  EXPECT_GT(end.connections(), 0);
}

TEST_P(GatewayTargets, WhatTheConfigurationForbidsAndAllowsHoldsForNamesTooGW20) {
  rig_.snapshot.policy.deny_cidrs = {*Cidr::parse("198.51.100.0/24"),
                                     *Cidr::parse("2001:db8:bad::/48")};
  rig_.snapshot.policy.deny_hosts = {"blocked.example", "*.internal.example"};
  rig_.snapshot.policy.allow_cidrs = {*Cidr::parse("10.20.0.0/16")};
  rig_.snapshot.policy.allow_ports = {80, 443};
  means("denied.example", {"198.51.100.7"});
  means("embedded.example", {"64:ff9b::c633:6407"});
  means("bad.example", {"2001:db8:bad::1"});
  means("excepted.example", {"10.20.30.40"});
  means("beside.example", {"10.21.0.1"});
  (void)world();
  for (const std::string host :
       {"198.51.100.7", "[::ffff:198.51.100.7]", "[2001:db8:bad::1]", "denied.example",
        "embedded.example", "bad.example", "beside.example", "BLOCKED.example.",
        "a.internal.example", "10.21.0.1", "localhost", "10.5140"}) {
    EXPECT_TRUE(plain_refused(host)) << host;
    EXPECT_TRUE(tunnel_refused(host)) << host;
  }
  for (const std::string host : {"free.example", "excepted.example", "10.20.0.1"}) {
    EXPECT_TRUE(plain_passes(host)) << host;
    EXPECT_TRUE(tunnel_passes(host)) << host;
    EXPECT_TRUE(plain_refused(host + ":25")) << host;
  }
}

// One forbidden address among several: a proxy might choose it, so that the name is refused; what
// we dial ourselves we choose ourselves.
TEST_P(GatewayTargets, OfSeveralAddressesNoForbiddenOneIsDialledGW20) {
  means("mixed.example", {"127.0.0.1", "203.0.113.1", "10.0.0.1", "::1"});
  leads_to("203.0.113.1", closed_port());
  (void)world();
  const std::string answer = ask(get_of("mixed.example"));
  if (GetParam() == Way::Proxy) {
    EXPECT_TRUE(forbidden(answer)) << answer;
    EXPECT_EQ(dialled(), List{});
  } else {
    EXPECT_EQ(code_of(answer), "target_connect_failed");
    EXPECT_EQ(dialled(), List{"203.0.113.1:80"}) << "and no other when that one fails";
  }
}

TEST_P(GatewayTargets, ANameThatMeansNothingIsADnsFailureGW20) {
  means("nowhere.example", {});
  FakeProxy& end = world();
  const std::string answer = ask(get_of("nowhere.example"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
  EXPECT_EQ(code_of(answer), "dns_failed");
  EXPECT_TRUE(ask(connect_to("nowhere.example:443"))
                  .starts_with("HTTP/1.1 502 Bad Gateway (dns_failed)\r\n"));
  EXPECT_EQ(end.connections(), 0);
}

class GatewayRebinding : public DirectTest {
 protected:
  // Public when it is asked first, and this machine from then on.
  void two_faced() {
    rig_.look_up = [this](const std::string&, Deadline) -> Result<std::vector<IpAddress>> {
      return std::vector{*IpAddress::parse(number_++ == 0 ? "203.0.113.1" : "127.0.0.1")};
    };
  }
};

// What was judged is dialled: between the two nobody asks again.
TEST_F(GatewayRebinding, ANameThatChangesItsMeaningBetweenCheckAndDialGainsNothingGW20) {
  for (const std::string& request : {get_of("rebind.example"), connect_to("rebind.example:80")}) {
    number_ = 0;
    two_faced();
    FakeProxy& end = origin(serving());
    start();
    Peer c = client();
    c.send(request);
    EXPECT_TRUE(c.until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
    EXPECT_EQ(dialled(), List{"203.0.113.1:80"});
    EXPECT_EQ(number_, 1);
    wait_for([&] { return end.connections() == 1; });  // a tunnel stands before it is accepted
    c.close();
    rig_.stop();
  }
}

// The first look-up is for the policy, as the routing has upstreams; what is dialled in their place
// is judged as well, whatever it came from.
TEST_F(GatewayRebinding, NorDoesOneThatWasJudgedForAProxyAndThenGoesDirectGW20) {
  two_faced();
  rig_.snapshot.routings.front().upstreams.push_back({UpstreamId("vendor"), 1});
  rig_.snapshot.policy.resolve_before_proxy = true;
  origin(serving());
  rig_.settings.reuse = false;
  start();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ask(get_of("rebind.example")).starts_with("HTTP/1.1 200 "));
  }
  EXPECT_EQ(dialled(), (List{"203.0.113.1:80", "203.0.113.1:80", "203.0.113.1:80"}));
  EXPECT_EQ(number_, 1);
}

// A kept connection leads where its name led once. A snapshot that forbids that is obeyed at once.
TEST_F(GatewayRebinding, AKeptConnectionToWhatIsForbiddenNowIsNotUsedGW20) {
  FakeProxy& end = origin(serving());
  start();
  EXPECT_TRUE(ask(get_of("kept.example")).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(ask(get_of("kept.example")).starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(end.connections(), 1);
  rig_.snapshot.policy.deny_cidrs = {*Cidr::parse("203.0.113.0/24")};
  rig_.snapshot.version.counter = 2;
  rig_.publish();
  EXPECT_TRUE(forbidden(ask(get_of("kept.example"))));
  EXPECT_EQ(end.connections(), 1);
}

// Without the option the vendor resolves, and only the name itself is judged here.
TEST_F(GatewayRebinding, WithoutTheOptionNoNameIsLookedUpForAProxy) {
  means("inside.example", {"10.0.0.1"});
  FakeProxy& p = proxy(answering("ok"));
  rig_.snapshot.routings.front().upstreams.push_back({UpstreamId("vendor"), 1});
  start();
  EXPECT_TRUE(ask(get_of("inside.example")).ends_with("ok"));
  EXPECT_EQ(looked_up(), List{});
  EXPECT_EQ(p.connections(), 1);
}

}  // namespace
}  // namespace proxypool::gateway
