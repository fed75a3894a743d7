#include "config/cli.hpp"

#include <vector>

#include "config/address.hpp"
#include "config/problem.hpp"
#include "config/schema/types.hpp"

namespace proxypool::config {
namespace {

constexpr unsigned kGateway = 1U << static_cast<unsigned>(Program::Gateway);
constexpr unsigned kController = 1U << static_cast<unsigned>(Program::Controller);
constexpr unsigned kChecker = 1U << static_cast<unsigned>(Program::Checker);
constexpr unsigned kAll = kGateway | kController | kChecker;

// Takes the value in; answers what is wrong with it, or nothing.
using Apply = std::string (*)(CommandLine& into, const std::string& value);

struct Option {
  std::string_view name;      // without dashes
  std::string_view argument;  // empty: a switch
  std::string_view env;       // empty: none
  std::string_view group;
  std::string_view help;  // with the default
  unsigned programs;
  Apply apply;
};

template <class Enum>
std::string apply_word(std::optional<Enum>& into, const std::string& value) {
  into = domain::parse_spelling<Enum>(value);
  if (into) return {};
  const auto hint = name_hint(value, schema::spellings<Enum>());
  return "unknown value \"" + value.substr(0, 64) + "\" (" + hint + ")";
}

std::string apply_name(std::string& into, const std::string& value) {
  if (!schema::is_identifier(value)) {
    return "no valid name (1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit)";
  }
  into = value;
  return {};
}

std::string apply_peer(std::optional<HostPort>& into, const std::string& value) {
  into = parse_host_port(value);
  if (!into) return "no HOST:PORT";
  if (!is_loopback(*into)) {
    return value + " is no loopback address (the control plane is not encrypted in this version)";
  }
  return {};
}

constexpr Option kOptions[] = {
    {"config", "FILE", "PROXY_POOL_CONFIG", "Configuration", "the configuration file", kAll,
     [](CommandLine& c, const std::string& v) {
       c.config_path = v;
       return std::string(v.empty() ? "is empty" : "");
     }},
    {"check-config", "", "", "Configuration",
     "print the effective configuration, or what is wrong with it, and end", kAll,
     [](CommandLine& c, const std::string&) {
       c.check_config = true;
       return std::string();
     }},
    {"control-plane", "HOST:PORT", "PROXY_POOL_CONTROL_PLANE_ADDRESS", "Cluster",
     "where the controller is; default 127.0.0.1:9443", kGateway | kChecker,
     [](CommandLine& c, const std::string& v) { return apply_peer(c.control_plane, v); }},
    {"cluster-id", "NAME", "PROXY_POOL_CLUSTER_ID", "Cluster",
     "the cluster to join; default cluster.id of the file", kGateway | kChecker,
     [](CommandLine& c, const std::string& v) { return apply_name(c.cluster_id, v); }},
    {"worker-id", "NAME", "PROXY_POOL_WORKER_ID", "Cluster",
     "this worker, the same after a restart; default gateway-INSTANCE", kGateway,
     [](CommandLine& c, const std::string& v) { return apply_name(c.worker_id, v); }},
    {"checker-id", "NAME", "PROXY_POOL_CHECKER_ID", "Cluster",
     "this checker, the same after a restart; default from the host name and the port", kChecker,
     [](CommandLine& c, const std::string& v) { return apply_name(c.checker_id, v); }},
    {"instance-id", "NAME", "PROXY_POOL_INSTANCE_ID", "Cluster", "this process; default random",
     kGateway | kChecker,
     [](CommandLine& c, const std::string& v) { return apply_name(c.instance_id, v); }},
    {"zone", "NAME", "PROXY_POOL_ZONE", "Cluster", "the zone that this worker is in; default none",
     kGateway, [](CommandLine& c, const std::string& v) { return apply_name(c.zone, v); }},
    {"log-level", "LEVEL", "PROXY_POOL_LOG_LEVEL", "Logs",
     "trace, debug, info, warn or error; default info", kAll,
     [](CommandLine& c, const std::string& v) { return apply_word(c.log_level, v); }},
    {"log-format", "FORMAT", "PROXY_POOL_LOG_FORMAT", "Logs", "text or json; default text", kAll,
     [](CommandLine& c, const std::string& v) { return apply_word(c.log_format, v); }},
    {"hash-password", "", "", "Other", "read a password from standard input, print its hash",
     kController,
     [](CommandLine& c, const std::string&) {
       c.hash_password = true;
       return std::string();
     }},
    {"hash-key", "", "", "Other", "read an API key from standard input, print its hash",
     kController,
     [](CommandLine& c, const std::string&) {
       c.hash_key = true;
       return std::string();
     }},
    {"version", "", "", "Other", "print the version and end", kAll,
     [](CommandLine& c, const std::string&) {
       c.version = true;
       return std::string();
     }},
    {"help", "", "", "Other", "print this text and end", kAll,
     [](CommandLine& c, const std::string&) {
       c.help = true;
       return std::string();
     }},
};

std::vector<const Option*> options_of(Program program) {
  std::vector<const Option*> out;
  for (const Option& option : kOptions) {
    if ((option.programs >> static_cast<unsigned>(program)) & 1U) out.push_back(&option);
  }
  return out;
}

const Option* find_option(Program program, std::string_view name) {
  for (const Option* option : options_of(program)) {
    if (option->name == name) return option;
  }
  return nullptr;
}

std::string unknown_option(Program program, const std::string& name) {
  std::vector<std::string> known;
  for (const Option* option : options_of(program)) known.emplace_back(option->name);
  const auto nearest = nearest_name(name, known);
  return "--" + name + ": unknown option (" +
         (nearest.empty() ? "--help lists them" : "did you mean --" + nearest + "?") + ")\n";
}

// Collects what was given and what is wrong.
class Parser {
 public:
  explicit Parser(Program program) : program_(program) { out_.program = program; }

