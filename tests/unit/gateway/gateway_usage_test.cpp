// What clients move is counted as vendors bill it, and a quota that is used up is obeyed (GW-14).
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

class GatewayUsage : public GatewayTest {
 protected:
  GatewayUsage() {
    rig_.add_client("ann", "secret");
    rig_.add_client("bob", "secret");
    rig_.settings.threads = 2;
  }
  static std::string as(const std::string& name) {
    return "Proxy-Authorization: Basic " + base64_encode(name + ":secret") + "\r\n";
  }
  std::string ask(const std::string& name, const std::string& path = "/") {
    Peer c = client();
    c.send(get(path, as(name)));
    return c.answer();
  }
  domain::Usage moved(const std::string& name) {
    domain::Usage found;
    rig_.registry().usage([&](std::uint32_t, const ClientName& client, const domain::Usage& usage) {
      if (client.str() == name) found = usage;
    });
    return found;
  }
  // Counts what it gets and gives, byte by byte: what a vendor would bill.
  FakeProxy& billing(std::string answer) {
    return proxy([this, answer = std::move(answer)](Peer& peer, int) {
      for (;;) {
        const std::string head = peer.until("\r\n\r\n");
        if (head.empty()) return;
        got_ += head.size();
        const auto at = head.find("Content-Length: ");
        if (at != std::string::npos) {
          const auto size = std::stoul(head.substr(at + 16));
          const auto there = head.size() - (head.find("\r\n\r\n") + 4);
          got_ += peer.exactly(size - there).size();
        }
        gave_ += answer.size();
        peer.send(answer);
      }
    });
  }
  void over(const std::vector<ClientName>& clients, nanoseconds for_so_long) {
    if (rig_.registry().over_quota(clients, runtime::boot_now() + for_so_long)) {
      rig_.gateway().end_over_quota();
    }
  }

  std::atomic<std::uint64_t> got_{0};
  std::atomic<std::uint64_t> gave_{0};
};

TEST_F(GatewayUsage, HeadsAndBodiesCountBothWays) {
  billing("HTTP/1.1 200 OK\r\nX-Vendor: yes\r\nContent-Length: 5\r\n\r\nhello");
  start();
  Peer c = client();
  c.send(get("/a", as("ann")));
  EXPECT_TRUE(has(c.answer(), "hello"));
  c.send("POST http://origin.example/b HTTP/1.1\r\nHost: origin.example\r\n" + as("ann") +
         "Content-Length: 7\r\n\r\n0123456");
  EXPECT_TRUE(has(c.answer(), "hello"));
  wait_for([&] { return moved("ann").bytes_down == gave_.load(); });
  EXPECT_EQ(moved("ann"), (domain::Usage{got_, gave_, 2}));
  EXPECT_EQ(moved("bob"), domain::Usage{});
  EXPECT_TRUE(has(ask("bob"), "hello"));
  wait_for([&] { return moved("bob").bytes_down != 0; });
  EXPECT_EQ(moved("ann").requests, 2U);
  EXPECT_EQ(moved("ann").bytes() + moved("bob").bytes(), got_ + gave_);
}

