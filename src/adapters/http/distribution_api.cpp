// POST /v1/extractions and its preview.
#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "adapters/http/apis.hpp"
#include "adapters/http/json_body.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/domain/proxy/list_line.hpp"

namespace proxypool::http {

namespace {

using nlohmann::json;

constexpr milliseconds kBudget{2'000};   // EX-4: a store that is away is told within it
constexpr std::size_t kValuesMax = 100;  // of one filter

// Collects every mistake of a body instead of the first.
class Reader {
 public:
  void fail(std::string path, std::string message) {
    errors_.push_back({std::move(path), std::move(message)});
  }
  [[nodiscard]] const std::vector<net::ProblemEntry>& errors() const noexcept { return errors_; }

  void only(const json& object, const std::string& path, std::set<std::string> known) {
    for (const auto& [key, value] : object.items()) {
      if (!known.contains(key)) fail(join(path, key), "unknown field");
    }
  }
  std::optional<std::uint64_t> number(const json& object, const std::string& path, const char* key,
                                      std::uint64_t max) {
    if (!object.contains(key)) return std::nullopt;
    const json& value = object[key];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max) {
      fail(join(path, key), "must be a whole number from 0 to " + std::to_string(max));
      return std::nullopt;
    }
    return value.get<std::uint64_t>();
  }
  std::vector<std::string> texts(const json& object, const std::string& path, const char* key) {
    std::vector<std::string> out;
    if (!object.contains(key)) return out;
    const json& value = object[key];
    if (!value.is_array() || value.size() > kValuesMax) {
      fail(join(path, key), "must be a list of at most 100 texts");
      return out;
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i].is_string()) {
        out.push_back(value[i].get<std::string>());
      } else {
        fail(join(path, key) + "[" + std::to_string(i) + "]", "must be a text");
      }
    }
    return out;
  }
  static std::string join(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }

 private:
  std::vector<net::ProblemEntry> errors_;
};

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

void set_protocols(domain::ExtractionFilters& filters, const std::vector<std::string>& names,
                   Reader& reader) {
  for (const std::string& name : names) {
    const auto scheme = name == "http"     ? std::optional(domain::Scheme::Http)
                        : name == "https"  ? std::optional(domain::Scheme::Https)
                        : name == "socks5" ? std::optional(domain::Scheme::Socks5)
                                           : std::nullopt;
    if (scheme) filters.protocols.push_back(*scheme);
    if (!scheme) reader.fail("filters.protocols", "each must be http, https or socks5");
  }
}

