// Who may ask for what: authentication, access, targets, limits (GW-10, GW-11, GW-12, GW-20), and
// the rows of the error contract that come before a proxy is chosen.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

constexpr auto kAnn = "Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n";  // ann:secret
constexpr auto kWrong = "Proxy-Authorization: Basic YW5uOndyb25n\r\n";    // ann:wrong

class GatewayAccess : public GatewayTest {
 protected:
  std::string ask(const std::string& request) {
    Peer c = client();
    c.send(request);
    return c.answer();
  }
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(GatewayAccess, CredentialsAreAskedForCheckedAndNeverPassedOn) {
  FakeProxy& p = proxy([&](Peer& peer, int) {
    saw(peer.until("\r\n\r\n"));
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    (void)peer.at_end();
  });
  rig_.add_client("ann", "secret");
  start();
  Peer c = client();
  c.send(get("/"));
  const std::string challenge = c.answer();
  EXPECT_EQ(challenge.substr(0, 12), "HTTP/1.1 407");
  EXPECT_TRUE(has(challenge, "Proxy-Authenticate: Basic realm=\"proxypool\""));
  EXPECT_TRUE(has(challenge, "\"code\":\"auth_required\""));
  c.send(get("/", kWrong));
  EXPECT_TRUE(has(c.answer(), "\"code\":\"auth_rejected\"")) << "the connection goes on";
  EXPECT_EQ(p.connections(), 0);
  c.send(get("/", kAnn));
  EXPECT_EQ(c.answer().substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_FALSE(has(seen(), "YW5u"));
}

TEST_F(GatewayAccess, A407ToConnectSaysSoInItsReasonAndAllowsAnotherTry) {
  proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    (void)peer.at_end();
  });
  rig_.add_client("ann", "secret");
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443"));
  EXPECT_EQ(c.answer().substr(0, 58), "HTTP/1.1 407 Proxy Authentication Required (auth_required)");
  c.send(connect_to("origin.example:443", kAnn));
  EXPECT_EQ(c.until("\r\n\r\n").substr(0, 12), "HTTP/1.1 200");
  // Tunnel bytes behind a refused CONNECT are no request.
  Peer d = client();
  d.send(connect_to("origin.example:443") + get("/smuggled", kAnn));
  EXPECT_EQ(d.all().find("200 OK"), std::string::npos);
}

// GW-13: the password first, then the parameters; a 407 that names the one that is wrong.
TEST_F(GatewayAccess, ABadParameterIsNamedToWhoKnowsThePassword) {
  FakeProxy& p = proxy(answering("ok"));
  rig_.add_client("ann", "secret");
  start();
  const auto as = [](const std::string& pair) {
    return "Proxy-Authorization: Basic " + base64_encode(pair) + "\r\n";
  };
  Peer c = client();
  c.send(get("/", as("ann-colour-red:wrong")));
  EXPECT_TRUE(has(c.answer(), "\"code\":\"auth_rejected\""));
  c.send(get("/", as("ann-colour-red:secret")));
  const std::string bad = c.answer();
  EXPECT_EQ(bad.substr(0, 43), "HTTP/1.1 407 Proxy Authentication Required\r");
  EXPECT_TRUE(has(bad, "\"code\":\"bad_parameter\""));
  EXPECT_TRUE(has(bad, "\\\"colour\\\": is no parameter")) << bad;
  EXPECT_TRUE(has(bad, "Proxy-Authenticate: Basic "));
  EXPECT_FALSE(has(bad, "Proxy-Status")) << "RFC 9209 has no word for it";
  Peer d = client();
  d.send(connect_to("origin.example:443", as("ann-country-usa:secret")));
  const std::string refused = d.answer();
  EXPECT_EQ(refused.substr(0, 60),
            "HTTP/1.1 407 Proxy Authentication Required (bad_parameter)\r\n");
  EXPECT_EQ(p.connections(), 0);
  EXPECT_EQ(outcomes("bad_parameter"), 2);
  c.send(get("/", as("ann-strict:secret")));
  EXPECT_EQ(c.answer().substr(0, 12), "HTTP/1.1 200") << "the connection went on";
}

