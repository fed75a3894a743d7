// What the tests of faults share: load that goes on meanwhile, and moments to compare.
//
// Thread rule: one thread, that of the test.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/cluster.hpp"

namespace proxypool::e2e {

using std::chrono::milliseconds;
using std::chrono::seconds;
using support::Cluster;
using support::eventually;
using support::Reply;

// proxy-loadgen on a gateway, from now on for so long; keep-alive connections, GET.
class Load {
 public:
  Load(Cluster& cluster, milliseconds duration, unsigned concurrency = 4)
      : report_(folder_.path() / "report"),
        process_({"proxy-loadgen",
                  {"http", "--duration", std::to_string(duration.count()) + "ms", "--concurrency",
                   std::to_string(concurrency), "--proxy", cluster.gateway_url(), "--json", report_,
                   cluster.origin_url("/bytes/100")},
                  {},
                  {}}) {}

  // Waits for its end; what it reports.
  nlohmann::json finish() {
    EXPECT_TRUE(process_.wait(seconds(60))) << process_.err();
    const auto text = support::read_file(report_);
    return nlohmann::json::parse(text.empty() ? "{}" : text);
  }
  support::ChildProcess& process() noexcept { return process_; }

 private:
  support::TempDir folder_;
  std::filesystem::path report_;
  support::ChildProcess process_;
};

// A load that must have met no error at all.
inline void expect_flawless(const nlohmann::json& report, Cluster& cluster) {
  ASSERT_TRUE(report.contains("requests")) << cluster.logs();
  EXPECT_GT(report.at("requests").at("done"), 100) << report;
  EXPECT_EQ(report.at("requests").at("failed"), 0) << report << cluster.logs();
  EXPECT_TRUE(report.at("errors").empty()) << report;
}

using Moment = std::chrono::steady_clock::time_point;
inline Moment now() {
  return std::chrono::steady_clock::now();
}
inline std::int64_t wall_ms() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}
inline milliseconds between(Moment from, Moment to) {
  return std::chrono::duration_cast<milliseconds>(to - from);
}

// "not_ready" and the like, of an answer that the gateway or an API gave itself.
inline std::string code_of(const Reply& reply) {
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  return body.is_object() ? body.value("code", "") : "";
}

// The one upstream of the cluster, and its proxies, as Admin shows them.
inline nlohmann::json upstream(Cluster& cluster) {
  return cluster.admin("/v1/upstreams/fixture");
}
inline nlohmann::json proxies(Cluster& cluster) {
  return cluster.admin("/v1/proxies?limit=1000").at("items");
}
inline bool unowned(Cluster& cluster, unsigned count) {
  return eventually([&] {
    const auto shown = upstream(cluster).at("proxies");
    return shown.at("unowned") == count && shown.at("byState").value("available", 0U) >= count;
  });
}

// host:port of everything that an extraction gave.
inline std::vector<std::string> given(const Reply& reply) {
  std::vector<std::string> out;
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  if (reply.status != 200 || !body.is_object()) return out;
  for (const auto& proxy : body.at("proxies")) {
    out.push_back(proxy.at("host").get<std::string>() + ":" +
                  std::to_string(proxy.at("port").get<int>()));
  }
  return out;
}

}  // namespace proxypool::e2e
