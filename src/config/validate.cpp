#include "config/validate.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "config/address.hpp"
#include "config/checks.hpp"
#include "proxypool/domain/client/api_key.hpp"

namespace proxypool::config {
namespace {

using schema::Reader;

// What a worker keeps of its lease for itself (ruling C9).
constexpr nanoseconds kLeaseMargin = seconds(2);

// GW-11: whoever can reach the listener could use it.
void check_open_listener(Reader& reader, const std::string& section, bool strict,
                         const ListenAddress& listen, const AuthConfig& auth,
                         const AccessConfig& access) {
  if (listen.loopback() || auth.mode != AuthMode::None || !access.allow_cidrs.empty()) return;
  for (const char* key : {".listen", ".auth", ".access"}) {
    if (reader.failed(section + key)) return;
  }
  const std::string path = section + ".listen";
  const std::string message = "listens on " + listen.str() +
                              " with auth.mode none and no access.allowCIDRs: anybody who reaches "
                              "it may use it";
  const std::string hint = "set auth.mode, or access.allowCIDRs";
  if (strict) {
    reader.error_at(path, message, hint + ", or cluster.strict: false");
  } else {
    reader.warn_at(path, message, hint);
  }
}

struct Listener {
  std::string path;
  ListenAddress address;
};

bool clash(const ListenAddress& a, const ListenAddress& b) {
  if (a.port == 0 || a.port != b.port) return false;
  const auto any = [](const ListenAddress& x) {
    return classify(x.address) == IpClass::Unspecified;
  };
  return a.address == b.address || any(a) || any(b);
}

void check_clashes(Reader& reader, const std::vector<Listener>& listeners) {
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const auto& [path, address] = listeners[i];
      if (!clash(address, listeners[k].address)) continue;
      if (reader.failed(path) || reader.failed(listeners[k].path)) continue;
      const bool second_given = reader.given(path);
      const auto& shown = second_given ? path : listeners[k].path;
      const auto& other = second_given ? listeners[k].path : path;
      reader.error_at(shown, address.str() + " is also " + other);
    }
  }
}

void check_trusted_proxies(const Config& config, Reader& reader) {
  const auto& access = config.gateway.access;
  if (reader.failed("gateway.access")) return;
  if (access.proxy_protocol == ProxyProtocol::Required && access.trusted_proxies.empty()) {
    reader.error_at("gateway.access.proxyProtocol", "required, but of nobody",
                    "name your balancers in gateway.access.trustedProxies");
  }
  for (const Cidr& range : access.trusted_proxies) {
    if (!range.str().ends_with("/0")) continue;
    reader.error_at("gateway.access.trustedProxies",
                    "everybody is trusted: anybody could claim any address");
  }
}

void check_listeners(const Config& config, Reader& reader) {
  const bool strict = config.cluster.strict;
  check_open_listener(reader, "gateway", strict, config.gateway.listen, config.gateway.auth,
                      config.gateway.access);
  check_open_listener(reader, "distribution", strict, config.distribution.listen,
                      config.distribution.auth, config.distribution.access);
  if (!config.admin.listen.loopback() && !config.admin.has_token() &&
      !reader.failed("admin.listen") && !reader.failed("admin.auth")) {
    reader.error_at("admin.listen", "listens on " + config.admin.listen.str() + " without a token",
                    "set admin.auth.readToken");
  }
  if (!config.control_plane.listen.loopback() && !reader.failed("controlPlane.listen")) {
    reader.error_at("controlPlane.listen",
                    "listens on " + config.control_plane.listen.str() + " with tls.mode disabled",
                    "use a loopback address; mtls is not supported in this version");
  }
  check_clashes(reader, {{"gateway.listen", config.gateway.listen},
                         {"gateway.metrics.listen", config.gateway.metrics_listen}});
  check_clashes(reader, {{"controlPlane.listen", config.control_plane.listen},
                         {"distribution.listen", config.distribution.listen},
                         {"controller.metrics.listen", config.controller.metrics_listen},
                         {"admin.listen", config.admin.listen}});
}

// A worker dials what the controller listens on; without encryption it must not leave the machine.
void check_dialled(Reader& reader, const std::string& path, const HostPort& peer) {
  if (is_loopback(peer) || reader.failed(path)) return;
  reader.error_at(path, peer.str() + " is no loopback address",
                  "the control plane is not encrypted in this version");
}

