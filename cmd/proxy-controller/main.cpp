// proxy-controller: wiring, and nothing else.
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/file/file_stores.hpp"
#include "adapters/grpc/control_plane_server.hpp"
#include "adapters/http/apis.hpp"
#include "adapters/http/rest_server.hpp"
#include "adapters/http/vendor_caller.hpp"
#include "adapters/memory/memory_stores.hpp"
#include "adapters/provider_template/providers.hpp"
#include "common/process.hpp"
#include "controller/config_reload.hpp"
#include "controller/controller.hpp"
#include "openapi_documents.hpp"
#include "proxy-controller/reloading.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/domain/client/api_key.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/system.hpp"

namespace proxypool {
namespace {

namespace fs = std::filesystem;

// --hash-password, --hash-key: one line from standard input, its stored form to standard output.
int hash_secret(bool key) {
  std::string line;
  if (!std::getline(std::cin, line) || line.empty()) {
    std::cerr << "proxy-controller: send the " << (key ? "key" : "password")
              << " as one line on standard input\n";
    return config::kExitUsage;
  }
  if (key && !domain::is_api_key(line)) {
    std::cerr << "proxy-controller: this is no API key: it has not the 128 random bits that one "
                 "must have, or a space or a colon in it ("
              << domain::kApiKeyRemedy << ")\n";
    return config::kExitUsage;
  }
  const auto crypto = crypto::make_openssl_crypto();
  const Result<StoredHash> hash =
      key ? crypto->hash_api_key(line) : crypto->hash_password(line, ScryptCost{});
  if (!hash) {
    std::cerr << "proxy-controller: " << hash.error().message << "\n";
    return config::kExitFailure;
  }
  std::cout << hash->str() << "\n";
  return config::kExitClean;
}

// The key that names proxies: configured, or made once and kept, so that ids survive restarts.
Result<SecretString> identity_key(const config::Config& config, ports::DurableNotes& notes,
                                  const ports::Crypto& crypto) {
  constexpr std::string_view kNote = "identity-key";
  if (config.cluster.identity_key) return *config.cluster.identity_key;
  PP_TRY(const std::optional<std::string> kept, notes.load(kNote));
  if (kept) return SecretString(*kept);
  const std::string made = crypto.random_bytes(32);
  PP_TRY(const Unit saved, notes.save(kNote, made));
  static_cast<void>(saved);
  return SecretString(made);
}

// Everything that stands on storage.stateDir.
struct Stores {
  std::unique_ptr<file::FolderLock> lock;
  std::unique_ptr<ports::DurableNotes> notes;
  std::unique_ptr<ports::DurableLog> handouts;
  std::unique_ptr<ports::DurableLog> usage;
  SecretString key;
  std::unique_ptr<ports::ActivityPool> pool;
  std::unique_ptr<ports::WorkerRegistry> registry;
  std::unique_ptr<ports::Coordination> coordination;
  std::unique_ptr<ports::ManagementStore> management;
};

Result<Stores> open_stores(const config::Config& config, ports::Crypto& crypto) {
  const Clock& clock = runtime::system_clock();
  const fs::path folder = config.storage.state_dir;
  Stores stores;
  PP_TRY(stores.lock, file::lock_folder(folder));
  PP_TRY(stores.notes, file::open_notes(folder, crypto));
  PP_TRY(stores.handouts, file::open_log(folder / "handouts.log", crypto));
  PP_TRY(stores.key, identity_key(config, *stores.notes, crypto));
  memory::PoolOptions options;
  options.lease_times.margin = controller::lease_margin(
      std::chrono::duration_cast<milliseconds>(config.control_plane.lease));
  options.lease_times.orphan_grace =
      std::chrono::duration_cast<milliseconds>(config.gateway.transport.orphan_grace);
  const auto seal = crypto.hmac_sha256(stores.key.reveal(), "handout log");
  options.seal_key = SecretString(std::string(ports::as_view(seal)));
  PP_TRY(stores.pool, memory::make_activity_pool(
                          options, {stores.notes.get(), stores.handouts.get()}, clock, crypto));
  stores.registry = memory::make_worker_registry(clock, crypto);
  stores.coordination = memory::make_coordination(clock, crypto);
  PP_TRY(stores.usage, file::open_log(folder / "usage.log", crypto));
  PP_TRY(stores.management, file::open_management_store(*stores.notes, stores.usage.get()));
  return stores;
}

controller::ControllerDeps controller_deps(Stores& stores, ports::Crypto& crypto,
                                           ports::HttpCaller& caller, ports::Events& events) {
  return {*stores.pool,
          *stores.registry,
          *stores.coordination,
          *stores.management,
          crypto,
          runtime::system_clock(),
          events,
          [&caller](const config::UpstreamConfig& upstream) {
            return provider_template::make_provider(upstream, caller);
          },
          []() -> Random& { return runtime::thread_random(); }};
}

// What every part of a running controller needs; it outlives them all.
struct Parts {
  const config::Config& config;  // that it began with
  process::Process& process;
  const ports::Crypto& crypto;
  controller::Controller& controller;
  controller::ConfigReload& reload;
  ApiGuards& guards;
  const Clock& clock = runtime::system_clock();