TEST_F(GatewayUsage, AnInterimAnswerAndARefusedOneCountToo) {
  billing(
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
      "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
  start();
  Peer c = client();
  c.send(get("/", as("ann")));
  EXPECT_TRUE(has(c.until("proxy_auth_rejected"), "HTTP/1.1 103 "));
  wait_for([&] { return moved("ann").bytes_down == gave_.load(); });
  EXPECT_EQ(moved("ann").bytes_up, got_.load());
}

TEST_F(GatewayUsage, AFailedAttemptCountsAndWhatNeverLeftDoesNot) {
  rig_.add({.port = closed_port()});
  proxy([this](Peer& peer, int) { got_ += peer.until("\r\n\r\n").size(); });
  start();
  EXPECT_FALSE(ask("ann").starts_with("HTTP/1.1 200"));
  wait_for([&] { return moved("ann").bytes_up == got_.load() && got_ != 0; });
  EXPECT_EQ(moved("ann").bytes_down, 0U);
}

TEST_F(GatewayUsage, ATunnelCountsWhileItIsOpen) {
  constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nVia: vendor\r\n\r\n";
  proxy([this, kHead](Peer& peer, int) {
    got_ += peer.until("\r\n\r\n").size();
    peer.send(kHead);
    gave_ += kHead.size();
    for (std::string bytes = peer.exactly(1000); !bytes.empty(); bytes = peer.exactly(1000)) {
      got_ += bytes.size();
      gave_ += 2 * bytes.size();
      peer.send(bytes + bytes);
    }
  });
  start();
  Peer c = client();
  c.send(connect_to("origin.example:443", as("ann")));
  EXPECT_TRUE(has(c.until("\r\n\r\n"), "200"));
  for (int i = 1; i <= 5; ++i) {
    c.send(std::string(1000, 'x'));
    EXPECT_EQ(c.exactly(2000).size(), 2000U);
    wait_for([&] { return moved("ann").bytes_down == gave_.load(); });
    EXPECT_EQ(moved("ann"), (domain::Usage{got_, gave_, 1}));
  }
}

TEST_F(GatewayUsage, AUsedUpQuotaIsToldWithItsTimeAndToItsClientAlone) {
  FakeProxy& p = proxy(answering("ok"));
  start();
  EXPECT_TRUE(ask("ann").starts_with("HTTP/1.1 200"));
  const int dialled = p.connections();
  over({ClientName("ann"), ClientName("unheard-of")}, std::chrono::hours(3));
  const std::string refused = ask("ann");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429 Too Many Requests\r\n")) << refused;
  EXPECT_TRUE(has(refused, "\"code\":\"quota_exceeded\""));
  EXPECT_TRUE(has(refused, "error=http_request_denied; details=\"quota_exceeded\""));
  const auto at = refused.find("Retry-After: ");
  ASSERT_NE(at, std::string::npos);
  const int after = std::stoi(refused.substr(at + 13));
  EXPECT_GT(after, 3 * 3600 - 60);
  EXPECT_LE(after, 3 * 3600);
  Peer tunnel = client();
  tunnel.send(connect_to("origin.example:443", as("ann")));
  EXPECT_TRUE(has(tunnel.answer(), "429 Too Many Requests (quota_exceeded)"));
  EXPECT_EQ(p.connections(), dialled) << "nothing was dialled for what was refused";
  EXPECT_TRUE(ask("bob").starts_with("HTTP/1.1 200")) << "another client";
  // A new snapshot does not bring it back, the controller's word does.
  rig_.snapshot.version.counter = 2;
  rig_.publish();
  EXPECT_TRUE(has(ask("ann"), "quota_exceeded"));
  over({ClientName("bob")}, std::chrono::hours(3));
  EXPECT_TRUE(ask("ann").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(has(ask("bob"), "quota_exceeded"));
  EXPECT_EQ(outcomes("quota_exceeded"), 4);
}

TEST_F(GatewayUsage, AVerdictEndsWithTheDayByItself) {
  proxy(answering("ok"));
  start();
  over({ClientName("ann")}, nanoseconds(0));
  EXPECT_TRUE(ask("ann").starts_with("HTTP/1.1 200"));
}

TEST_F(GatewayUsage, TunnelsOfTheClientEndAndAnswersThatHaveBegunDoNot) {
  proxy([this](Peer& peer, int) {
    const std::string head = peer.until("\r\n\r\n");
    if (has(head, "CONNECT")) {
      peer.send("HTTP/1.1 200 OK\r\n\r\n");
      (void)peer.all();
      return;
    }
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha");
    wait_for([this] { return flag_.load(); });
    peer.send("lf");
  });
  start();
  std::map<std::string, Peer> tunnels;
  for (const char* name : {"ann", "bob"}) {
    Peer& c = tunnels.emplace(name, client()).first->second;
    c.send(connect_to("origin.example:443", as(name)));
    EXPECT_TRUE(has(c.until("\r\n\r\n"), "200"));
  }
  Peer half = client();
  half.send(get("/", as("ann")));
  EXPECT_TRUE(has(half.until("ha"), "200 OK"));
  over({ClientName("ann")}, std::chrono::hours(1));
  EXPECT_TRUE(tunnels.at("ann").at_end());
  flag_ = true;
  EXPECT_EQ(half.until("lf"), "lf");
  EXPECT_TRUE(tunnels.at("bob").send("still there"));
  EXPECT_EQ(rig_.gateway().activity().tunnels, 1U);
}

}  // namespace
}  // namespace proxypool::gateway