void check_times(const Config& config, Reader& reader) {
  const auto& plane = config.control_plane;
  if (plane.lease < 3 * plane.report_interval + kLeaseMargin &&
      !reader.failed("controlPlane.lease") && !reader.failed("controlPlane.reportInterval")) {
    reader.error_at(
        reader.given("controlPlane.lease") ? "controlPlane.lease" : "controlPlane.reportInterval",
        "lease must be at least three times reportInterval and 2s more");
  }
  const auto& transport = config.gateway.transport;
  if (transport.total.count() > 0) {
    demand_order(reader, "gateway.transport.firstByte", transport.first_byte,
                 "gateway.transport.total", transport.total);
  }
  demand_order(reader, "check.basic.timeout", config.check.basic.timeout, "check.basic.interval",
               config.check.basic.interval);
}

void check_warnings(const Config& config, Reader& reader) {
  if (!config.gateway.target.allow_cidrs.empty()) {
    reader.warn_at("gateway.target.allowCIDRs",
                   "clients may reach these ranges although they are denied otherwise");
  }
  if (config.gateway.retry.unsafe_before_send) {
    reader.warn_at("gateway.retry.unsafeBeforeSend",
                   "a POST may be sent to a second proxy when the first could not be reached");
  }
  if (!config.cluster.strict) {
    reader.warn_at("cluster.strict", "dangerous combinations are not refused");
  }
}

// Are the names of this list complete, so that an absent one is the reference's fault?
template <class Items>
bool names_known(const Items& items, std::string_view list, std::string_view key, Reader& reader) {
  if (items.empty()) return !reader.failed(std::string(list));
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (reader.failed(at(list, i) + "." + std::string(key))) return false;
  }
  return true;
}

