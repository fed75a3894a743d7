#include "loadgen/vendor_shapes.hpp"

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "proxypool/base/text.hpp"

namespace proxypool::loadgen {
namespace {

using Json = nlohmann::ordered_json;
using enum VendorShape;

constexpr std::array<std::pair<std::string_view, VendorShape>, 8> kPaths{{
    {"/text", TextLines},
    {"/text/colon", TextColon},
    {"/text/url", TextUrl},
    {"/json/list", JsonList},
    {"/json/array", JsonArray},
    {"/json/strings", JsonStrings},
    {"/json/map", JsonMap},
    {"/json/millis", JsonMillis},
}};

bool is_text(VendorShape shape) {
  return shape == TextLines || shape == TextColon || shape == TextUrl;
}

std::string host_port(const Offer& offer) {
  return offer.host + ":" + std::to_string(offer.port);
}

std::string line_of(VendorShape shape, const Offer& offer) {
  const std::string bare = host_port(offer);
  const bool named = !offer.user.empty();
  if (shape == TextColon && named) return bare + ":" + offer.user + ":" + offer.password;
  if (shape == TextUrl) {
    return offer.scheme + "://" +
           (named ? offer.user + ":" + offer.password + "@" : std::string{}) + bare;
  }
  return bare;
}

void add_account(Json& record, const Offer& offer, const char* user, const char* password) {
  if (offer.user.empty()) return;
  record[user] = offer.user;
  record[password] = offer.password;
}

Json list_record(const Offer& offer) {
  Json record = {{"ip", offer.host}, {"port", offer.port}};
  add_account(record, offer, "user", "pass");
  record["expire_time"] = format_time(WallTime{milliseconds{offer.expires_ms}});
  record["country"] = offer.country;
  record["region"] = offer.region;
  record["city"] = offer.city;
  record["carrier"] = offer.carrier;
  return record;
}

Json array_record(const Offer& offer) {
  Json record = {{"host", offer.host}, {"port", std::to_string(offer.port)}};
  add_account(record, offer, "username", "password");
  record["ttl"] = offer.ttl_s;
  record["country"] = offer.country;
  record["region"] = offer.region;
  record["city"] = offer.city;
  record["carrier"] = offer.carrier;
  return record;
}

Json map_record(const Offer& offer) {
  Json record = {
      {"host", offer.host}, {"port", std::to_string(offer.port)}, {"type", offer.scheme}};
  add_account(record, offer, "user", "pass");
  record["unixtime_end"] = offer.expires_ms / 1000;
  record["country"] = lower(offer.country);
  return record;
}

Json millis_record(const Offer& offer) {
  Json record = {{"endpoint", host_port(offer)}};
  add_account(record, offer, "account", "password");
  record["expired"] = offer.expires_ms;
  record["net"] = offer.carrier;
  return record;
}

Json body_of(VendorShape shape, std::span<const Offer> offers) {
  Json records = shape == JsonMap ? Json::object() : Json::array();
  for (const auto& offer : offers) {
    if (shape == JsonList) records.push_back(list_record(offer));
    if (shape == JsonArray) records.push_back(array_record(offer));
    if (shape == JsonStrings) {
      records.push_back(host_port(offer) + "," + std::to_string(offer.ttl_s));
    }
    if (shape == JsonMap) records[std::to_string(1001 + offer.index)] = map_record(offer);
    if (shape == JsonMillis) records.push_back(millis_record(offer));
  }
  const auto count = offers.size();
  if (shape == JsonArray) return records;
  if (shape == JsonMap) {
    return {{"status", "yes"}, {"list_count", count}, {"list", std::move(records)}};
  }
  if (shape == JsonMillis) {
    return {{"success", true}, {"result", {{"total", count}, {"items", std::move(records)}}}};
  }
  const char* name = shape == JsonList ? "list" : "proxy_list";
  return {{"code", 0}, {"msg", "ok"}, {"data", {{"count", count}, {name, std::move(records)}}}};
}

VendorAnswer json_answer(const Json& body, unsigned status = 200) {
  return {status, "application/json", body.dump() + "\n", std::nullopt};
}

}  // namespace

std::optional<VendorShape> shape_at(std::string_view path) {
  for (const auto& [known, shape] : kPaths) {
    if (known == path) return shape;
  }
  return std::nullopt;
}

VendorAnswer offer_answer(VendorShape shape, std::span<const Offer> offers) {
  if (!is_text(shape)) return json_answer(body_of(shape, offers));
  VendorAnswer answer{200, "text/plain", {}, std::nullopt};
  for (const auto& offer : offers) answer.body += line_of(shape, offer) + "\r\n";
  return answer;
}

VendorAnswer empty_answer(VendorShape shape) {
  if (shape == JsonStrings) {
    return json_answer({{"code", 115}, {"msg", "no proxy fits these conditions"}, {"data", ""}});
  }
  return offer_answer(shape, {});
}

VendorAnswer error_answer(VendorShape shape) {
  constexpr const char* kText = "too many calls";
  switch (shape) {
    case JsonList:
      return json_answer({{"code", 111}, {"msg", kText}, {"data", ""}});
    case JsonArray: {
      auto answer = json_answer({{"detail", kText}}, 429);
      answer.retry_after_s = 2;
      return answer;
    }
    case JsonStrings:
      return json_answer({{"code", -120}, {"msg", kText}, {"data", ""}});
    case JsonMap:
      return json_answer({{"status", "no"}, {"error_id", 210}, {"error", kText}});
    case JsonMillis:
      return json_answer({{"success", false}, {"error", {{"code", "RATE"}, {"message", kText}}}});
    default:
      return {200, "text/plain", std::string("ERROR(-120): ") + kText + "\n", std::nullopt};
  }
}

}  // namespace proxypool::loadgen
