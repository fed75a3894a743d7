// ConfigReload: takes another configuration over while the controller runs (CT-1).
//
// Read, parse, validate, make what it needs, compare, give it a revision, and only then let it
// count; whatever goes wrong on the way leaves everything as it was and is told whole: in the log,
// in the metrics, in the answer. Keys that a running program keeps (config::RestartKey) are named.
//
// The fingerprint is HMAC-SHA-256 under the cluster's identity key over the canonical JSON of the
// configuration in which each secret stands as its keyed digest: it is the same on every controller
// with the same configuration and says nothing about a secret.
//
// Thread rule: any thread; attempts wait for each other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "controller/controller.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/ports/operations.hpp"

namespace proxypool::controller {

// What a configuration is read for.
enum class LoadFor : std::uint8_t { Use, Trial };

struct ReloadDeps {
  Controller& controller;
  ports::ManagementStore& management;
  const ports::Crypto& crypto;
  const Clock& clock;
  ports::Events& events;
  SecretString identity_key;
  std::function<config::LoadResult(LoadFor)> load;
  // Called after another configuration has begun to count, with what changed.
  std::function<void(const config::Config&, const config::Diff&)> applied;
};

struct ReloadCounters {
  std::array<std::uint64_t, ports::kConfigOutcomes> attempts{};  // Valid: never
  std::uint64_t errors = 0;  // of the last attempt; 0: it was taken
  std::uint64_t revision = 0;
  std::uint64_t restart_waiting = 0;  // keys of this controller
  std::uint64_t hash = 0;             // the first 48 bits of the fingerprint
  std::optional<WallTime> activated_at;
};

class ConfigReload final : public ports::ConfigOperations {
 public:
  // `file`: as it is named in answers and in the log. What the controller has counts already; it
  // gets its revision here, or from a later attempt when the store does not answer.
  ConfigReload(std::string file, ReloadDeps deps);

  ports::ConfigAnswer reload_config(const std::string& actor) override;
  ports::ConfigAnswer validate_config() override;
  ports::ConfigReading config() override;
  [[nodiscard]] ReloadCounters counters() const;
  // What an operator should know: a file that was not taken, keys that wait for a restart.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  struct State {
    std::string fingerprint;
    std::uint64_t revision = 0;
    std::optional<WallTime> activated_at;
    std::vector<ports::RestartNeeded> restart;
    std::vector<ports::ConfigProblem> rejected;
    std::array<std::uint64_t, ports::kConfigOutcomes> attempts{};
  };
  // One attempt on its way.
  struct Attempt {
    ports::ConfigAnswer answer;
    ActiveConfigPtr next;  // null: it is rejected
    std::string fingerprint;
    config::Diff diff;
  };

  [[nodiscard]] std::string digest_of(std::string_view what, std::string_view text) const;
  [[nodiscard]] std::string fingerprint_of(const config::Config& config) const;
  [[nodiscard]] config::Diff diff_of(const config::Config& a, const config::Config& b) const;
  Attempt attempt(LoadFor purpose);
  // Gives it its revision; what is wrong otherwise.
  Status activate(const std::string& fingerprint);
  void apply(Attempt& attempt);
  void tell(const ports::ConfigAnswer& answer, const std::string& actor);

  const std::string file_;
  ReloadDeps deps_;
  const ActiveConfigPtr started_with_;
  Guarded<Unit> one_at_a_time_;  // held while an attempt is made
  Guarded<State> state_;
};

void register_metrics(const ConfigReload& reload, ports::Metrics& metrics);

}  // namespace proxypool::controller