  [[nodiscard]] Deadline in(nanoseconds budget) const {
    return Deadline::after(clock.now(), budget);
  }
};

// The gRPC server of workers and checkers, whose calls run in `pool`.
void add_control_plane(runtime::Group& group, const Parts& parts, runtime::BlockingPool& pool) {
  const auto server = std::make_shared<std::unique_ptr<rpc::ControlPlaneServer>>();
  group.add({"control plane",
             [server, &parts, &pool]() -> Status {
               const config::ControlPlaneConfig& from = parts.config.control_plane;
               rpc::ServerOptions options;
               options.listen = from.listen.str();
               options.message_bytes_max = static_cast<std::size_t>(from.message_bytes_max);
               options.concurrent_streams_max = from.concurrent_streams_max;
               options.keepalive = from.keepalive;
               options.executor = [&pool](std::function<void()> job) {
                 return pool.try_run(std::move(job));
               };
               PP_TRY(*server, rpc::make_control_plane_server(
                                   std::move(options), parts.controller.worker_service(),
                                   parts.controller.checker_service(), parts.clock));
               parts.process.listening("control plane", from.listen.address.str() + ":" +
                                                            std::to_string((*server)->port()));
               return ok();
             },
             nullptr, nullptr,
             [server, &parts, &pool] {
               if (*server) (*server)->stop(parts.in(seconds(2)));
               pool.stop();
             }});
}

std::unique_ptr<http::Router> new_router(const Parts& parts) {
  auto router = std::make_unique<http::Router>(parts.crypto);
  http::add_health(*router, parts.process.readiness([&parts] {
    return parts.controller.not_ready(parts.in(seconds(2)));
  }),
                   [&parts] { return parts.controller.status(parts.in(seconds(2))).warnings; });
  return router;
}

void add_rest_servers(runtime::Group& group, const Parts& parts) {
  const config::Config& config = parts.config;
  const auto serve = [&](std::string name, const config::ListenAddress& listen,
                         std::unique_ptr<http::Router> router) {
    process::add_rest_server(group, parts.process, std::move(name), {listen.address, listen.port},
                             std::move(router));
  };
  const auto show = [](http::Router& router, std::string_view document) {
    http::add_document(router, "/openapi.yaml", "application/yaml", std::string(document));
  };

  auto distribution = new_router(parts);
  const auto defaults = [&parts] {
    const auto now = parts.controller.active()->config;
    return http::DistributionNeeds::Defaults{now->distribution.extraction.remaining_ttl_min,
                                             now->distribution.extraction.health_check_age_max};
  };
  http::add_distribution(
      *distribution, parts.guards.distribution(),
      {parts.controller.extraction(), parts.process.events(), parts.clock, defaults});
  show(*distribution, api::distribution_document());
  serve("distribution", config.distribution.listen, std::move(distribution));

  auto admin = new_router(parts);
  const http::AdminGuards operators = parts.guards.admin();
  http::add_admin(*admin, operators,
                  {parts.controller, parts.controller.routing_operations(), parts.reload,
                   parts.clock, parts.process.version()});
  http::add_metrics(*admin, operators.read, parts.process.metrics());
  show(*admin, api::admin_document());
  serve("admin", config.admin.listen, std::move(admin));

  auto metrics = new_router(parts);
  http::add_metrics(*metrics, nullptr, parts.process.metrics());
  serve("metrics", config.controller.metrics_listen, std::move(metrics));
}

int serve(const config::CommandLine& line, config::LoadResult loaded) {
  auto settings = std::make_shared<const config::Config>(*std::move(loaded.config));
  process::Process process("controller", line, *settings);
  const auto crypto = crypto::make_openssl_crypto();
  auto stores = open_stores(*settings, *crypto);
  if (!stores) return process.fail(stores.error().message);
  auto caller = http::make_vendor_caller(process.version());
  if (!caller) return process.fail(caller.error().message);

  controller::ControllerIdentity identity{InstanceId(hex(crypto->random_bytes(8))), "",
                                          stores->key};
  auto made = controller::Controller::make(
      settings, std::move(identity), controller_deps(*stores, *crypto, **caller, process.events()));
  if (!made) return process.fail(made.error().message);
  controller::Controller& controller = **made;
  controller::register_metrics(controller, process.metrics());

  ConfigSource source(line, loaded.files);
  ApiGuards guards(*settings, {*crypto, runtime::system_clock(), process.events()});
  std::function<void()> look_again;
  controller::ConfigReload reload(
      line.config_path,
      {controller, *stores->management, *crypto, runtime::system_clock(), process.events(),
       stores->key, [&](controller::LoadFor purpose) { return source.load(purpose); },
       [&](const config::Config& config, const config::Diff& changed) {
         guards.configure(config, changed);
         look_again();
       }});
  controller::register_metrics(reload, process.metrics());
  controller.warn_with([&] { return reload.warnings(); });
  ConfigWatcher watcher(source, reload, controller);
  look_again = [&] { watcher.wake(); };
  Services services(controller);
  controller.on_steps([&] {
    services.reconcile();
    controller::register_metrics(controller, process.metrics());
  });

  const Parts parts{*settings, process, *crypto, controller, reload, guards};
  runtime::BlockingPool pool("control", 8, 1024);
  runtime::Group group(parts.clock, process.stage_report());
  group.add({"services",
             [&] {
               services.reconcile();
               return ok();
             },
             nullptr, nullptr, [&] { services.stop(); }});
  add_control_plane(group, parts, pool);
  add_rest_servers(group, parts);
  group.add({"configuration",
             [&] {
               watcher.start();
               process.on_hangup([&] { watcher.ask(); }, true);
               return ok();
             },
             nullptr, nullptr,
             [&] {
               process.on_hangup(nullptr);
               watcher.stop();
             }});
  return process.run(group, seconds(5));
}

}  // namespace
}  // namespace proxypool

int main(int argc, char** argv) {
  using namespace proxypool;
  return process::main_of(
      config::Program::Controller, argc, argv,
      [](const config::CommandLine& line, config::LoadResult loaded) {
        return serve(line, std::move(loaded));
      },
      [](const config::CommandLine& line) -> std::optional<int> {
        if (line.hash_password || line.hash_key) return hash_secret(line.hash_key);
        return std::nullopt;
      });
}
