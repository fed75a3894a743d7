#include "common/process.hpp"

#include <unistd.h>

#include <array>
#include <exception>
#include <iostream>
#include <utility>

#include "runtime/alarm.hpp"
#include "runtime/build_info.hpp"
#include "runtime/system.hpp"

namespace proxypool::process {

namespace {

ports::Level level_of(config::LogLevel level) noexcept {
  switch (level) {
    case config::LogLevel::Trace:
    case config::LogLevel::Debug:
      return ports::Level::Debug;
    case config::LogLevel::Info:
      return ports::Level::Info;
    case config::LogLevel::Warn:
      return ports::Level::Warn;
    default:
      return ports::Level::Error;
  }
}

telemetry::Options options_of(std::string name, const config::Config& config) {
  telemetry::Options options;
  options.process = std::move(name);
  options.level = level_of(config.observability.log_level);
  options.format = config.observability.log_format == config::LogFormat::Json
                       ? telemetry::Format::Json
                       : telemetry::Format::Text;
  return options;
}

}  // namespace

Process::Process(std::string name, const config::CommandLine& line, const config::Config& config)
    : version_(runtime::build_info().version),
      telemetry_(
          telemetry::make_telemetry(options_of(std::move(name), config), runtime::system_clock())),
      started_at_(runtime::system_clock().now()),
      signals_([this] {
        if (!rereads_) {
          events().emit(
              ports::Event::ConfigWarning,
              {{"problem", "SIGHUP: this program reads its configuration at start only"}});
        }
        hangup_.with([](const auto& action) {
          if (action) action();
        });
      }) {
  events().emit(ports::Event::ProcessStarted,
                {{"version", version_}, {"config", line.config_path}, {"pid", ::getpid()}});
}

int Process::fail(const std::string& reason) {
  events().emit(ports::Event::ProcessFailed, {{"reason", reason}});
  return config::kExitFailure;
}

void Process::listening(std::string_view what, const std::string& address) {
  events().emit(ports::Event::ListenerOpened, {{"listener", what}, {"address", address}});
}

runtime::Group::Report Process::stage_report() {
  return [this](const runtime::StageReport& report) {
    const auto event = report.complete ? ports::Event::StageDone : ports::Event::StageIncomplete;
    if (report.complete) {
      events().emit(event, {{"stage", runtime::to_string(report.stage)},
                            {"member", report.member},
                            {"took", report.took}});
    } else {
      events().emit(event, {{"stage", runtime::to_string(report.stage)},
                            {"member", report.member},
                            {"took", report.took},
                            {"reason", report.error}});
    }
  };
}

std::function<std::vector<std::string>()> Process::readiness(
    std::function<std::vector<std::string>()> inner) {
  return [this, inner = std::move(inner)] {
    auto reasons = inner();
    if (!started_) reasons.emplace_back("the process is starting");
    if (stopping_) reasons.emplace_back("the process is stopping");
    return reasons;
  };
}

void Process::on_hangup(std::function<void()> action, bool rereads) {
  rereads_ = rereads;
  hangup_.with([&](auto& current) { current = std::move(action); });
}

void Process::give_up(const std::string& reason) {
  events().emit(ports::Event::ProcessFailed, {{"reason", reason}});
  failed_ = true;
  signals_.request_stop();
}

int Process::run(runtime::Group& group, nanoseconds drain, nanoseconds delay) {
  const Clock& clock = runtime::system_clock();
  if (const Status started = group.start(); !started) return fail(started.error().message);
  started_ = true;
  events().emit(ports::Event::ProcessReady, {{"after", clock.now() - started_at_}});
  signals_.wait_for_stop();
  stopping_ = true;
  if (!failed_) events().emit(ports::Event::StopRequested, {{"reason", "signal"}});
  if (delay > nanoseconds{0}) {
    // The load balancer learns from /readyz before the listener closes.
    runtime::Alarm alarm;
    alarm.wait_until(clock.now() + delay);
  }
  group.shutdown(Deadline::after(clock.now(), drain));
  const int code = failed_ ? config::kExitFailure : config::kExitClean;
  events().emit(ports::Event::ProcessStopped,
                {{"exit_code", code}, {"after", clock.now() - started_at_}});
  return code;
}

std::string default_name(std::uint16_t port, const std::string& instance) {
  std::array<char, 256> host{};
  // A name that does not fit is cut; the last byte stays zero.
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::string name(host.data());
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '.' && c != '_') c = '-';
  }
  if (name.empty()) name = "localhost";
  return name.substr(0, 40) + "-" + (port == 0 ? instance : std::to_string(port));
}

void add_rest_server(runtime::Group& group, Process& process, std::string name,
                     net::Endpoint listen, std::unique_ptr<http::Router> router) {
  std::shared_ptr<http::RestServer> server =
      http::make_rest_server(name, listen, std::move(router));
  runtime::Member member;
  member.name = name;
  member.start = [&process, server, listen, name]() -> Status {
    PP_TRY(const Unit started, server->start());
    process.listening(name, net::Endpoint{listen.address, server->port()}.str());
    return started;
  };
  member.drain = [server](Deadline deadline) { return server->drain(deadline); };
  member.stop = [server] { server->stop(); };
  group.add(std::move(member));
}

int main_of(config::Program program, int argc, char** argv, const Serve& serve,
            const Special& special) {
  runtime::block_signals();
  runtime::raise_descriptor_limit();
  const auto name = config::program_name(program);
  try {
    const auto line = config::parse_command_line(argc, argv, config::process_environment, program);
    if (!line) {
      std::cerr << name << ": " << line.error().message << "\nTry '" << name << " --help'.\n";
      return config::kExitUsage;
    }
    if (line->help) {
      std::cout << config::help_text(program);
      return config::kExitClean;
    }
    if (line->version) {
      std::cout << name << " " << runtime::build_info().version << "\n";
      return config::kExitClean;
    }
    if (special) {
      if (const auto code = special(*line)) return *code;
    }
    auto loaded = config::load_configuration(*line, config::process_environment);
    if (line->check_config) return config::run_check_config(loaded, std::cout, std::cerr);
    std::cerr << loaded.format_warnings();
    if (!loaded.config) {
      std::cerr << loaded.format_errors();
      return config::kExitUsage;
    }
    return serve(*line, std::move(loaded));
  } catch (const std::exception& failure) {
    std::cerr << name << ": " << failure.what() << "\n";
    return config::kExitFailure;
  }
}

}  // namespace proxypool::process
