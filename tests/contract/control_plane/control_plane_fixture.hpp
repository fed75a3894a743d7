// The control plane over loopback: both real ends in one process, small services behind.
//
// Thread rule: the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "adapters/grpc/control_plane_client.hpp"
#include "adapters/grpc/control_plane_server.hpp"
#include "contract/control_plane/fake_services.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/system.hpp"
#include "support/control_plane_samples.hpp"

namespace proxypool::rpc {

using test::FakeCheckers;
using test::FakeWorkers;
using PushStream = std::unique_ptr<ports::Stream<ports::Push>>;

constexpr seconds kPatience{8};

class ControlPlane : public testing::Test {
 protected:
  void SetUp() override { start({}); }
  void TearDown() override {
    if (server_) server_->stop(in(milliseconds(0)));
  }

  // Replaces the server; its port may be given.
  void start(ServerOptions options) {
    if (!options.executor) {
      options.executor = [this](std::function<void()> job) {
        return pool_.try_run(std::move(job));
      };
    }
    server_.reset();
    auto server = make_control_plane_server(std::move(options), workers_, checkers_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_->port());
  }
  [[nodiscard]] Deadline in(nanoseconds budget) const {
    return Deadline::after(clock_.now(), budget);
  }
  [[nodiscard]] std::unique_ptr<ports::WorkerControl> worker(ClientOptions options = {}) const {
    return *make_worker_control(address(), options, clock_);
  }
  [[nodiscard]] std::unique_ptr<ports::CheckerControl> checker(ClientOptions options = {}) const {
    return *make_checker_control(address(), options, clock_);
  }
  static ports::RegisterWorkerRequest registration() {
    ports::RegisterWorkerRequest request;
    request.cluster_id = "local";
    request.worker = WorkerId("gw-1");
    request.instance = InstanceId("i-1");
    return request;
  }
  // Registers and opens the stream.
  PushStream watch(ports::WorkerControl& control) {
    const auto answer = control.register_worker(registration(), in(kPatience));
    EXPECT_TRUE(answer) << answer.error().message;
    auto stream = control.watch_snapshots(WorkerId("gw-1"), answer->session, {});
    EXPECT_TRUE(stream);
    return *std::move(stream);
  }
  static ports::FullPush full_push(std::uint64_t counter, std::size_t proxies) {
    auto snapshot = std::make_shared<domain::WorkerSnapshot>(*test::large_snapshot(proxies, 100));
    snapshot->version.counter = counter;
    ports::FullPush push = test::sample_full_push();
    push.snapshot = std::move(snapshot);
    return push;
  }

  const Clock& clock_ = runtime::system_clock();
  runtime::BlockingPool pool_{"test-pool", 3, 64};
  FakeWorkers workers_;
  FakeCheckers checkers_;
  std::unique_ptr<ControlPlaneServer> server_;
};

}  // namespace proxypool::rpc
