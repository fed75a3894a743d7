// A whole Proxy Pool as real processes: fixture, controller, checker and gateways on loopback ports
// of their own, with a configuration written for the test.
//
//   Cluster cluster({.proxies = 3, .concurrency = 2, .gateway = "retry: {maxAttempts: 3}"});
//   const Reply reply = cluster.get("/t/some-token");
//   EXPECT_EQ(cluster.fixture().records("some-token").at("proxies").size(), 1U);
//
// The constructor comes back once the gateways serve every proxy. What a test does not name is as
// in a product's configuration, but for loopback targets, which are let through.
//
// Thread rule: one thread, that of the test; the ports and URLs may be read from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"
#include "support/fixture_process.hpp"
#include "support/http_client.hpp"
#include "support/port_holder.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::support {

struct ClusterOptions {
  unsigned proxies = 3;           // of the fixture, all offered by its vendor API
  std::chrono::seconds ttl{600};  // of each, as the vendor says
  unsigned concurrency = 10;      // requests at once through one
  unsigned reserve = 0;           // kept away from the gateways, for extraction
  unsigned gateways = 1;
  bool one_port = false;  // all gateways listen on the same port and share it
  bool wait = true;       // until all proxies but the reserve are served

  // Further lines of these sections of the configuration, as in block style, without indentation.
  std::string control_plane{};
  std::string target = "allowCIDRs: [127.0.0.0/8]";  // gateway.target, in flow style
  std::string gateway{};
  std::string distribution{};
  std::string controller{};
  std::string check{};
  std::string map{};        // further keys of its map, in flow style: "scheme: \"'https'\""
  std::string upstream{};   // further keys of the one upstream; its id is `fixture`
  std::string fetch{};      // further keys of upstream.fetch
  std::string pool{};       // further keys of upstream.pool
  std::string routing{};    // further keys of the routing `default`
  std::string upstreams{};  // further upstreams, as items of the list
  std::string routings{};   // further routings, which come before `default`
  std::string top_level{};  // whole sections, such as `clients:`

  std::vector<std::string> environment{};  // "NAME=value" for each program
  std::vector<std::string> fixture{};      // further arguments of the fixture
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options = {});

  // --- the addresses -------------------------------------------------------------------------
  [[nodiscard]] std::uint16_t gateway_port(std::size_t index = 0) const;
  [[nodiscard]] std::string gateway_url(std::size_t index = 0) const;  // http://127.0.0.1:PORT
  [[nodiscard]] std::uint16_t gateway_metrics_port(std::size_t index = 0) const;
  [[nodiscard]] std::uint16_t distribution_port() const { return distribution_.port(); }
  [[nodiscard]] std::uint16_t admin_port() const { return admin_.port(); }
  [[nodiscard]] std::uint16_t controller_metrics_port() const { return controller_metrics_.port(); }
  [[nodiscard]] std::uint16_t checker_metrics_port() const { return checker_metrics_.port(); }
  // A target at the fixture's origin: http://127.0.0.1:PORT/path.
  [[nodiscard]] std::string origin_url(std::string_view path) const;
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }

  // --- the processes -------------------------------------------------------------------------
  [[nodiscard]] FixtureProcess& fixture() noexcept { return fixture_; }
  [[nodiscard]] ChildProcess& controller() noexcept { return *controller_; }
  [[nodiscard]] ChildProcess& checker() noexcept { return *checker_; }
  [[nodiscard]] ChildProcess& gateway(std::size_t index = 0) { return *gateways_.at(index); }
  [[nodiscard]] std::size_t gateways() const noexcept { return gateways_.size(); }
  // Ends the controller (if it still runs) with kill -9 and starts it on the same ports and state.
  void restart_controller();
  void start_controller();  // comes back once it listens
  void start_checker();
  void start_gateway(std::size_t index);

  // --- the controller's configuration --------------------------------------------------------
  [[nodiscard]] std::filesystem::path config_file() const { return folder() / "gateway-0.yaml"; }
  [[nodiscard]] std::string config() const { return read_file(config_file()); }
  // Puts another text in its place, in one moment; nobody is told.
  void write_config(std::string_view text) const;
  // The same with one part replaced by another. Stops the test program when it is not there.
  [[nodiscard]] std::string config_with(std::string_view part, std::string_view instead) const;

  // --- what it says --------------------------------------------------------------------------
  // GET of a path of the origin through a gateway, on a connection of its own.
  Reply get(std::string_view path, std::size_t gateway = 0);
  Reply extract(std::string_view json);
  nlohmann::json admin(std::string_view path);  // of a path that answers 200
  // An operator's word, with a body in JSON when there is one.
  Reply operate(std::string_view path, std::string_view json = {});
  // As gateway_metric, of the controller.
  double controller_metric(std::string_view series);
  // The sum of all samples of a metric of a gateway whose line begins with `series`; 0 without one.
  double gateway_metric(std::string_view series, std::size_t gateway = 0);
  bool ready(std::size_t gateway = 0);  // /readyz
  // Whether, in time, the gateways that run are ready and serve so many proxies together.
  bool serves(std::size_t proxies, std::chrono::milliseconds limit = kPatience);
  // What all processes have written, for the message of a failed expectation.
  std::string logs() const;

 private:
  struct GatewayPorts {
    PortHolder listen;
    PortHolder metrics;
  };
  [[nodiscard]] std::string config_text(std::size_t gateway) const;
  std::unique_ptr<ChildProcess> start(std::string program, std::size_t gateway = 0);

  ClusterOptions options_;
  TempDir folder_;
  PortHolder control_;
  PortHolder distribution_;
  PortHolder admin_;
  PortHolder controller_metrics_;
  PortHolder checker_metrics_;
  std::vector<std::unique_ptr<GatewayPorts>> ports_;
  FixtureProcess fixture_;
  std::unique_ptr<ChildProcess> controller_;
  std::unique_ptr<ChildProcess> checker_;
  std::vector<std::unique_ptr<ChildProcess>> gateways_;
};

// The sum of all samples in a metrics text whose line begins with `series`.
double metric_sum(std::string_view text, std::string_view series);

}  // namespace proxypool::support
