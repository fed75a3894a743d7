#include "loadgen/commands.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <vector>

#include "config/problem.hpp"
#include "loadgen/fixture.hpp"
#include "loadgen/options.hpp"
#include "runtime/build_info.hpp"

namespace proxypool::loadgen {
namespace {

constexpr int kClean = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

void print(std::FILE* to, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), to);
}

int complain(std::string_view message, int code) {
  print(stderr, "proxy-loadgen: " + std::string(message) + "\n");
  return code;
}

std::string version_line() {
  const auto& built = runtime::build_info();
  return "proxy-loadgen " + built.version + " (" + built.compiler + ", " + built.type + ")\n";
}

// What to exit with before running: after --help, --version or a mistake; nothing: run.
std::optional<int> settle(const Options& options, std::span<const std::string> arguments,
                          std::string_view command) {
  const auto outcome = options.parse(arguments);
  if (!outcome) {
    return complain(
        outcome.error().message + "\nTry 'proxy-loadgen " + std::string(command) + " --help'.",
        kUsage);
  }
  if (*outcome == Options::Outcome::Help) print(stdout, options.help());
  if (*outcome == Options::Outcome::Version) print(stdout, version_line());
  if (*outcome == Options::Outcome::Run) return std::nullopt;
  return kClean;
}

Options::Setter fault_into(std::vector<FaultRule>& target) {
  return [&target](std::string_view text) -> Status {
    PP_TRY(FaultRule rule, parse_fault_rule(text));
    target.push_back(rule);
    return ok();
  };
}

void describe_fixture(Options& options, FixtureOptions& fixture, nanoseconds& ttl) {
  options.group("Servers (loopback only)");
  options.value("--host", "ADDRESS", "loopback address to listen on", fixture.host,
                text_into(fixture.host));
  options.value("--proxies", "N", "how many forward proxies", std::to_string(fixture.proxies),
                number_into(fixture.proxies, 1, kFixtureProxiesMax));
  options.value("--vendor-port", "PORT", "port of the vendor API and the control calls",
                "0, a free one", port_into(fixture.vendor_port));
  options.value("--origin-port", "PORT", "port of the origin", "0, a free one",
                port_into(fixture.origin_port));
  options.value("--proxy-port-base", "PORT", "proxy i listens on PORT + i", "0, free ones",
                port_into(fixture.proxy_port_base));
  options.value("--ttl", "DURATION", "life of the proxies that the vendor API hands out", "10m",
                duration_into(ttl));

  options.group("Credentials of the proxies (Basic)");
  options.value("--user", "NAME", "user name", fixture.user, text_into(fixture.user));
  options.value("--password", "TEXT", "password; known to everybody, this is a fixture",
                std::string(fixture.password.reveal()), secret_into(fixture.password));
  options.flag("--no-auth", "the proxies ask for no credentials", fixture.require_auth, false);

  options.group("Faults");
  options.value("--fault", "PROXY=FAULT",
                "what proxy number PROXY (from 0, or * for all) does wrong; may be given many "
                "times, the last one counts. FAULT is " +
                    std::string(kFaultSpellings),
                "", fault_into(fixture.faults));

  options.group("Files");
  options.value("--ready-file", "PATH",
                "writes the JSON line with all ports there, once they listen", "",
                text_into(fixture.ready_file));
  options.value("--upstreams-file", "PATH",
                "writes the proxies there, one http://user:password@host:port a line", "",
                text_into(fixture.upstreams_file));
}

int fixture_command(std::span<const std::string> arguments) {
  FixtureOptions fixture;
  nanoseconds ttl = fixture.ttl;
  Options options(
      "proxy-loadgen fixture [options]",
      "Plays a vendor API, forward proxies and an origin on loopback, until Ctrl-C.\n"
      "Prints one line of JSON with all ports. GET / on the vendor port lists its calls.");
  describe_fixture(options, fixture, ttl);
  if (const auto code = settle(options, arguments, "fixture")) return *code;
  fixture.ttl = std::chrono::duration_cast<seconds>(ttl);
  if (fixture.proxy_port_base != 0 && fixture.proxy_port_base + fixture.proxies - 1 > 65'535) {
    return complain("--proxy-port-base: the last proxy's port would be above 65535", kUsage);
  }
  const auto status = run_fixture(fixture);
  if (status) return kClean;
  const bool usage = status.error().code == ErrorCode::InvalidArgument;
  return complain(status.error().message, usage ? kUsage : kFailed);
}

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(std::span<const std::string>);
};
constexpr std::array kCommands = {
    Command{"fixture", "plays a vendor API, forward proxies and an origin on loopback",
            fixture_command},
};

std::string overview() {
  std::string out =
      "Load, fixtures and measurement for Proxy Pool.\n\nUsage: proxy-loadgen COMMAND [options]\n\n"
      "Commands:\n";
  for (const auto& command : kCommands) {
    std::string name(command.name);
    name.resize(12, ' ');
    out += "  " + name + std::string(command.summary) + "\n";
  }
  return out + "\n'proxy-loadgen COMMAND --help' lists the options of a command.\n";
}

}  // namespace

int run_command(std::span<const std::string> arguments) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first.empty()) {
    print(stderr, overview());
    return kUsage;
  }
  if (first == "--help" || first == "-h") {
    print(stdout, overview());
    return kClean;
  }
  if (first == "--version") {
    print(stdout, version_line());
    return kClean;
  }
  std::vector<std::string> names;
  for (const auto& command : kCommands) {
    if (command.name == first) return command.run(arguments.subspan(1));
    names.emplace_back(command.name);
  }
  const auto near = config::nearest_name(first, names);
  return complain("unknown command '" + first + "'" +
                      (near.empty() ? "" : "; did you mean " + near + "?") +
                      "\nTry 'proxy-loadgen --help'.",
                  kUsage);
}

}  // namespace proxypool::loadgen
