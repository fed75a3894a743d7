#include "controller/snapshot_builder.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "proxypool/domain/client/limits.hpp"

namespace proxypool::controller {

namespace {

// Credentials are the same when user name and version are: the version is a keyed digest of both.
class CredentialTable {
 public:
  explicit CredentialTable(std::vector<domain::SnapshotCredential>& out) : out_(out) {}

  std::uint32_t reference(const domain::Proxy& proxy, domain::Credential&& credential) {
    if (credential.username.empty() && credential.password.empty()) return 0;
    std::string key = proxy.credential_version.str();
    key += '\0';
    key += credential.username;
    const auto next = static_cast<std::uint32_t>(out_.size() + 1);
    const auto [entry, fresh] = index_.try_emplace(std::move(key), next);
    if (fresh) {
      out_.push_back({std::move(credential.username), std::move(credential.password),
                      proxy.credential_version});
    }
    return entry->second;
  }

 private:
  std::vector<domain::SnapshotCredential>& out_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

}  // namespace

domain::WorkerSnapshot build_snapshot(const SharedSection& shared,
                                      std::vector<ports::HeldProxy> held,
                                      const SnapshotHead& head) {
  domain::WorkerSnapshot snapshot;
  snapshot.version = head.version;
  snapshot.epoch = head.epoch;
  snapshot.intentional_loss = head.intentional_loss;
  snapshot.upstreams = shared.upstreams;
  snapshot.routings = shared.routings;
  snapshot.clients = shared.clients;
  for (domain::SnapshotClient& client : snapshot.clients) {
    const std::uint32_t burst = client.burst == 0 ? client.rate_per_second : client.burst;
    client.rate_per_second = domain::share_of(client.rate_per_second, head.workers);
    client.burst = client.rate_per_second == 0 ? 0 : domain::share_of(burst, head.workers);
    client.in_flight_max = domain::share_of(client.in_flight_max, head.workers);
  }
  snapshot.policy = shared.policy;

  // What the configuration no longer names drains; a worker would not know it.
  std::unordered_set<UpstreamId> named;
  for (const domain::SnapshotUpstream& upstream : shared.upstreams) named.insert(upstream.id);
  CredentialTable credentials(snapshot.credentials);
  snapshot.proxies.reserve(held.size());
  for (ports::HeldProxy& entry : held) {
    domain::Proxy& proxy = entry.proxy;
    if (proxy.ownership != domain::Ownership::Owned || !domain::usable(proxy, head.now) ||
        !named.contains(proxy.upstream)) {
      continue;
    }
    domain::SnapshotProxy out;
    out.id = proxy.id;
    out.upstream = std::move(proxy.upstream);
    out.credential = credentials.reference(proxy, std::move(entry.credential));
    out.endpoint = std::move(proxy.endpoint);
    out.max_concurrency = proxy.max_concurrency;
    out.suspect = proxy.state == domain::ProxyState::Suspect;
    out.lease_epoch = entry.lease_epoch;
    out.usable_until = proxy.usable_until;
    out.expires_at = proxy.expires_at;
    out.attributes = std::move(proxy.attributes);
    out.tags = std::move(proxy.tags);
    snapshot.proxies.push_back(std::move(out));
  }
  return snapshot;
}

}  // namespace proxypool::controller
