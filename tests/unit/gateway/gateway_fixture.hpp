// What the tests of a whole gateway share: a rig, some proxies, and the proof that nothing is left.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <string>
#include <string_view>
#include <thread>

#include "proxypool/base/concurrent.hpp"
#include "support/gateway_rig.hpp"
#include "support/raw_sockets.hpp"

namespace proxypool::gateway {

using testing::answering;
using testing::closed_port;
using testing::FakeProxy;
using testing::GatewayRig;
using testing::Peer;

inline std::string get(const std::string& path, const std::string& more = {}) {
  return "GET http://origin.example" + path + " HTTP/1.1\r\nHost: origin.example\r\n" + more +
         "\r\n";
}
inline std::string connect_to(const std::string& authority, const std::string& more = {}) {
  return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n" + more + "\r\n";
}

// Waits for what another thread is about to do; the test fails by its own time limit.
template <class Condition>
void wait_for(Condition&& condition) {
  while (!condition()) std::this_thread::yield();
}

class GatewayTest : public ::testing::Test {
 protected:
  // Further proxies come with further calls, before start().
  FakeProxy& proxy(FakeProxy::Script script) {
    proxies_.emplace_back(std::move(script));
    rig_.add({.port = proxies_.back().port(), .user = "vuser", .password = "vpass"});
    return proxies_.back();
  }
  void start() {
    const auto started = rig_.start();
    ASSERT_TRUE(started) << started.error().message;
  }
  // Once every connection has ended, nothing is left and nothing was given back twice.
  void TearDown() override {
    rig_.stop();
    EXPECT_EQ(rig_.registry().counts().size(), 0U);
    EXPECT_EQ(bugs_counted(), 0U);
  }
  Peer client() { return Peer::dial(rig_.port()); }
  double metric(const std::string& series) {
    const std::string text = "\n" + rig_.metrics().render();
    const auto at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }
  double outcomes(const std::string& code) {
    return metric("proxypool_gateway_requests_total{outcome=\"" + code + "\"}");
  }

  // What a proxy saw, for the test to look at; scripts outlive a test's own variables.
  void saw(const std::string& bytes) {
    seen_.with([&](std::string& all) { all += bytes; });
  }
  std::string seen() {
    return seen_.with([](const std::string& all) { return all; });
  }

  std::atomic<int> number_{0};
  std::atomic<bool> flag_{false};
  std::atomic<std::size_t> taken_{0};
  Guarded<std::string> seen_;
  std::deque<FakeProxy> proxies_;
  GatewayRig rig_{};
};

}  // namespace proxypool::gateway
