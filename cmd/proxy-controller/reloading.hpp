// What a controller needs to take another configuration over while it runs: the file that it looks
// at, the guards of its listeners, the threads of its steps.
//
// Thread rule: any thread, unless said otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/http/apis.hpp"
#include "adapters/http/guards.hpp"
#include "config/cli.hpp"
#include "controller/config_reload.hpp"
#include "controller/controller.hpp"
#include "proxypool/base/concurrent.hpp"
#include "runtime/file_watch.hpp"
#include "runtime/stepper.hpp"

namespace proxypool {

// The configuration file and those of its secrets.
class ConfigSource {
 public:
  ConfigSource(const config::CommandLine& line, const std::vector<std::string>& files)
      : line_(line) {
    watch_.with([&](runtime::FileWatch& watch) { watch.watch(files); });
  }

  config::LoadResult load(controller::LoadFor purpose);
  // Something has changed since it was last loaded for use.
  bool changed() {
    return watch_.with([](runtime::FileWatch& watch) { return watch.changed(); });
  }

 private:
  const config::CommandLine& line_;
  Guarded<runtime::FileWatch> watch_;
};

// Who may use Distribution and Admin, by the configuration that counts.
class ApiGuards {
 public:
  ApiGuards(const config::Config& config, const http::GuardNeeds& needs);

  void configure(const config::Config& config, const config::Diff& changed);
  [[nodiscard]] http::Guard distribution() const { return distribution_.guard(); }
  [[nodiscard]] http::AdminGuards admin() const {
    return {read_.guard(), write_.guard(), admin_.guard()};
  }

 private:
  http::GuardNeeds needs_;
  http::LiveGuard distribution_;
  http::LiveGuard read_;
  http::LiveGuard write_;
  http::LiveGuard admin_;
};

// Each step of the controller on a thread of its own; those that there are.
class Services {
 public:
  explicit Services(controller::Controller& controller) : controller_(controller) {}
  ~Services() { stop(); }

  // Starts what is new and ends what is gone.
  void reconcile();
  void stop();

 private:
  struct State {
    std::map<std::string, std::unique_ptr<runtime::Stepper>> steppers;
    bool stopped = false;
  };
  controller::Controller& controller_;
  Guarded<State> state_;
};

// Reloads when somebody asks, or when the file has changed.
class ConfigWatcher {
 public:
  ConfigWatcher(ConfigSource& source, controller::ConfigReload& reload,
                controller::Controller& controller)
      : source_(source), reload_(reload), controller_(controller) {}

  // One thread: start and stop.
  void start();
  void stop();
  void ask();   // SIGHUP
  void wake();  // it may have to look more often than before

 private:
  TimePoint step(TimePoint now);

  ConfigSource& source_;
  controller::ConfigReload& reload_;
  controller::Controller& controller_;
  std::atomic<bool> asked_{false};
  Guarded<std::shared_ptr<runtime::Stepper>> stepper_;
};

}  // namespace proxypool
