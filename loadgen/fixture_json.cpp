#include "loadgen/fixture_json.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

namespace proxypool::loadgen {

Json sighting_json(const Sighting& sighting) {
  Json out;
  out["place"] = sighting.place;
  out["proxy"] = sighting.proxy ? Json(*sighting.proxy) : Json(nullptr);
  out["method"] = sighting.method;
  out["target"] = sighting.target;
  out["headers"] = Json::array();
  for (const auto& [name, value] : sighting.fields) {
    out["headers"].push_back(Json::array({name, value}));
  }
  out["body_bytes"] = sighting.body_bytes;
  out["body_sha256"] = sighting.body_sha256;
  out["peer"] = sighting.peer;
  out["at_ms"] = sighting.at_ms;
  return out;
}

Json records_json(const std::string& token, const Journal::Entry& entry) {
  Json out;
  out["token"] = token;
  std::set<unsigned> proxies;
  for (const auto& sighting : entry.sightings) {
    if (sighting.proxy) proxies.insert(*sighting.proxy);
  }
  out["proxies"] = proxies;
  out["sightings"] = Json::array();
  for (const auto& sighting : entry.sightings) out["sightings"].push_back(sighting_json(sighting));
  out["forgotten"] = entry.forgotten;
  return out;
}

Json stats_json(const FixtureState& state) {
  Json out;
  out["vendor"] = {{"mode", to_string(state.vendor_mode)},
                   {"calls", state.vendor_calls},
                   {"offered", state.vendor_offered}};
  out["origin"] = {{"requests", state.origin_requests},
                   {"connections_open", state.origin->open_connections()}};
  out["proxies"] = Json::array();
  for (const auto& proxy : state.proxies) {
    const auto& c = proxy->counters;
    out["proxies"].push_back({{"index", proxy->index},
                              {"port", proxy->listener->port()},
                              {"fault", to_text(proxy->fault)},
                              {"listening", proxy->listener->listening()},
                              {"in_flight", c.in_flight},
                              {"in_flight_max", c.in_flight_max},
                              {"requests", c.requests},
                              {"tunnels", c.tunnels},
                              {"connections", c.connections},
                              {"connections_open", proxy->listener->open_connections()},
                              {"wrong_credentials", c.wrong_credentials},
                              {"offered_until_ms", proxy->offered_until_ms},
                              {"late_connections", c.late_connections}});
  }
  return out;
}

Json ready_json(const FixtureState& state) {
  const auto url = [&](std::uint16_t port) {
    return "http://" + to_text(Tcp::endpoint(asio::ip::make_address(state.options.host), port));
  };
  Json out;
  out["host"] = state.options.host;
  out["pid"] = ::getpid();
  out["vendor"] = {{"port", state.vendor->port()}, {"url", url(state.vendor->port())}};
  out["origin"] = {{"port", state.origin->port()}, {"url", url(state.origin->port())}};
  out["auth"] = state.options.require_auth;
  if (state.options.require_auth) {
    out["user"] = state.options.user;
    out["password"] = std::string(state.options.password.reveal());
  }
  out["proxies"] = Json::array();
  for (const auto& proxy : state.proxies) {
    out["proxies"].push_back({{"index", proxy->index}, {"port", proxy->listener->port()}});
  }
  return out;
}

}  // namespace proxypool::loadgen
