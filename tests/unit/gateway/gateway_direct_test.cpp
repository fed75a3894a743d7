// Without a proxy: what the origin sees, what is reused, what goes wrong (GW-34, GW-41, GW-42, the
// rows of the error contract for DIRECT).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "direct_fixture.hpp"

namespace proxypool::gateway {
namespace {

using List = std::vector<std::string>;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class GatewayDirect : public DirectTest {
 protected:
  // An origin that writes down what it is asked and answers "ok".
  FakeProxy& plain_origin() {
    return origin([this](Peer& peer, int) {
      for (;;) {
        const std::string head = peer.until("\r\n\r\n");
        if (head.empty()) return;
        saw(head);
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }
    });
  }
  std::string said(const std::string& answer) {
    origin([answer](Peer& peer, int) {
      peer.until("\r\n\r\n");
      peer.send(answer);
    });
    return ask(get("/"));
  }
};

TEST_F(GatewayDirect, AsksTheOriginAsABrowserWouldGW34) {
  plain_origin();
  rig_.settings.access_log_one_in = 1;
  start();
  const std::string answer =
      ask("GET http://Origin.example:8080/p?q=1 HTTP/1.1\r\nhost: elsewhere\r\nAccept: */*\r\n"
          "Proxy-Authorization: Basic YTpi\r\nProxy-Connection: keep-alive\r\nX: 1\r\n\r\n");
  EXPECT_EQ(answer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(seen(),
            "GET /p?q=1 HTTP/1.1\r\nhost: Origin.example:8080\r\nAccept: */*\r\nX: 1\r\n\r\n");
  EXPECT_EQ(looked_up(), List{"origin.example"});
  EXPECT_EQ(dialled(), List{"203.0.113.10:8080"});
  EXPECT_EQ(metric("proxypool_gateway_direct_total"), 1);
  wait_for([&] { return rig_.events.count(ports::Event::RequestServed) == 1; });
  const std::string line = rig_.events.lines().back();
  for (const auto* part :
       {" routing=all ", " upstream=direct ", " proxy=direct ", " attempts=1 "}) {
    EXPECT_TRUE(has(line, part)) << line;
  }
}

TEST_F(GatewayDirect, WritesTheTargetAsOriginsWantItGW5) {
  plain_origin();
  start();
  Peer c = client();
  for (const auto* target :
       {"OPTIONS http://origin.example", "OPTIONS http://origin.example/",
        "GET http://origin.example", "GET http://origin.example?q", "GET ws://origin.example/w"}) {
    c.send(std::string(target) + " HTTP/1.1\r\nHost: origin.example\r\n\r\n");
    EXPECT_TRUE(has(c.answer(), "200 OK"));
  }
  std::string lines;
  const std::string all = seen();
  for (std::size_t at = 0; at < all.size(); at = all.find("\r\n\r\n", at) + 4) {
    lines += all.substr(at, all.find("\r\n", at) - at) + "\n";
  }
  EXPECT_EQ(lines,
            "OPTIONS * HTTP/1.1\nOPTIONS / HTTP/1.1\nGET / HTTP/1.1\nGET /?q HTTP/1.1\n"
            "GET /w HTTP/1.1\n");
}

TEST_F(GatewayDirect, CarriesABodyUpAndALongAnswerDown) {
  const std::string body(300'000, 'b');
  origin([&](Peer& peer, int) {
    const std::string head = peer.until("\r\n\r\n");
    const auto end = head.find("\r\n\r\n") + 4;
    saw(head.substr(end) + peer.exactly(300'000 - (head.size() - end)));
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + body);
    (void)peer.at_end();
  });
  start();
  const std::string answer = ask(
      "POST http://origin.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + body);
  EXPECT_TRUE(answer.ends_with(body));
  EXPECT_EQ(seen(), body);
}

TEST_F(GatewayDirect, OpensATunnelAndAnswersForItselfGW34) {
  origin([](Peer& peer, int) {
    peer.send("hello");
    peer.send(peer.until("end"));
    peer.send(" bye");
  });
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443") + "early ");
  const std::string established = "HTTP/1.1 200 Connection established\r\n\r\n";
  EXPECT_EQ(c.exactly(established.size() + 5), established + "hello");
  c.send("end");
  EXPECT_EQ(c.all(), "early end bye") << "what came with the head is not lost";
  c.close();
  EXPECT_EQ(dialled(), List{"203.0.113.10:443"});
  wait_for([&] { return rig_.gateway().activity().tunnels == 0; });
  EXPECT_EQ(outcomes("tunnel"), 1);
}

TEST_F(GatewayDirect, TunnelsHalfClose) {
  origin([](Peer& peer, int) { peer.send("all: " + peer.all()); });
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443"));
  c.until("\r\n\r\n");
  c.send("question");
  ::shutdown(c.fd(), SHUT_WR);
  EXPECT_EQ(c.all(), "all: question");
}

TEST_F(GatewayDirect, SwitchesToAWebSocketGW7) {
  origin([&](Peer& peer, int) {
    saw(peer.until("\r\n\r\n"));
    peer.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "\r\nhi");
    peer.send(peer.exactly(4));
  });
  start();
  Peer c = client();
  c.send(
      "GET ws://origin.example/chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
      "Upgrade: websocket\r\n\r\nping");
  const std::string answer = c.all();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
  EXPECT_TRUE(answer.ends_with("hiping"));
  EXPECT_TRUE(seen().starts_with("GET /chat HTTP/1.1\r\n"));
  EXPECT_TRUE(has(seen(), "Upgrade: websocket\r\nConnection: Upgrade\r\n"));
}

// R9, with the target where the proxy would stand.
TEST_F(GatewayDirect, ReusesAConnectionForTheSameClientSessionAndTargetAlone) {
  FakeProxy& p = plain_origin();
  rig_.add_client("ann", "secret");
  rig_.add_client("bob", "secret");
  start();
  const auto asked = [&](const std::string& authority, const std::string& who,
                         const std::string& more = {}) {
    Peer c = client();
    c.send(get_of(authority,
                  "Proxy-Authorization: Basic " + base64_encode(who + ":secret") + "\r\n" + more));
    EXPECT_TRUE(has(c.answer(), "200 OK"));
    return p.connections();
  };
  EXPECT_EQ(asked("a.example", "ann"), 1);
  EXPECT_EQ(asked("A.example.", "ann"), 1) << "the same host";
  EXPECT_EQ(asked("a.example:80", "ann"), 1) << "the same port";
  EXPECT_EQ(asked("a.example:8080", "ann"), 2);
  EXPECT_EQ(asked("b.example", "ann"), 3) << "another host, at the same address";
  EXPECT_EQ(asked("a.example", "bob"), 4);
  EXPECT_EQ(asked("a.example", "ann", "X-Proxy-Session: s1\r\n"), 5);
  EXPECT_EQ(asked("a.example", "ann", "X-Proxy-Session: s1\r\n"), 5);
  EXPECT_EQ(asked("a.example", "ann"), 5);
  EXPECT_EQ(metric("proxypool_gateway_upstream_reuses_total"), 4);
  EXPECT_FALSE(has(seen(), "X-Proxy-Session"));
}

// GW-35: a kept connection that dies is nobody's failure, once. Nothing else is tried twice.
TEST_F(GatewayDirect, AKeptConnectionThatDiesBeforeItsAnswerIsReplacedOnce) {
  FakeProxy& p = origin([](Peer& peer, int number) {
    peer.until("\r\n\r\n");
    if (number == 2) return;
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    peer.until("\r\n\r\n");
  });
  start();
  Peer c = client();
  for (int i = 0; i < 2; ++i) {
    c.send(get("/"));
    EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  }
  EXPECT_EQ(p.connections(), 2);
  c.send(get("/"));
  EXPECT_EQ(code_of(c.answer()), "target_protocol_error") << "the fresh one died as well";
  EXPECT_EQ(p.connections(), 3);
}

TEST_F(GatewayDirect, WhatTheOriginDoesWrongIsItsOwnGW41) {
  rig_.settings.reuse = false;
  start();
  EXPECT_EQ(
      code_of(said("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")),
      "HTTP/1.1 401 No");
  EXPECT_EQ(code_of(said("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")), "HTTP/1.1 503 No");
  const std::string proxies_word =
      said("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(proxies_word.starts_with("HTTP/1.1 502 Bad Gateway\r\n")) << proxies_word;
  EXPECT_TRUE(has(proxies_word,
                  "Proxy-Status: proxypool; error=http_protocol_error; next-hop=direct; "
                  "details=\"target_protocol_error\"\r\n"));
  EXPECT_FALSE(has(proxies_word, "Proxy-Authenticate"));
  const std::string garbled = said("SSH-2.0-server\r\n\r\n");
  EXPECT_EQ(code_of(garbled), "target_protocol_error");
  EXPECT_TRUE(has(garbled, "error=http_protocol_error; next-hop=direct"));
  const std::string lost = said("");
  EXPECT_EQ(code_of(lost), "target_protocol_error");
  EXPECT_TRUE(has(lost, "error=connection_terminated; next-hop=direct")) << lost;
  EXPECT_EQ(outcomes("target_protocol_error"), 3);
  EXPECT_EQ(proxies_.back().connections(), 1) << "there is no other way to try";
}

TEST_F(GatewayDirect, ATargetThatCannotBeReachedHasItsCode) {
  means("nowhere.example", {});
  means("closed.example", {"203.0.113.1", "203.0.113.2"});
  leads_to("203.0.113.1", closed_port());
  leads_to("203.0.113.2", closed_port());
  start();
  const std::string unknown = ask(get_of("nowhere.example"));
  EXPECT_TRUE(unknown.starts_with("HTTP/1.1 502 ")) << unknown;
  EXPECT_TRUE(has(unknown, "error=dns_error; next-hop=direct; details=\"dns_failed\""));
  const std::string closed = ask(get_of("closed.example"));
  EXPECT_TRUE(closed.starts_with("HTTP/1.1 502 ")) << closed;
  EXPECT_TRUE(
      has(closed, "error=connection_refused; next-hop=direct; details=\"target_connect_failed\""));
  EXPECT_EQ(dialled(), (List{"203.0.113.1:80", "203.0.113.2:80"}));
  EXPECT_TRUE(ask(connect_to("closed.example:443"))
                  .starts_with("HTTP/1.1 502 Bad Gateway (target_connect_failed)\r\n"));
  EXPECT_TRUE(ask(connect_to("nowhere.example:443"))
                  .starts_with("HTTP/1.1 502 Bad Gateway (dns_failed)\r\n"));
  // The client's connection goes on.
  Peer c = client();
  for (int i = 0; i < 2; ++i) {
    c.send(get_of("nowhere.example"));
    EXPECT_EQ(code_of(c.answer()), "dns_failed");
  }
}

TEST_F(GatewayDirect, EachDeadlineHasItsCodeGW42) {
  rig_.look_up = [&](const std::string& name, Deadline) -> Result<std::vector<IpAddress>> {
    while (name == "slow.example" && !flag_) std::this_thread::yield();
    return std::vector{*IpAddress::parse(kUsual)};
  };
  rig_.settings.resolve = milliseconds(40);
  rig_.settings.connect = milliseconds(60);
  rig_.settings.first_byte = milliseconds(40);
  origin([](Peer& peer, int) { (void)peer.all(); });
  start();
  const std::string slow = ask(get_of("slow.example"));
  EXPECT_TRUE(slow.starts_with("HTTP/1.1 504 ")) << slow;
  EXPECT_TRUE(has(slow, "error=dns_timeout; next-hop=direct; details=\"resolve_timeout\""));
  EXPECT_TRUE(ask(connect_to("slow.example:443"))
                  .starts_with("HTTP/1.1 504 Gateway Timeout (resolve_timeout)\r\n"));
  flag_ = true;
  EXPECT_EQ(code_of(ask(get("/"))), "first_byte_timeout");
  // A listener whose queue is full drops further connections in silence.
  auto listener = net::listen_tcp({IpAddress::v4(0x7f000001), 0}, {.backlog = 0});
  ASSERT_TRUE(listener);
  Peer filler = Peer::dial(net::local_port(listener->get()));
  leads_to(kUsual, net::local_port(listener->get()));
  const std::string unanswered = ask(get_of("203.0.113.10:81"));
  EXPECT_TRUE(has(unanswered,
                  "error=connection_timeout; next-hop=direct; "
                  "details=\"connect_timeout\""))
      << unanswered;
}

TEST_F(GatewayDirect, AnOriginThatTakesNoMoreOfABodyIsTimedOutGW42) {
  rig_.settings.idle = milliseconds(100);
  origin([this](Peer& peer, int) {
    peer.until("\r\n\r\n");
    while (!flag_) std::this_thread::yield();
  });
  start();
  Peer c = client();
  std::thread writer([&] {
    c.send("POST http://origin.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string piece(1'000'000, 'b');
    while (c.send(piece)) {
    }
  });
  const std::string answer = c.answer();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 504 ")) << answer;
  EXPECT_EQ(code_of(answer), "idle_timeout");
  EXPECT_TRUE(has(answer, "error=connection_read_timeout"));
  writer.join();
  flag_ = true;
}

TEST_F(GatewayDirect, TooManyNamesAtOnceAreAnOverload) {
  rig_.look_up = [&](const std::string&, Deadline) -> Result<std::vector<IpAddress>> {
    while (!flag_) std::this_thread::yield();
    return Error{ErrorCode::Exhausted, Origin::Target, "too many look-ups at once"};
  };
  start();
  Peer c = client();
  c.send(get("/"));
  flag_ = true;
  const std::string busy = c.answer();
  EXPECT_EQ(code_of(busy), "overloaded");
  EXPECT_TRUE(has(busy, "Retry-After: "));
}

// GW-21: a dead address costs a quarter of a second, a closed one nothing.
TEST_F(GatewayDirect, AddressesRaceAndTheFirstToAnswerWinsGW21) {
  auto listener = net::listen_tcp({IpAddress::v4(0x7f000001), 0}, {.backlog = 0});
  ASSERT_TRUE(listener);
  const auto silent = net::local_port(listener->get());
  Peer filler = Peer::dial(silent);
  FakeProxy& p = plain_origin();
  means("dual.example", {"2001:db8::1", "2001:db8::2", "203.0.113.1", "203.0.113.2"});
  leads_to("2001:db8::1", silent);
  leads_to("203.0.113.1", closed_port());
  rig_.settings.reuse = false;
  start();
  EXPECT_TRUE(has(ask(get_of("dual.example")), "200 OK"));
  EXPECT_EQ(dialled(), (List{"[2001:db8::1]:80", "203.0.113.1:80", "[2001:db8::2]:80"}));
  EXPECT_EQ(p.connections(), 1);
  Peer c = client();
  c.send(connect_to("dual.example:443"));
  EXPECT_TRUE(c.until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(dialled().size(), 3U);
  EXPECT_EQ(metric("proxypool_gateway_upstream_connects_total"), 2) << "who lost does not count";
}

TEST_F(GatewayDirect, AClientThatGoesWhileItsTargetIsDialledLeavesNothing) {
  auto listener = net::listen_tcp({IpAddress::v4(0x7f000001), 0}, {.backlog = 0});
  ASSERT_TRUE(listener);
  Peer filler = Peer::dial(net::local_port(listener->get()));
  leads_to(kUsual, net::local_port(listener->get()));
  start();
  {
    Peer c = client();
    c.send(get("/"));
    wait_for([&] { return !dialled().empty(); });
  }
  wait_for([&] { return rig_.gateway().activity().connections == 0; });
  EXPECT_EQ(outcomes("aborted"), 1);
}

// onUnavailable: direct, with proxies: they go first.
class GatewayFallsBack : public DirectTest {
 protected:
  GatewayFallsBack() {
    rig_.snapshot.routings.front().upstreams.push_back({UpstreamId("vendor"), 1});
  }
  // A proxy with one place, which the first request keeps.
  Peer fill() {
    proxy([this](Peer& peer, int) {
      peer.until("\r\n\r\n");
      ++number_;
      peer.until("never");
    });
    rig_.snapshot.proxies.back().max_concurrency = 1;
    start();
    Peer busy = client();
    busy.send(get("/busy"));
    wait_for([&] { return number_ == 1; });
    return busy;
  }
};

TEST_F(GatewayFallsBack, OnlyWhileNoProxyHasAPlaceGW34) {
  FakeProxy& p = proxy(answering("proxied"));
  origin(answering("direct"));
  rig_.snapshot.proxies.back().max_concurrency = 1;
  start();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask(get("/")).ends_with("proxied"));
  EXPECT_EQ(dialled(), List{});
  EXPECT_EQ(p.connections(), 1);
}

TEST_F(GatewayFallsBack, AndGoesToTheTargetThenGW34) {
  origin(answering("direct"));
  Peer busy = fill();
  EXPECT_TRUE(ask(get("/")).ends_with("direct"));
  EXPECT_EQ(dialled(), List{"203.0.113.10:80"});
}

TEST_F(GatewayFallsBack, WhoAskedForStrictnessIsNotSwitchedToAnotherWayOut) {
  rig_.add_client("ann", "secret");
  origin(answering("direct"));
  start();
  const auto as = [&](const std::string& name) {
    return ask(get("/", "Proxy-Authorization: Basic " + base64_encode(name + ":secret") + "\r\n"));
  };
  EXPECT_EQ(code_of(as("ann-session-a1-strict")), "no_candidate");
  EXPECT_TRUE(as("ann-session-a1").ends_with("direct"));
  rig_.snapshot.routings.front().upstreams.clear();
  rig_.snapshot.version.counter = 2;
  rig_.publish();
  EXPECT_TRUE(as("ann-session-a1-strict").ends_with("direct")) << "there is only this way";
}

TEST_F(GatewayFallsBack, AFailedAttemptAtAProxyIsNotHiddenByIt) {
  rig_.add({.port = closed_port()});
  origin(answering("direct"));
  start();
  EXPECT_EQ(code_of(ask(get("/"))), "proxy_connect_failed");
  EXPECT_EQ(dialled(), List{});
}

// R7: what goes direct counts toward the routing's own maximum, and gives its place back.
TEST_F(GatewayFallsBack, CountsTowardTheMaximumOfTheRouting) {
  origin([this](Peer& peer, int) {
    peer.until("\r\n\r\n");
    ++number_;
    while (!flag_) std::this_thread::yield();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    (void)peer.at_end();
  });
  rig_.snapshot.routings.front().in_flight_max = 2;
  start();
  std::vector<Peer> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(client());
    busy.back().send(get("/"));
  }
  wait_for([&] { return number_ == 2; });
  EXPECT_EQ(code_of(ask(get("/"))), "overloaded");
  flag_ = true;
  for (Peer& peer : busy) EXPECT_TRUE(has(peer.answer(), "200 OK"));
  wait_for([&] { return rig_.gateway().activity().requests == 0; });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(has(ask(get("/")), "200 OK"));
}

}  // namespace
}  // namespace proxypool::gateway
