// What goes wrong while a gateway is at work: afterwards it holds what it held before, no answer
// was a wrong one, and whoever had nothing to do with the fault was served all the time.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "e2e/faults_under_load.hpp"

namespace proxypool::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using support::eventually;
using testing::Peer;

// One of four proxies after the other resets its connections, each at another stage.
TEST_F(FaultsUnderLoad, AProxyThatResetsAtAnyStage) {
  SteadyLoad load = this->load(8);
  std::size_t proxy = 0;
  for (const char* stage : {"reset-on-accept", "reset", "reset-in-head", "reset-in-body:1",
                            "reset-in-body", "truncate", "close-before-head", "refuse"}) {
    SCOPED_TRACE(stage);
    const auto seen = [&] {
      return cluster_.fixture().proxy_stats(proxy).at("connections").get<int>();
    };
    const int before = seen();
    cluster_.fixture().set_fault(proxy, stage);
    EXPECT_TRUE(load.serves(100));
    // A port that is closed counts nothing.
    if (std::string_view(stage) != "refuse") {
      EXPECT_TRUE(eventually([&] { return seen() > before + 3; }));
    }
    cluster_.fixture().set_fault(proxy, "none");
    proxy = (proxy + 1) % kProxies;
  }
  EXPECT_TRUE(load.serves(50));
  const auto totals = load.stop();
  EXPECT_EQ(totals.wrong, 0U) << totals.first_wrong;
  EXPECT_GT(totals.served, 800U);
  EXPECT_GT(totals.broken, 0U) << "answers that had begun, and tunnels";
}

// Clients that take next to nothing, and clients that send next to nothing.
TEST_F(FaultsUnderLoad, SlowReadersAndWriters) {
  constexpr std::size_t kEach = 25;
  std::vector<Peer> readers;
  std::vector<Peer> writers;
  for (std::size_t i = 0; i < kEach; ++i) {
    readers.push_back(ask(get("/bytes/9000000")));
    readers.push_back(ask("CONNECT " + origin() + " HTTP/1.1\r\nHost: " + origin() + "\r\n\r\n"));
    EXPECT_TRUE(readers.back().until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
    readers.back().send("GET /bytes/9000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    writers.push_back(ask("POST http://" + origin() + "/echo HTTP/1.1\r\nHost: x\r\n" +
                          "Content-Length: 1000000\r\n\r\n"));
    writers.push_back(ask("POST http://" + origin() + "/echo HTTP/1.1\r\nHost: x\r\n" +
                          "Transfer-Encoding: chunked\r\n\r\n"));
  }
  SteadyLoad load = this->load(4);
  std::uint64_t resident_max = 0;
  const auto end = std::chrono::steady_clock::now() + seconds(3);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(20));  // which makes them slow
    for (Peer& reader : readers) EXPECT_FALSE(reader.exactly(100).empty());
    for (std::size_t i = 0; i < writers.size(); ++i) {
      EXPECT_TRUE(writers[i].send(i % 2 == 0 ? "x" : "1\r\nx\r\n"));
    }
    resident_max = std::max(resident_max, watch_.resident_bytes());
  }
  expect_undisturbed(load.stop());
  EXPECT_TRUE(eventually([&] { return watch_.holdings().tunnels == kEach; }));
  // What a slow reader can hold is one buffer.
  const auto each = (resident_max - std::min(resident_max, resident_)) / (4 * kEach);
  RecordProperty("resident_bytes_each", static_cast<int>(each));
  if (sizes_count()) {
    EXPECT_LT(each, std::uint64_t{96} << 10U);
  }
  // Some end orderly, some do not.
  for (std::size_t i = 0; i < readers.size(); i += 3) readers[i].reset();
  for (std::size_t i = 0; i < writers.size(); i += 3) writers[i].reset();
  resident_more_max_ = std::uint64_t{24} << 20U;
}

class DescriptorLimit {
 public:
  explicit DescriptorLimit(pid_t pid) : pid_(pid) {
    ::prlimit(pid_, RLIMIT_NOFILE, nullptr, &before_);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr); }
  void limit_to(int descriptors) {
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(descriptors);
    EXPECT_EQ(::prlimit(pid_, RLIMIT_NOFILE, &limit, nullptr), 0);
  }

 private:
  pid_t pid_;
  rlimit before_{};
};

