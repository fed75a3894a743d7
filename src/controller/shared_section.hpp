// The part of a snapshot that is the same for every worker: routings, upstreams, clients, policy.
//
// Made from the configuration and the operators' switches, once per change; `revision` tells a
// worker's stream whether what it sent is still current.
//
// Thread rule: SharedSectionCell: any thread. The section itself is immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "config/config.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/ports/management_store.hpp"

namespace proxypool::controller {

struct SharedSection {
  std::uint64_t revision = 0;
  std::vector<domain::SnapshotUpstream> upstreams;
  std::vector<domain::SnapshotRouting> routings;
  std::unordered_map<RoutingId, std::size_t> routing_numbers;  // places in `routings`
  std::vector<domain::SnapshotClient> clients;
  domain::SnapshotPolicy policy;
};

// A client's hashed gateway secret, made once per configuration: hashing a password costs 70 ms.
struct HashedClient {
  ClientName name;
  std::string gateway_secret;  // "$scrypt$…" or "$sha256$…"; empty: it has none
};

// What operators switched, beside the configuration.
struct Switches {
  std::vector<ports::UpstreamState> upstreams;
  std::vector<ports::RoutingState> routings;
};

SharedSection make_shared_section(const config::Config& config,
                                  const std::vector<HashedClient>& clients,
                                  const Switches& switches);

class SharedSectionCell {
 public:
  [[nodiscard]] std::shared_ptr<const SharedSection> current() const {
    return cell_.with([](const auto& section) { return section; });
  }
  // Publishes with the next revision.
  void publish(SharedSection section) {
    cell_.with([&](auto& cell) {
      section.revision = cell ? cell->revision + 1 : 1;
      cell = std::make_shared<const SharedSection>(std::move(section));
    });
  }

 private:
  Guarded<std::shared_ptr<const SharedSection>> cell_;
};

}  // namespace proxypool::controller
