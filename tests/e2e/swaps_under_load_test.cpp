// Snapshots that change faster than any controller changes them, under load (GW-32, GW-50, GW-52).
//
// The controller is a script in this program, since the real one sends at most a few a second: the
// gateway is the real one, and so are the proxies and their origin.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/grpc/control_plane_server.hpp"
#include "contract/control_plane/fake_services.hpp"
#include "e2e/steady_load.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/domain/cluster/digest.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/system.hpp"
#include "support/eventually.hpp"
#include "support/fixture_process.hpp"
#include "support/port_holder.hpp"

namespace proxypool::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using support::eventually;

// One worker's controller: sends what it is told to, and remembers what it hears.
class ScriptedController final : public ports::WorkerService {
 public:
  ScriptedController() {
    rpc::ServerOptions options;
    options.executor = [this](std::function<void()> job) { return pool_.try_run(std::move(job)); };
    auto server = rpc::make_control_plane_server(std::move(options), *this, checkers_,
                                                 runtime::system_clock());
    PP_ASSERT(server);
    server_ = *std::move(server);
  }
  ~ScriptedController() override { server_->stop(Deadline{}); }

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  // Sends it as the next version, once a gateway listens, and waits until that has applied it.
  bool push(domain::WorkerSnapshot snapshot) {
    snapshot.version = {7, ++version_};
    snapshot.epoch = Epoch(1);
    ports::FullPush push;
    push.digest =
        domain::digest_of(snapshot, [&](std::string_view bytes) { return crypto_->sha256(bytes); });
    push.snapshot = std::make_shared<const domain::WorkerSnapshot>(std::move(snapshot));
    push.valid_for = seconds(60);
    if (!eventually([&] { return seen_.with([](auto& seen) { return seen.box != nullptr; }); })) {
      return false;
    }
    seen_.with([](auto& seen) { return seen.box; })->put(std::move(push));
    return eventually(
        [&] { return seen_.with([&](auto& seen) { return seen.applied == version_; }); });
  }
  // Whether the last report says that nothing is in flight anywhere.
  bool hears_of_nothing_in_flight() {
    return eventually([&] {
      return seen_.with([](auto& seen) { return seen.report && seen.report->counts.empty(); });
    });
  }
  std::vector<std::string> refusals() {
    return seen_.with([](auto& seen) { return seen.refusals; });
  }

  Result<ports::RegisterWorkerAnswer> register_worker(const ports::RegisterWorkerRequest&,
                                                      const ports::Peer&, Deadline) override {
    ports::RegisterWorkerAnswer answer;
    answer.session = SessionId("s-1");
    answer.epoch = Epoch(1);
    answer.report_interval = milliseconds(100);
    return answer;
  }
  Result<std::shared_ptr<ports::Outbox<ports::Push>>> open_snapshots(
      const WorkerId&, const SessionId&, const std::optional<domain::SnapshotVersion>&,
      const ports::Peer&, std::function<void()> wake, Deadline) override {
    auto box = std::make_shared<test::PushBox>(std::move(wake));
    seen_.with([&](auto& seen) { seen.box = box; });
    return std::shared_ptr<ports::Outbox<ports::Push>>(box);
  }
  Status acknowledge(const ports::SnapshotAck& ack, const ports::Peer&, Deadline) override {
    seen_.with([&](auto& seen) {
      if (ack.status == domain::AckStatus::Applied) {
        seen.applied = ack.version.counter;
      } else {
        seen.refusals.push_back(ack.reason);
      }
    });
    return ok();
  }
  Result<ports::RuntimeAnswer> report_runtime(const ports::RuntimeReport& report,
                                              const ports::Peer&, Deadline) override {
    seen_.with([&](auto& seen) { seen.report = report; });
    ports::RuntimeAnswer answer;
    answer.accepted_sequence = report.sequence;
    answer.kept_usage = report.usage.number;
    return answer;
  }
  Status report_outcomes(const ports::OutcomeBatch&, const ports::Peer&, Deadline) override {
    return ok();
  }

 private:
  struct Seen {
    std::shared_ptr<test::PushBox> box;
    std::uint64_t applied = 0;
    std::vector<std::string> refusals;
    std::optional<ports::RuntimeReport> report;
  };
  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  test::FakeCheckers checkers_;
  runtime::BlockingPool pool_{"controller", 2, 100};
  Guarded<Seen> seen_;
  std::uint64_t version_ = 0;
  std::unique_ptr<rpc::ControlPlaneServer> server_;
};

