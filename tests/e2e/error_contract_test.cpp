// The error contract through the real programs: what is wrong with a request, and what its proxies
// do (GW-4, GW-12, GW-36, GW-41, GW-42).
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <fstream>
#include <set>

#include "e2e/error_contract.hpp"
#include "support/certificates.hpp"
#include "support/eventually.hpp"
#include "support/peer_tls.hpp"

namespace proxypool::e2e {
namespace {

using support::Cluster;
using support::ClusterOptions;
using testing::FakeProxy;

const std::string kOk = "ok.vendor.example";

std::string at(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

std::string upstream(const std::string& id, const std::string& proxy) {
  return "- {id: " + id + ", provider: {type: static, proxies: ['" + proxy + "']}}\n";
}

// Requests to `host` go to the upstream of that name.
std::string routing(const std::string& id, const std::string& host, const std::string& upstream,
                    const std::string& more = {}) {
  return "- {id: " + id + ", match: {hosts: ['" + host + "']}, upstreams: [{id: " + upstream +
         "}]" + more + "}\n";
}

std::string many_fields() {
  std::string out;
  for (int i = 0; i < 101; ++i) out += "X-Field: 1\r\n";
  return out;
}

// More than any socket takes in from a proxy that reads nothing.
Peer upload_to_whom_nobody_reads(Stage& stage) {
  constexpr std::size_t kBytes = std::size_t{64} << 20U;
  Peer peer = ask(stage,
                  "POST http://stuck.vendor.example/ HTTP/1.1\r\nHost: x\r\n"
                  "Content-Length: " +
                      std::to_string(kBytes) + "\r\n\r\n");
  const std::string piece(std::size_t{1} << 16U, 'u');
  std::size_t sent = 0;
  // Until neither the socket nor the gateway has taken anything for a tenth of a second.
  pollfd writable{peer.fd(), POLLOUT, 0};
  while (sent < kBytes && ::poll(&writable, 1, 100) == 1) sent += peer.send_some(piece);
  EXPECT_LT(sent, kBytes);
  return peer;
}

// Puts `behaviour` into force for one handshake.
std::function<Peer(Stage&)> told(int behaviour, std::string request) {
  return [behaviour, request = std::move(request)](Stage& stage) {
    stage.tell(behaviour);
    return ask(stage, request);
  };
}

enum : int { Proves, Silent, Stranger, Leaves };

std::vector<Case> malformed() {
  return {
      raw("origin form", Refusal::BadRequest, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
      raw("no Host", Refusal::BadRequest, "GET http://x.example/ HTTP/1.1\r\n\r\n"),
      raw_connect("CONNECT without a port", Refusal::BadRequest,
                  "CONNECT x.example HTTP/1.1\r\nHost: x.example\r\n\r\n"),
      raw_connect("CONNECT with a body", Refusal::BadRequest,
                  connect_to("x.example", "Content-Length: 1\r\n")),
      raw("bad session name", Refusal::BadRequest, get(kOk, "X-Proxy-Session: no blanks\r\n")),
      raw_connect("CONNECT with a bad session name", Refusal::BadRequest,
                  connect_to(kOk, "X-Proxy-Session: no blanks\r\n")),
      raw("bad chunk", Refusal::BadRequest,
          "POST http://silent.vendor.example"
          "/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
          "1junk\r\nZ\r\n0\r\n\r\n"),
      raw("long request line", Refusal::RequestLineTooLarge,
          "GET http://x.example/" + std::string(17'000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n"),
      raw_connect("CONNECT with a long request line", Refusal::RequestLineTooLarge,
                  "CONNECT " + std::string(17'000, 'a') + ":443 HTTP/1.1\r\nHost: x\r\n\r\n"),
      raw("large header section", Refusal::HeadersTooLarge,
          get(kOk, "X-Large: " + std::string(66'000, 'a') + "\r\n")),
      raw("many fields", Refusal::HeadersTooLarge, get(kOk, many_fields())),
      raw_connect("CONNECT with many fields", Refusal::HeadersTooLarge,
                  connect_to(kOk, many_fields())),
      raw("announced too large", Refusal::BodyTooLarge,
          "POST http://" + kOk + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741825\r\n\r\n"),
      raw("a body that does not come", Refusal::RequestTimeout,
          "POST http://silent.vendor.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"),
  };
}

std::vector<Case> unserved() {
  std::vector<Case> out{
      raw("metadata", Refusal::TargetForbidden, get("169.254.169.254"), false),
      raw_connect("CONNECT to metadata", Refusal::TargetForbidden, connect_to("169.254.169.254")),
      plain(Refusal::NoRouting, "unrouted.example"),
      tunnel(Refusal::NoRouting, "unrouted.example"),
      plain(Refusal::NoCandidate, "never.example"),
      tunnel(Refusal::NoCandidate, "never.example"),
      plain(Refusal::WaitTimeout, "waits.example"),
      tunnel(Refusal::WaitTimeout, "waits.example"),
      plain(Refusal::TotalTimeout, "waits-long.example"),
      tunnel(Refusal::TotalTimeout, "waits-long.example"),
  };
  // The routing has one place, and it is taken.
  for (Case full :
       {plain(Refusal::Overloaded, "one.example"), tunnel(Refusal::Overloaded, "one.example")}) {
    const auto last = full.provoke;
    full.name += ", the routing being full";
    full.provoke = [last](Stage& stage) {
      hold_tunnel(stage, "one.example");
      return last(stage);
    };
    out.push_back(full);
  }
  // The line has one place, and it is taken.
  for (Case full : {plain(Refusal::Overloaded, "waits-long.example"),
                    tunnel(Refusal::Overloaded, "waits-long.example")}) {
    const auto last = full.provoke;
    full.name += ", the line being full";
    full.provoke = [last](Stage& stage) {
      stage.held.push_back(ask(stage, get("waits-long.example")));
      EXPECT_TRUE(support::eventually(
          [&] { return stage.cluster.gateway_metric("proxypool_gateway_waiting_requests") == 1; }));
      return last(stage);
    };
    out.push_back(full);
  }
  return out;
}

std::vector<Case> failing_proxies() {
  std::vector<Case> out{
      plain(Refusal::ProxyConnectFailed, "refused.example"),
      tunnel(Refusal::ProxyConnectFailed, "refused.example"),
      tunnel(Refusal::ProxyRefused, "refuses.vendor.example"),
      plain(Refusal::ProxyAuthRejected, "rejects.vendor.example"),
      tunnel(Refusal::ProxyAuthRejected, "rejects.vendor.example"),
      plain(Refusal::ConnectTimeout, "unreachable.example"),
      tunnel(Refusal::ConnectTimeout, "unreachable.example"),
      plain(Refusal::FirstByteTimeout, "silent.vendor.example"),
      tunnel(Refusal::ProxyConnectTimeout, "silent.vendor.example"),
      plain(Refusal::ResolveTimeout, "slow-a.example"),
      tunnel(Refusal::ResolveTimeout, "slow-b.example"),
      {"an upload that the proxy does not take", Refusal::IdleTimeout, false,
       upload_to_whom_nobody_reads, true},
  };
  for (const char* nonsense : {"garbage.vendor.example", "half.vendor.example"}) {
    const bool half = std::string_view(nonsense).starts_with("half");
    out.push_back(
        plain(Refusal::ProxyProtocolError, nonsense, half ? "connection_terminated" : ""));
    out.push_back(
        tunnel(Refusal::ProxyProtocolError, nonsense, half ? "connection_terminated" : ""));
  }
  for (const char* gone : {"closes.vendor.example", "resets.vendor.example"}) {
    out.push_back(plain(Refusal::ProxyProtocolError, gone, "connection_terminated"));
    out.push_back(tunnel(Refusal::ProxyProtocolError, gone, "connection_terminated"));
  }
  const std::string host = "secure.example";
  for (const bool connect : {false, true}) {
    const std::string request = connect ? connect_to(host) : get(host);
    const std::string name = connect ? "CONNECT through TLS" : "GET through TLS";
    out.push_back(
        {name + " that never comes", Refusal::TlsTimeout, connect, told(Silent, request), connect});
    out.push_back({name + " of a stranger", Refusal::ProxyConnectFailed, connect,
                   told(Stranger, request), connect});
    out.push_back({name + " that breaks off", Refusal::ProxyConnectFailed, connect,
                   told(Leaves, request), connect, "connection_terminated"});
  }
  return out;
}

// Proxies that passed their check, and then did what proxies do.
class VendorStage {
 public:
  VendorStage() {
    EXPECT_TRUE(cluster_.serves(kProxies)) << cluster_.logs();
    refused_.stop();
    // A listener whose queue is full drops further connections in silence.
    const auto port = unreachable_.port();
    unreachable_.stop();
    auto full = net::listen_tcp({IpAddress::v4(0x7f000001), port}, {.backlog = 0});
    PP_ASSERT(full);
    full_ = *std::move(full);
    fillers_.push_back(Peer::dial(port));
    std::ofstream(slow_names()) << "slow from now on";
    stage_.served = kOk;
    stage_.tell = [this](int behaviour) { behaviour_ = behaviour; };
  }
  VendorStage(const VendorStage&) = delete;
  VendorStage& operator=(const VendorStage&) = delete;
  ~VendorStage() { std::filesystem::remove(slow_names()); }

  Stage& stage() { return stage_; }

 private:
  static constexpr unsigned kProxies = 7;  // one of the fixture, six of these

  [[nodiscard]] std::string slow_names() const { return (folder_.path() / "slow").string(); }

  FakeProxy::Script secured() {
    return [this](Peer& peer, int number) {
      if (behaviour_ == Silent) return (void)peer.all();
      if (behaviour_ == Leaves) return (void)peer.exactly(1);
      const auto& pair = behaviour_ == Stranger ? stranger_ : known_;
      testing::over_tls(pair, play_vendor)(peer, number);
    };
  }

  ClusterOptions options() {
    ClusterOptions out;
    out.proxies = 1;
    out.wait = false;
    out.environment = {"SSL_CERT_FILE=" + authority_.write_authority(folder_.path()),
                       "LD_PRELOAD=" + support::program_path("test_names.so"),
                       "PROXYPOOL_SLOW_NAMES=" + slow_names()};
    out.check = "basic: {interval: 1h, failureThreshold: 100}";
    out.gateway =
        "bench: 0s\n"
        "limits: {maxBodyBytes: 1GiB}\n"
        "transport: {resolve: 300ms, connect: 300ms, tls: 300ms, proxyConnect: 300ms,\n"
        "            firstByte: 300ms, idle: 700ms, total: 2s}";
    out.routing = "match: {hosts: [fixture.example]}";
    const std::string port = std::to_string(vendor_.port());
    out.upstreams = upstream("vendor", at(vendor_.port())) +
                    upstream("refused", at(refused_.port())) +
                    upstream("unreachable", at(unreachable_.port())) +
                    upstream("secure", "https://" + at(secure_.port())) +
                    upstream("slow-a", "a.slow.example:" + port) +
                    upstream("slow-b", "b.slow.example:" + port) +
                    upstream("never", at(testing::closed_port()));
    out.routings = routing("vendor", "*.vendor.example", "vendor") +
                   routing("one", "one.example", "vendor", ", maxInFlight: 1") +
                   routing("refused", "refused.example", "refused") +
                   routing("unreachable", "unreachable.example", "unreachable") +
                   routing("secure", "secure.example", "secure") +
                   routing("slow-a", "slow-a.example", "slow-a") +
                   routing("slow-b", "slow-b.example", "slow-b") +
                   routing("never", "never.example", "never") +
                   routing("waits", "waits.example", "never",
                           ", onUnavailable: wait, waitTimeout: 300ms, maxWaiters: 9") +
                   routing("waits-long", "waits-long.example", "never",
                           ", onUnavailable: wait, waitTimeout: 1m, maxWaiters: 1");
    return out;
  }

  support::TempDir folder_;
  testing::Authority authority_;
  testing::CertificatePair known_ = authority_.issue({"IP:127.0.0.1"});
  testing::CertificatePair stranger_ = testing::Authority().issue({"IP:127.0.0.1"});
  std::atomic<int> behaviour_{Proves};
  FakeProxy vendor_{play_vendor};
  FakeProxy refused_{play_vendor};
  FakeProxy unreachable_{play_vendor};
  FakeProxy secure_{secured()};
  Cluster cluster_{options()};
  Stage stage_{cluster_};
  net::UniqueFd full_;
  std::vector<Peer> fillers_;
};

}  // namespace

std::vector<Case> vendor_cases() {
  std::vector<Case> out;
  for (auto& part : {malformed(), unserved(), failing_proxies()}) {
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

namespace {

TEST(ErrorContract, AMalformedRequestIsToldWhatIsWrong) {
  VendorStage vendor;
  expect_each(malformed(), vendor.stage());
}

TEST(ErrorContract, WhatIsNotServedIsToldWhy) {
  VendorStage vendor;
  expect_each(unserved(), vendor.stage());
}

TEST(ErrorContract, EachFailureOfAProxyHasItsCode) {
  VendorStage vendor;
  expect_each(failing_proxies(), vendor.stage());
}

// GW-41: only 407 is the vendor's own word, and on CONNECT all that is no success.
TEST(ErrorContract, AnOriginsRefusalPassesAsItIs) {
  VendorStage vendor;
  for (const char* host :
       {"refuses.vendor.example", "asks.vendor.example", "fails.vendor.example"}) {
    Peer peer = ask(vendor.stage(), get(host));
    EXPECT_EQ(peer.answer(), vendor_answer(host));
    Peer tunnel = ask(vendor.stage(), connect_to(host));
    EXPECT_TRUE(tunnel.answer().starts_with("HTTP/1.1 502 Bad Gateway (proxy_refused)\r\n"));
  }
}

// A new refusal needs a new case.
TEST(ErrorContract, EveryRefusalIsProvokedSomewhere) {
  std::set<Refusal> provoked;
  for (const auto& cases : {vendor_cases(), access_cases(), viewless_cases(), draining_cases()}) {
    for (const Case& each : cases) provoked.insert(each.refusal);
  }
  const std::set<Refusal> to_come{Refusal::DnsFailed, Refusal::TargetConnectFailed,
                                  Refusal::TargetProtocolError};
  for (const auto& row : domain::kErrorContract) {
    EXPECT_NE(provoked.contains(row.refusal), to_come.contains(row.refusal)) << row.code;
  }
}

}  // namespace
}  // namespace proxypool::e2e
