// What every test of faults under load begins and ends with: a cluster at work, and the proof that
// afterwards the gateway holds what it held before and serves as before.
//
// Thread rule: one thread, that of the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "e2e/steady_load.hpp"
#include "support/eventually.hpp"
#include "support/raw_sockets.hpp"

namespace proxypool::e2e {

inline constexpr unsigned kProxies = 4;
inline constexpr unsigned kConcurrency = 500;

// Proxies that nobody takes out of the test, whatever they do.
inline support::ClusterOptions steadfast() {
  support::ClusterOptions out;
  out.proxies = kProxies;
  out.concurrency = kConcurrency;
  out.control_plane = "reportInterval: 200ms";
  out.gateway = "bench: 0s";
  out.check = "basic: {interval: 1s, timeout: 1s, failureThreshold: 100}";
  return out;
}

class FaultsUnderLoad : public ::testing::Test {
 protected:
  FaultsUnderLoad() : FaultsUnderLoad(steadfast()) {}
  explicit FaultsUnderLoad(support::ClusterOptions options) : cluster_(std::move(options)) {}

  void SetUp() override {
    // Once everything has been in use, that is the rest to which all comes back.
    SteadyLoad load(cluster_.gateway_port(), cluster_.fixture().origin_port(), 8);
    ASSERT_TRUE(load.serves(300));
    const auto totals = load.stop();
    EXPECT_EQ(totals.wrong, 0U) << totals.first_wrong;
    EXPECT_TRUE(support::eventually([&] {
      const auto now = watch_.holdings();
      rest_ = now;
      return now.connections == 0 && now.requests == 0 && now.tunnels == 0;
    }));
    resident_ = watch_.resident_bytes();
  }

  void TearDown() override {
    EXPECT_TRUE(cluster_.gateway().running()) << cluster_.logs();
    EXPECT_TRUE(watch_.back_to(rest_));
    EXPECT_TRUE(all_places_free(cluster_, places_));
    EXPECT_EQ(cluster_.get("/t/afterwards").status, 200U);
    const auto more = watch_.resident_bytes() - std::min(resident_, watch_.resident_bytes());
    RecordProperty("resident_kib_more", static_cast<int>(more >> 10U));
    if (sizes_count()) {
      EXPECT_LT(more, resident_more_max_);
    }
  }

  static std::string authority(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }
  [[nodiscard]] std::string origin() { return authority(cluster_.fixture().origin_port()); }
  std::string get(const std::string& path) {
    return "GET http://" + origin() + path + " HTTP/1.1\r\nHost: " + origin() + "\r\n\r\n";
  }
  testing::Peer ask(const std::string& request) {
    testing::Peer peer = testing::Peer::dial(cluster_.gateway_port());
    peer.send(request);
    return peer;
  }
  SteadyLoad load(unsigned clients) {
    return SteadyLoad(cluster_.gateway_port(), cluster_.fixture().origin_port(), clients);
  }
  // A load beside which the faults happen, and that has nothing to do with them.
  void expect_undisturbed(const SteadyLoad::Totals& totals) {
    EXPECT_EQ(totals.wrong, 0U) << totals.first_wrong;
    EXPECT_EQ(totals.refused, 0U) << totals.first_refused;
    EXPECT_EQ(totals.broken, 0U) << totals.first_broken;
    EXPECT_GT(totals.served, 200U);
    EXPECT_LT(totals.slowest, std::chrono::seconds(3));
  }

  support::Cluster cluster_;
  Watch watch_{cluster_.gateway().pid(), cluster_.gateway_metrics_port()};
  double places_ = kProxies * kConcurrency;
  Holdings rest_;
  std::uint64_t resident_ = 0;
  std::uint64_t resident_more_max_ = std::uint64_t{8} << 20U;
};

}  // namespace proxypool::e2e