// B241: no descriptor for a connection that waits. It waits on, at no cost, until there is one.
TEST_F(FaultsUnderLoad, NoDescriptorsAreLeft) {
  constexpr int kClients = 200;
  DescriptorLimit descriptors(cluster_.gateway().pid());
  const int limit = watch_.descriptors() + 60;
  descriptors.limit_to(limit);
  std::vector<Peer> idle;
  for (int i = 0; i < kClients; ++i) idle.push_back(Peer::dial(cluster_.gateway_port()));
  idle.push_back(Peer::dial(cluster_.gateway_metrics_port()));
  ASSERT_TRUE(eventually([&] { return watch_.descriptors() >= limit; }));
  // Who is in and asks is told what is wrong: no connection to a proxy can be made.
  idle.front().send("CONNECT " + origin() + " HTTP/1.1\r\nHost: " + origin() + "\r\n\r\n");
  const std::string answer = idle.front().answer();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 Service Unavailable (overloaded)\r\n")) << answer;
  // Waiting for descriptors costs no processor time worth the name.
  const auto used = watch_.used();
  std::this_thread::sleep_for(seconds(1));
  EXPECT_LT(watch_.used() - used, milliseconds(300));
  idle.clear();
  EXPECT_TRUE(eventually([&] { return cluster_.get("/t/again").status == 200; }));
  EXPECT_GT(cluster_.gateway_metric("proxypool_gateway_accept_pauses_total"), 0);
  // Still no more than there are, and enough for these.
  SteadyLoad load = this->load(8);
  EXPECT_TRUE(load.serves(300));
  expect_undisturbed(load.stop());
}

// B243: what the system allows is asked for, not what a shell happened to leave.
TEST(Descriptors, TheirLimitIsRaisedToWhatIsAllowed) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  support::Cluster cluster({.wait = false});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(cluster.serves(3)) << cluster.logs();
  rlimit its{};
  ASSERT_EQ(::prlimit(cluster.gateway().pid(), RLIMIT_NOFILE, nullptr, &its), 0);
  EXPECT_EQ(its.rlim_cur, before.rlim_max);
}

// Half a request each, and no more. They cost little, disturb nobody and do not stay.
TEST_F(FaultsUnderLoad, ManyHalfHeads) {
  constexpr std::size_t kHeads = 1'000;
  SteadyLoad load = this->load(4);
  std::vector<Peer> half;
  for (std::size_t i = 0; i < kHeads; ++i) {
    half.push_back(ask("GET http://" + origin() + "/t/never HTTP/1.1\r\nHost: x\r\nX-Slow: "));
  }
  for (int round = 0; round < 5; ++round) {
    for (Peer& peer : half) EXPECT_TRUE(peer.send("x"));
    EXPECT_TRUE(load.serves(100));
  }
  expect_undisturbed(load.stop());
  const auto now = watch_.holdings();
  EXPECT_EQ(now.connections, kHeads);
  EXPECT_EQ(now.requests, 0) << "half a request has no place";
  const auto each = (watch_.resident_bytes() - resident_) / kHeads;
  RecordProperty("resident_bytes_each", static_cast<int>(each));
  if (sizes_count()) {
    EXPECT_LT(each, 8U << 10U);
  }
}

// The same fixture, with a lease that a lost controller soon lets run short.
class ControllerUnderLoad : public FaultsUnderLoad {
 protected:
  ControllerUnderLoad()
      : FaultsUnderLoad([] {
          auto out = steadfast();
          out.control_plane = "lease: 5s\nreportInterval: 200ms";
          return out;
        }()) {}
};

// GW-51: whoever is served notices nothing, and neither does a tunnel.
TEST_F(ControllerUnderLoad, IsLostAndComesBackTwice) {
  SteadyLoad load = this->load(8);
  Peer tunnel = ask("CONNECT " + origin() + " HTTP/1.1\r\nHost: " + origin() + "\r\n\r\n");
  EXPECT_TRUE(tunnel.until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
  const auto registrations = [&] {
    return cluster_.gateway_metric("proxypool_session_registrations_total");
  };
  for (int time = 0; time < 2; ++time) {
    const double before = registrations();
    cluster_.controller().kill();
    ASSERT_TRUE(
        eventually([&] { return cluster_.gateway_metric("proxypool_session_registered") == 0; }));
    EXPECT_TRUE(load.serves(200));
    cluster_.start_controller();
    ASSERT_TRUE(eventually([&] { return registrations() > before; }));
    EXPECT_TRUE(cluster_.serves(kProxies)) << cluster_.logs();
  }
  EXPECT_TRUE(load.serves(200));
  expect_undisturbed(load.stop());
  tunnel.send("GET /t/in-the-tunnel HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(tunnel.all().find("\"/t/in-the-tunnel\""), std::string::npos);
}

}  // namespace
}  // namespace proxypool::e2e
