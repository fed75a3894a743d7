// Slowloris for as long as it takes: a head has its ten seconds, from its first byte on.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "e2e/faults_under_load.hpp"

namespace proxypool::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Peer;

// GW-4: no byte extends it, and the others are served meanwhile.
TEST_F(FaultsUnderLoad, AHalfHeadHasTenSeconds) {
  SteadyLoad load = this->load(2);
  std::vector<Peer> half;
  for (int i = 0; i < 200; ++i) {
    half.push_back(ask(i % 2 == 0 ? "GET http://" + origin() + "/t/never HTTP/1.1\r\nX-Slow: "
                                  : "CONNECT " + origin() + " HTTP/1.1\r\nX-Slow: "));
  }
  const auto began = std::chrono::steady_clock::now();
  for (int tick = 0; tick < 9; ++tick) {
    std::this_thread::sleep_until(began + seconds(tick + 1));
    for (Peer& peer : half) EXPECT_TRUE(peer.send("x"));
  }
  for (std::size_t i = 0; i < half.size(); ++i) {
    const std::string answer = half[i].answer();
    EXPECT_TRUE(answer.starts_with(i % 2 == 0
                                       ? "HTTP/1.1 408 Request Timeout\r\n"
                                       : "HTTP/1.1 408 Request Timeout (request_timeout)\r\n"))
        << answer;
    EXPECT_NE(answer.find("\"code\":\"request_timeout\""), std::string::npos) << answer;
    EXPECT_TRUE(half[i].at_end());
  }
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GT(took, milliseconds(9'900));
  EXPECT_LT(took, seconds(13));
  expect_undisturbed(load.stop());
}

}  // namespace
}  // namespace proxypool::e2e
