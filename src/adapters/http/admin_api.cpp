// The reading half of the Admin API.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "adapters/http/admin_operations.hpp"
#include "adapters/http/apis.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::http {

namespace {

using nlohmann::json;

constexpr milliseconds kBudget{2'000};
constexpr std::uint32_t kPageDefault = 100;
constexpr std::uint32_t kPageMax = 1'000;

net::HttpResponse answer(const json& body) {
  net::HttpResponse response =
      net::json_response(200, body.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  response.fields.emplace_back("Cache-Control", "no-store");
  return response;
}

std::string seconds_text(nanoseconds duration) {
  return format_duration(duration);
}

json version_json(const std::optional<domain::SnapshotVersion>& version) {
  if (!version) return nullptr;
  return {{"generation", to_hex(version->generation)}, {"counter", version->counter}};
}

json states_json(const domain::Inventory& inventory) {
  json out = json::object();
  for (std::size_t i = 0; i < domain::kProxyStates; ++i) {
    const auto state = static_cast<domain::ProxyState>(i);
    out[std::string(domain::to_string(state))] = inventory.in_state(state);
  }
  return out;
}

std::string_view stop_text(domain::RefillStop stop) {
  switch (stop) {
    case domain::RefillStop::Enough:
      return "enough";
    case domain::RefillStop::PoolFull:
      return "poolFull";
    case domain::RefillStop::TotalUsed:
      return "totalUsed";
    case domain::RefillStop::InFlight:
      return "inFlight";
    default:
      return "none";
  }
}

json fetch_json(const ports::UpstreamReading& reading) {
  const domain::FetchCounters& counters = reading.counters;
  json out{{"success", counters.of(domain::FetchClass::Success)},
           {"empty", counters.of(domain::FetchClass::Empty)},
           {"duplicateOnly", counters.of(domain::FetchClass::DuplicateOnly)},
           {"error", counters.of(domain::FetchClass::Error)},
           {"records", counters.records},
           {"invalid", counters.invalid},
           {"duplicates", counters.duplicates},
           {"expiredOnArrival", counters.expired_on_arrival},
           {"admitted", counters.admitted},
           {"emptyInARow", reading.empty_in_a_row},
           {"errorsInARow", reading.errors_in_a_row},
           {"backoffLeft", seconds_text(reading.backoff_left)},
           {"stop", stop_text(reading.stop)}};
  if (reading.last_fetch_at) {
    out["last"] = {{"at", format_time(*reading.last_fetch_at)},
                   {"class", domain::to_string(reading.last.kind)},
                   {"reason", domain::to_string(reading.last.reason)},
                   {"detail", reading.last_detail}};
  }
  return out;
}

json upstream_json(const ports::UpstreamReading& reading) {
  const domain::Inventory& inventory = reading.inventory;
  return {{"id", reading.id.str()},
          {"provider", reading.provider},
          {"enabled", reading.enabled},
          {"leader", reading.leader},
          {"proxies",
           {{"managed", inventory.managed},
            {"owned", inventory.owned},
            {"unowned", inventory.unowned},
            {"revoking", inventory.revoking},
            {"byState", states_json(inventory)}}},
          {"slots",
           {{"available", inventory.slots.available},
            {"unknown", inventory.slots.unknown},
            {"active", inventory.active},
            {"reserved", inventory.reserved},
            {"minimum", reading.minimum},
            {"target", reading.target}}},
          {"maxSize", reading.size_max},
          {"spend", {{"total", reading.total_spent}, {"maxTotal", reading.total_max}}},
          {"fetch", fetch_json(reading)}};
}

json routing_json(const ports::RoutingReading& reading) {
  json out{{"id", reading.id.str()},
           {"enabled", reading.enabled},
           {"strategy", reading.strategy},
           {"balancer", reading.balancer},
           {"upstreams", json::array()}};
  for (const auto& upstream : reading.upstreams) out["upstreams"].push_back(upstream.str());
  if (reading.current) out["current"] = reading.current->str();
  return out;
}

json history_json(const ports::AuditEntry& entry) {
  json out{{"at", format_time(entry.at)}, {"actor", entry.actor}, {"action", entry.action}};
  const json detail = json::parse(entry.detail, nullptr, false);
  if (detail.is_object()) out.update(detail);
  return out;
}

json worker_json(const ports::WorkerRow& row) {
  return {{"id", row.worker.str()},
          {"instance", row.instance.str()},
          {"zone", row.zone},
          {"live", row.live},
          {"draining", row.draining},
          {"registeredAt", format_time(row.registered_at)},
          {"lastReportAt", format_time(row.last_report_at)},
          {"snapshot",
           {{"issued", version_json(row.issued)},
            {"acknowledged", version_json(row.acknowledged)},
            {"rejected", version_json(row.rejected)}}},
          {"active", row.active},
          {"reserved", row.reserved}};
}

// No user name, no password: Admin shows where a proxy is, not how to use it.
json proxy_json(const ports::ProxyRow& row, StoreTime now) {
  const domain::Proxy& proxy = row.leased.proxy;
  json out{{"id", to_string(proxy.id)},
           {"upstream", proxy.upstream.str()},
           {"protocol", domain::to_string(proxy.endpoint.scheme)},
           {"host", proxy.endpoint.host},
           {"port", proxy.endpoint.port},
           {"state", domain::to_string(proxy.state)},
           {"ownership", domain::to_string(proxy.ownership)},
           {"maxConcurrency", proxy.max_concurrency},
           {"active", row.active},
           {"reserved", row.reserved},
           {"createdAt", format_time(proxy.created_at)},
           {"latency", seconds_text(proxy.latency)}};
  if (!row.leased.holder.worker.empty()) out["owner"] = row.leased.holder.worker.str();
  if (row.leased.orphaned_until) {
    out["orphanedSlots"] = row.leased.orphaned_slots;
    out["orphanedUntil"] = format_time(*row.leased.orphaned_until);
  }
  if (proxy.expires_at) {
    out["expiresAt"] = format_time(*proxy.expires_at);
    out["remainingTtlSeconds"] =
        std::max<std::int64_t>(0, (*proxy.expires_at - now).count() / 1000);
  }
  if (proxy.last_checked_at) out["lastCheckedAt"] = format_time(*proxy.last_checked_at);
  if (proxy.last_success_at) out["lastSuccessAt"] = format_time(*proxy.last_success_at);
  if (row.last_failure.phase != domain::Phase::None) {
    out["lastFailure"] = {{"phase", domain::to_string(row.last_failure.phase)},
                          {"kind", domain::to_string(row.last_failure.kind)}};
  }
  return out;
}

json usage_json(const domain::Usage& usage) {
  return {{"bytesUp", usage.bytes_up},
          {"bytesDown", usage.bytes_down},
          {"bytes", usage.bytes()},
          {"requests", usage.requests}};
}

json client_usage_json(const ports::ClientUsageReading& reading) {
  const auto date = [](domain::Day day) { return format_time(WallTime(day)).substr(0, 10); };
  json out = usage_json(reading.today);
  out["client"] = reading.client.str();
  out["day"] = date(reading.day);
  out["resetsAt"] = format_time(WallTime(reading.day + std::chrono::days{1}));
  if (reading.bytes_per_day != 0) {
    const std::uint64_t used = std::min(reading.today.bytes(), reading.bytes_per_day);
    out["quota"] = {{"bytesPerDay", reading.bytes_per_day},
                    {"remaining", reading.bytes_per_day - used},
                    {"exceeded", domain::used_up(reading.today, reading.bytes_per_day)}};
  }
  out["days"] = json::array();
  for (const domain::DayUsage& entry : reading.days) {
    out["days"].push_back(usage_json(entry.usage));
    out["days"].back()["day"] = date(entry.day);
  }
  return out;
}

std::optional<ProxyId> parse_id(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return ProxyId(value);
}

// ?limit= and ?cursor= of a list.
struct Page {
  std::uint32_t limit = kPageDefault;
  std::optional<std::string> cursor;
};

Page read_page(const Call& call, std::vector<net::ProblemEntry>& errors) {
  Page page;
  if (const auto given = call.request.parameter("limit")) {
    const auto limit = parse_number<std::uint32_t>(*given);
    if (!limit || *limit == 0 || *limit > kPageMax) {
      errors.push_back({"limit", "must be 1 to 1000"});
    }
    page.limit = limit.value_or(kPageDefault);
  }
  if (const auto given = call.request.parameter("cursor")) page.cursor = std::string(*given);
  return page;
}

Refusal bad_query(std::vector<net::ProblemEntry> errors) {
  return {400, "validation_failed", "the query cannot be used", std::move(errors)};
}

std::variant<ports::ProxyQuery, Refusal> read_query(const Call& call) {
  ports::ProxyQuery query;
  std::vector<net::ProblemEntry> errors;
  const auto values = [&](std::string_view name) {
    std::vector<std::string> out;
    for (const auto& [key, value] : call.request.query) {
      if (key != name) continue;
      for (const std::string_view part : split(value, ',')) out.emplace_back(part);
    }
    return out;
  };
  for (const std::string& id : values("upstream")) query.upstreams.emplace_back(id);
  for (const std::string& name : values("state")) {
    bool known = false;
    for (std::size_t i = 0; i < domain::kProxyStates; ++i) {
      const auto state = static_cast<domain::ProxyState>(i);
      if (name != domain::to_string(state)) continue;
      query.states.push_back(state);
      known = true;
    }
    if (!known) errors.push_back({"state", "'" + name + "' is no state"});
  }
  const Page page = read_page(call, errors);
  query.limit = page.limit;
  if (page.cursor) {
    query.after = parse_id(*page.cursor);
    if (!query.after) errors.push_back({"cursor", "must be what an answer gave as nextCursor"});
  }
  if (!errors.empty()) return bad_query(std::move(errors));
  return query;
}

// One element of a list by its id, or 404.
template <class Items, class Name, class Render>
Answer one_of(const Items& items, const std::string& id, Name name, Render render,
              std::string_view what) {
  for (const auto& item : items) {
    if (name(item) == id) return answer(render(item));
  }
  return Refusal{404, "not_found", "no " + std::string(what) + " has the id '" + id + "'"};
}

template <class Items, class Render>
json list_json(const Items& items, Render render) {
  json out{{"items", json::array()}};
  for (const auto& item : items) out["items"].push_back(render(item));
  return out;
}

// A page of a list that is at hand as a whole, in its own order. The cursor is the last id of the
// page before; should that one be gone, the page begins after its place by name.
template <class Items, class Name, class Render>
Answer page_of(const Call& call, const Items& items, Name name, Render render) {
  std::vector<net::ProblemEntry> errors;
  const Page page = read_page(call, errors);
  if (!errors.empty()) return bad_query(std::move(errors));
  auto at = items.begin();
  if (page.cursor) {
    at = std::find_if(items.begin(), items.end(),
                      [&](const auto& item) { return name(item) == *page.cursor; });
    at = at != items.end() ? std::next(at)
                           : std::find_if(items.begin(), items.end(), [&](const auto& item) {
                               return name(item) > *page.cursor;
                             });
  }
  json out{{"items", json::array()}};
  for (; at != items.end() && out["items"].size() < page.limit; ++at) {
    out["items"].push_back(render(*at));
  }
  if (at != items.end() && at != items.begin()) out["nextCursor"] = name(*std::prev(at));
  return answer(out);
}

class Admin {
 public:
  explicit Admin(AdminNeeds needs) : needs_(std::move(needs)) {}

  [[nodiscard]] Deadline budget() const { return Deadline::after(needs_.clock.now(), kBudget); }

  Answer status() {
    const Deadline deadline = budget();
    const ports::StatusReading reading = needs_.readings.status(deadline);
    const auto workers = needs_.readings.workers(deadline);
    if (!workers) return refusal_of(workers.error());
    const auto checkers = needs_.readings.checkers(deadline);
    if (!checkers) return refusal_of(checkers.error());
    json out{{"version", needs_.version},
             {"cluster", reading.cluster_id},
             {"instance", reading.instance.str()},
             {"uptime", seconds_text(reading.uptime)},
             {"storage",
              {{"mode", reading.storage},
               {"generation", to_hex(reading.generation.id)},
               {"startedAt", format_time(reading.generation.started_at)},
               {"exclusive", reading.generation.now >= reading.generation.exclusive_from}}},
             {"snapshotsIssued", reading.snapshots_issued},
             {"checksInFlight", reading.checks_in_flight},
             {"warnings", reading.warnings}};
    out["workers"] = list_json(*workers, worker_json)["items"];
    out["checkers"] = list_json(*checkers, checker_json)["items"];
    out["upstreams"] = list_json(needs_.readings.upstreams(deadline), upstream_json)["items"];
    out["routings"] = list_json(needs_.readings.routings(deadline), routing_json)["items"];
    return answer(out);
  }

  Answer upstreams(const Call& call) {
    return page_of(call, needs_.readings.upstreams(budget()), name_of_upstream, upstream_json);
  }
  Answer upstream(const std::string& id) {
    return one_of(needs_.readings.upstreams(budget()), id, name_of_upstream, upstream_json,
                  "upstream");
  }
  Answer routings(const Call& call) {
    return page_of(call, needs_.readings.routings(budget()), name_of_routing, routing_json);
  }
  // One routing, with what happened to it.
  Answer routing(const std::string& id) {
    const auto all = needs_.readings.routings(budget());
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& reading) { return reading.id.str() == id; });
    if (found == all.end()) {
      return Refusal{404, "not_found", "no routing has the id '" + id + "'"};
    }
    const auto history = needs_.routings.routing_history(found->id, budget());
    if (!history) return refusal_of(history.error());
    json out = routing_json(*found);
    out["history"] = json::array();
    for (const ports::AuditEntry& entry : *history) out["history"].push_back(history_json(entry));
    net::HttpResponse response = answer(out);
    response.fields.emplace_back("ETag", entity_tag(found->revision));
    return response;
  }
  Answer workers(const Call& call) {
    const auto rows = needs_.readings.workers(budget());
    if (!rows) return refusal_of(rows.error());
    return page_of(call, *rows, name_of_worker, worker_json);
  }
  Answer worker(const std::string& id) {
    const auto rows = needs_.readings.workers(budget());
    if (!rows) return refusal_of(rows.error());
    return one_of(*rows, id, name_of_worker, worker_json, "worker");
  }
  Answer checkers(const Call& call) {
    const auto rows = needs_.readings.checkers(budget());
    if (!rows) return refusal_of(rows.error());
    return page_of(
        call, *rows, [](const auto& row) { return row.checker.str(); }, checker_json);
  }

  Answer proxies(const Call& call) {
    auto query = read_query(call);
    if (auto* refusal = std::get_if<Refusal>(&query)) return *refusal;
    const Deadline deadline = budget();
    const auto& wanted = std::get<ports::ProxyQuery>(query);
    const auto rows = needs_.readings.proxies(wanted, deadline);
    const auto now = needs_.readings.store_now(deadline);
    if (!rows) return refusal_of(rows.error());
    if (!now) return refusal_of(now.error());
    json out = list_json(*rows, [&](const ports::ProxyRow& row) { return proxy_json(row, *now); });
    if (rows->size() == wanted.limit) {
      out["nextCursor"] = to_string(rows->back().leased.proxy.id);
    }
    return answer(out);
  }
  Answer proxy(const std::string& id) {
    const auto wanted = parse_id(id);
    const Refusal unknown{404, "not_found", "no proxy has the id '" + id + "'"};
    if (!wanted) return unknown;
    ports::ProxyQuery query;
    query.limit = 1;
    if (wanted->value() > 0) query.after = ProxyId(wanted->value() - 1);
    const Deadline deadline = budget();
    const auto rows = needs_.readings.proxies(query, deadline);
    const auto now = needs_.readings.store_now(deadline);
    if (!rows) return refusal_of(rows.error());
    if (!now) return refusal_of(now.error());
    if (rows->empty() || rows->front().leased.proxy.id != *wanted) return unknown;
    return answer(proxy_json(rows->front(), *now));
  }

  Answer client_usage(const std::string& name) {
    const auto reading = needs_.readings.client_usage(ClientName(name), budget());
    if (!reading) return refusal_of(reading.error());
    if (!*reading) return Refusal{404, "not_found", "no client has the name '" + name + "'"};
    return answer(client_usage_json(**reading));
  }

 private:
  static json checker_json(const ports::WorkerRegistry::CheckerRow& row) {
    return {{"id", row.checker.str()},
            {"instance", row.instance.str()},
            {"live", row.live},
            {"maxInFlight", row.in_flight_max},
            {"registeredAt", format_time(row.registered_at)},
            {"lastSeenAt", format_time(row.last_seen_at)}};
  }

  static std::string name_of_upstream(const ports::UpstreamReading& r) { return r.id.str(); }
  static std::string name_of_routing(const ports::RoutingReading& r) { return r.id.str(); }
  static std::string name_of_worker(const ports::WorkerRow& row) { return row.worker.str(); }

  AdminNeeds needs_;
};

}  // namespace

