// A gateway in this process, with a view made by hand: no controller, no files.
//
// Thread rule: one thread (the test).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/telemetry/telemetry.hpp"
#include "gateway/dispatch/registry.hpp"
#include "gateway/dispatch/view.hpp"
#include "gateway/gateway.hpp"
#include "gateway/settings.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "runtime/boot_clock.hpp"
#include "runtime/snapshot_cell.hpp"
#include "runtime/system.hpp"
#include "support/recording_events.hpp"

namespace proxypool::testing {

struct RigProxy {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::string user = {};
  std::string password = {};
  std::uint32_t max_concurrency = 1000;
  bool tls = false;
};

class GatewayRig {
 public:
  explicit GatewayRig(nanoseconds bench = nanoseconds{0})
      : metrics_(telemetry::make_metrics()),
        crypto_(crypto::make_openssl_crypto()),
        registry_(gateway::ProxyRegistry::Options{bench, &waits_}) {
    settings.listen.port = 0;
    settings.threads = 1;
    snapshot.version = {1, 1};
    snapshot.epoch = Epoch{1};
    snapshot.upstreams.push_back({UpstreamId("vendor"), true});
    domain::SnapshotRouting routing;
    routing.id = RoutingId("all");
    routing.upstreams.push_back({UpstreamId("vendor"), 1});
    snapshot.routings.push_back(std::move(routing));
  }
  GatewayRig(const GatewayRig&) = delete;
  GatewayRig& operator=(const GatewayRig&) = delete;
  ~GatewayRig() { stop(); }

  // To be changed before start().
  gateway::Settings settings;
  test::RecordingEvents events;
  domain::WorkerSnapshot snapshot;
  gateway::Resolver::LookUp look_up = [](const std::string& name,
                                         Deadline) -> Result<std::vector<IpAddress>> {
    return Error{ErrorCode::NotFound, Origin::Proxy, "no such name: " + name};
  };
  gateway::Race::Dial dial = net::start_connect;

  ProxyId add(const RigProxy& proxy) {
    domain::SnapshotProxy out;
    out.id = ProxyId{snapshot.proxies.size() + 1};
    out.upstream = UpstreamId("vendor");
    out.endpoint = {proxy.tls ? domain::Scheme::Https : domain::Scheme::Http, proxy.host,
                    proxy.port};
    out.max_concurrency = proxy.max_concurrency;
    out.lease_epoch = Epoch{1};
    if (!proxy.user.empty()) {
      domain::SnapshotCredential credential;
      credential.username = proxy.user;
      credential.password = SecretString(proxy.password);
      credential.version = domain::CredentialVersion("v-" + proxy.user);
      snapshot.credentials.push_back(std::move(credential));
      out.credential = static_cast<std::uint32_t>(snapshot.credentials.size());
    }
    snapshot.proxies.push_back(std::move(out));
    return snapshot.proxies.back().id;
  }
  // A client with a password, cheaply hashed.
  void add_client(const std::string& name, const std::string& password) {
    auto hash = crypto_->hash_password(password, {4, 1, 1});
    PP_ASSERT(hash);
    domain::SnapshotClient client;
    client.name = ClientName(name);
    client.gateway_secret = hash->str();
    snapshot.clients.push_back(std::move(client));
    settings.auth = {gateway::Settings::Auth::UsernamePassword};
  }

  // Stores a hash that takes as long to verify as in earnest.
  void add_slow_client(const std::string& name, const std::string& password) {
    add_client(name, password);
    snapshot.clients.back().gateway_secret = crypto_->hash_password(password, {14, 8, 1})->str();
  }

  // Compiles the snapshot as it is now and lets the threads take it.
  void publish(nanoseconds valid_for = std::chrono::hours(1)) {
    gateway::ViewBuilder builder(registry_,
                                 std::make_shared<const domain::WorkerSnapshot>(snapshot),
                                 {StoreTime{}, runtime::boot_now()});
    const auto begun = builder.begin();
    PP_ASSERT(begun);
    while (builder.step(1000)) {
    }
    PP_ASSERT(builder.rejected().empty());
    const auto view = builder.finish();
    const auto version = views_.publish(view);
    registry_.extend(runtime::boot_now() + valid_for);
    if (gateway_) {
      gateway_->refresh_views();
      while (!views_.all_readers_at_least(version)) std::this_thread::yield();
    }
    registry_.adopt(*view);
  }
  [[nodiscard]] Status start() {
    publish();
    gateway_ = std::make_unique<gateway::Gateway>(
        settings, gateway::Gateway::Needs{views_, registry_, waits_, *metrics_, *crypto_, events,
                                          runtime::system_clock(), look_up, dial});
    return gateway_->start();
  }
  void stop() { gateway_.reset(); }

  [[nodiscard]] gateway::Gateway& gateway() noexcept { return *gateway_; }
  [[nodiscard]] gateway::ProxyRegistry& registry() noexcept { return registry_; }
  [[nodiscard]] ports::Metrics& metrics() noexcept { return *metrics_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return gateway_->port(); }

 private:
  std::unique_ptr<ports::Metrics> metrics_;
  std::unique_ptr<ports::Crypto> crypto_;
  gateway::WaitQueue waits_;
  gateway::ProxyRegistry registry_;
  runtime::SnapshotCell<gateway::View> views_;
  std::unique_ptr<gateway::Gateway> gateway_;
};

}  // namespace proxypool::testing
