// What operators do to a running controller, beside reading (inbound.hpp).
//
// Thread rule: any thread. Calls may wait for the stores, within the deadline; those that concern
//              the configuration wait for each other.
// Errors:      NotFound, InvalidArgument, Stale (the revision that the caller named is not the
//              newest: nothing was changed), Conflict, Unavailable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/inbound.hpp"
#include "proxypool/ports/management_store.hpp"

namespace proxypool::ports {

struct ConfigProblem {
  std::string path;     // "upstreams[0].pool.target"; empty: the file as a whole
  std::string message;  // begins with file, line and column
};

// A key that the running program keeps as it was.
struct RestartNeeded {
  std::string key;
  std::string program;  // what has to be restarted: "controller", "gateways", …
};

struct ListChange {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;
};

enum class ConfigOutcome : std::uint8_t {
  Applied,
  Unchanged,  // the file says what counts already
  Valid,      // a trial: it would be applied
  Rejected,   // what counted before still does
};
inline constexpr std::size_t kConfigOutcomes = 4;

constexpr std::string_view to_string(ConfigOutcome outcome) noexcept {
  constexpr std::string_view kNames[kConfigOutcomes] = {"applied", "unchanged", "valid",
                                                        "rejected"};
  return kNames[static_cast<std::size_t>(outcome)];
}

struct ConfigAnswer {
  ConfigOutcome outcome = ConfigOutcome::Rejected;
  std::uint64_t revision = 0;  // of what counts now; 0: the store has not given one yet
  std::string fingerprint;     // of what counts now
  std::vector<std::string> sections;
  ListChange upstreams;
  ListChange routings;
  ListChange clients;
  std::vector<RestartNeeded> restart;
  std::vector<ConfigProblem> errors;
  std::vector<ConfigProblem> warnings;
};

struct ConfigReading {
  std::string file;
  std::uint64_t revision = 0;
  std::string fingerprint;
  std::optional<WallTime> activated_at;
  std::vector<RestartNeeded> restart;   // what this controller has not taken over since its start
  std::vector<ConfigProblem> rejected;  // of the last attempt; empty: it was taken
  std::string text;                     // effective, as YAML, every secret ***
};

class ConfigOperations {
 public:
  virtual ~ConfigOperations() = default;
  // Reads the file again and takes it over, or says everything that is wrong with it.
  virtual ConfigAnswer reload_config(const std::string& actor) = 0;
  // The same, but nothing is taken over.
  virtual ConfigAnswer validate_config() = 0;
  virtual ConfigReading config() = 0;
};

struct RoutingCommand {
  RoutingId routing;
  std::optional<std::uint64_t> revision;  // as the caller saw it; none: whatever it is
  std::string actor;
};

class RoutingOperations {
 public:
  virtual ~RoutingOperations() = default;
  // CT-40: under the same fence as the controller's own switches. Answers the state after it.
  virtual Result<RoutingState> switch_routing(const RoutingCommand& command, const UpstreamId& to,
                                              Deadline deadline) = 0;
  virtual Result<RoutingState> enable_routing(const RoutingCommand& command, bool enabled,
                                              Deadline deadline) = 0;
  // What happened to it, newest first: the audit's entries, at most 20.
  virtual Result<std::vector<AuditEntry>> routing_history(const RoutingId& routing,
                                                          Deadline deadline) = 0;
};

}  // namespace proxypool::ports
