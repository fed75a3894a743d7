// Waiting for a place through a whole gateway (R8): order, ends, and who is woken by what.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class GatewayWait : public GatewayTest {
 protected:
  // A proxy with one place that answers when it is told to, with the path that it was asked for.
  void slow_proxy() {
    proxy([this](Peer& peer, int) {
      for (;;) {
        const std::string head = peer.until("\r\n\r\n");
        if (head.empty()) return;
        const auto path = head.find("example/") + 7;
        const std::string name = head.substr(path, head.find(' ', path) - path);
        asked_.with([&](auto& all) { all.push_back(name); });
        ++number_;
        while (answers_ <= 0) std::this_thread::yield();
        --answers_;
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(name.size()) + "\r\n\r\n" +
                  name);
      }
    });
    rig_.snapshot.proxies.back().max_concurrency = 1;
    domain::SnapshotRouting& routing = rig_.snapshot.routings.front();
    routing.on_unavailable = domain::OnUnavailable::Wait;
    routing.wait_timeout = std::chrono::minutes(5);
    routing.waiters_max = 10;
  }
  Peer ask(const std::string& path) {
    Peer c = client();
    c.send(get(path));
    return c;
  }
  // The first has the only place, the others wait for it in this order.
  std::vector<Peer> line_up(const std::vector<std::string>& paths) {
    std::vector<Peer> peers;
    for (const std::string& path : paths) {
      peers.push_back(ask(path));
      if (peers.size() == 1) wait_for([&] { return number_ == 1; });
      if (peers.size() > 1) wait_for_waiters(static_cast<double>(peers.size() - 1));
    }
    return peers;
  }
  void wait_for_waiters(double count) {
    wait_for([&] { return metric("proxypool_gateway_waiting_requests") == count; });
  }
  std::vector<std::string> asked() {
    return asked_.with([](const auto& all) { return all; });
  }
  Guarded<std::vector<std::string>> asked_;
  std::atomic<int> answers_{0};
};

TEST_F(GatewayWait, ServesInTheOrderOfComing) {
  slow_proxy();
  rig_.settings.threads = 3;
  start();
  auto peers = line_up({"/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8"});
  for (std::size_t i = 0; i < peers.size(); ++i) {
    ++answers_;
    EXPECT_TRUE(peers[i].answer().ends_with("/" + std::to_string(i)));
  }
  EXPECT_EQ(asked(),
            (std::vector<std::string>{"/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8"}));
  EXPECT_EQ(metric("proxypool_gateway_waits_total{end=\"served\"}"), 8);
  wait_for_waiters(0);
}

