#include "loadgen/commands.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <vector>

#include "config/problem.hpp"
#include "loadgen/fixture.hpp"
#include "loadgen/load.hpp"
#include "loadgen/options.hpp"
#include "loadgen/whole_file.hpp"
#include "proxypool/base/text.hpp"
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

  options.group("TLS of the proxies");
  options.value("--tls-cert", "PATH", "PEM file with a certificate: the proxies are https ones", "",
                text_into(fixture.tls_cert));
  options.value("--tls-key", "PATH", "PEM file with its key", "", text_into(fixture.tls_key));

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
  if (fixture.tls_cert.empty() != fixture.tls_key.empty()) {
    return complain("--tls-cert and --tls-key go together", kUsage);
  }
  const auto status = run_fixture(fixture);
  if (status) return kClean;
  const bool usage = status.error().code == ErrorCode::InvalidArgument;
  return complain(status.error().message, usage ? kUsage : kFailed);
}

// --- http --------------------------------------------------------------------------------------

constexpr std::size_t kBodyBytesMax = std::size_t{256} << 20U;

struct HttpArguments {
  LoadOptions load;
  std::string json_file;
  bool timed = false;
  bool url_given = false;
};

Options::Setter url_into(Url& target, bool& given) {
  return [&](std::string_view text) -> Status {
    PP_TRY(target, parse_url(text));
    given = true;
    return ok();
  };
}

Options::Setter proxy_into(std::optional<Url>& target) {
  return [&target](std::string_view text) -> Status {
    PP_TRY(Url proxy, parse_url(text));
    if (proxy.scheme != "http") {
      return Error{ErrorCode::InvalidArgument, Origin::Client, "a proxy's scheme is http"};
    }
    target = std::move(proxy);
    return ok();
  };
}

Options::Setter header_into(std::vector<Field>& target) {
  return [&target](std::string_view text) -> Status {
    const auto colon = text.find(':');
    if (colon == 0 || colon == std::string_view::npos ||
        text.find_first_of("\r\n") != std::string_view::npos) {
      return Error{ErrorCode::InvalidArgument, Origin::Client, "write 'Name: value'"};
    }
    target.push_back(
        {std::string(text.substr(0, colon)), std::string(trim(text.substr(colon + 1)))});
    return ok();
  };
}

Options::Setter statuses_into(std::vector<unsigned>& target) {
  return [&target](std::string_view text) -> Status {
    for (const auto part : split(text, ',')) {
      unsigned status = 0;
      PP_TRY([[maybe_unused]] Unit done, number_into(status, 100, 999)(part));
      target.push_back(status);
    }
    return ok();
  };
}

Options::Setter body_file_into(std::string& target) {
  return [&target](std::string_view text) -> Status {
    PP_TRY(target, read_whole_file(std::string(text), kBodyBytesMax));
    return ok();
  };
}

Options::Setter duration_of(HttpArguments& http) {
  return [&http](std::string_view text) -> Status {
    PP_TRY([[maybe_unused]] Unit done, duration_into(http.load.duration)(text));
    http.timed = true;
    return ok();
  };
}

void describe_http(Options& options, HttpArguments& http) {
  auto& load = http.load;
  options.positional("URL", "what to ask for: http or https", url_into(load.url, http.url_given));
  options.group("Load (closed loop)");
  options.value("--requests", "N", "how many requests; excludes --duration", "",
                number_into(load.requests, 1, UINT64_MAX));
  options.value("--duration", "DURATION", "for how long", "10s", duration_of(http));
  options.value("--concurrency", "N", "how many requests at a time", "16",
                number_into(load.concurrency, 1, 65'535));
  options.value("--threads", "N", "how many threads share them", "1",
                number_into(load.threads, 1, 256));

  options.group("Request");
  options.value("--proxy", "URL",
                "through this proxy, http://user:password@host:port; http in "
                "absolute form, https by CONNECT",
                "", proxy_into(load.proxy));
  options.value("--method", "NAME", "method", load.method, text_into(load.method));
  options.value("--header", "'NAME: VALUE'",
                "further header, or another value for one that is sent "
                "anyway; may be given many times",
                "", header_into(load.headers));
  options.value("--body", "TEXT", "request body", "", text_into(load.body));
  options.value("--body-file", "PATH", "request body from a file", "", body_file_into(load.body));
  options.flag("--keep-alive", "use connections again (the default)", load.keep_alive, true);
  options.flag("--no-keep-alive", "a new connection for each request", load.keep_alive, false);
  options.value("--timeout", "DURATION", "for a whole request, connecting included", "30s",
                duration_into(load.timeout));

  options.group("TLS");
  options.flag("--insecure", "take any certificate", load.verify_tls, false);
  options.value("--ca-file", "PATH", "trust these authorities (PEM)", "those of the system",
                text_into(load.ca_file));

  options.group("Report");
  options.value("--expect-status", "LIST", "statuses that count as success, for example 200,404",
                "all below 400", statuses_into(load.expected));
  options.value("--count-header", "NAME", "count the values of this header of the answers", "",
                text_into(load.count_header));
  options.value("--json", "PATH", "write the report there as JSON, too", "",
                text_into(http.json_file));
}

int http_command(std::span<const std::string> arguments) {
  HttpArguments http;
  Options options(
      "proxy-loadgen http [options] URL",
      "Sends HTTP requests in a closed loop and reports latencies and errors.\n"
      "Exit code: 0 no request failed, 1 some did or it could not start, 2 wrong usage.");
  describe_http(options, http);
  if (const auto code = settle(options, arguments, "http")) return *code;
  if (!http.url_given) return complain("no URL given\nTry 'proxy-loadgen http --help'.", kUsage);
  if (http.timed && http.load.requests > 0) {
    return complain("--requests and --duration exclude each other", kUsage);
  }
  const auto report = run_load(http.load);
  if (!report) return complain(report.error().message, kFailed);
  print(stdout, report_text(http.load, *report));
  if (!http.json_file.empty()) {
    const auto written = write_whole_file(http.json_file, report_json(http.load, *report));
    if (!written) return complain(written.error().message, kFailed);
  }
  return report->failed == 0 ? kClean : kFailed;
}

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(std::span<const std::string>);
};
constexpr std::array kCommands = {
    Command{"fixture", "plays a vendor API, forward proxies and an origin on loopback",
            fixture_command},
    Command{"http", "sends HTTP requests in a closed loop, directly or through a proxy",
            http_command},
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
