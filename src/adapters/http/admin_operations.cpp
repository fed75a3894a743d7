// What the Admin API does beside showing: the configuration, and sequential routings.
#include "adapters/http/admin_operations.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapters/http/json_body.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::http {

namespace {

using nlohmann::json;

constexpr milliseconds kBudget{2'000};

net::HttpResponse answer(const json& body) {
  net::HttpResponse response =
      net::json_response(200, body.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  response.fields.emplace_back("Cache-Control", "no-store");
  return response;
}

json change_json(const ports::ListChange& change) {
  return {{"added", change.added}, {"removed", change.removed}, {"changed", change.changed}};
}

json restart_json(const std::vector<ports::RestartNeeded>& keys) {
  json out = json::array();
  for (const auto& key : keys) out.push_back({{"key", key.key}, {"restart", key.program}});
  return out;
}

json problems_json(const std::vector<ports::ConfigProblem>& problems) {
  json out = json::array();
  for (const auto& problem : problems) {
    out.push_back({{"path", problem.path}, {"message", problem.message}});
  }
  return out;
}

Answer config_answer(const ports::ConfigAnswer& reading) {
  if (reading.outcome == ports::ConfigOutcome::Rejected) {
    Refusal refusal{422, "config_invalid",
                    "the configuration was not taken over; what counted before still does"};
    for (const auto& problem : reading.errors) {
      refusal.errors.push_back({problem.path, problem.message});
    }
    return refusal;
  }
  return answer({{"outcome", ports::to_string(reading.outcome)},
                 {"revision", reading.revision},
                 {"fingerprint", reading.fingerprint},
                 {"changes",
                  {{"sections", reading.sections},
                   {"upstreams", change_json(reading.upstreams)},
                   {"routings", change_json(reading.routings)},
                   {"clients", change_json(reading.clients)}}},
                 {"restart", restart_json(reading.restart)},
                 {"warnings", problems_json(reading.warnings)}});
}

Answer config_page(const ports::ConfigReading& reading) {
  json out{{"file", reading.file},
           {"revision", reading.revision},
           {"fingerprint", reading.fingerprint},
           {"restart", restart_json(reading.restart)},
           {"rejected", problems_json(reading.rejected)},
           {"effective", reading.text}};
  if (reading.activated_at) out["activatedAt"] = format_time(*reading.activated_at);
  return answer(out);
}

Answer routing_answer(const Result<ports::RoutingState>& state) {
  if (!state) return refusal_of(state.error());
  json out{{"id", state->routing.str()}, {"enabled", state->enabled}};
  if (state->current) out["current"] = state->current->str();
  net::HttpResponse response = answer(out);
  response.fields.emplace_back("ETag", entity_tag(state->revision));
  return response;
}

std::string actor_of(const Call& call) {
  return (call.client.empty() ? "local" : call.client) + " at " + call.request.peer.address.str();
}

// If-Match: the tag of the state that the caller has seen; `*` and no field: whatever it is.
std::variant<ports::RoutingCommand, Refusal> command_of(Call& call) {
  ports::RoutingCommand command{RoutingId(call.captures["id"]), std::nullopt, actor_of(call)};
  const std::string_view field = trim(call.request.field("if-match"));
  if (field.empty() || field == "*") return command;
  const bool quoted = field.size() > 2 && field.front() == '"' && field.back() == '"';
  if (quoted) command.revision = parse_number<std::uint64_t>(field.substr(1, field.size() - 2));
  if (!command.revision) {
    return Refusal{400, "bad_request", "If-Match must be an ETag that this API gave"};
  }
  return command;
}

class Operations {
 public:
  explicit Operations(AdminNeeds needs) : needs_(std::move(needs)) {}

  Answer switch_to(Call& call) {
    auto command = command_of(call);
    if (auto* refusal = std::get_if<Refusal>(&command)) return *refusal;
    auto body = json_object(call);
    if (auto* refusal = std::get_if<Refusal>(&body)) return *refusal;
    const json& object = std::get<json>(body);
    std::vector<net::ProblemEntry> errors;
    for (const auto& [key, value] : object.items()) {
      if (key != "to") errors.push_back({key, "unknown field"});
    }
    const bool named = object.contains("to") && object["to"].is_string();
    if (!named) errors.push_back({"to", "is required: the id of an upstream"});
    if (!errors.empty()) {
      return Refusal{400, "validation_failed", "the request has fields that cannot be used",
                     std::move(errors)};
    }
    return routing_answer(
        needs_.routings.switch_routing(std::get<ports::RoutingCommand>(command),
                                       UpstreamId(object["to"].get<std::string>()), budget()));
  }
  Answer enable(Call& call, bool enabled) {
    auto command = command_of(call);
    if (auto* refusal = std::get_if<Refusal>(&command)) return *refusal;
    return routing_answer(needs_.routings.enable_routing(std::get<ports::RoutingCommand>(command),
                                                         enabled, budget()));
  }
  Answer reload(const Call& call) {
    return config_answer(needs_.config.reload_config(actor_of(call)));
  }
  Answer validate() { return config_answer(needs_.config.validate_config()); }
  Answer config() { return config_page(needs_.config.config()); }

 private:
  [[nodiscard]] Deadline budget() const { return Deadline::after(needs_.clock.now(), kBudget); }

  AdminNeeds needs_;
};

}  // namespace

std::string entity_tag(std::uint64_t revision) {
  return "\"" + std::to_string(revision) + "\"";
}

void add_admin_operations(Router& router, const AdminGuards& guards, AdminNeeds needs) {
  const auto operations = std::make_shared<Operations>(std::move(needs));
  router.add("POST", "/v1/routings/{id}:switch", guards.write,
             [operations](Call& call) { return operations->switch_to(call); });
  router.add("POST", "/v1/routings/{id}:enable", guards.write,
             [operations](Call& call) { return operations->enable(call, true); });
  router.add("POST", "/v1/routings/{id}:disable", guards.write,
             [operations](Call& call) { return operations->enable(call, false); });
  router.add("GET", "/v1/config", guards.read,
             [operations](Call&) { return operations->config(); });
  router.add("POST", "/v1/config:validate", guards.admin,
             [operations](Call&) { return operations->validate(); });
  router.add("POST", "/v1/config:reload", guards.admin,
             [operations](Call& call) { return operations->reload(call); });
}

}  // namespace proxypool::http