void set_places(domain::ExtractionFilters& filters, std::vector<std::string> countries,
                Reader& reader) {
  for (std::string& country : countries) {
    country = upper(std::move(country));
    const bool letters =
        std::all_of(country.begin(), country.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (country.size() != 2 || !letters) {
      reader.fail("filters.countries", "each must have two letters");
    }
    filters.countries.push_back(std::move(country));
  }
}

std::vector<std::string> lowered(std::vector<std::string> values) {
  for (std::string& value : values) value = lower(value);
  return values;
}

std::vector<UpstreamId> upstream_ids(const std::vector<std::string>& names) {
  std::vector<UpstreamId> ids;
  for (const std::string& name : names) ids.emplace_back(name);
  return ids;
}

constexpr std::uint64_t kSecondsMax = std::uint64_t{10} * 366 * 24 * 3600;

void read_filters(const json& in, domain::ExtractionFilters& filters, Reader& reader) {
  const std::string at = "filters";
  if (!in.is_object()) return reader.fail(at, "must be an object");
  reader.only(in, at,
              {"protocols", "countries", "regions", "cities", "carriers", "upstreams", "tags",
               "minRemainingTtlSeconds", "maxHealthCheckAgeSeconds"});
  set_protocols(filters, reader.texts(in, at, "protocols"), reader);
  set_places(filters, reader.texts(in, at, "countries"), reader);
  filters.regions = lowered(reader.texts(in, at, "regions"));
  filters.cities = lowered(reader.texts(in, at, "cities"));
  filters.carriers = lowered(reader.texts(in, at, "carriers"));
  filters.upstreams = upstream_ids(reader.texts(in, at, "upstreams"));
  if (in.contains("tags")) {
    if (!in["tags"].is_object() || in["tags"].size() > 16) {
      reader.fail("filters.tags", "must be an object of at most 16 texts");
    } else {
      for (const auto& [key, value] : in["tags"].items()) {
        if (value.is_string()) filters.tags[key] = value.get<std::string>();
        if (!value.is_string()) reader.fail("filters.tags." + key, "must be a text");
      }
    }
  }
  if (const auto value = reader.number(in, at, "minRemainingTtlSeconds", kSecondsMax)) {
    filters.min_remaining_ttl = seconds(static_cast<std::int64_t>(*value));
  }
  if (const auto value = reader.number(in, at, "maxHealthCheckAgeSeconds", kSecondsMax)) {
    filters.max_health_check_age = seconds(static_cast<std::int64_t>(*value));
  }
}

domain::ExtractionCommand defaults(const DistributionNeeds& needs, const Call& call) {
  domain::ExtractionCommand command;
  command.client = ClientName(call.client);
  const DistributionNeeds::Defaults given = needs.defaults();
  command.filters.min_remaining_ttl =
      std::chrono::duration_cast<milliseconds>(given.remaining_ttl_min);
  if (given.health_check_age_max > nanoseconds{0}) {
    command.filters.max_health_check_age =
        std::chrono::duration_cast<milliseconds>(given.health_check_age_max);
  }
  return command;
}

Refusal bad_fields(const Reader& reader) {
  return {400, "validation_failed", "the request has fields that cannot be used", reader.errors()};
}

std::variant<domain::ExtractionCommand, Refusal> read_body(const DistributionNeeds& needs,
                                                           const Call& call) {
  auto parsed = json_object(call);
  if (auto* refusal = std::get_if<Refusal>(&parsed)) return *refusal;
  const json& body = std::get<json>(parsed);
  // Whoever sends one relies on it: taking the call without it could cost the caller proxies.
  if (!call.request.field("idempotency-key").empty()) {
    return Refusal{400, "idempotency_unsupported",
                   "Idempotency-Key is not supported by this version; send the call without it"};
  }
  Reader reader;
  domain::ExtractionCommand command = defaults(needs, call);
  reader.only(body, "", {"count", "fulfillment", "filters"});
  const auto count = reader.number(body, "", "count", std::numeric_limits<std::uint32_t>::max());
  if (!body.contains("count") || (count && *count == 0)) {
    reader.fail("count", "is required and at least 1");
  }
  command.count = static_cast<std::uint32_t>(count.value_or(1));
  if (body.contains("fulfillment")) {
    const json& value = body["fulfillment"];
    const bool all = value == "allOrNothing";
    if (!all && value != "partial") {
      reader.fail("fulfillment", "must be partial or allOrNothing");
    }
    if (all) command.fulfillment = domain::Fulfillment::AllOrNothing;
  }
  if (body.contains("filters")) read_filters(body["filters"], command.filters, reader);
  if (!reader.errors().empty()) return bad_fields(reader);
  return command;
}

std::vector<std::string> list_parameter(const Call& call, std::string_view name) {
  std::vector<std::string> values;
  const auto given = call.request.parameter(name);
  if (!given || given->empty()) return values;
  for (const std::string_view value : split(*given, ',')) values.emplace_back(trim(value));
  return values;
}

std::variant<domain::ExtractionCommand, Refusal> read_query(const DistributionNeeds& needs,
                                                            const Call& call) {
  Reader reader;
  domain::ExtractionCommand command = defaults(needs, call);
  const auto number = [&](std::string_view name) -> std::optional<std::uint32_t> {
    const auto given = call.request.parameter(name);
    if (!given) return std::nullopt;
    const auto value = parse_number<std::uint32_t>(*given);
    if (!value) reader.fail(std::string(name), "must be a whole number");
    return value;
  };
  command.count = number("count").value_or(1);
  set_protocols(command.filters, list_parameter(call, "protocols"), reader);
  set_places(command.filters, list_parameter(call, "countries"), reader);
  command.filters.regions = lowered(list_parameter(call, "regions"));
  command.filters.cities = lowered(list_parameter(call, "cities"));
  command.filters.carriers = lowered(list_parameter(call, "carriers"));
  command.filters.upstreams = upstream_ids(list_parameter(call, "upstreams"));
  for (const std::string& tag : list_parameter(call, "tags")) {
    const auto colon = tag.find(':');
    if (colon == std::string::npos) {
      reader.fail("tags", "each must be KEY:VALUE");
    } else {
      command.filters.tags[tag.substr(0, colon)] = tag.substr(colon + 1);
    }
  }
  if (const auto value = number("minRemainingTtlSeconds")) {
    command.filters.min_remaining_ttl = seconds(*value);
  }
  if (const auto value = number("maxHealthCheckAgeSeconds")) {
    command.filters.max_health_check_age = seconds(*value);
  }
  if (!reader.errors().empty()) return bad_fields(reader);
  return command;
}

Refusal extraction_refusal(const Error& error) {
  constexpr std::string_view kTooLarge = "count_too_large: ";
  if (error.message.substr(0, kTooLarge.size()) == kTooLarge) {
    return {422, "count_too_large", error.message.substr(kTooLarge.size())};
  }
  return refusal_of(error);
}

std::optional<Refusal> outcome_refusal(const domain::ExtractionResult& result) {
  using Outcome = domain::ExtractionOutcome;
  switch (result.outcome) {
    case Outcome::Insufficient: {
      Refusal refusal{
          409, "insufficient_inventory",
          "only " + std::to_string(result.available) + " proxies match; nothing was taken"};
      refusal.extra = "\"available\":" + std::to_string(result.available);
      return refusal;
    }
    case Outcome::NotYet: {
      Refusal refusal{503, "not_ready",
                      "an earlier run may still hold proxies; exclusive hand-out begins soon"};
      refusal.fields.emplace_back("Retry-After", "5");
      return refusal;
    }
    case Outcome::InProgress:
      return Refusal{409, "in_progress", "the same idempotency key is being served"};
    case Outcome::Mismatch:
      return Refusal{422, "idempotency_mismatch", "the key was used with another body"};
    default:
      return std::nullopt;
  }
}

json proxy_json(const domain::ExtractedProxy& entry, StoreTime now) {
  const domain::Proxy& proxy = entry.proxy;
  json out{{"url", domain::format_url(proxy.endpoint, entry.credential).reveal()},
           {"protocol", domain::to_string(proxy.endpoint.scheme)},
           {"host", proxy.endpoint.host},
           {"port", proxy.endpoint.port},
           {"upstream", proxy.upstream.str()}};
  if (!entry.credential.username.empty()) {
    out["username"] = entry.credential.username;
    out["password"] = entry.credential.password.reveal();
  }
  const auto label = [&](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  label("country", proxy.attributes.country);
  label("region", proxy.attributes.region);
  label("city", proxy.attributes.city);
  label("carrier", proxy.attributes.carrier);
  if (proxy.expires_at) {
    out["expiresAt"] = format_time(*proxy.expires_at);
    out["remainingTtlSeconds"] =
        std::max<std::int64_t>(0, (*proxy.expires_at - now).count() / 1000);
  }
  return out;
}

std::string line_of(const domain::ExtractedProxy& entry, std::string_view format) {
  const domain::Endpoint& endpoint = entry.proxy.endpoint;
  if (format == "hostport") return std::string(domain::format_fields(endpoint, {}).reveal());
  const SecretString line = format == "url" ? domain::format_url(endpoint, entry.credential)
                                            : domain::format_fields(endpoint, entry.credential);
  return std::string(line.reveal());
}

net::HttpResponse text_answer(const domain::ExtractionResult& result, std::string_view format) {
  std::string text;
  for (const auto& entry : result.proxies) text += line_of(entry, format) + "\n";
  return net::text_response(200, std::move(text));
}

net::HttpResponse json_answer(const domain::ExtractionResult& result,
                              const domain::ExtractionCommand& command, const Call& call) {
  const bool all = command.fulfillment == domain::Fulfillment::AllOrNothing;
  json out{{"requestId", call.request_id},
           {"requested", command.count},
           {"returned", result.proxies.size()},
           {"fulfillment", all ? "allOrNothing" : "partial"},
           {"proxies", json::array()}};
  if (result.scan_limited) out["scanLimited"] = true;
  for (const auto& entry : result.proxies) out["proxies"].push_back(proxy_json(entry, result.now));
  return net::json_response(200, out.dump(-1, ' ', false, json::error_handler_t::replace));
}

// `?format=` or Accept: text/plain asks for lines.
std::variant<std::string, Refusal> wanted_format(const Call& call) {
  const auto given = call.request.parameter("format");
  if (given) {
    if (*given == "url" || *given == "hostport" || *given == "hostportuserpass") {
      return std::string(*given);
    }
    if (*given != "json") {
      return Refusal{400, "validation_failed",
                     "format must be json, url, hostport or hostportuserpass"};
    }
    return std::string();
  }
  const std::string_view accept = call.request.field("accept");
  return std::string(accept.find("text/plain") != std::string_view::npos ? "url" : "");
}

Answer extract(const DistributionNeeds& needs, Call& call) {
  auto format = wanted_format(call);
  if (auto* refusal = std::get_if<Refusal>(&format)) return *refusal;
  auto command = read_body(needs, call);
  if (auto* refusal = std::get_if<Refusal>(&command)) return *refusal;
  auto& wanted = std::get<domain::ExtractionCommand>(command);
  const auto result =
      needs.extractions.extract(wanted, Deadline::after(needs.clock.now(), kBudget));
  if (!result) return extraction_refusal(result.error());
  if (auto refusal = outcome_refusal(*result)) return *refusal;
  needs.events.emit(ports::Event::ProxiesExtracted, {{"request", call.request_id},
                                                     {"client", call.client},
                                                     {"wanted", wanted.count},
                                                     {"given", result->proxies.size()}});
  const auto& lines = std::get<std::string>(format);
  net::HttpResponse response =
      lines.empty() ? json_answer(*result, wanted, call) : text_answer(*result, lines);
  response.fields.emplace_back("Cache-Control", "no-store");
  return response;
}

Answer preview(const DistributionNeeds& needs, Call& call) {
  auto command = read_query(needs, call);
  if (auto* refusal = std::get_if<Refusal>(&command)) return *refusal;
  const auto result = needs.extractions.preview(std::get<domain::ExtractionCommand>(command),
                                                Deadline::after(needs.clock.now(), kBudget));
  if (!result) return extraction_refusal(result.error());
  if (auto refusal = outcome_refusal(*result)) return *refusal;
  const json out{{"available", result->available}, {"scanLimited", result->scan_limited}};
  net::HttpResponse response = net::json_response(200, out.dump());
  response.fields.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace

void add_distribution(Router& router, const Guard& guard, DistributionNeeds needs) {
  router.add("POST", "/v1/extractions", guard,
             [needs](Call& call) { return extract(needs, call); });
  router.add("GET", "/v1/extractions/preview", guard,
             [needs](Call& call) { return preview(needs, call); });
}

}  // namespace proxypool::http
