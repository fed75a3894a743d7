// What clients move, and their quota for a day, through real processes (GW-14).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"
#include "support/eventually.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using support::Cluster;
using support::ClusterOptions;
using support::run;

constexpr std::uint64_t kQuota = 1'000'000;

ClusterOptions with_quota(unsigned gateways = 2) {
  ClusterOptions options =
      e2e::with_crawler("sesame", "    limits: {bytesPerDay: " + std::to_string(kQuota) + "}\n");
  options.top_level +=
      "  - name: other\n"
      "    credentials: {gateway: {env: CRAWLER_PASSWORD}}\n";
  options.gateways = gateways;
  options.proxies = 8 * gateways;  // so that no gateway goes without
  return options;
}

nlohmann::json usage(Cluster& cluster, const std::string& client) {
  return cluster.admin("/v1/clients/" + client + "/usage");
}

std::string status_of(Cluster& cluster, const std::string& user, const std::string& path,
                      std::size_t gateway = 0) {
  return run(curl(cluster,
                  {"--proxy", cluster.gateway_url(gateway), "--proxy-user", user + ":sesame", "-w",
                   "%{http_code}", "-D", "head", "-o", "body", cluster.origin_url(path)}))
      .out;
}

TEST(ClientUsage, IsCountedAndAQuotaHoldsAtEveryGateway) {
  Cluster cluster(with_quota());
  EXPECT_EQ(usage(cluster, "crawler").at("bytes"), 0);
  EXPECT_EQ(status_of(cluster, "crawler", "/bytes/400000"), "200");
  EXPECT_TRUE(support::eventually([&] { return usage(cluster, "crawler").at("requests") == 1; }));
  auto seen = usage(cluster, "crawler");
  EXPECT_GT(seen.at("bytesDown"), 400'000);
  EXPECT_LT(seen.at("bytesDown"), 401'000);
  EXPECT_GT(seen.at("bytesUp"), 50);
  EXPECT_FALSE(seen.at("quota").at("exceeded").get<bool>());
  EXPECT_EQ(seen.at("quota").at("remaining"), kQuota - seen.at("bytes").get<std::uint64_t>());

  EXPECT_EQ(status_of(cluster, "crawler", "/bytes/600000"), "200");
  // The report that brings the bytes to the controller takes the verdict home.
  for (std::size_t gateway : {0U, 1U}) {
    EXPECT_TRUE(support::eventually(
        [&] { return status_of(cluster, "crawler", "/t/over", gateway) == "429"; }));
  }
  const std::string head = support::read_file(cluster.folder() / "head");
  const auto after = head.find("Retry-After: ");
  ASSERT_NE(after, std::string::npos) << head;
  EXPECT_LE(std::stoi(head.substr(after + 13)), 24 * 3600);
  const auto body = nlohmann::json::parse(support::read_file(cluster.folder() / "body"));
  EXPECT_EQ(body.at("code"), "quota_exceeded");
  EXPECT_TRUE(usage(cluster, "crawler").at("quota").at("exceeded").get<bool>());
  EXPECT_EQ(usage(cluster, "crawler").at("quota").at("remaining"), 0);
  EXPECT_EQ(status_of(cluster, "other", "/bytes/2000000", 1), "200") << "has no quota";
  EXPECT_FALSE(usage(cluster, "other").contains("quota"));
}

TEST(ClientUsage, OutlivesAControllerThatIsKilled) {
  Cluster cluster(with_quota());
  EXPECT_EQ(status_of(cluster, "crawler", "/bytes/1200000"), "200");
  // The request counts when it begins and its bytes as they go: two reports may bring them.
  EXPECT_TRUE(support::eventually(
      [&] { return usage(cluster, "crawler").at("bytesDown").get<std::uint64_t>() > 1'200'000; }));
  const auto before = usage(cluster, "crawler");
  EXPECT_EQ(before.at("requests"), 1);
  cluster.controller().kill();
  // What is moved meanwhile is reported later; the verdict stands.
  EXPECT_EQ(status_of(cluster, "other", "/bytes/70000"), "200");
  cluster.restart_controller();
  EXPECT_EQ(usage(cluster, "crawler"), before);
  EXPECT_TRUE(support::eventually([&] {
    return usage(cluster, "other").at("bytesDown").get<std::uint64_t>() > 70'000;
  })) << cluster.logs();
  EXPECT_EQ(usage(cluster, "crawler"), before) << "nothing counts twice";
  EXPECT_EQ(usage(cluster, "other").at("requests"), 1);
  EXPECT_TRUE(
      support::eventually([&] { return status_of(cluster, "crawler", "/t/over", 1) == "429"; }));
}

TEST(ClientUsage, ATunnelEndsWhenTheQuotaIsUsedUp) {
  Cluster cluster(with_quota(1));
  const auto got = run(curl(cluster, {"--proxy-user", "crawler:sesame", "-p", "--limit-rate", "2M",
                                      "-w", "%{http_code} %{size_download}", "-o", "/dev/null",
                                      cluster.origin_url("/bytes/60000000")}));
  EXPECT_NE(got.code, 0);
  EXPECT_NE(got.code, 28) << "curl had to give up: the tunnel went on";
  EXPECT_TRUE(got.out.starts_with("200 ")) << got.out << got.err;
  const auto bytes = std::stoull(got.out.substr(4));
  EXPECT_LT(bytes, 30'000'000U);
  EXPECT_TRUE(support::eventually(
      [&] { return usage(cluster, "crawler").at("bytesDown").get<std::uint64_t>() >= bytes; }));
}

// The last report of a gateway that is told to end brings what it has counted since the one before.
TEST(ClientUsage, AGatewayThatEndsReportsTheRest) {
  Cluster cluster(with_quota());
  EXPECT_EQ(status_of(cluster, "crawler", "/bytes/123456", 1), "200");
  EXPECT_EQ(cluster.gateway(1).stop(), 0);
  EXPECT_GT(usage(cluster, "crawler").at("bytesDown"), 123'456);
}

}  // namespace
}  // namespace proxypool
