// How soon a client finds a server that comes later than itself.
#include <gtest/gtest.h>

#include "adapters/grpc/control_plane_client.hpp"
#include "adapters/grpc/control_plane_server.hpp"
#include "contract/control_plane/fake_services.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/system.hpp"

namespace proxypool::rpc {
namespace {

// A call that finds the connection broken waits for the next attempt instead of repeating the old
// failure; otherwise each start in the wrong order costs seconds of backoff (CP-8).
TEST(Reconnect, ACallReachesAServerThatHasJustStarted) {
  const Clock& clock = runtime::system_clock();
  const auto in = [&](nanoseconds budget) { return Deadline::after(clock.now(), budget); };
  runtime::BlockingPool pool("test-pool", 2, 64);
  test::FakeWorkers workers;
  test::FakeCheckers checkers;
  ServerOptions options;
  options.executor = [&](std::function<void()> job) { return pool.try_run(std::move(job)); };
  auto server = *make_control_plane_server(options, workers, checkers, clock);
  options.listen = "127.0.0.1:" + std::to_string(server->port());
  server.reset();
  const auto client = *make_worker_control(options.listen, {}, clock);
  ports::RegisterWorkerRequest request;
  request.cluster_id = "local";
  request.worker = WorkerId("gw-1");
  request.instance = InstanceId("i-1");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto refused = client->register_worker(request, in(seconds(8)));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::Unavailable);
  }

  auto restarted = make_control_plane_server(options, workers, checkers, clock);
  ASSERT_TRUE(restarted) << restarted.error().message;
  const auto answer = client->register_worker(request, in(seconds(8)));
  EXPECT_TRUE(answer) << answer.error().message;
  (*restarted)->stop(in(seconds(8)));
}

}  // namespace
}  // namespace proxypool::rpc