  void take_environment(const EnvLookup& env) {
    for (const Option* option : options_of(program_)) {
      if (option->env.empty()) continue;
      const auto value = env(std::string(option->env));
      if (value && !value->empty()) apply(*option, std::string(option->env), *value);
    }
  }

  void take_arguments(const std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      if (argument == "-h") {
        out_.help = true;
        continue;
      }
      if (!argument.starts_with("--") || argument.size() == 2) {
        errors_ += argument.substr(0, 64) + ": unexpected argument (options begin with --)\n";
        continue;
      }
      const auto equals = argument.find('=');
      const auto name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
      const Option* option = find_option(program_, name);
      if (option == nullptr) {
        errors_ += unknown_option(program_, name);
      } else if (option->argument.empty()) {
        if (equals != std::string::npos) errors_ += "--" + name + ": takes no value\n";
        apply(*option, "--" + name, "");
      } else if (equals != std::string::npos) {
        apply(*option, "--" + name, argument.substr(equals + 1));
      } else if (i + 1 == arguments.size() || arguments[i + 1].starts_with("--")) {
        errors_ += "--" + name + ": needs " + std::string(option->argument) + "\n";
      } else {
        apply(*option, "--" + name, arguments[++i]);
      }
    }
  }

  Result<CommandLine> finish() && {
    if (out_.help || out_.version) return std::move(out_);
    const bool needs_file =
        program_ == Program::Controller && !out_.hash_password && !out_.hash_key;
    if (needs_file && out_.config_path.empty() && errors_.empty()) {
      errors_ += "--config: is required (or PROXY_POOL_CONFIG)\n";
    }
    if (errors_.empty()) return std::move(out_);
    return Error{ErrorCode::InvalidArgument, Origin::Internal, std::move(errors_)};
  }

 private:
  void apply(const Option& option, const std::string& source, const std::string& value) {
    const auto complaint = option.apply(out_, value);
    if (!complaint.empty()) errors_ += source + ": " + complaint + "\n";
  }

  Program program_;
  CommandLine out_;
  std::string errors_;
};

}  // namespace

std::string_view program_name(Program program) noexcept {
  switch (program) {
    case Program::Gateway:
      return "proxy-gateway";
    case Program::Controller:
      return "proxy-controller";
    case Program::Checker:
      return "proxy-checker";
  }
  return "";
}

Result<CommandLine> parse_command_line(int argc, const char* const* argv, const EnvLookup& env,
                                       Program program) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) arguments.emplace_back(argv[i]);
  Parser parser(program);
  parser.take_environment(env);
  parser.take_arguments(arguments);
  return std::move(parser).finish();
}

std::string help_text(Program program) {
  std::string out = "Usage: " + std::string(program_name(program)) + " [options]\n";
  std::string_view group;
  for (const Option* option : options_of(program)) {
    if (option->group != group) out += "\n" + std::string(option->group) + ":\n";
    group = option->group;
    std::string left = "  --" + std::string(option->name);
    if (!option->argument.empty()) left += " " + std::string(option->argument);
    out += left + std::string(left.size() < 28 ? 28 - left.size() : 1, ' ');
    out += std::string(option->help) + "\n";
    if (!option->env.empty()) {
      out += std::string(28, ' ') + "[" + std::string(option->env) + "]\n";
    }
  }
  out += "\nFlags win over the environment, the environment over the file.\n";
  out += "Exit codes: 0 clean, 1 failure while running, 2 configuration or usage.\n";
  return out;
}

LoadResult load_configuration(const CommandLine& command_line, const EnvLookup& env) {
  LoadOptions options;
  options.env = env;
  options.program = command_line.program;
  LoadResult result = command_line.config_path.empty()
                          ? load_defaults(options)
                          : load_file(command_line.config_path, options);
  if (!result.config) return result;
  Config& config = *result.config;
  if (command_line.log_level) config.observability.log_level = *command_line.log_level;
  if (command_line.log_format) config.observability.log_format = *command_line.log_format;
  if (!command_line.cluster_id.empty()) config.cluster.id = command_line.cluster_id;
  if (command_line.control_plane) {
    config.gateway.control_plane = *command_line.control_plane;
    config.checker.control_plane = *command_line.control_plane;
  }
  return result;
}

int run_check_config(const LoadResult& loaded, std::ostream& out, std::ostream& err) {
  err << loaded.format_errors() << loaded.format_warnings();
  if (!loaded.config) return kExitUsage;
  out << redacted_yaml(*loaded.config);
  return kExitClean;
}

}  // namespace proxypool::config
