// `proxy-loadgen http` as a real process, against the fixture and a real TLS server (OP-5).
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/fixture_process.hpp"

namespace proxypool::support {
namespace {

struct Load {
  std::optional<int> code;
  std::string out;
  std::string err;
  nlohmann::json report;  // null when none was written
};

Load load(std::vector<std::string> arguments) {
  const TempDir folder;
  const std::string path = folder.path() / "report.json";
  arguments.insert(arguments.begin(), {"http", "--json", path});
  auto finished = run({"proxy-loadgen", std::move(arguments), {}, {}});
  const auto text = read_file(path);
  return {finished.code, finished.out, finished.err,
          text.empty() ? nlohmann::json() : nlohmann::json::parse(text)};
}

std::string proxy_url(const FixtureProcess& fixture, std::size_t index) {
  return "http://fixture:fixture-password@127.0.0.1:" + std::to_string(fixture.proxy_port(index));
}

std::uint64_t count(const Load& result, const char* pointer) {
  return result.report.value(nlohmann::json::json_pointer(pointer), std::uint64_t{0});
}

TEST(HttpLoadTest, ACountedRunReportsEveryRequestAndEndsWithZero) {
  FixtureProcess fixture({"--proxies", "1"});
  const auto result = load({"--proxy", proxy_url(fixture, 0), "--requests", "300", "--concurrency",
                            "8", "--threads", "2", "--count-header", "x-fixture-proxy",
                            "http://shop.example/bytes/1000"});
  EXPECT_EQ(result.code, 0) << result.err << result.out;
  EXPECT_EQ(count(result, "/requests/done"), 300U);
  EXPECT_EQ(count(result, "/requests/failed"), 0U);
  EXPECT_EQ(count(result, "/statuses/200"), 300U);
  EXPECT_EQ(count(result, "/header_values/0"), 300U);
  EXPECT_EQ(count(result, "/connections/opened"), 8U);
  EXPECT_EQ(count(result, "/latency_ms/count"), 300U);
  EXPECT_GT(count(result, "/bytes/in"), 300'000U);
  EXPECT_EQ(result.out.find("fixture-password"), std::string::npos);
  const auto stats = fixture.proxy_stats(0);
  EXPECT_EQ(stats.at("requests"), 300);
  EXPECT_LE(stats.at("in_flight_max"), 8);
  EXPECT_GE(stats.at("in_flight_max"), 2);
}

TEST(HttpLoadTest, WithoutKeepAliveEachRequestHasItsConnection) {
  FixtureProcess fixture({"--proxies", "1"});
  const auto result = load({"--no-keep-alive", "--requests", "40",
                            "http://127.0.0.1:" + std::to_string(fixture.origin_port()) + "/"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(count(result, "/connections/opened"), 40U);
}

TEST(HttpLoadTest, MethodHeadersAndBodyArriveAsGiven) {
  FixtureProcess fixture({"--proxies", "1"});
  const auto result = load({"--proxy", proxy_url(fixture, 0), "--requests", "1", "--method", "PUT",
                            "--header", "X-Token: sent", "--header", "User-Agent: other", "--body",
                            "abc", "http://shop.example/a?b"});
  ASSERT_EQ(result.code, 0) << result.out;
  const auto seen = fixture.records("sent").at("sightings").at(1);
  EXPECT_EQ(seen.at("method"), "PUT");
  EXPECT_EQ(seen.at("target"), "/a?b");
  EXPECT_EQ(seen.at("body_bytes"), 3);
  EXPECT_NE(seen.at("headers").dump().find(R"(["User-Agent","other"])"), std::string::npos);
  EXPECT_NE(seen.at("headers").dump().find(R"(["Host","shop.example"])"), std::string::npos);
}

TEST(HttpLoadTest, EachKindOfFailureHasItsClassAndTheRunEndsWithOne) {
  FixtureProcess fixture({"--proxies", "8", "--fault", "0=refuse", "--fault", "1=hang", "--fault",
                          "2=502", "--fault", "3=garbage", "--fault", "4=close-before-head",
                          "--fault", "5=reset", "--fault", "6=truncate", "--fault", "7=407"});
  const std::vector<const char*> classes{"connect", "timeout", "status",    "protocol",
                                         "reset",   "reset",   "truncated", "status"};
  for (std::size_t proxy = 0; proxy < classes.size(); ++proxy) {
    const auto result =
        load({"--proxy", proxy_url(fixture, proxy), "--requests", "6", "--concurrency", "2",
              "--timeout", proxy == 1 ? "200ms" : "20s", "http://shop.example/bytes/1000"});
    EXPECT_EQ(result.code, 1) << proxy;
    EXPECT_EQ(result.report.at("errors"), nlohmann::json({{classes[proxy], 6}})) << proxy;
    EXPECT_EQ(count(result, "/requests/failed"), 6U) << proxy;
  }
  const auto wanted = load({"--proxy", proxy_url(fixture, 2), "--requests", "3", "--expect-status",
                            "502,503", "http://shop.example/"});
  EXPECT_EQ(wanted.code, 0);
}

// A server that answers the first request of each connection with the same bytes, then ends it.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, generic, size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    EXPECT_EQ(::getsockname(listener_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;
  ~OneAnswer() {
    ::shutdown(listener_, SHUT_RD);
    thread_.join();
    ::close(listener_);
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  void serve() const {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      std::array<char, 4096> request{};
      if (::recv(fd, request.data(), request.size(), 0) > 0) {
        ::send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      }
      ::close(fd);
    }
  }

  int listener_;
  std::string answer_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST(HttpLoadTest, TheCodeOfAProblemDocumentIsCounted) {
  const OneAnswer server(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
      "Content-Length: 23\r\nConnection: close\r\n\r\n{\"code\":\"no_candidate\"}");
  const auto result = load({"--requests", "5", "--concurrency", "1",
                            "http://127.0.0.1:" + std::to_string(server.port()) + "/"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.report.at("codes"), nlohmann::json({{"no_candidate", 5}}));
  EXPECT_EQ(result.report.at("statuses"), nlohmann::json({{"503", 5}}));
}

TEST(HttpLoadTest, AKeptConnectionThatEndedIsOpenedAgainAndCounted) {
  const OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  const auto result = load({"--requests", "5", "--concurrency", "1",
                            "http://127.0.0.1:" + std::to_string(server.port()) + "/"});
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_EQ(count(result, "/connections/reconnects"), 4U);
  const auto post = load({"--requests", "5", "--concurrency", "1", "--method", "POST",
                          "http://127.0.0.1:" + std::to_string(server.port()) + "/"});
  EXPECT_EQ(post.code, 1);  // a POST is not sent twice
  EXPECT_GT(count(post, "/errors/reset"), 0U);
}

TEST(HttpLoadTest, HttpsGoesThroughConnectAndTheCertificateIsChecked) {
  const TempDir folder;
  const auto made = run({"openssl",
                         {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                          "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj",
                          "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"},
                         {},
                         folder.path()});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto port = std::to_string(free_port());
  ChildProcess server(
      {"openssl",
       {"s_server", "-accept", "127.0.0.1:" + port, "-www", "-cert", "cert.pem", "-key", "key.pem"},
       {},
       folder.path()});
  ASSERT_TRUE(server.wait_for_line("ACCEPT")) << server.err();
  FixtureProcess fixture({"--proxies", "1"});
  const auto through = [&](const std::string& host, std::vector<std::string> more) {
    more.insert(more.end(), {"--proxy", proxy_url(fixture, 0), "--requests", "4", "--concurrency",
                             "1", "https://" + host + ":" + port + "/"});
    return load(std::move(more));
  };
  const std::string authority = folder.path() / "cert.pem";
  const auto trusted = through("localhost", {"--ca-file", authority});
  EXPECT_EQ(trusted.code, 0) << trusted.out << trusted.err;
  EXPECT_EQ(fixture.proxy_stats(0).at("tunnels"), count(trusted, "/connections/opened"));
  EXPECT_EQ(through("localhost", {}).report.at("errors"), nlohmann::json({{"tls", 4}}));
  EXPECT_EQ(through("127.0.0.1", {"--ca-file", authority}).report.at("errors"),
            nlohmann::json({{"tls", 4}}));
  EXPECT_EQ(through("127.0.0.1", {"--insecure"}).code, 0);
  fixture.set_fault(0, "502");
  EXPECT_EQ(through("localhost", {"--insecure"}).report.at("errors"),
            nlohmann::json({{"proxy_status", 4}}));
}

TEST(HttpLoadTest, ATimedRunEndsAndASignalPrintsWhatWasDone) {
  FixtureProcess fixture({"--proxies", "1"});
  const std::string origin = "http://127.0.0.1:" + std::to_string(fixture.origin_port());
  const auto timed = load({"--duration", "100ms", origin + "/"});
  EXPECT_EQ(timed.code, 0);
  EXPECT_GE(timed.report.at("elapsed_s").get<double>(), 0.1);
  fixture.control("reset-stats");
  ChildProcess endless(
      {"proxy-loadgen", {"http", "--duration", "1h", origin + "/slow?ms=60000"}, {}, {}});
  ASSERT_TRUE(eventually([&] { return fixture.stats().at("/origin/requests"_json_pointer) > 15; }));
  endless.signal(SIGINT);
  EXPECT_EQ(endless.wait(), 0) << endless.err();
  EXPECT_NE(endless.out().find("interrupted  16"), std::string::npos) << endless.out();
}

TEST(HttpLoadTest, MistakesOnTheCommandLineEndWithTwo) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},
                                             {"ftp://h/"},
                                             {"--proxy", "socks5://h:1", "http://h/"},
                                             {"--requests", "5", "--duration", "1s", "http://h/"},
                                             {"--header", "no colon", "http://h/"},
                                             {"--expect-status", "20", "http://h/"},
                                             {"--body-file", "/nonexistent/file", "http://h/"},
                                             {"--requets", "5", "http://h/"}}) {
    EXPECT_EQ(load(wrong).code, 2) << (wrong.empty() ? "" : wrong.front());
  }
}

}  // namespace
}  // namespace proxypool::support
