// Loading: from a file or a text to a complete, valid Config, or to every error at once.
//
// Thread rule: pure functions of the text, the environment and the files that it names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/problem.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/secret.hpp"

namespace proxypool::config {

using EnvLookup = std::function<std::optional<std::string>(const std::string& name)>;
// The process's own environment.
std::optional<std::string> process_environment(const std::string& name);

enum class Program : std::uint8_t { Gateway, Controller, Checker };

struct LoadOptions {
  EnvLookup env = process_environment;
  // Only the controller needs the file's secrets; elsewhere they stay empty and unread, so that
  // one file can serve every host.
  Program program = Program::Controller;
  // Where relative paths in the file start; load_file takes the file's own folder.
  std::string base_dir = ".";
};

struct LoadResult {
  std::string file;              // as it was named, for messages
  std::optional<Config> config;  // nothing when there are errors
  std::vector<Problem> errors;
  std::vector<Problem> warnings;
  std::vector<std::string> files{};  // that were read or tried: the file itself, those of secrets

  [[nodiscard]] std::string format_errors() const {
    return format_problems(file, errors, Severity::Error);
  }
  [[nodiscard]] std::string format_warnings() const {
    return format_problems(file, warnings, Severity::Warning);
  }
};

LoadResult load_text(std::string_view text, std::string file, const LoadOptions& options);
LoadResult load_file(const std::string& path, LoadOptions options = {});
// No file at all: every default. For the programs that flags alone can configure.
LoadResult load_defaults(const LoadOptions& options);

// Stands for a secret where values are compared or fingerprinted: a keyed digest, one text for one
// secret.
using SecretDigest = std::function<std::string(const SecretString&)>;

// The effective configuration as YAML; every secret is `***`.
std::string redacted_yaml(const Config& config);
// The same as JSON with sorted keys and each secret replaced by its digest: one configuration has
// one text.
std::string canonical_json(const Config& config, const SecretDigest& digest);

// What a reload changes. Elements are matched by their names; a list that was only put into another
// order shows among the sections alone.
struct Changes {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;
};
// A key that a running program does not take over.
struct RestartKey {
  std::string key;      // "controlPlane.listen"
  std::string program;  // "controller", "gateways", "checkers", "every program", …
  friend bool operator==(const RestartKey&, const RestartKey&) = default;
};
struct Diff {
  std::vector<std::string> sections;  // top-level keys that differ
  std::vector<RestartKey> restart;    // keys that differ and wait for a restart
  Changes upstreams;
  Changes routings;
  Changes clients;
};
// Whether two upstreams get their proxies from the same place with the same credentials.
bool same_source(const UpstreamConfig& a, const UpstreamConfig& b);
Diff diff(const Config& before, const Config& after, const SecretDigest& digest);

}  // namespace proxypool::config