std::vector<std::string> upstream_names(const Config& config) {
  std::vector<std::string> names;
  for (const auto& upstream : config.upstreams) names.push_back(upstream.id.str());
  return names;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_upstream_reference(const Config& config, const UpstreamId& id, const std::string& path,
                              Reader& reader) {
  if (id.empty() || !names_known(config.upstreams, "upstreams", "id", reader)) return;
  const auto names = upstream_names(config);
  if (contains(names, id.str())) return;
  reader.error_at(path, "there is no upstream named " + id.str(), name_hint(id.str(), names));
}

bool matches_everything(const domain::RoutingMatch& match) {
  return match.hosts.empty() && match.host_regex.empty() && match.ports.empty() &&
         match.kinds.empty() && match.methods.empty() && match.path_prefixes.empty() &&
         match.clients.empty() && match.tags.empty();
}

std::vector<std::string> client_names(const Config& config) {
  std::vector<std::string> names;
  for (const auto& client : config.clients) {
    names.push_back(client.name.str());
    names.insert(names.end(), client.groups.begin(), client.groups.end());
  }
  return names;
}

void check_match(const Config& config, const RoutingConfig& routing, const std::string& path,
                 Reader& reader) {
  const auto& match = routing.match;
  const bool http_only = !match.methods.empty() || !match.path_prefixes.empty();
  const bool connect_only =
      !match.kinds.empty() &&
      !std::count(match.kinds.begin(), match.kinds.end(), domain::RequestKind::Http);
  if (http_only && connect_only && !reader.failed(path)) {
    reader.error_at(path, "methods and pathPrefixes never match with kinds: [connect]");
  }
  if (!names_known(config.clients, "clients", "name", reader) || reader.failed("clients")) return;
  const auto names = client_names(config);
  for (std::size_t i = 0; i < match.clients.size(); ++i) {
    const auto& name = match.clients[i];
    if (name.empty() || contains(names, name)) continue;
    reader.error_at(at(path + ".clients", i), "there is no client or group named " + name,
                    name_hint(name, names));
  }
}

void check_routing_upstreams(const Config& config, const RoutingConfig& routing,
                             const std::string& path, Reader& reader) {
  std::set<UpstreamId> seen;
  bool weighted = false;
  for (std::size_t i = 0; i < routing.upstreams.size(); ++i) {
    const auto& entry = routing.upstreams[i];
    const std::string entry_path = at(path + ".upstreams", i);
    check_upstream_reference(config, entry.id, entry_path + ".id", reader);
    if (!entry.id.empty() && !seen.insert(entry.id).second) {
      reader.error_at(entry_path + ".id", "upstream " + entry.id.str() + " stands here twice");
    }
    weighted = weighted || entry.weight != 1;
  }
  const bool sequential = routing.strategy == domain::Strategy::Sequential;
  if (sequential && routing.upstreams.size() < 2 && !reader.failed(path + ".upstreams")) {
    reader.error_at(path + ".upstreams", "strategy sequential needs at least two upstreams",
                    "name another one, or set strategy: first");
  }
  if (!sequential && reader.given(path + ".exhaustion") && !reader.failed(path + ".strategy")) {
    reader.error_at(path + ".exhaustion", "applies to strategy sequential alone");
  }
  const bool direct = routing.on_unavailable == domain::OnUnavailable::Direct;
  if (routing.upstreams.empty() && !sequential && !direct && !reader.failed(path + ".upstreams")) {
    reader.error_at(path + ".upstreams", "names no upstream",
                    "set onUnavailable: direct, if requests shall go to their targets without a "
                    "proxy");
  }
  if (weighted && routing.strategy != domain::Strategy::WeightedRoundRobin &&
      !reader.failed(path + ".strategy")) {
    reader.error_at(
        path + ".upstreams",
        "weights have no effect under strategy " + std::string(domain::spell(routing.strategy)),
        "set strategy: weighted_round_robin");
  }
}

void check_routings(const Config& config, Reader& reader) {
  std::set<RoutingId> seen;
  std::string catch_all;
  std::set<UpstreamId> used;
  for (std::size_t i = 0; i < config.routings.size(); ++i) {
    const auto& routing = config.routings[i];
    const std::string path = at("routings", i);
    if (!routing.id.empty() && !seen.insert(routing.id).second) {
      reader.error_at(path + ".id", "another routing is named " + routing.id.str());
    }
    check_match(config, routing, path + ".match", reader);
    check_routing_upstreams(config, routing, path, reader);
    for (const auto& entry : routing.upstreams) used.insert(entry.id);
    if (!routing.enabled) continue;
    if (routing.on_unavailable == domain::OnUnavailable::Direct && !routing.upstreams.empty()) {
      reader.warn_at(path + ".onUnavailable",
                     "while no proxy is free, targets see this gateway's own address");
    }
    if (!catch_all.empty()) {
      reader.warn_at(path, "is never reached: routing " + catch_all + " matches everything");
    } else if (matches_everything(routing.match) && !reader.failed(path)) {
      catch_all = routing.id.str();
    }
  }
  for (std::size_t i = 0; i < config.upstreams.size(); ++i) {
    const auto& upstream = config.upstreams[i];
    const bool idle = upstream.enabled && !used.contains(upstream.id) &&
                      !upstream.extraction.extractable && !reader.failed("routings");
    if (idle && !reader.failed(at("upstreams", i))) {
      reader.warn_at(at("upstreams", i), "no routing uses it, and it is not extractable");
    }
  }
}

bool takes(const Config& config, AuthMode way) {
  const auto ways = config.gateway.auth.ways();
  return std::find(ways.begin(), ways.end(), way) != ways.end();
}

bool takes_keys(const Config& config) {
  return takes(config, AuthMode::ApiKey) || takes(config, AuthMode::Bearer);
}

void check_gateway_auth(const Config& config, Reader& reader) {
  const auto& auth = config.gateway.auth;
  if (reader.failed("gateway.auth")) return;
  const std::string path = "gateway.auth.anyOf";
  if (auth.mode == AuthMode::Any && auth.any_of.empty()) {
    reader.error_at("gateway.auth.mode", "any, but of nothing",
                    "name the ways in gateway.auth.anyOf, as in [ipWhitelist, usernamePassword]");
  }
  if (auth.mode != AuthMode::Any && !auth.any_of.empty()) {
    reader.error_at(path, "has no effect under auth.mode " + std::string(domain::spell(auth.mode)),
                    "set gateway.auth.mode: any");
  }
  const std::set<AuthMode> different(auth.any_of.begin(), auth.any_of.end());
  if (different.size() != auth.any_of.size()) reader.error_at(path, "a way stands here twice");
}

// A key is looked up by its SHA-256: what was hashed slowly cannot be found, and what is short
// could be guessed from a fast hash.
void check_key(const ClientConfig& client, bool passwords, const std::string& path,
               Reader& reader) {
  if (!client.gateway_secret || reader.failed(path)) return;
  const std::string_view text = client.gateway_secret->value.reveal();
  if (client.gateway_secret->hashed) {
    if (passwords || !text.starts_with("$scrypt$")) return;
    reader.error_at(path, "is the hash of a password, and gateway.auth takes API keys",
                    std::string("put here what `proxy-controller --hash-key` prints for a key; ") +
                        domain::kApiKeyRemedy);
  } else if (!passwords && !domain::is_api_key(text)) {
    reader.error_at(path,
                    "is no API key: it has not the 128 random bits that one must have, or a space "
                    "or a colon in it",
                    domain::kApiKeyRemedy);
  }
}

// `owners`: of every range so far.
void check_sources(const ClientConfig& client, const std::string& path,
                   std::map<std::string, std::string>& owners, Reader& reader) {
  if (reader.failed(path)) return;
  for (const Cidr& range : client.sources) {
    if (range.bits() == 0) {
      reader.error_at(path, "everybody would be this client",
                      "name the addresses that its callers have");
    }
    const auto [owner, fresh] = owners.emplace(range.str(), client.name.str());
    if (fresh) continue;
    reader.error_at(path, range.str() + (owner->second == client.name.str()
                                             ? " stands here twice"
                                             : " is also client " + owner->second));
  }
}

void check_clients(const Config& config, Reader& reader) {
  std::set<ClientName> seen;
  bool gateway_secret = false;
  bool distribution_secret = false;
  bool sources = false;
  std::map<std::string, std::string> owners;
  const bool passwords = takes(config, AuthMode::UsernamePassword);
  for (std::size_t i = 0; i < config.clients.size(); ++i) {
    const auto& client = config.clients[i];
    const std::string path = at("clients", i);
    if (takes_keys(config) && reader.options().program == Program::Controller) {
      check_key(client, passwords, path + ".credentials.gateway", reader);
    }
    check_sources(client, path + ".sources", owners, reader);
    sources = sources || !client.sources.empty();
    if (!client.name.empty() && !seen.insert(client.name).second) {
      reader.error_at(path + ".name", "another client is named " + client.name.str());
    }
    for (std::size_t k = 0; k < client.allowed_upstreams.size(); ++k) {
      check_upstream_reference(config, client.allowed_upstreams[k],
                               at(path + ".allowedUpstreams", k), reader);
    }
    gateway_secret = gateway_secret || client.gateway_secret;
    distribution_secret = distribution_secret || client.distribution_secret;
  }
  if (reader.failed("clients")) return;
  const bool by_secret = passwords || takes_keys(config);
  const bool by_source = takes(config, AuthMode::IpWhitelist);
  if (by_secret && !gateway_secret && !(by_source && sources)) {
    reader.warn_at("gateway.auth.mode", "no client has credentials.gateway: nobody gets in");
  }
  if (by_source && !by_secret && !sources) {
    reader.warn_at("gateway.auth.mode", "no client has sources: nobody gets in");
  }
  if (config.distribution.auth.mode == AuthMode::UsernamePassword && !distribution_secret) {
    reader.warn_at("distribution.auth.mode",
                   "no client has credentials.distribution: nobody gets in");
  }
}

}  // namespace

void validate(const Config& config, Reader& reader) {
  check_listeners(config, reader);
  check_trusted_proxies(config, reader);
  check_gateway_auth(config, reader);
  check_dialled(reader, "gateway.controlPlane", config.gateway.control_plane);
  check_dialled(reader, "checker.controlPlane", config.checker.control_plane);
  check_times(config, reader);
  check_upstreams(config, reader);
  check_routings(config, reader);
  check_clients(config, reader);
  check_warnings(config, reader);
  if (reader.options().program == Program::Controller && config.routings.empty() &&
      !reader.failed("routings")) {
    reader.warn_at("routings", "there is no routing: the gateway refuses every request");
  }
}

}  // namespace proxypool::config
