// `proxy-loadgen fixture` as a test uses it: started, its ports known, steered and asked.
//
// Thread rule: one thread, that of the test.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"
#include "support/http_client.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::support {

class FixtureProcess {
 public:
  // Further arguments as on the command line. Stops the test program when it does not start.
  explicit FixtureProcess(std::vector<std::string> arguments = {});

  [[nodiscard]] std::uint16_t vendor_port() const { return port_of(ready_.at("vendor")); }
  [[nodiscard]] std::uint16_t origin_port() const { return port_of(ready_.at("origin")); }
  [[nodiscard]] std::uint16_t proxy_port(std::size_t index) const {
    return port_of(ready_.at("proxies").at(index));
  }
  [[nodiscard]] std::size_t proxies() const { return ready_.at("proxies").size(); }
  // The proxies, one http://user:password@host:port a line.
  [[nodiscard]] std::filesystem::path upstreams_file() const { return folder_.path() / "list"; }
  // "Proxy-Authorization: Basic …\r\n"; empty without authentication.
  [[nodiscard]] std::string authorization() const;

  // POST /control/… ; asserts that it was accepted.
  void control(std::string_view call);
  void set_fault(std::size_t proxy, std::string_view kind);
  nlohmann::json stats();
  nlohmann::json proxy_stats(std::size_t index) { return stats().at("proxies").at(index); }
  // What was seen of a token; its list of sightings is empty when nothing was.
  nlohmann::json records(std::string_view token);

  [[nodiscard]] ChildProcess& process() noexcept { return process_; }

 private:
  static std::uint16_t port_of(const nlohmann::json& entry) {
    return entry.at("port").get<std::uint16_t>();
  }

  TempDir folder_;
  ChildProcess process_;
  nlohmann::json ready_;
};

}  // namespace proxypool::support
