// least_time and consistent_hash through a whole gateway (R1, RS-5, RS-6).
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

class GatewayBalancer : public GatewayTest {
 protected:
  enum class Way { Fast, Slow, Busy, CutsOff };

  // Answers heads, plain ones and CONNECT, in its way; each is counted for the proxy's number.
  void proxy_that_is(Way way) {
    const auto number = static_cast<std::size_t>(way);
    proxy([this, way, number](Peer& peer, int) {
      while (!peer.until("\r\n\r\n").empty()) {
        ++served_[number];
        // What a slow proxy is; nothing waits for it to be over.
        if (way == Way::Slow) std::this_thread::sleep_for(std::chrono::milliseconds(60));
        if (way == Way::CutsOff) return;
        const std::string status = way == Way::Busy ? "503 Busy" : "200 OK";
        peer.send("HTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n");
      }
    });
  }
  void start_with(domain::Balancer balancer) {
    rig_.snapshot.routings[0].balancer = balancer;
    start();
  }
  int served(Way way) { return served_[static_cast<std::size_t>(way)]; }
  void ask(int times, const std::string& request) {
    for (int i = 0; i < times; ++i) {
      Peer c = client();
      c.send(request);
      (void)c.until("\r\n\r\n");
    }
  }
  std::array<std::atomic<int>, 4> served_{};
};

TEST_F(GatewayBalancer, LeastTimeLeavesASlowProxyAlone) {
  proxy_that_is(Way::Slow);
  proxy_that_is(Way::Fast);
  start_with(domain::Balancer::LeastTime);
  ask(60, get("/"));
  EXPECT_LE(served(Way::Slow), 8);
  EXPECT_GE(served(Way::Fast), 50);
}

TEST_F(GatewayBalancer, LeastTimeTimesATunnelUntilItStands) {
  proxy_that_is(Way::Slow);
  proxy_that_is(Way::Fast);
  start_with(domain::Balancer::LeastTime);
  ask(60, connect_to("origin.example:443"));
  EXPECT_LE(served(Way::Slow), 8);
}

TEST_F(GatewayBalancer, LeastTimeGivesOneThatFailsFastNoTraffic) {
  for (const Way way : {Way::CutsOff, Way::Fast, Way::Fast}) proxy_that_is(way);
  start_with(domain::Balancer::LeastTime);
  ask(100, get("/"));
  EXPECT_LE(served(Way::CutsOff), 3);
}

TEST_F(GatewayBalancer, LeastTimeGivesOneThatIsTooBusyNoTraffic) {
  for (const Way way : {Way::Busy, Way::Fast, Way::Fast}) proxy_that_is(way);
  start_with(domain::Balancer::LeastTime);
  ask(100, get("/"));
  EXPECT_LE(served(Way::Busy), 3);
}

TEST_F(GatewayBalancer, ConsistentHashKeepsASessionElseAClientAtOneProxy) {
  for (int i = 0; i < 8; ++i) {
    proxy([i](Peer& peer, int) {
      while (!peer.until("\r\n\r\n").empty()) {
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(i));
      }
    });
  }
  for (const char* name : {"ann", "bob", "cid", "dan", "eve", "fay"}) rig_.add_client(name, "pw");
  rig_.settings.threads = 2;
  rig_.settings.sessions_max = 1;  // the balancer alone must keep them
  start_with(domain::Balancer::ConsistentHash);
  const auto home = [&](const std::string& user) {
    Peer c = client();
    c.send(get("/", "Proxy-Authorization: Basic " + base64_encode(user + ":pw") + "\r\n"));
    return c.answer().back();
  };
  std::set<char> homes;
  for (const std::string user : {"ann", "bob", "cid", "dan", "eve", "fay", "ann-session-a",
                                 "ann-session-b", "bob-session-a", "bob-session-b"}) {
    const char first = home(user);
    homes.insert(first);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(home(user), first) << user;
  }
  EXPECT_GT(homes.size(), 3U);
}

}  // namespace
}  // namespace proxypool::gateway