// Some of the fixture's proxies, with a credential that is new in every other picture.
domain::WorkerSnapshot picture(const support::FixtureProcess& fixture, SplitMix64& random) {
  domain::WorkerSnapshot out;
  out.intentional_loss = true;
  out.upstreams.push_back({UpstreamId("fixture"), true});
  domain::SnapshotRouting routing;
  routing.id = RoutingId("default");
  routing.upstreams.push_back({UpstreamId("fixture"), 1});
  out.routings.push_back(std::move(routing));
  out.policy.allow_cidrs = {*Cidr::parse("127.0.0.0/8")};
  const std::string version = "v" + std::to_string(random.below(2));
  out.credentials.push_back(
      {"fixture", SecretString("fixture-password"), domain::CredentialVersion(version)});
  const auto first = random.below(fixture.proxies());
  for (std::size_t i = 0; i < fixture.proxies() / 2; ++i) {
    const auto number = (first + i) % fixture.proxies();
    domain::SnapshotProxy proxy;
    proxy.id = ProxyId(100 + number);
    proxy.upstream = UpstreamId("fixture");
    proxy.endpoint = {domain::Scheme::Http, "127.0.0.1", fixture.proxy_port(number)};
    proxy.credential = 1;
    proxy.max_concurrency = 500;
    proxy.lease_epoch = Epoch(1);
    out.proxies.push_back(std::move(proxy));
  }
  return out;
}

class SwapsUnderLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto at = [](std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); };
    std::ofstream(folder_.path() / "gateway.yaml")
        << "gateway:\n  listen: " << at(listen_.port())
        << "\n  controlPlane: " << at(controller_.port())
        << "\n  metrics: {listen: " << at(metrics_.port()) << "}\n  bench: 0s\n";
    gateway_ = std::make_unique<support::ChildProcess>(support::ChildProcess::Options{
        "proxy-gateway",
        {"--config", folder_.path() / "gateway.yaml", "--worker-id", "gateway-0"},
        {},
        {}});
  }

  support::TempDir folder_;
  support::PortHolder listen_;
  support::PortHolder metrics_;
  support::FixtureProcess fixture_{{"--proxies", "8"}};
  ScriptedController controller_;
  std::unique_ptr<support::ChildProcess> gateway_;
  SplitMix64 random_{1};
};

TEST_F(SwapsUnderLoad, TenTimesASecondChangeNothingForClients) {
  ASSERT_TRUE(controller_.push(picture(fixture_, random_))) << gateway_->err();
  ASSERT_TRUE(gateway_->wait_for_line("process_ready")) << gateway_->err();
  const Watch watch(gateway_->pid(), metrics_.port());
  SteadyLoad load(listen_.port(), fixture_.origin_port(), 8);
  // A warm one: what it needs for good, it has then.
  const auto swap_for = [&](seconds time) {
    int swaps = 0;
    const auto began = std::chrono::steady_clock::now();
    for (auto next = began; next < began + time; next += milliseconds(80), ++swaps) {
      std::this_thread::sleep_until(next);
      EXPECT_TRUE(controller_.push(picture(fixture_, random_))) << gateway_->err();
    }
    return swaps / std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  (void)swap_for(seconds(1));
  const auto resident = watch.resident_bytes();
  const double rate = swap_for(seconds(4));
  EXPECT_GE(rate, 10) << "swaps a second";
  const auto resident_after = watch.resident_bytes();
  const auto totals = load.stop();
  EXPECT_EQ(totals.wrong, 0U) << totals.first_wrong;
  EXPECT_EQ(totals.refused, 0U) << totals.first_refused;
  EXPECT_EQ(totals.broken, 0U) << totals.first_broken;
  EXPECT_GT(totals.served, 1'000U);
  EXPECT_EQ(controller_.refusals(), std::vector<std::string>{});
  RecordProperty("swaps_a_second", std::to_string(rate));
  RecordProperty("slowest_ms", static_cast<int>(totals.slowest.count()));

  EXPECT_TRUE(controller_.hears_of_nothing_in_flight()) << "a place was not given back";
  Holdings rest{watch.holdings().descriptors, 0, 0, 0, 0};
  EXPECT_TRUE(watch.back_to(rest));
  if (sizes_count()) {
    EXPECT_LT(resident_after, resident + (std::uint64_t{4} << 20U));
  }
  EXPECT_EQ(gateway_->stop(), 0) << gateway_->err();
}

}  // namespace
}  // namespace proxypool::e2e
