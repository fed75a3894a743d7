// TLS and PROXY headers through the real programs: curl, openssl and raw sockets as clients, a
// vendor whose proxies speak TLS (GW-2, GW-3, GW-40).
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>

#include "e2e/programs.hpp"
#include "support/certificates.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::Arguments;
using support::Cluster;
using support::ClusterOptions;
using support::run;

class Certificates {
 public:
  testing::Authority authority;
  support::TempDir folder;
  std::string ca = authority.write_authority(folder.path());
  testing::CertificateFiles gateway = authority.write(folder.path(), "gateway", {"IP:127.0.0.1"});
  testing::CertificateFiles vendor = authority.write(folder.path(), "vendor", {"IP:127.0.0.1"});

  [[nodiscard]] std::string gateway_tls() const {
    return "tls: {cert: " + gateway.certificate + ", key: " + gateway.key + "}";
  }
};

std::string authority_of(const Cluster& cluster) {
  return "127.0.0.1:" + std::to_string(cluster.gateway_port());
}

// curl through the https:// proxy that the gateway is.
support::Finished secure_curl(const Cluster& cluster, const std::string& ca, Arguments more) {
  Arguments arguments{"--disable",
                      "--silent",
                      "--show-error",
                      "--max-time",
                      "20",
                      "--noproxy",
                      "",
                      "--proxy",
                      "https://" + authority_of(cluster),
                      "--proxy-cacert",
                      ca};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run({"curl", std::move(arguments), {}, cluster.folder()});
}

// What openssl says of a handshake with the gateway.
std::string handshake(const Cluster& cluster, Arguments more) {
  Arguments arguments{"s_client", "-connect", authority_of(cluster)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto said = run({"openssl", std::move(arguments), {}, {}});
  return said.out + said.err;
}

double metric(Cluster& cluster, const std::string& series) {
  return cluster.gateway_metric("proxypool_gateway_" + series);
}

TEST(HttpsListener, IsAnHttpsProxyForCurl) {
  const Certificates certificates;
  ClusterOptions options;
  options.gateway = certificates.gateway_tls();
  Cluster cluster(options);
  const auto plain =
      secure_curl(cluster, certificates.ca,
                  {"-w", "%{http_code}", "-o", "/dev/null", cluster.origin_url("/t/over-tls")});
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.out, "200");
  EXPECT_FALSE(e2e::seen_at(cluster, "over-tls", "origin").is_null());
  const auto tunnel = secure_curl(cluster, certificates.ca,
                                  {"--proxytunnel", "-w", "%{http_connect} %{http_code}", "-o",
                                   "bytes", cluster.origin_url("/bytes/3000000")});
  EXPECT_EQ(tunnel.code, 0) << tunnel.err;
  EXPECT_EQ(tunnel.out, "200 200");
  EXPECT_EQ(e2e::sha256(support::read_file(cluster.folder() / "bytes")),
            e2e::sha256_of_pattern(3'000'000));
  const auto body = e2e::sample_body(2'000'000);
  e2e::write_file(cluster.folder() / "up", body);
  const auto upload = secure_curl(cluster, certificates.ca,
                                  {"--data-binary", "@up", "-w", "%{http_code}", "-o", "/dev/null",
                                   cluster.origin_url("/t/uploaded")});
  EXPECT_EQ(upload.out, "200") << upload.err;
  EXPECT_EQ(e2e::seen_at(cluster, "uploaded", "origin").at("body_sha256"), e2e::sha256(body));
}

TEST(HttpsListener, RefusesWhatIsTooOldAndClosesWhatIsNoTls) {
  const Certificates certificates;
  ClusterOptions options;
  options.gateway = certificates.gateway_tls();
  Cluster cluster(options);
  EXPECT_NE(handshake(cluster, {"-alpn", "http/1.1"}).find("ALPN protocol: http/1.1"),
            std::string::npos);
  EXPECT_NE(handshake(cluster, {"-tls1_2"}).find("Secure Renegotiation IS supported"),
            std::string::npos);
  const std::string old = handshake(cluster, {"-tls1_1", "-cipher", "ALL:@SECLEVEL=0"});
  EXPECT_NE(old.find("alert protocol version"), std::string::npos) << old;
  const auto plain = run(e2e::curl(cluster, {cluster.origin_url("/t/plain")}));
  EXPECT_EQ(plain.code, 52) << plain.err;  // CURLE_GOT_NOTHING
  EXPECT_EQ(metric(cluster, "client_tls_handshakes_total{outcome=\"plain_text\"}"), 1);
}

