// Ends without losses, and no growth: GW-53, GW-32, and the cost of a request in system calls.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "gateway_fixture.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::gateway {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

class GatewayDrain : public GatewayTest {
 protected:
  Deadline soon(milliseconds time = seconds(5)) {
    return Deadline::after(runtime::boot_now(), time);
  }
};

TEST_F(GatewayDrain, WhatIsGoingOnIsFinishedAndItsConnectionClosed) {
  FakeProxy& p = proxy([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    while (!flag_) std::this_thread::yield();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
  });
  start();
  Peer c = client();
  c.send(get("/"));
  wait_for([&] { return p.connections() == 1; });
  rig_.gateway().stop_intake();
  rig_.publish();  // returns when the serving thread has heard of both
  flag_ = true;
  EXPECT_EQ(c.all(), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone");
  EXPECT_TRUE(rig_.gateway().drain(soon()));
}

// A client that keeps its connection learns from the next answer that it must go.
TEST_F(GatewayDrain, AKeptConnectionGetsOneMoreAnswer) {
  proxy(answering("ok"));
  start();
  Peer c = client();
  c.send(get("/"));
  c.answer();
  Peer idle = client();
  idle.send(get("/"));
  idle.answer();
  rig_.gateway().stop_intake();
  c.send(get("/"));
  EXPECT_EQ(c.all(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  EXPECT_TRUE(idle.at_end()) << "one that stays idle is closed after drain_idle";
  EXPECT_TRUE(rig_.gateway().drain(soon()));
}

TEST_F(GatewayDrain, TunnelsGetUntilTheDeadline) {
  proxy([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    (void)peer.at_end();
  });
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443"));
  c.until("\r\n\r\n");
  rig_.gateway().stop_intake();
  EXPECT_FALSE(rig_.gateway().drain(soon(milliseconds(50))));
  EXPECT_EQ(rig_.gateway().activity().tunnels, 1U);
  rig_.gateway().stop();
  EXPECT_EQ(rig_.registry().counts().size(), 0U);
}

// Every request that was sent is answered although the gateway stops in the middle of the load.
TEST_F(GatewayDrain, StoppingUnderLoadLosesNothing) {
  proxy(answering("ok"));
  rig_.settings.threads = 2;
  start();
  std::atomic<int> answered{0};
  std::atomic<int> lost{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      Peer c = client();
      for (;;) {
        if (!c.send(get("/"))) return;
        const std::string answer = c.answer();
        const bool whole = answer.size() > 2 && answer.substr(answer.size() - 2) == "ok";
        ++(whole ? answered : lost);
        if (!whole || answer.find("Connection: close") != std::string::npos) return;
      }
    });
  }
  wait_for([&] { return answered > 400; });
  rig_.gateway().stop_intake();
  EXPECT_TRUE(rig_.gateway().drain(soon()));
  for (auto& thread : clients) thread.join();
  EXPECT_EQ(lost, 0);
}

TEST_F(GatewayDrain, NothingGrowsOverManyConnectionsOfEveryKind) {
  proxy([](Peer& peer, int) {
    std::string head;
    while (!(head = peer.until("\r\n\r\n")).empty()) {
      if (head.find("/reset") != std::string::npos) return peer.reset();
      if (head.substr(0, 7) == "CONNECT") {
        peer.send("HTTP/1.1 200 OK\r\n\r\n");
        peer.send(peer.exactly(1));
        return;
      }
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  start();
  const auto round = [&] {
    Peer a = client();
    a.send(get("/"));
    a.answer();
    Peer b = client();
    b.send(get("/reset"));
    b.answer();
    Peer t = client();
    t.send(connect_to("origin.example:443") + "x");
    t.all();
    Peer gone = client();
    gone.send("GET http://origin.exa");
    gone.reset();
    Peer bad = client();
    bad.send("nonsense\r\n\r\n");
    bad.all();
  };
  const auto quiet = [&] {
    wait_for([&] {
      const auto now = rig_.gateway().activity();
      return now.connections == 0 && now.requests == 0 && now.tunnels == 0;
    });
  };
  round();
  quiet();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) round();
  quiet();
  EXPECT_LE(open_descriptors(), before + 4) << "the proxy keeps a few idle connections";
}

}  // namespace
}  // namespace proxypool::gateway
