// Probes of proxies that are spoken to over TLS (CT-31, GW-40).
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "adapters/telemetry/telemetry.hpp"
#include "checker/prober.hpp"
#include "support/certificates.hpp"
#include "support/peer_tls.hpp"
#include "support/raw_sockets.hpp"
#include "support/recording_events.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::checker {
namespace {

using domain::Failure;
using domain::FailureKind;
using domain::Phase;
using testing::FakeProxy;
using testing::over_tls;
using testing::Peer;

class HttpsProbe : public ::testing::Test {
 protected:
  HttpsProbe() : tls_(*net::TlsContext::client(authority_.write_authority(folder_.path()))) {}

  domain::Observation probe(std::uint16_t port, milliseconds timeout = seconds(5)) {
    domain::CheckTask task;
    task.task_id = 1;
    task.proxy = ProxyId(7);
    task.endpoint = {domain::Scheme::Https, "127.0.0.1", port};
    task.credential = {"user", SecretString("pass")};
    task.target_host = "192.0.2.1";
    task.target_port = 443;
    task.timeout = timeout;
    net::EventLoop loop;
    ProbeMetrics metrics{*registry_};
    BoundedQueue<domain::Observation> reports{1};
    Prober prober({}, {loop, nullptr, nullptr,
                       [&](const domain::Observation& seen) { (void)reports.try_push(seen); },
                       metrics, events_, tls_});
    std::thread thread([&] { loop.run(); });
    prober.offer({task});
    const auto seen = reports.pop_for(seconds(10));
    loop.stop();
    thread.join();
    EXPECT_TRUE(seen);
    return seen.value_or(domain::Observation{});
  }
  FakeProxy::Script says(std::string answer) {
    return over_tls(authority_.issue({"IP:127.0.0.1"}), [this, answer](Peer& peer, int) {
      request_.with([&](std::string& request) { request = peer.until("\r\n\r\n"); });
      peer.send(answer);
      clean_end_ = peer.at_end();
    });
  }

  support::TempDir folder_;
  testing::Authority authority_;
  std::shared_ptr<const net::TlsContext> tls_;
  std::unique_ptr<ports::Metrics> registry_ = telemetry::make_metrics();
  test::RecordingEvents events_;
  Guarded<std::string> request_;
  std::atomic<bool> clean_end_{false};
};

TEST_F(HttpsProbe, AsksForATunnelInsideTls) {
  {
    FakeProxy proxy(says("HTTP/1.1 200 OK\r\n\r\n"));
    EXPECT_TRUE(probe(proxy.port()).passed);
  }
  EXPECT_EQ(request_.with([](const std::string& request) { return request; }),
            "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: 192.0.2.1:443\r\n"
            "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n");
  EXPECT_TRUE(clean_end_);
}

TEST_F(HttpsProbe, JudgesTheAnswerAsWithoutTls) {
  FakeProxy refusing(says("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(probe(refusing.port()).failure,
            (Failure{Phase::ProxyHandshake, FailureKind::AuthRejected}));
  FakeProxy babbling(says("SSH-2.0-x\r\n\r\n"));
  EXPECT_EQ(probe(babbling.port()).failure,
            (Failure{Phase::ProxyHandshake, FailureKind::Protocol}));
}

TEST_F(HttpsProbe, FailsOnACertificateOfAnotherName) {
  FakeProxy proxy(over_tls(authority_.issue({"DNS:other.example"}), [](Peer&, int) {}));
  EXPECT_EQ(probe(proxy.port()).failure, (Failure{Phase::ProxyHandshake, FailureKind::Protocol}));
}

TEST_F(HttpsProbe, FailsOnAProxyThatSpeaksNoTls) {
  FakeProxy proxy([](Peer& peer, int) {
    peer.exactly(50);
    peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    (void)peer.all();
  });
  EXPECT_EQ(probe(proxy.port()).failure, (Failure{Phase::ProxyHandshake, FailureKind::Protocol}));
}

TEST_F(HttpsProbe, FailsOnAProxyThatHangsUpOrNeverAnswers) {
  FakeProxy gone([](Peer& peer, int) { peer.exactly(50); });
  EXPECT_EQ(probe(gone.port()).failure, (Failure{Phase::ProxyHandshake, FailureKind::Reset}));
  FakeProxy silent([](Peer& peer, int) { (void)peer.all(); });
  EXPECT_EQ(probe(silent.port(), milliseconds(60)).failure,
            (Failure{Phase::ProxyHandshake, FailureKind::Timeout}));
}

}  // namespace
}  // namespace proxypool::checker
