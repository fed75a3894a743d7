// The programs of others that a process test sends through the gateway: curl, Python, and our own
// load generator.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"
#include "support/cluster.hpp"

namespace proxypool::e2e {

using Arguments = std::vector<std::string>;

// curl, silent but for errors, through the gateway.
support::ChildProcess::Options curl(const support::Cluster& cluster, Arguments arguments);
// Asks for credentials, and knows the client `crawler` by this password. `more`: further lines of
// the client, indented by four.
support::ClusterOptions with_crawler(const std::string& password, const std::string& more = {});
// A script of tests/e2e/clients.
support::ChildProcess::Options python(std::string_view script, Arguments arguments);

// `proxy-loadgen http` through the gateway, under way.
class Load {
 public:
  Load(const support::Cluster& cluster, std::string_view path, Arguments arguments);

  [[nodiscard]] support::ChildProcess& process() noexcept { return process_; }
  // Waits for its end; its report.
  nlohmann::json report();

 private:
  support::TempDir folder_;
  support::ChildProcess process_;
};

std::string sha256(std::string_view bytes);
// Of what the fixture's origin serves at /bytes/N.
std::string sha256_of_pattern(std::uint64_t bytes);
// Bytes that a test can tell apart from those around them.
std::string sample_body(std::size_t bytes);
void write_file(const std::filesystem::path& path, std::string_view bytes);

// The value of a header in what a sighting of the fixture holds; empty when it is absent.
std::string header_of(const nlohmann::json& sighting, std::string_view name);
// The sighting of a token at one place, "proxy" or "origin"; null when there is none.
nlohmann::json seen_at(support::Cluster& cluster, std::string_view token, std::string_view place);

}  // namespace proxypool::e2e
