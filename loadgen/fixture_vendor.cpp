// The fixture's vendor API, and beside it on the same port the calls that steer the fixture and ask
// what it saw. The vendor's mode never touches the latter.
#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "loadgen/exchange.hpp"
#include "loadgen/fixture_json.hpp"
#include "loadgen/fixture_state.hpp"
#include "loadgen/url.hpp"
#include "loadgen/vendor_shapes.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::loadgen {
namespace {

constexpr std::string_view kIndex =
    "Vendor API of a fixture. Proxies as text lines: /text /text/colon /text/url; as JSON:\n"
    "/json/list /json/array /json/strings /json/map /json/millis. Options of each:\n"
    "  ?count=N  ?ttl=SECONDS  ?answer=empty|error|down|hang\n"
    "Records:  GET /records?token=T   GET /stats   GET /ports\n"
    "Control:  POST /control/fault?proxy=N|*&kind=FAULT   POST /control/vendor?mode=MODE\n"
    "          POST /control/stop-proxies[?proxy=N]   POST /control/start-proxies[?proxy=N]\n"
    "          POST /control/reset-stats\n";

struct Place {
  std::string_view country, region, city, carrier;
};
constexpr std::array<Place, 4> kPlaces{{
    {"US", "CA", "San Jose", "alpha"},
    {"DE", "BE", "Berlin", "beta"},
    {"JP", "13", "Tokyo", "gamma"},
    {"GB", "ENG", "London", "alpha"},
}};

Answer json(const Json& body, unsigned status = 200) {
  Answer answer;
  answer.status = status;
  answer.body = body.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return answer;
}

Answer complaint(unsigned status, std::string why) {
  return json({{"error", why}}, status);
}

Offer offer_of(const FixtureState& state, const FixtureProxy& proxy, seconds ttl) {
  Offer offer;
  offer.index = proxy.index;
  offer.scheme = state.proxy_scheme();
  offer.host = state.options.host;
  offer.port = proxy.listener->port();
  if (state.options.require_auth) {
    offer.user = state.options.user;
    offer.password = state.options.password.reveal();
  }
  offer.ttl_s = ttl.count();
  offer.expires_ms = (runtime::wall_now() + ttl).time_since_epoch().count();
  const auto& place = kPlaces[proxy.index % kPlaces.size()];
  offer.country = place.country;
  offer.region = place.region;
  offer.city = place.city;
  offer.carrier = place.carrier;
  return offer;
}

// The next `count` proxies; a partial answer goes on where the one before ended.
std::vector<Offer> next_offers(FixtureState& state, std::size_t count, seconds ttl) {
  const auto total = state.proxies.size();
  std::size_t at = count < total ? state.vendor_next : 0;
  std::vector<Offer> offers;
  for (std::size_t i = 0; i < std::min(count, total); ++i, ++at) {
    auto& proxy = *state.proxies[at % total];
    offers.push_back(offer_of(state, proxy, ttl));
    proxy.offered_until_ms = std::max(proxy.offered_until_ms, offers.back().expires_ms);
  }
  if (count < total) state.vendor_next = at % total;
  state.vendor_offered += offers.size();
  return offers;
}

Answer vendor_answer(FixtureState& state, VendorShape shape, VendorMode mode,
                     std::string_view target) {
  std::optional<std::uint64_t> count = state.proxies.size();
  std::optional<std::uint32_t> ttl = static_cast<std::uint32_t>(state.options.ttl.count());
  if (const auto text = query_value(target, "count")) count = parse_number<std::uint64_t>(*text);
  if (const auto text = query_value(target, "ttl")) ttl = parse_number<std::uint32_t>(*text);
  if (!count || !ttl) return complaint(400, "count and ttl are whole numbers");
  VendorAnswer from;
  if (mode == VendorMode::Ok) from = offer_answer(shape, next_offers(state, *count, seconds{*ttl}));
  if (mode == VendorMode::Empty) from = empty_answer(shape);
  if (mode == VendorMode::Error) from = error_answer(shape);
  Answer answer{from.status, from.content_type, std::move(from.body), {}};
  if (from.retry_after_s) answer.fields.add("Retry-After", std::to_string(*from.retry_after_s));
  return answer;
}

awaitable<bool> serve_vendor_api(FixtureState& state, Exchange& exchange, VendorShape shape) {
  ++state.vendor_calls;
  auto mode = state.vendor_mode;
  if (const auto text = query_value(exchange.request.target, "answer")) {
    const auto wanted = parse_vendor_mode(*text);
    if (!wanted) {
      Answer answer = complaint(400, "unknown answer " + *text);
      co_return co_await send(exchange, std::move(answer));
    }
    mode = *wanted;
  }
  if (mode == VendorMode::Down) {
    exchange.stream->reset();
    co_return false;
  }
  if (mode == VendorMode::Hang) {
    co_await exchange.stream->discard();
    co_return false;
  }
  Answer answer = vendor_answer(state, shape, mode, exchange.request.target);
  co_return co_await send(exchange, std::move(answer));
}

// Calls `act` for the proxy that the query names; for all without one or with "*".
Answer for_proxies(FixtureState& state, std::string_view target,
                   const std::function<void(FixtureProxy&)>& act) {
  const auto which = query_value(target, "proxy");
  if (!which || *which == "*") {
    for (auto& proxy : state.proxies) act(*proxy);
    return json({{"ok", true}});
  }
  const auto index = parse_number<std::size_t>(*which);
  if (!index || *index >= state.proxies.size()) {
    return complaint(400, "no proxy '" + *which + "'; there are 0 to " +
                              std::to_string(state.proxies.size() - 1));
  }
  act(*state.proxies[*index]);
  return json({{"ok", true}});
}

Answer set_fault(FixtureState& state, std::string_view target) {
  const auto fault = parse_fault(query_value(target, "kind").value_or(""));
  if (!fault) return complaint(400, fault.error().message);
  return for_proxies(state, target, [&](FixtureProxy& proxy) {
    proxy.fault = *fault;
    proxy.apply();
  });
}

Answer set_running(FixtureState& state, std::string_view target, bool running) {
  return for_proxies(state, target, [&](FixtureProxy& proxy) {
    proxy.running = running;
    proxy.apply();
  });
}

Answer set_vendor(FixtureState& state, std::string_view target) {
  const auto mode = parse_vendor_mode(query_value(target, "mode").value_or(""));
  if (!mode) return complaint(400, "mode is ok, empty, error, down or hang");
  state.vendor_mode = *mode;
  return json({{"ok", true}});
}

Answer reset_stats(FixtureState& state) {
  for (auto& proxy : state.proxies) {
    const auto in_flight = proxy->counters.in_flight;
    proxy->counters = ProxyCounters{};
    proxy->counters.in_flight = proxy->counters.in_flight_max = in_flight;
  }
  state.vendor_calls = state.vendor_offered = state.origin_requests = 0;
  return json({{"ok", true}});
}

Answer control(FixtureState& state, const Request& request) {
  if (request.method != "POST") return complaint(405, "control calls are POST");
  const auto path = path_of(request.target);
  if (path == "/control/fault") return set_fault(state, request.target);
  if (path == "/control/vendor") return set_vendor(state, request.target);
  if (path == "/control/stop-proxies") return set_running(state, request.target, false);
  if (path == "/control/start-proxies") return set_running(state, request.target, true);
  if (path == "/control/reset-stats") return reset_stats(state);
  return complaint(404, "no such control call");
}

Answer records(const FixtureState& state, std::string_view target) {
  const auto token = query_value(target, "token").value_or("");
  const auto* entry = state.journal.find(token);
  if (entry == nullptr) return json(records_json(token, {}), 404);
  return json(records_json(token, *entry));
}

awaitable<bool> answer_vendor(FixtureState& state, Exchange& exchange) {
  const Sink ignore = [](std::string_view) {};
  if (!co_await drain(exchange, ignore)) co_return false;
  const std::string target = exchange.request.target;
  const auto path = path_of(target);
  if (const auto shape = shape_at(path)) {
    co_return co_await serve_vendor_api(state, exchange, *shape);
  }
  Answer answer;
  if (path.starts_with("/control/")) {
    answer = control(state, exchange.request);
  } else if (path == "/records") {
    answer = records(state, target);
  } else if (path == "/stats") {
    answer = json(stats_json(state));
  } else if (path == "/ports") {
    answer = json(ready_json(state));
  } else {
    answer = {path == "/" ? 200U : 404U, "text/plain", std::string(kIndex), {}};
  }
  co_return co_await send(exchange, std::move(answer));
}

}  // namespace

awaitable<void> serve_vendor(FixtureStatePtr state, StreamPtr stream) {
  // A named handler: GCC 12 destroys a capturing temporary of a co_await twice.
  const Handler handler = [state](Exchange& exchange) { return answer_vendor(*state, exchange); };
  co_await serve_exchanges(std::move(stream), handler);
}

}  // namespace proxypool::loadgen
