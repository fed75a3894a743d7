// The gateway over plain HTTP, seen from both of its ends: GW-1, GW-4, GW-5, GW-6, GW-40, R9.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "gateway_fixture.hpp"

namespace proxypool::gateway {
namespace {

class GatewayHttp : public GatewayTest {
 protected:
  void serve(FakeProxy::Script script) {
    proxy_ = &proxy(std::move(script));
    start();
  }
  FakeProxy* proxy_ = nullptr;
};

TEST_F(GatewayHttp, SendsTheRequestInAbsoluteFormWithTheProxysCredential) {
  serve([&](Peer& peer, int) {
    saw(peer.until("\r\n\r\n"));
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  Peer c = client();
  c.send(
      "GET http://origin.example?q=1 HTTP/1.1\r\nhost: other.example\r\nX-A: 1\r\nx-a: 2\r\n"
      "Connection: X-Hop\r\nX-Hop: 1\r\nX-Proxy-Session: mine\r\n"
      "Proxy-Authorization: Basic bWU6bWU=\r\n\r\n");
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(seen(),
            "GET http://origin.example/?q=1 HTTP/1.1\r\nhost: origin.example\r\nX-A: 1\r\n"
            "x-a: 2\r\nProxy-Authorization: Basic dnVzZXI6dnBhc3M=\r\n\r\n");
}

TEST_F(GatewayHttp, KeepsBothConnectionsForFurtherRequests) {
  serve(answering("hello"));
  Peer c = client();
  for (int i = 0; i < 50; ++i) {
    c.send(get("/"));
    EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  }
  EXPECT_EQ(proxy_->connections(), 1);
}

TEST_F(GatewayHttp, AnswersPipelinedRequestsInOrder) {
  serve([](Peer& peer, int) {
    std::string head;
    while (!(head = peer.until("\r\n\r\n")).empty()) {
      const auto path = head.substr(head.find("example/") + 7, 2);
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + path);
    }
  });
  Peer c = client();
  c.send(get("/1") + get("/2") + get("/3"));
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
  EXPECT_EQ(c.until("/3"), head + "/1" + head + "/2" + head + "/3");
}

TEST_F(GatewayHttp, AHeadMayComeByteByByte) {
  serve(answering("ok"));
  Peer c = client();
  for (const char byte : get("/slow", "Cookie: " + std::string(300, 'x') + "\r\n")) {
    c.send({&byte, 1});
  }
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

TEST_F(GatewayHttp, PassesARequestBodyOfKnownLength) {
  serve([&](Peer& peer, int) {
    std::string body = peer.until("\r\n\r\n");
    const auto at = body.find("\r\n\r\n") + 4;
    body = body.substr(at) + peer.exactly(3'000'000 - (body.size() - at));
    saw(body);
    peer.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  });
  Peer c = client();
  const std::string sent(3'000'000, 'b');
  c.send(
      "POST http://origin.example/p HTTP/1.1\r\nHost: origin.example\r\nContent-Length: "
      "3000000\r\n\r\n" +
      sent);
  EXPECT_EQ(c.answer(), "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(seen() == sent);
}

TEST_F(GatewayHttp, PassesChunksAndTrailersBothWays) {
  serve([&](Peer& peer, int) {
    saw(peer.until("X-T: 1\r\n\r\n"));
    peer.send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-S: 2\r\n\r\n");
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  Peer c = client();
  c.send(
      "POST http://origin.example/p HTTP/1.1\r\nHost: origin.example\r\nTransfer-Encoding: "
      "chunked\r\nTE: trailers\r\n\r\n2\r\nhe");
  c.send("\r\n3;x=y\r\nllo\r\n0\r\nX-T: 1\r\n\r\n");
  const std::string answer = c.until("X-S: 2\r\n\r\n");
  EXPECT_NE(answer.find("\r\n\r\n3\r\nabc\r\n0\r\nX-S: 2\r\n\r\n"), std::string::npos) << answer;
  EXPECT_NE(seen().find("2\r\nhe\r\n"), std::string::npos) << seen();
  EXPECT_NE(seen().find("llo\r\n0\r\nX-T: 1\r\n\r\n"), std::string::npos) << seen();
  c.send(get("/next"));
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(proxy_->connections(), 1) << "the connection was clean";
}

TEST_F(GatewayHttp, AClientOfHttp10GetsTheBodyWithoutChunksAndAnEnd) {
  serve([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n");
    peer.send("3\r\nllo\r\n0\r\n\r\n");
    (void)peer.at_end();
  });
  Peer c = client();
  c.send("GET http://origin.example/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(c.all(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
}

TEST_F(GatewayHttp, ABodyThatEndsWithTheConnectionClosesTheClientsToo) {
  serve([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
  });
  Peer c = client();
  c.send(get("/"));
  EXPECT_EQ(c.all(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end");
}

// A reset in a body that has no other end must not look like one.
TEST_F(GatewayHttp, ABodyThatBreaksOffIsSeenToBreakOff) {
  serve([](Peer& peer, int number) {
    peer.until("\r\n\r\n");
    if (number == 0) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
      return;
    }
    peer.send("HTTP/1.1 200 OK\r\n\r\nhalf");
    peer.until("go");  // never comes
  });
  Peer c = client();
  c.send(get("/"));
  EXPECT_EQ(c.all(), "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
}

TEST_F(GatewayHttp, HeadHasNoBodyWhateverItsLengthSays) {
  serve([](Peer& peer, int) {
    while (!peer.until("\r\n\r\n").empty()) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
    }
  });
  Peer c = client();
  for (int i = 0; i < 2; ++i) {
    c.send("HEAD http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\n\r\n");
    EXPECT_EQ(c.until("\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
  }
}

TEST_F(GatewayHttp, ASilentUpstreamDoesNotKeepAClientThatWaitsFor100Waiting) {
  rig_.settings.expect_wait = milliseconds(50);
  serve([](Peer& peer, int) {
    peer.until("data");
    peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  Peer c = client();
  c.send(
      "PUT http://origin.example/u HTTP/1.1\r\nHost: origin.example\r\nExpect: 100-continue\r\n"
      "Content-Length: 4\r\n\r\n");
  EXPECT_EQ(c.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  c.send("data");
  // The upstream's own 100 comes too late and is not passed on.
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

TEST_F(GatewayHttp, AnEarlyAnswerEndsTheUploadAndTheConnection) {
  serve([](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
    (void)peer.at_end();
  });
  Peer c = client();
  c.send(
      "POST http://origin.example/p HTTP/1.1\r\nHost: origin.example\r\nContent-Length: "
      "1000\r\n\r\nbegin");
  EXPECT_EQ(c.answer(),
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(c.at_end());
}

// Back-pressure: what a stopped reader leaves behind stays with the sender (GW-6).
TEST_F(GatewayHttp, ASlowClientHoldsTheUpstreamBack) {
  constexpr std::size_t kAll = 64U << 20U;
  serve([&](Peer& peer, int) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kAll) + "\r\n\r\n");
    const std::string piece(65536, 'x');
    pollfd writable{peer.fd(), POLLOUT, 0};
    while (taken_ < kAll && ::poll(&writable, 1, 500) == 1) taken_ += peer.send_some(piece);
    flag_ = true;
  });
  Peer c = client();
  c.send(get("/big"));
  c.until("\r\n\r\n");
  while (!flag_) std::this_thread::yield();
  EXPECT_LT(taken_.load(), kAll / 2);
  c.close();
}

TEST_F(GatewayHttp, OriginFormIsRefusedAndTheConnectionClosed) {
  serve(answering("ok"));
  Peer c = client();
  c.send("GET / HTTP/1.1\r\nHost: origin.example\r\n\r\n");
  const std::string answer = c.all();
  EXPECT_EQ(answer.substr(0, 24), "HTTP/1.1 400 Bad Request");
  EXPECT_NE(answer.find("\"code\":\"bad_request\""), std::string::npos);
  EXPECT_EQ(proxy_->connections(), 0);
}

TEST_F(GatewayHttp, MaxForwardsOfZeroIsAnsweredHere) {
  serve(answering("ok"));
  Peer c = client();
  c.send(
      "OPTIONS http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\nMax-Forwards: "
      "0\r\n\r\n");
  EXPECT_NE(c.answer().find("\r\nAllow: "), std::string::npos);
  c.send(
      "TRACE http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\nMax-Forwards: 0\r\n"
      "Cookie: secret\r\nX-A: 1\r\n\r\n");
  const std::string trace = c.answer();
  EXPECT_NE(trace.find("message/http"), std::string::npos);
  EXPECT_NE(trace.find("X-A: 1"), std::string::npos);
  EXPECT_EQ(trace.find("secret"), std::string::npos);
  EXPECT_EQ(proxy_->connections(), 0);
}

// A vendor may tie an exit to a connection: nobody rides on another's (R9).
TEST_F(GatewayHttp, ConnectionsAreNotSharedBetweenClients) {
  rig_.add_client("ann", "a");
  rig_.add_client("bob", "b");
  serve(answering("ok"));
  for (const auto* credentials : {"YW5uOmE=", "Ym9iOmI=", "YW5uOmE="}) {
    Peer c = client();
    c.send(get("/", "Proxy-Authorization: Basic " + std::string(credentials) + "\r\n"));
    EXPECT_EQ(c.answer().substr(0, 15), "HTTP/1.1 200 OK");
  }
  EXPECT_EQ(proxy_->connections(), 2);
}

TEST_F(GatewayHttp, AnIdleUpstreamConnectionThatEndsIsClosedAtOnce) {
  serve([&](Peer& peer, int number) {
    peer.until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    if (number > 0) return;
    peer.shut_write();
    flag_ = peer.at_end();
  });
  Peer c = client();
  c.send(get("/"));
  c.answer();
  while (!flag_) std::this_thread::yield();
  c.send(get("/"));
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(proxy_->connections(), 2);
}

TEST_F(GatewayHttp, BytesBehindAnAnswerMakeItsConnectionUnfitForReuse) {
  serve([](Peer& peer, int number) {
    peer.until("\r\n\r\n");
    peer.send(number == 0 ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"
                            "Content-Length: 6\r\n\r\npoison"
                          : "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclean");
    (void)peer.at_end();
  });
  Peer c = client();
  c.send(get("/"));
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  c.send(get("/"));
  EXPECT_EQ(c.answer(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclean");
}

}  // namespace
}  // namespace proxypool::gateway