void add_admin(Router& router, const AdminGuards& guards, AdminNeeds needs) {
  add_admin_operations(router, guards, needs);
  const auto admin = std::make_shared<Admin>(std::move(needs));
  const auto get = [&](std::string path, Handle handle) {
    router.add("GET", std::move(path), guards.read, std::move(handle));
  };
  get("/v1/status", [admin](Call&) { return admin->status(); });
  get("/v1/upstreams", [admin](Call& call) { return admin->upstreams(call); });
  get("/v1/upstreams/{id}", [admin](Call& call) { return admin->upstream(call.captures["id"]); });
  get("/v1/routings", [admin](Call& call) { return admin->routings(call); });
  get("/v1/routings/{id}", [admin](Call& call) { return admin->routing(call.captures["id"]); });
  get("/v1/workers", [admin](Call& call) { return admin->workers(call); });
  get("/v1/workers/{id}", [admin](Call& call) { return admin->worker(call.captures["id"]); });
  get("/v1/checkers", [admin](Call& call) { return admin->checkers(call); });
  get("/v1/clients/{name}/usage",
      [admin](Call& call) { return admin->client_usage(call.captures["name"]); });
  get("/v1/proxies", [admin](Call& call) { return admin->proxies(call); });
  get("/v1/proxies/{id}", [admin](Call& call) { return admin->proxy(call.captures["id"]); });
}

}  // namespace proxypool::http
