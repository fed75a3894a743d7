// What the three long-running programs share: command line, configuration, telemetry, signals, and
// the way from start to exit code (OP-1, OP-4).
//
// Thread rule: one thread at a time (main); readiness() may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/http/rest_server.hpp"
#include "adapters/telemetry/telemetry.hpp"
#include "config/cli.hpp"
#include "config/load.hpp"
#include "net/socket.hpp"
#include "proxypool/base/concurrent.hpp"
#include "runtime/group.hpp"
#include "runtime/signals.hpp"

namespace proxypool::process {

class Process {
 public:
  Process(std::string name, const config::CommandLine& line, const config::Config& config);

  [[nodiscard]] ports::Events& events() noexcept { return telemetry_->events(); }
  [[nodiscard]] ports::Metrics& metrics() noexcept { return telemetry_->metrics(); }
  [[nodiscard]] const std::string& version() const noexcept { return version_; }

  // Says what went wrong and answers the exit code for it.
  int fail(const std::string& reason);
  // One line for a listener that is open.
  void listening(std::string_view what, const std::string& address);
  [[nodiscard]] runtime::Group::Report stage_report();
  // The reasons of `inner`, and one more while the process stops.
  [[nodiscard]] std::function<std::vector<std::string>()> readiness(
      std::function<std::vector<std::string>()> inner);

  // What SIGHUP does; null: nothing. `rereads`: it reads the configuration again, else a line in
  // the log says that it does not. Once this has returned, what was set before is not called any
  // more.
  void on_hangup(std::function<void()> action, bool rereads = false);

  // For a part that cannot go on: the process stops and answers 1 with this reason.
  void give_up(const std::string& reason);

  // Starts the group, waits for a signal, and shuts down: not ready at once, the intake closed
  // after `delay`, what runs gets `drain`. Answers the exit code.
  int run(runtime::Group& group, nanoseconds drain, nanoseconds delay = nanoseconds{0});

 private:
  std::string version_;
  std::unique_ptr<telemetry::Telemetry> telemetry_;
  std::atomic<bool> started_{false};  // everything that serves does
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> rereads_{false};
  Guarded<std::function<void()>> hangup_;
  TimePoint started_at_;
  runtime::Signals signals_;
};

// The name of a worker or checker that was given none: host and port, which stay over a restart.
// With a port of the kernel's choice the process's own name stands in for it.
std::string default_name(std::uint16_t port, const std::string& instance);

// A REST listener as a member of the group.
void add_rest_server(runtime::Group& group, Process& process, std::string name,
                     net::Endpoint listen, std::unique_ptr<http::Router> router);

using Serve = std::function<int(const config::CommandLine&, config::LoadResult)>;
using Special = std::function<std::optional<int>(const config::CommandLine&)>;
// The whole of main: signals blocked first, help, version, --check-config, errors with exit code 2.
// `special` may answer an option of one program before any configuration is read.
int main_of(config::Program program, int argc, char** argv, const Serve& serve,
            const Special& special = nullptr);

}  // namespace proxypool::process