TEST_F(GatewayAccess, ACountryIsFoundOrSaidToBeMissing) {
  proxy(answering("us"));
  proxy(answering("de"));
  rig_.snapshot.proxies[0].attributes.country = "US";
  rig_.snapshot.proxies[1].attributes.country = "DE";
  rig_.add_client("ann", "secret");
  start();
  const auto as = [&](const std::string& name) {
    return ask(get("/", "Proxy-Authorization: Basic " + base64_encode(name + ":secret") + "\r\n"));
  };
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(as("ann-country-de").ends_with("de"));
    EXPECT_TRUE(as("ann-cc-US").ends_with("us"));
  }
  const std::string none = as("ann-country-jp");
  EXPECT_TRUE(has(none, "\"code\":\"no_candidate\"")) << none;
  EXPECT_TRUE(has(none, "fits the user name"));
  rig_.snapshot.policy.username_parameters = false;
  rig_.publish();
  EXPECT_TRUE(has(as("ann-country-de"), "\"code\":\"auth_rejected\"")) << "switched off";
  EXPECT_EQ(as("ann").substr(0, 12), "HTTP/1.1 200");
}

// A thousand connections with one password cost one verification, off the serving thread (GW-10).
TEST_F(GatewayAccess, OnePasswordIsVerifiedOnce) {
  proxy(answering("ok"));
  rig_.add_slow_client("ann", "secret");
  start();
  std::vector<Peer> peers;
  for (int i = 0; i < 40; ++i) {
    peers.push_back(client());
    peers.back().send(get("/", kAnn));
  }
  for (Peer& peer : peers) EXPECT_EQ(peer.answer().substr(0, 15), "HTTP/1.1 200 OK");
}

TEST_F(GatewayAccess, ANewPasswordMakesTheOldOneWorthless) {
  proxy(answering("ok"));
  rig_.add_client("ann", "secret");
  start();
  EXPECT_EQ(ask(get("/", kAnn)).substr(0, 12), "HTTP/1.1 200");
  rig_.snapshot.clients.clear();
  rig_.add_client("ann", "changed");
  rig_.snapshot.version.counter = 2;
  rig_.publish();
  EXPECT_EQ(ask(get("/", kAnn)).substr(0, 12), "HTTP/1.1 407");
}

TEST_F(GatewayAccess, ASourceThatGuessesIsNotVerifiedAnyMore) {
  proxy(answering("ok"));
  rig_.add_client("ann", "secret");
  start();
  std::string last;
  for (int i = 0; i < 40 && last.substr(0, 12) != "HTTP/1.1 429"; ++i) {
    const std::string pair = "ann:guess" + std::to_string(i);
    last = ask(get("/", "Proxy-Authorization: Basic " + base64_encode(pair) + "\r\n"));
  }
  EXPECT_TRUE(has(last, "\"code\":\"client_limited\"")) << last;
  EXPECT_TRUE(has(last, "Retry-After: "));
}

TEST_F(GatewayAccess, SourcesOutsideTheAllowedRangesAreDenied) {
  FakeProxy& p = proxy(answering("ok"));
  rig_.settings.allow_cidrs.push_back(*Cidr::parse("198.51.100.0/24"));
  start();
  EXPECT_TRUE(has(ask(get("/")), "\"code\":\"source_denied\""));
  EXPECT_EQ(p.connections(), 0);
}

TEST_F(GatewayAccess, AGatewayThatWouldBeAnOpenProxyDoesNotStart) {
  proxy(answering("ok"));
  rig_.settings.listen.address = IpAddress::v4(0);
  EXPECT_FALSE(rig_.start());
  rig_.settings.strict = false;
  EXPECT_TRUE(rig_.start());
}

TEST_F(GatewayAccess, ForbiddenTargetsAreNotDialled) {
  FakeProxy& p = proxy(answering("ok"));
  start();
  for (const auto* target : {"127.0.0.1", "localhost", "LOCALHOST.", "10.0.0.1", "[::1]",
                             "169.254.169.254", "[::ffff:127.0.0.1]", "2130706433"}) {
    const std::string host(target);
    const std::string answer =
        ask("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_TRUE(has(answer, "\"code\":\"target_forbidden\"")) << host << ": " << answer;
    EXPECT_TRUE(has(answer, "error=destination_ip_prohibited"));
    EXPECT_TRUE(has(ask(connect_to(host + ":443")), "403 Forbidden (target_forbidden)"));
  }
  EXPECT_EQ(p.connections(), 0);
  rig_.snapshot.policy.allow_cidrs.push_back(*Cidr::parse("127.0.0.0/8"));
  rig_.publish();
  EXPECT_EQ(ask("GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n").substr(0, 12), "HTTP/1.1 200");
}

