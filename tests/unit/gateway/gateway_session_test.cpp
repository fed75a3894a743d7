// Sessions through a whole gateway: one proxy for one session, over threads, connections and
// snapshots, until it fails (GW-34, R4, R9).
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class GatewaySession : public GatewayTest {
 protected:
  // Proxies that answer with their number, as long as they live.
  void proxies(int count) {
    for (int i = 0; i < count; ++i) {
      proxy([this, i](Peer& peer, int) {
        for (;;) {
          const std::string head = peer.until("\r\n\r\n");
          if (head.empty() || dead_.with([&](auto& dead) { return dead.contains(i); })) return;
          saw(head);
          peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(i));
        }
      });
    }
    rig_.add_client("ann", "secret");
  }
  static std::string as(const std::string& user) {
    return "Proxy-Authorization: Basic " + base64_encode(user + ":secret") + "\r\n";
  }
  // On a connection of its own: the number of the proxy that served, or the answer.
  std::string ask(const std::string& user, const std::string& more = {}) {
    Peer c = client();
    c.send(get("/", as(user) + more));
    const std::string answer = c.answer();
    return answer.starts_with("HTTP/1.1 200") ? answer.substr(answer.size() - 1) : answer;
  }
  void kill_proxy(const std::string& number) {
    dead_.with([&](auto& dead) { dead.insert(std::stoi(number)); });
  }
  Guarded<std::set<int>> dead_;
};

TEST_F(GatewaySession, StaysWithItsProxyOverConnectionsThreadsAndSnapshots) {
  proxies(5);
  rig_.settings.threads = 3;
  start();
  const std::string one = ask("ann-session-a1");
  std::set<std::string> others;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(ask("ann-session-a1"), one);
    others.insert(ask("ann"));
    if (i == 25) {
      rig_.snapshot.version.counter = 2;
      rig_.publish();
    }
  }
  EXPECT_GT(others.size(), 1U) << "without a session requests go round";
  EXPECT_TRUE(has(ask("ann-session-a1-country-us"), "no_candidate")) << "no proxy is there";
  EXPECT_EQ(ask("ann-sid-a1"), one) << "and nothing was lost by asking";
  EXPECT_EQ(metric("proxypool_gateway_sessions"), 1);
  EXPECT_GE(metric("proxypool_gateway_session_hits_total"), 50);
  EXPECT_FALSE(has(seen(), "a1")) << "nobody is told";
}

TEST_F(GatewaySession, IsNamedByAFieldAsWellThatGoesNoFurther) {
  proxies(4);
  start();
  const std::string field = "X-Proxy-Session: b-2~x\r\n";
  const std::string one = ask("ann", field);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("ann", "x-proxy-SESSION:  b-2~x \r\n"), one);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("ann-session-c3", field), ask("ann-session-c3"));
  EXPECT_FALSE(has(seen(), "ession"));
  for (const std::string wrong :
       {"X-Proxy-Session: a b\r\n", "X-Proxy-Session: \r\n", "X-Proxy-Session: a/b\r\n"}) {
    EXPECT_TRUE(has(ask("ann", wrong), "HTTP/1.1 400 Bad Request\r\n")) << wrong;
  }
  EXPECT_TRUE(has(ask("ann", field + field), "\"code\":\"bad_request\"")) << "twice";
  EXPECT_TRUE(has(ask("ann", "X-Proxy-Session: " + std::string(129, 'a') + "\r\n"), " 400 "));
  Peer c = client();
  c.send(connect_to("origin.example:443", as("ann") + "X-Proxy-Session: a b\r\n"));
  EXPECT_TRUE(has(c.answer(), "400 Bad Request (bad_request)")) << "on CONNECT, too";
  rig_.snapshot.policy.session_header = "X-Sticky";
  rig_.publish();
  const std::string renamed = ask("ann", "X-Sticky: b-2~x\r\n");
  EXPECT_EQ(renamed, one) << "the same session under the field's new name";
}

TEST_F(GatewaySession, MovesWhenItsProxyFails) {
  proxies(3);
  start();
  const std::string one = ask("ann-session-a1");
  kill_proxy(one);
  const std::string two = ask("ann-session-a1");
  EXPECT_EQ(two.size(), 1U) << two;
  EXPECT_NE(two, one);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ask("ann-session-a1"), two);
  EXPECT_EQ(metric("proxypool_gateway_sessions_lost_total"), 1);
}