TEST_F(GatewayWait, EndsWithItsTimeAndWithAFullLine) {
  slow_proxy();
  rig_.snapshot.routings.front().wait_timeout = milliseconds(50);
  rig_.snapshot.routings.front().waiters_max = 1;
  start();
  Peer served = ask("/served");
  wait_for([&] { return number_ == 1; });
  const std::string late = ask("/late").answer();
  EXPECT_TRUE(late.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << late;
  EXPECT_TRUE(has(late, "\"code\":\"wait_timeout\""));
  EXPECT_TRUE(has(late, "error=destination_unavailable; details=\"wait_timeout\""));
  EXPECT_TRUE(has(late, "Retry-After: "));
  rig_.snapshot.routings.front().wait_timeout = std::chrono::minutes(5);
  rig_.publish();
  Peer waiting = ask("/waiting");
  wait_for_waiters(1);
  Peer tunnel = client();
  tunnel.send(connect_to("origin.example:443"));
  const std::string full = tunnel.answer();
  EXPECT_TRUE(full.starts_with("HTTP/1.1 503 Service Unavailable (overloaded)\r\n")) << full;
  EXPECT_TRUE(has(full, "Retry-After: "));
  answers_ = 2;
  EXPECT_TRUE(served.answer().ends_with("/served"));
  EXPECT_TRUE(waiting.answer().ends_with("/waiting"));
  EXPECT_EQ(metric("proxypool_gateway_waits_total{end=\"timed_out\"}"), 1);
  EXPECT_EQ(metric("proxypool_gateway_waits_total{end=\"full\"}"), 1);
}

TEST_F(GatewayWait, AClientThatGoesLeavesTheLine) {
  slow_proxy();
  start();
  auto peers = line_up({"/first", "/gone", "/last"});
  peers[1].close();
  wait_for_waiters(1);
  answers_ = 2;
  EXPECT_TRUE(peers[0].answer().ends_with("/first"));
  EXPECT_TRUE(peers[2].answer().ends_with("/last"));
  EXPECT_EQ(asked(), (std::vector<std::string>{"/first", "/last"}));
}

TEST_F(GatewayWait, ANewSnapshotWakesThoseWhoWait) {
  slow_proxy();
  rig_.add_client("ann", "secret");
  rig_.add_client("bob", "secret");
  rig_.settings.auth = {Settings::Auth::UsernamePassword};
  start();
  const auto as = [&](const std::string& path, const std::string& name) {
    Peer c = client();
    c.send(get(path, "Proxy-Authorization: Basic " + base64_encode(name + ":secret") + "\r\n"));
    return c;
  };
  Peer first = as("/first", "ann");
  wait_for([&] { return number_ == 1; });
  Peer second = as("/second", "ann");
  wait_for_waiters(1);
  Peer foreign = as("/foreign", "bob");
  wait_for_waiters(2);
  // Another proxy comes, and one of the clients goes; the numbers of the others change with that.
  FakeProxy& other = proxy(answering("other"));
  std::erase_if(rig_.snapshot.clients, [](const auto& c) { return c.name.str() == "bob"; });
  rig_.snapshot.version.counter = 2;
  rig_.publish();
  EXPECT_TRUE(second.answer().ends_with("other"));
  EXPECT_TRUE(has(foreign.answer(), "\"code\":\"auth_rejected\""));
  EXPECT_EQ(other.connections(), 1);
  answers_ = 1;
  EXPECT_TRUE(first.answer().ends_with("/first"));
}

TEST_F(GatewayWait, OneThatNoRoutingTakesAnyMoreIsTold) {
  slow_proxy();
  start();
  auto peers = line_up({"/first", "/second"});
  rig_.snapshot.routings.front().match.hosts = {"only.example"};
  rig_.snapshot.version.counter = 2;
  rig_.publish();
  EXPECT_TRUE(has(peers[1].answer(), "\"code\":\"no_routing\""));
  answers_ = 1;
  EXPECT_TRUE(peers[0].answer().ends_with("/first"));
}

TEST(GatewayBench, WhoWaitsForABenchedProxyIsWokenWhenItComesBack) {
  FakeProxy proxy([](Peer& peer, int number) {
    peer.until("\r\n\r\n");
    peer.send(number < 2 ? "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
                         : "HTTP/1.1 200 OK\r\n\r\n");
    (void)peer.at_end();
  });
  GatewayRig rig(milliseconds(300));
  rig.add({.port = proxy.port()});
  domain::SnapshotRouting& routing = rig.snapshot.routings.front();
  routing.on_unavailable = domain::OnUnavailable::Wait;
  routing.wait_timeout = std::chrono::minutes(5);
  routing.waiters_max = 10;
  ASSERT_TRUE(rig.start());
  std::vector<std::string> answers;
  for (int i = 0; i < 3; ++i) {
    Peer c = Peer::dial(rig.port());
    c.send(connect_to("origin.example:443"));
    answers.push_back(c.until("\r\n\r\n").substr(0, 12));
  }
  EXPECT_EQ(answers, (std::vector<std::string>{"HTTP/1.1 502", "HTTP/1.1 502", "HTTP/1.1 200"}));
}

TEST_F(GatewayWait, StoppingTellsThoseWhoWait) {
  slow_proxy();
  start();
  auto peers = line_up({"/first", "/second"});
  rig_.stop();
  EXPECT_NE(peers[1].all().find("\"code\":\"draining\""), std::string::npos);
  answers_ = 1;
}

}  // namespace
}  // namespace proxypool::gateway