// B231: nothing but the files changes, and nobody notices but new connections.
TEST(HttpsListener, TakesANewCertificateAndKeepsTheOldOneFromABrokenPair) {
  Certificates certificates;
  ClusterOptions options;
  options.gateway = certificates.gateway_tls();
  Cluster cluster(options);
  const auto works = [&](const std::string& ca) {
    return secure_curl(cluster, ca, {"-o", "/dev/null", cluster.origin_url("/t/renewed")}).code ==
           0;
  };
  ASSERT_TRUE(works(certificates.ca));

  // Broken: refused with a line in the log, and the old one stays.
  testing::write_file(certificates.gateway.key, "garbage");
  const auto refusal = cluster.gateway().wait_for_line("certificate_refused");
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("gateway.key"), std::string::npos) << *refusal;
  EXPECT_EQ(metric(cluster, "certificate_loads_total{outcome=\"refused\"}"), 1);
  EXPECT_TRUE(works(certificates.ca));

  // Of another authority: taken without anybody asking.
  const testing::Authority next;
  support::TempDir elsewhere;
  const std::string next_ca = next.write_authority(elsewhere.path());
  next.write(certificates.folder.path(), "gateway", {"IP:127.0.0.1"});
  EXPECT_TRUE(support::eventually([&] { return works(next_ca); }));
  EXPECT_FALSE(works(certificates.ca));

  // And at once for who asks by SIGHUP.
  certificates.authority.write(certificates.folder.path(), "gateway", {"IP:127.0.0.1"});
  cluster.gateway().signal(SIGHUP);
  EXPECT_TRUE(support::eventually([&] { return works(certificates.ca); }));
  EXPECT_GE(metric(cluster, "certificate_loads_total{outcome=\"loaded\"}"), 3);
  EXPECT_GT(metric(cluster, "certificate_valid_until_seconds"), 1.7e9);
}

ClusterOptions with_https_proxies(const Certificates& certificates) {
  ClusterOptions options;
  options.map = "scheme: \"'https'\"";
  options.fixture = {"--tls-cert", certificates.vendor.certificate, "--tls-key",
                     certificates.vendor.key};
  options.environment = {"SSL_CERT_FILE=" + certificates.ca};
  return options;
}

// The checker has passed them, or the cluster would not serve.
TEST(HttpsProxies, AreCheckedAndUsedInsideTls) {
  const Certificates certificates;
  ClusterOptions options = with_https_proxies(certificates);
  options.reserve = 1;
  Cluster cluster(options);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(cluster.get("/t/through-tls").status, 200);
  }
  const auto tunnel =
      run(e2e::curl(cluster, {"--proxytunnel", "-w", "%{http_connect} %{http_code}", "-o", "bytes",
                              cluster.origin_url("/bytes/3000000")}));
  EXPECT_EQ(tunnel.out, "200 200") << tunnel.err;
  EXPECT_EQ(e2e::sha256(support::read_file(cluster.folder() / "bytes")),
            e2e::sha256_of_pattern(3'000'000));
  const auto seen = e2e::seen_at(cluster, "through-tls", "proxy");
  EXPECT_EQ("Proxy-Authorization: " + e2e::header_of(seen, "Proxy-Authorization") + "\r\n",
            cluster.fixture().authorization());
  EXPECT_GE(metric(cluster, "upstream_tls_handshakes_total{outcome=\"full\"}"), 1);
  EXPECT_EQ(metric(cluster, "upstream_tls_handshakes_total{outcome=\"certificate\"}"), 0);
  // Whoever takes one out learns how to speak to it.
  const auto extracted = nlohmann::json::parse(cluster.extract("{\"count\": 1}").body);
  EXPECT_EQ(extracted.at("proxies").at(0).at("protocol"), "https") << extracted;
}

TEST(HttpsProxies, OfAnUnknownAuthorityNeverPassTheirCheck) {
  const Certificates certificates;
  ClusterOptions options = with_https_proxies(certificates);
  options.environment.clear();
  options.wait = false;
  options.check = "basic: {interval: 1s, timeout: 900ms}";
  Cluster cluster(options);
  const auto failed = [&] {
    return support::metric_sum(support::http_get(cluster.checker_metrics_port(), "/metrics").body,
                               "proxypool_checker_probes_total{result=\"protocol\"}");
  };
  EXPECT_TRUE(support::eventually([&] { return failed() >= 3; }));
  EXPECT_EQ(metric(cluster, "proxies"), 0);
}

// B041, B043: who a balancer says is calling meets access.allowCIDRs.
TEST(ProxyHeaders, NameTheClientOfATrustedBalancer) {
  ClusterOptions options;
  options.gateway =
      "access: {proxyProtocol: required, trustedProxies: [127.0.0.1], allowCIDRs: "
      "[198.51.100.0/24]}";
  Cluster cluster(options);
  const std::string origin = cluster.origin_url("/t/behind-a-balancer");
  const std::string request =
      "GET " + origin + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  const auto status = [&](const std::string& header) {
    return support::http_exchange(cluster.gateway_port(), header + request).status;
  };
  EXPECT_EQ(status("PROXY TCP4 198.51.100.7 203.0.113.1 1234 443\r\n"), 200);
  EXPECT_EQ(status("PROXY TCP4 203.0.113.7 203.0.113.1 1234 443\r\n"), 403);
  const std::string local(
      "\r\n\r\n\0\r\nQUIT\n\x20\x11\x00\x0c\xc6\x33\x64\x07\xcb\x00\x71\x01\x04\xd2\x01\xbb", 28);
  EXPECT_EQ(status(local), 403);
  EXPECT_EQ(metric(cluster, "proxy_headers_total{outcome=\"taken\"}"), 2);
}

}  // namespace
}  // namespace proxypool