TEST_F(GatewayAccess, WhatNoRoutingTakesIsRefused) {
  proxy(answering("ok"));
  rig_.snapshot.routings.front().match.hosts = {"only.example"};
  start();
  EXPECT_TRUE(has(ask(get("/")), "\"code\":\"no_routing\""));
  EXPECT_EQ(ask("GET http://ONLY.example./ HTTP/1.1\r\nHost: x\r\n\r\n").substr(0, 12),
            "HTTP/1.1 200");
}

TEST_F(GatewayAccess, TooMuchIsToldApart) {
  proxy(answering("ok"));
  rig_.settings.body_bytes_max = 10;
  start();
  EXPECT_EQ(ask(get("/" + std::string(20'000, 'a'))).substr(0, 12), "HTTP/1.1 414");
  EXPECT_EQ(ask(get("/", "X: " + std::string(70'000, 'a') + "\r\n")).substr(0, 12), "HTTP/1.1 431");
  EXPECT_EQ(ask("POST http://origin.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n")
                .substr(0, 12),
            "HTTP/1.1 413");
  const std::string chunked =
      ask("POST http://origin.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
          "b\r\n01234567890\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.substr(0, 12), "HTTP/1.1 413");
  EXPECT_EQ(outcomes("too_large"), 4);
}

// The deadline runs from the first byte; none extends it (GW-4).
TEST_F(GatewayAccess, AHeadThatDoesNotEndIsTimedOut) {
  proxy(answering("ok"));
  rig_.settings.head = milliseconds(60);
  rig_.settings.keep_alive = milliseconds(60);
  start();
  Peer c = client();
  std::string answer;
  c.send("GET http://origin.example/ HTTP/1.1\r\nX: ");
  while (c.send("a") && metric("proxypool_gateway_client_connections") > 0) {
    std::this_thread::yield();
    if (outcomes("request_timeout") > 0) break;
  }
  EXPECT_TRUE(has(c.answer(), "HTTP/1.1 408"));
  EXPECT_TRUE(client().at_end()) << "a connection that says nothing is closed";
}

TEST_F(GatewayAccess, RequestsBeyondTheLimitAreRefusedBeforeTheyCostAnything) {
  FakeProxy& p = proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.until("never");
  });
  rig_.settings.in_flight_max = 2;
  start();
  std::vector<Peer> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(client());
    busy.back().send(get("/"));
  }
  wait_for([&] { return p.connections() == 2; });
  const std::string answer = ask(get("/"));
  EXPECT_TRUE(has(answer, "\"code\":\"overloaded\"")) << answer;
  EXPECT_TRUE(has(answer, "Retry-After: "));
  busy.clear();
  wait_for([&] { return rig_.gateway().activity().requests == 0; });
}

TEST_F(GatewayAccess, ConnectionsBeyondTheLimitAreClosedOnArrival) {
  proxy(answering("ok"));
  rig_.settings.connections_max = 2;
  start();
  Peer a = client();
  Peer b = client();
  wait_for([&] { return rig_.gateway().activity().connections == 2; });
  EXPECT_TRUE(client().at_end());
  EXPECT_EQ(metric("proxypool_gateway_connections_refused_total"), 1);
}

TEST_F(GatewayAccess, AProxyIsNeverGivenMoreThanItsLimit) {
  proxies_.emplace_back([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.until("never");
  });
  rig_.add({.port = proxies_.back().port(), .max_concurrency = 1});
  start();
  Peer busy = client();
  busy.send(get("/"));
  wait_for([&] { return proxies_.back().connections() == 1; });
  EXPECT_TRUE(has(ask(get("/")), "\"code\":\"no_candidate\""));
}

TEST_F(GatewayAccess, WithoutAValidViewNothingIsServed) {
  proxy(answering("ok"));
  start();
  EXPECT_EQ(ask(get("/")).substr(0, 12), "HTTP/1.1 200");
  rig_.registry().extend(TimePoint{});
  const std::string answer = ask(get("/"));
  EXPECT_TRUE(has(answer, "\"code\":\"not_ready\"")) << answer;
  EXPECT_TRUE(has(answer, "Retry-After: 5"));
}

}  // namespace
}  // namespace proxypool::gateway
