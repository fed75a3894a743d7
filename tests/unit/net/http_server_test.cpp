#include "net/http_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/concurrent.hpp"
#include "unit/net/raw_client.hpp"

namespace proxypool::net {
namespace {

using test::RawClient;

// A server on its own loop and thread, which ends with the test.
class Running {
 public:
  explicit Running(HttpServer::Handler handler, HttpServerOptions options = {}) {
    auto listener = listen_tcp({IpAddress::v4(0x7F000001), 0});
    server_ = std::make_unique<HttpServer>(loop_, std::move(listener).value(), std::move(handler),
                                           options);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Running() {
    loop_.stop();
    thread_.join();
    server_.reset();
  }
  [[nodiscard]] RawClient client() const { return RawClient(port_); }
  // Begins a graceful stop; the future is ready when the server is done.
  std::future<void> stop() {
    auto done = std::make_shared<std::promise<void>>();
    auto future = done->get_future();
    loop_.post([this, done] { server_->stop([done] { done->set_value(); }); });
    return future;
  }
  std::size_t connections() {
    std::promise<std::size_t> count;
    loop_.post([&] { count.set_value(server_->connections()); });
    return count.get_future().get();
  }

 private:
  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

HttpServer::Handler echo() {
  return [](const HttpRequest& request, Responder responder) {
    std::string text = request.method_text + " " + request.path;
    for (const auto& [name, value] : request.query) text += " " + name + "=" + value;
    responder.answer(text_response(200, text + " [" + request.body + "]"));
  };
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  Running server(echo());
  auto client = server.client();
  client.send("GET /a%20b?x=1&y=a+b%21 HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto first = client.read_until("]");
  EXPECT_EQ(first.substr(0, 23), "HTTP/1.1 200 OK\r\nDate: ");
  EXPECT_NE(first.find("Content-Length: 22\r\n\r\nGET /a b x=1 y=a b! []"), std::string::npos)
      << first;
  client.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_NE(client.read_until("]").find("POST /p [hello]"), std::string::npos);
  client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(client.read_all().find("Connection: close\r\n"), std::string::npos);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  Running server(echo());
  auto client = server.client();
  std::string requests;
  for (int i = 0; i < 50; ++i) {
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  }
  client.send(requests + "GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const auto answers = client.read_all();
  std::size_t at = 0;
  for (int i = 0; i < 50; ++i) {
    at = answers.find("GET /" + std::to_string(i) + " []", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_NE(answers.find("GET /last []", at), std::string::npos);
}

TEST(HttpServer, ReadsChunkedBodiesByteByByte) {
  Running server(echo());
  auto client = server.client();
  const std::string request =
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n"
      "X-T: 1\r\n\r\n";
  for (const char c : request) client.send({&c, 1});
  EXPECT_NE(client.read_until("]").find("POST /c [abcde]"), std::string::npos);
}

TEST(HttpServer, SendsHeadersAloneForHead) {
  Running server(echo());
  auto client = server.client();
  client.send("HEAD /h HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const auto answer = client.read_all();
  EXPECT_NE(answer.find("Content-Length: 10\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST(HttpServer, InvitesABodyThatWaitsToBeAsked) {
  Running server(echo());
  auto client = server.client();
  client.send("PUT /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_NE(client.read_until("]").find("PUT /e [ok]"), std::string::npos);
}

TEST(HttpServer, RefusesWithAProblemDocumentAndCloses) {
  Running server(echo(), {.body_bytes_max = 10});
  const std::pair<std::string, std::string> cases[] = {
      {"GET / HTTP/1.1\nHost: h\n\n", "\"status\":400,\"code\":\"bad_request\""},
      {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", "\"status\":400,\"code\":\"bad_request\""},
      {"GET /a/%2e%2e/b HTTP/1.1\r\nHost: h\r\n\r\n", "\"status\":400"},
      {"GET /a%2Fb HTTP/1.1\r\nHost: h\r\n\r\n", "\"status\":400"},
      {"GET /a%00b HTTP/1.1\r\nHost: h\r\n\r\n", "\"status\":400"},
      {"GET /?a=%2 HTTP/1.1\r\nHost: h\r\n\r\n", "\"status\":400"},
      {"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", "\"status\":400"},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\nhello", "\"status\":413"},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello worldX",
       "\"status\":413,\"code\":\"too_large\""},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "\"status\":400"},
      {"GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n", "\"status\":414"},
  };
  for (const auto& [request, expected] : cases) {
    auto client = server.client();
    client.send(request);
    client.end_sending();
    const auto answer = client.read_all();
    EXPECT_NE(answer.find(expected), std::string::npos) << request << "\n" << answer;
    EXPECT_NE(answer.find("Content-Type: application/problem+json\r\n"), std::string::npos);
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
  }
}

// An answer that closes must reach a client that is still sending (RFC 9112 §9.6).
// What its owner calls a request is found in the head, as far as that was read.
TEST(HttpServer, NamesTheRequestsThatItRefusesItself) {
  HttpServerOptions options;
  options.body_bytes_max = 10;
  options.request_id = [](const HttpRequest& request) {
    const auto given = request.field("x-request-id");
    return given.empty() ? std::string("made") : std::string(given);
  };
  Running server(echo(), options);
  const auto refused = [&](const std::string& request) {
    auto client = server.client();
    client.send(request);
    return client.read_all();
  };
  const auto large = refused(
      "POST / HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n"
      "Content-Length: 11\r\n\r\n");
  EXPECT_NE(large.find("X-Request-Id: mine\r\n"), std::string::npos) << large;
  EXPECT_NE(large.find("\"requestId\":\"mine\""), std::string::npos) << large;
  const auto garbage = refused("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(garbage.find("X-Request-Id: made\r\n"), std::string::npos) << garbage;
  // The request before has nothing to do with it.
  const auto second =
      refused("GET /a HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n\r\nG\t\r\n\r\n");
  EXPECT_NE(second.find("X-Request-Id: made\r\n"), std::string::npos) << second;
}

TEST(HttpServer, LosesNoErrorAnswerToAReset) {
  Running server(echo(), {.body_bytes_max = 10});
  auto client = server.client();
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
  client.send(std::string(100'000, 'x'));
  client.end_sending();
  EXPECT_NE(client.read_all().find("413 Content Too Large"), std::string::npos);
}

TEST(HttpServer, TakesAnAnswerFromAnotherThread) {
  BoundedQueue<std::optional<Responder>> waiting(8);
  std::thread worker([&] {
    while (auto responder = waiting.pop()) (*responder)->answer(text_response(200, "later"));
  });
  {
    Running server([&](const HttpRequest&, Responder responder) {
      ASSERT_TRUE(waiting.try_push(std::move(responder)));
    });
    auto client = server.client();
    for (int i = 0; i < 20; ++i) {
      client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
      EXPECT_NE(client.read_until("later").find("200 OK"), std::string::npos);
    }
  }
  waiting.close();
  worker.join();
}

TEST(HttpServer, AnswersForAHandlerThatDropsItsResponderOrThrows) {
  const auto bugs = bugs_counted();
  Running server([](const HttpRequest& request, const Responder&) {
    if (request.path == "/throw") throw std::runtime_error("handler");
  });
  auto client = server.client();
  client.send("GET /drop HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(client.read_until("}").find("500 Internal Server Error"), std::string::npos);
  EXPECT_EQ(bugs_counted(), bugs);
  client.send("GET /throw HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(client.read_until("}").find("500 Internal Server Error"), std::string::npos);
  EXPECT_EQ(bugs_counted(), bugs + 1);
}

TEST(HttpServer, AResponderMayOutliveItsServer) {
  std::promise<Responder> taken;
  std::optional<Responder> kept;
  {
    Running server(
        [&](const HttpRequest&, Responder responder) { taken.set_value(std::move(responder)); });
    auto client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    kept.emplace(taken.get_future().get());
  }
  kept->answer(text_response(200, "too late"));
}

TEST(HttpServer, LetsNoHandlerSplitAnAnswer) {
  const auto bugs = bugs_counted();
  Running server([](const HttpRequest&, Responder responder) {
    HttpResponse response = text_response(200, "x");
    response.fields.emplace_back("X-A", "a\r\nX-B: b");
    responder.answer(std::move(response));
  });
  auto client = server.client();
  client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_all().find("X-"), std::string::npos);
  EXPECT_EQ(bugs_counted(), bugs + 1);
}

TEST(HttpServer, EndsAHeadThatTakesTooLong) {
  Running server(echo(), {.header_deadline = milliseconds{50}});
  auto client = server.client();
  client.send("GET / HTTP/1.1\r\nX-");
  EXPECT_NE(client.read_until("}").find("408 Request Timeout"), std::string::npos);
}

TEST(HttpServer, EndsABodyThatTakesTooLong) {
  Running server(echo(), {.body_deadline = milliseconds{50}});
  auto client = server.client();
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx");
  EXPECT_NE(client.read_until("}").find("408 Request Timeout"), std::string::npos);
}

TEST(HttpServer, EndsAnIdleConnectionSilently) {
  Running server(echo(), {.idle_timeout = milliseconds{50}});
  EXPECT_EQ(server.client().read_all(), "");
}

TEST(HttpServer, LeavesConnectionsBeyondTheMaximumWaiting) {
  Running server(echo(), {.connections_max = 2});
  auto first = server.client();
  auto second = server.client();
  auto third = server.client();
  third.send("GET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
  for (auto* client : {&first, &second}) {
    client->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    client->read_until("]");
  }
  EXPECT_EQ(server.connections(), 2U);
  first.close();
  EXPECT_NE(third.read_until("]").find("GET /3"), std::string::npos);
}

TEST(HttpServer, StopsGracefully) {
  std::promise<Responder> taken;
  Running server(
      [&](const HttpRequest&, Responder responder) { taken.set_value(std::move(responder)); });
  auto idle = server.client();
  auto busy = server.client();
  busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto responder = taken.get_future().get();
  auto done = server.stop();
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_EQ(done.wait_for(seconds{0}), std::future_status::timeout);
  responder.answer(text_response(200, "finished"));
  const auto answer = busy.read_all();
  EXPECT_NE(answer.find("finished"), std::string::npos);
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  busy.close();
  EXPECT_EQ(done.wait_for(seconds{10}), std::future_status::ready);
}

TEST(HttpServer, ServesManyClientsAtOnce) {
  Running server(echo());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      auto client = server.client();
      for (int i = 0; i < 50; ++i) {
        const std::string path = "/" + std::to_string(t) + "-" + std::to_string(i);
        client.send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n");
        if (client.read_until("]").find(path + " []") != std::string::npos) ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST(Problem, IsJsonWhateverItHolds) {
  EXPECT_EQ(to_json({.status = 404, .code = "not_found", .detail = "no \"x\"\n"}),
            R"({"type":"urn:proxypool:problem:not_found","title":"Not Found","status":404,)"
            R"("code":"not_found","detail":"no \"x\"\n"})");
  EXPECT_EQ(to_json({.status = 400,
                     .request_id = "r",
                     .title = "Bad",
                     .errors = {{"a", "1"}, {"b[0]", "2"}}}),
            R"({"type":"about:blank","title":"Bad","status":400,"requestId":"r",)"
            R"("errors":[{"path":"a","message":"1"},{"path":"b[0]","message":"2"}]})");
}

TEST(Problem, ReplacesWhatIsNotUtf8) {
  const auto quoted = [](std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
  };
  EXPECT_EQ(quoted("\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80"),
            "\"\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80\"");
  EXPECT_EQ(quoted("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(quoted("\xed\xa0\x80").size(), 11U);
  EXPECT_EQ(quoted("a\xe4"), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(quoted(std::string("\x01\x7f\\\0", 4)), "\"\\u0001\\u007f\\\\\\u0000\"");
}

TEST(HttpMessage, WritesDatesAsHttpDoes) {
  EXPECT_EQ(http_date(WallTime{milliseconds{784'111'777'000}}), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace proxypool::net
