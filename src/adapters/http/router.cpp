#include "adapters/http/router.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "proxypool/base/text.hpp"

namespace proxypool::http {

namespace {

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(path, '/')) parts.emplace_back(part);
  return parts;
}

// What a part of a path stands for: "{id}" any text without a colon, "{id}:switch" such a text and
// then the verb; nothing: it is no capture, or does not have this shape.
struct Capture {
  std::string_view name;
  std::string_view value;
};
std::optional<Capture> capture(std::string_view pattern, std::string_view part) noexcept {
  if (pattern.empty() || pattern.front() != '{') return std::nullopt;
  const auto end = pattern.find('}');
  const std::string_view verb = pattern.substr(end + 1);
  if (part.size() <= verb.size() || !part.ends_with(verb)) return std::nullopt;
  const std::string_view value = part.substr(0, part.size() - verb.size());
  if (value.find(':') != std::string_view::npos) return std::nullopt;
  return Capture{pattern.substr(1, end - 1), value};
}

// The captures if the path has the pattern's shape.
std::optional<std::map<std::string, std::string>> match(const std::vector<std::string>& pattern,
                                                        const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  std::map<std::string, std::string> captures;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (const auto found = capture(pattern[i], path[i])) {
      captures[std::string(found->name)] = found->value;
    } else if (pattern[i] != path[i]) {
      return std::nullopt;
    }
  }
  return captures;
}

}  // namespace

void Router::add(std::string method, std::string pattern, Guard guard, Handle handle) {
  routes_.push_back({std::move(method), parts_of(pattern), std::move(guard), std::move(handle)});
}

std::string Router::request_id(const net::HttpRequest& request) const {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  const std::string_view given = request.field("x-request-id");
  const bool good = !given.empty() && given.size() <= 128 &&
                    given.find_first_not_of(kAllowed) == std::string_view::npos;
  return good ? std::string(given) : hex(crypto_.random_bytes(8));
}

net::HttpResponse Router::handle(const net::HttpRequest& request) const {
  Call call{request, request_id(request), {}, {}};
  const auto path = parts_of(request.path);
  const std::string method = request.method_text == "HEAD" ? "GET" : request.method_text;
  std::string allow;
  net::HttpResponse response;
  const Route* found = nullptr;
  for (const Route& route : routes_) {
    auto captures = match(route.parts, path);
    if (!captures) continue;
    allow += (allow.empty() ? "" : ", ") + route.method;
    if (route.method == "GET") allow += ", HEAD";
    if (route.method != method) continue;
    found = &route;
    call.captures = *std::move(captures);
  }
  if (!allow.empty()) allow += ", OPTIONS";
  if (found) {
    const auto refused = found->guard ? found->guard(call) : std::nullopt;
    Answer answer = refused ? Answer(*refused) : found->handle(call);
    response = std::holds_alternative<Refusal>(answer)
                   ? refusal_response(std::get<Refusal>(answer), call.request_id)
                   : std::get<net::HttpResponse>(std::move(answer));
  } else if (allow.empty()) {
    response =
        refusal_response({404, "not_found", "there is nothing at this path"}, call.request_id);
  } else if (method == "OPTIONS") {
    response.status = 204;
    response.fields.emplace_back("Allow", allow);
  } else {
    Refusal refusal{405, "method_not_allowed", "this path answers " + allow};
    refusal.fields.emplace_back("Allow", allow);
    response = refusal_response(refusal, call.request_id);
  }
  response.fields.emplace_back("X-Request-Id", call.request_id);
  return response;
}

net::HttpResponse Router::refuse(const net::HttpRequest& request, const Refusal& refusal) const {
  const std::string id = request_id(request);
  net::HttpResponse response = refusal_response(refusal, id);
  response.fields.emplace_back("X-Request-Id", id);
  return response;
}

net::HttpResponse refusal_response(const Refusal& refusal, const std::string& request_id) {
  net::Problem problem;
  problem.status = refusal.status;
  problem.code = refusal.code;
  problem.detail = refusal.detail;
  problem.request_id = request_id;
  problem.errors = refusal.errors;
  net::HttpResponse response = net::problem_response(problem);
  if (!refusal.extra.empty() && !response.body.empty() && response.body.back() == '}') {
    response.body.insert(response.body.size() - 1, "," + refusal.extra);
  }
  response.fields.insert(response.fields.end(), refusal.fields.begin(), refusal.fields.end());
  return response;
}

Refusal refusal_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::InvalidArgument:
      return {400, "bad_request", error.message};
    case ErrorCode::Forbidden:
      return {403, "forbidden", error.message};
    case ErrorCode::Unauthenticated:
      return {401, "unauthenticated", error.message};
    case ErrorCode::NotFound:
      return {404, "not_found", error.message};
    case ErrorCode::Conflict:
      return {409, "conflict", error.message};
    case ErrorCode::Stale:
      return {412, "stale", error.message};
    case ErrorCode::Unavailable:
    case ErrorCode::DeadlineExceeded:
    case ErrorCode::Exhausted:
    case ErrorCode::Corrupt: {
      Refusal refusal{503, "storage_unavailable", error.message};
      refusal.fields.emplace_back("Retry-After", "1");
      return refusal;
    }
    default:
      return {500, "internal", "an internal error; the log knows more under this request id"};
  }
}

}  // namespace proxypool::http
