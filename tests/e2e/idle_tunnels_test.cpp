// Very many tunnels in which nothing happens: what one costs, that all of them still work, and that
// nothing is left of them (GW-8, B243).
//
// A gateway needs two descriptors a tunnel, and this program as many for both ends. Where 20,000
// are allowed to a process, that is 9,800 tunnels.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "e2e/steady_load.hpp"
#include "e2e/tunnel_vendor.hpp"
#include "support/raw_sockets.hpp"

namespace proxypool::e2e {
namespace {

using support::Cluster;
using support::ClusterOptions;
using support::eventually;
using testing::Peer;

constexpr unsigned kPlaces = 20'000;

ClusterOptions with_vendor(const TunnelVendor& vendor) {
  ClusterOptions out;
  out.proxies = 1;
  out.wait = false;
  out.control_plane = "reportInterval: 200ms";
  out.gateway = "limits: {maxInFlight: 20000}";
  out.upstreams = "- {id: tunnels, provider: {type: static, proxies: ['127.0.0.1:" +
                  std::to_string(vendor.port()) +
                  "']}, pool: {maxConcurrency: " + std::to_string(kPlaces) + "}}\n";
  out.routings = "- {id: tunnels, match: {hosts: [idle.example]}, upstreams: [{id: tunnels}]}\n";
  return out;
}

// How many tunnels the descriptors of a process allow, at most `wanted`.
std::size_t affordable(std::size_t wanted) {
  constexpr std::size_t kOthers = 300;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(wanted, (limit.rlim_cur - kOthers) / 2);
}

class IdleTunnels : public ::testing::Test {
 protected:
  void open(std::size_t count) {
    const std::string request = "CONNECT idle.example:443 HTTP/1.1\r\nHost: idle.example\r\n\r\n";
    const std::size_t before = clients_.size();
    for (std::size_t i = 0; i < count; ++i) {
      clients_.push_back(Peer::dial(cluster_.gateway_port()));
      clients_.back().send(request);
    }
    for (std::size_t i = before; i < clients_.size(); ++i) {
      const std::string answer = clients_[i].until("\r\n\r\n");
      ASSERT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << i << answer;
    }
  }
  // Each gets back what it alone has sent.
  void expect_alive() {
    const auto word = [](std::size_t i) { return "tunnel " + std::to_string(1'000'000 + i); };
    for (std::size_t i = 0; i < clients_.size(); ++i) EXPECT_TRUE(clients_[i].send(word(i)));
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      EXPECT_EQ(clients_[i].exactly(word(i).size()), word(i));
    }
  }

  TunnelVendor vendor_;
  Cluster cluster_{with_vendor(vendor_)};
  Watch watch_{cluster_.gateway().pid(), cluster_.gateway_metrics_port()};
  std::vector<Peer> clients_;
};

TEST_F(IdleTunnels, CostLittleAndLeaveNothing) {
  const std::size_t count = affordable(PROXYPOOL_IDLE_TUNNELS);
  ASSERT_TRUE(cluster_.serves(2)) << cluster_.logs();
  open(100);
  clients_.clear();
  Holdings rest;
  ASSERT_TRUE(eventually([&] {
    rest = watch_.holdings();
    return rest.tunnels == 0 && rest.connections == 0;
  }));
  const auto resident = watch_.resident_bytes();
  std::uint64_t resident_full = 0;
  for (const int round : {1, 2, 3}) {
    SCOPED_TRACE(round);
    open(count);
    EXPECT_EQ(watch_.holdings().tunnels, count);
    EXPECT_EQ(vendor_.open(), count);
    expect_alive();
    const auto full = watch_.resident_bytes();
    const auto each = (full - std::min(full, resident)) / count;
    RecordProperty("resident_bytes_each_" + std::to_string(round), static_cast<int>(each));
    if (sizes_count()) {
      EXPECT_LT(each, 2'048U);
      // What the first waves needed is there for the third.
      if (round == 3) {
        EXPECT_LT(full, resident_full + (std::uint64_t{1} << 20U));
      }
    }
    resident_full = full;
    // A third of them is reset, the rest ends orderly.
    for (std::size_t i = 0; i < clients_.size(); i += 3) clients_[i].reset();
    clients_.clear();
    EXPECT_TRUE(watch_.back_to(rest)) << cluster_.logs();
    EXPECT_TRUE(eventually([&] { return vendor_.open() == 0; }));
  }
  EXPECT_TRUE(all_places_free(cluster_, kPlaces + 10));
}

}  // namespace
}  // namespace proxypool::e2e
