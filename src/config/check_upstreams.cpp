#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "config/checks.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::config {
namespace {

using schema::Reader;

bool is_list(const UpstreamConfig& upstream) {
  return upstream.provider.type == ProviderType::Static ||
         upstream.provider.type == ProviderType::File;
}

void check_expiry(const MapConfig& map, const std::string& path, Reader& reader) {
  if (!map.expires || reader.failed(path + ".expires")) return;
  if (map.expires->after.has_value() == map.expires->epoch.has_value()) {
    reader.error_at(path + ".expires", "needs exactly one of after and epoch");
  }
}

void check_map(const ProviderConfig& provider, const std::string& path, Reader& reader) {
  const MapConfig& map = provider.map;
  const std::string map_path = path + ".map";
  check_expiry(map, map_path, reader);
  if (reader.failed(map_path) || reader.failed(path + ".response")) return;
  const bool text = provider.response.format == ResponseFormat::Text;
  if (map.as && (map.host || map.port)) {
    reader.error_at(map_path, "as and host or port exclude each other");
  } else if (!map.as && map.host.has_value() != map.port.has_value()) {
    reader.error_at(map_path, "host and port belong together");
  } else if (!map.as && !map.host && !text) {
    reader.error_at(reader.given(map_path) ? map_path : path, "needs map.as, or map.host and port",
                    "for example map: {host: item.ip, port: item.port}");
  }
  if (text && reader.given(path + ".records.from")) {
    reader.error_at(path + ".records.from", "applies to response.format json alone");
  }
}

// RFC 9110 and vendors' habits: fields that prove who is asking.
bool is_credential_header(std::string_view name) {
  for (const std::string_view known : {"authorization", "proxy-authorization", "cookie",
                                       "x-api-key", "apikey", "api-key", "x-auth-token"}) {
    if (equal_ignoring_case(name, known)) return true;
  }
  return false;
}

bool is_credential_key(std::string_view key) {
  for (const std::string_view known :
       {"key", "apikey", "api_key", "appkey", "appsecret", "secret", "token", "password", "pwd",
        "secret_id", "secret_key", "access_token", "sign", "signature"}) {
    if (equal_ignoring_case(key, known)) return true;
  }
  return false;
}

void check_request(const RequestConfig& request, const std::string& path, Reader& reader) {
  for (const auto& [name, value] : request.headers) {
    if (!is_credential_header(name) || value.has_secret()) continue;
    if (reader.failed(path + ".headers." + name)) continue;
    reader.error_at(path + ".headers." + name, "a credential must not stand in the file",
                    "name it under provider.secrets and write {{ secret.NAME }}");
  }
  for (const auto& [name, value] : request.query) {
    if (!is_credential_key(name) || value.has_secret()) continue;
    if (reader.failed(path + ".query." + name)) continue;
    reader.error_at(path + ".query." + name, "a credential must not stand in the file",
                    "name it under provider.secrets and write {{ secret.NAME }}");
  }
  const bool secret = std::any_of(request.query.begin(), request.query.end(),
                                  [](const auto& entry) { return entry.second.has_secret(); }) ||
                      std::any_of(request.headers.begin(), request.headers.end(),
                                  [](const auto& entry) { return entry.second.has_secret(); }) ||
                      request.url.has_secret();
  const auto* url =
      request.url.parts.empty() ? nullptr : std::get_if<Template::Literal>(&request.url.parts[0]);
  if (secret && url != nullptr && url->text.starts_with("http://")) {
    reader.warn_at(path + ".url", "secrets travel without encryption", "use https:// if you can");
  }
  std::set<std::string> names;
  for (const auto& [name, value] : request.headers) {
    if (!names.insert(lower(name)).second) {
      reader.error_at(path + ".headers." + name, "this field stands here twice");
    }
  }
}

void check_pool(const UpstreamConfig& upstream, const std::string& path, Reader& reader) {
  const PoolConfig& pool = upstream.pool;
  const std::string pool_path = path + ".pool";
  demand_order(reader, pool_path + ".minimum", pool.minimum, pool_path + ".target", pool.target);
  const std::uint64_t slots = std::uint64_t{pool.size_max} * pool.concurrency_max;
  if (pool.target > slots && !reader.failed(pool_path) && !is_list(upstream)) {
    reader.error_at(
        reader.given(pool_path + ".target") ? pool_path + ".target" : pool_path + ".maxSize",
        "target " + std::to_string(pool.target) + " can never be reached: maxSize " +
            std::to_string(pool.size_max) + " × maxConcurrency " +
            std::to_string(pool.concurrency_max) + " slots are " + std::to_string(slots));
  }
  if (pool.default_ttl.count() > 0) {
    demand_order(reader, pool_path + ".allocationSafetyMargin", pool.allocation_safety_margin,
                 pool_path + ".defaultTTL", pool.default_ttl);
  }
  if (pool.default_ttl.count() > 0 && pool.ttl_max.count() > 0) {
    demand_order(reader, pool_path + ".defaultTTL", pool.default_ttl, pool_path + ".maxTTL",
                 pool.ttl_max);
  }
  demand_order(reader, path + ".extraction.reserveForGateway",
               upstream.extraction.reserve_for_gateway, pool_path + ".maxSize", pool.size_max);
  demand_order(reader, path + ".extraction.reserve", upstream.extraction.reserve.value_or(0),
               pool_path + ".maxSize", pool.size_max);
}

void check_static_list(const UpstreamConfig& upstream, const std::string& path, Reader& reader) {
  const auto& proxies = upstream.provider.proxies;
  const std::string list_path = path + ".provider.proxies";
  if (proxies.size() > upstream.pool.size_max && !reader.failed(path + ".pool")) {
    reader.error_at(path + ".pool.maxSize", "the list has more proxies than maxSize");
  }
  std::set<std::pair<domain::Endpoint, std::string>> seen;
  for (std::size_t i = 0; i < proxies.size(); ++i) {
    if (reader.failed(at(list_path, i))) continue;
    const auto& proxy = proxies[i];
    std::string credential = proxy.credential.username + ":";
    credential += proxy.credential.password.reveal();
    if (!seen.emplace(proxy.endpoint, std::move(credential)).second) {
      reader.warn_at(at(list_path, i), "this proxy stands here twice");
    }
    const auto address = IpAddress::parse(proxy.endpoint.host);
    if (!upstream.allow_private_addresses && address && classify(*address) != IpClass::Public) {
      reader.error_at(at(list_path, i),
                      "is a " + std::string(to_string(classify(*address))) + " address",
                      "allowed by allowPrivateAddresses: true");
    }
  }
}

void check_file(const UpstreamConfig& upstream, const std::string& path, Reader& reader) {
  std::error_code failure;
  if (reader.options().program != Program::Controller || reader.failed(path)) return;
  if (!std::filesystem::exists(upstream.provider.path, failure)) {
    reader.warn_at(path + ".path", "there is no file " + upstream.provider.path + " yet");
  }
}

void check_upstream(const UpstreamConfig& upstream, const std::string& path, Reader& reader) {
  const std::string provider_path = path + ".provider";
  check_pool(upstream, path, reader);
  if (reader.given(path + ".check.basic")) {
    demand_order(reader, path + ".check.basic.timeout", upstream.check.basic.timeout,
                 path + ".check.basic.interval", upstream.check.basic.interval);
  }
  if (reader.failed(provider_path + ".type") || !reader.given(provider_path)) return;
  switch (upstream.provider.type) {
    case ProviderType::Static:
      check_static_list(upstream, path, reader);
      break;
    case ProviderType::Http:
      check_request(upstream.provider.request, provider_path + ".request", reader);
      check_map(upstream.provider, provider_path, reader);
      demand_order(reader, path + ".fetch.backoff.initial", upstream.fetch.backoff.initial,
                   path + ".fetch.backoff.max", upstream.fetch.backoff.max);
      break;
    case ProviderType::File:
      check_file(upstream, provider_path, reader);
      break;
    case ProviderType::Gateway:
      break;
  }
  if (is_list(upstream) && reader.given(path + ".fetch")) {
    reader.error_at(path + ".fetch", "applies to provider type http alone");
  }
}

}  // namespace

void check_upstreams(const Config& config, Reader& reader) {
  std::set<UpstreamId> seen;
  for (std::size_t i = 0; i < config.upstreams.size(); ++i) {
    const auto& upstream = config.upstreams[i];
    const std::string path = at("upstreams", i);
    if (!upstream.id.empty() && !seen.insert(upstream.id).second) {
      reader.error_at(path + ".id", "another upstream is named " + upstream.id.str());
    }
    check_upstream(upstream, path, reader);
  }
}

}  // namespace proxypool::config