TEST_F(GatewaySession, ThatIsStrictFailsRatherThanMove) {
  proxies(3);
  start();
  const std::string one = ask("ann-session-a1-strict");
  ASSERT_EQ(one.size(), 1U) << one;
  kill_proxy(one);
  const std::string lost = ask("ann-session-a1-strict");
  EXPECT_TRUE(has(lost, "HTTP/1.1 503 Service Unavailable\r\n")) << lost;
  EXPECT_TRUE(has(lost, "\"code\":\"session_lost\""));
  EXPECT_TRUE(has(lost, "error=destination_unavailable; details=\"session_lost\""));
  EXPECT_TRUE(has(lost, "Retry-After: "));
  const std::string two = ask("ann-session-a1-strict");
  EXPECT_EQ(two.size(), 1U) << "told once; the next request begins the session anew: " << two;
  EXPECT_NE(two, one);
}

TEST_F(GatewaySession, ThatIsStrictSaysSoWhenItsProxyLeavesTheSnapshot) {
  proxies(3);
  start();
  const std::string one = ask("ann-session-a1-strict");
  const std::string same = ask("ann-session-b2");
  std::erase_if(rig_.snapshot.proxies,
                [&](const auto& p) { return p.id == ProxyId(std::stoull(one) + 1); });
  rig_.snapshot.version.counter = 2;
  rig_.publish();
  EXPECT_TRUE(has(ask("ann-session-a1-strict"), "\"code\":\"session_lost\""));
  EXPECT_EQ(ask("ann-session-a1-strict").size(), 1U);
  EXPECT_EQ(ask("ann-session-b2").size(), 1U) << "another session just moves, if it must";
}

// A session that is only full is not lost: R4, and never a proxy's limit is passed.
TEST_F(GatewaySession, GoesElsewhereForAWhileWhenItsProxyIsFull) {
  for (int i = 0; i < 2; ++i) {
    proxy([this, i](Peer& peer, int) {
      for (;;) {
        const std::string head = peer.until("\r\n\r\n");
        if (head.empty()) return;
        if (has(head, "/slow")) {
          ++number_;
          while (!flag_) std::this_thread::yield();
        }
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(i));
      }
    });
  }
  for (auto& p : rig_.snapshot.proxies) p.max_concurrency = 1;
  rig_.add_client("ann", "secret");
  start();
  const std::string one = ask("ann-session-a1");
  Peer slow = client();
  slow.send(get("/slow", as("ann-session-a1")));
  wait_for([&] { return number_ == 1; });
  const std::string two = ask("ann-session-a1");
  EXPECT_NE(two, one);
  EXPECT_TRUE(has(ask("ann-session-a1-strict"), "\"code\":\"no_candidate\"")) << "full, not lost";
  flag_ = true;
  EXPECT_TRUE(slow.answer().ends_with(one));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask("ann-session-a1"), one) << "back at its proxy";
}

// R9: a kept connection belongs to one session.
TEST_F(GatewaySession, SharesNoUpstreamConnectionWithAnotherSession) {
  proxies(1);
  start();
  Peer c = client();
  for (int round = 0; round < 3; ++round) {
    for (const char* user : {"ann", "ann-session-a", "ann-session-b"}) {
      c.send(get("/", as(user)));
      EXPECT_EQ(c.answer().substr(0, 12), "HTTP/1.1 200");
    }
  }
  EXPECT_EQ(proxies_[0].connections(), 3);
}

TEST_F(GatewaySession, EndsAtItsAge) {
  proxies(4);
  rig_.snapshot.policy.session_idle = milliseconds(1);
  start();
  std::set<std::string> seen;
  for (int i = 0; i < 60; ++i) {
    seen.insert(ask("ann-session-a1"));
    const auto until = runtime::boot_now() + milliseconds(2);
    wait_for([&] { return runtime::boot_now() > until; });
  }
  EXPECT_GT(seen.size(), 1U);
}

}  // namespace
}  // namespace proxypool::gateway
