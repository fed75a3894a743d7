#include "adapters/http/json_body.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

#include "proxypool/base/text.hpp"

namespace proxypool::http {

using nlohmann::json;

std::variant<json, Refusal> json_object(const Call& call) {
  const std::string_view type = call.request.field("content-type");
  const auto media = trim(type.substr(0, type.find(';')));
  if (!equal_ignoring_case(media, "application/json")) {
    return Refusal{415, "unsupported_media_type", "send application/json"};
  }
  // Deep nesting is refused before the document is built; the APIs' own is three deep.
  const auto shallow = [](int depth, json::parse_event_t, json&) { return depth <= 8; };
  json body = json::parse(call.request.body, shallow, false);
  if (body.is_discarded() || !body.is_object()) {
    return Refusal{400, "not_json", "the body must be a JSON object"};
  }
  return body;
}

}  // namespace proxypool::http
