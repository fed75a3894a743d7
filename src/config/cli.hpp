// The command line that controller, gateway and checker share (OP-1).
//
// Flags win over the environment, the environment over the file.
//
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "config/load.hpp"
#include "config/types.hpp"
#include "proxypool/base/result.hpp"

namespace proxypool::config {

inline constexpr int kExitClean = 0;
inline constexpr int kExitFailure = 1;  // something failed while running
inline constexpr int kExitUsage = 2;    // wrong configuration or command line

struct CommandLine {
  Program program = Program::Controller;
  std::string config_path;  // empty: every default (gateway and checker)
  bool check_config = false;
  bool help = false;
  bool version = false;
  bool hash_password = false;  // controller
  bool hash_key = false;       // controller
  std::optional<LogLevel> log_level;
  std::optional<LogFormat> log_format;
  std::optional<HostPort> control_plane;  // gateway, checker
  std::string cluster_id;                 // gateway, checker; empty: the file's cluster.id
  std::string worker_id;                  // gateway; empty: not given
  std::string instance_id;                // gateway, checker; empty: not given
  std::string zone;                       // gateway
  std::string checker_id;                 // checker
};

// The error holds one line for each thing that is wrong, with a hint.
Result<CommandLine> parse_command_line(int argc, const char* const* argv, const EnvLookup& env,
                                       Program program);

std::string help_text(Program program);
std::string_view program_name(Program program) noexcept;

// Reads the file that the command line names, and lays flags and environment over it.
LoadResult load_configuration(const CommandLine& command_line, const EnvLookup& env);

// --check-config: warnings and errors to `err`, the effective redacted configuration to `out`.
// Answers kExitClean or kExitUsage.
int run_check_config(const LoadResult& loaded, std::ostream& out, std::ostream& err);

}  // namespace proxypool::config
