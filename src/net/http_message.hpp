// Requests and answers as the REST servers see them: whole, in memory, taken apart.
//
// Thread rule: plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/head.hpp"
#include "net/problem.hpp"
#include "net/socket.hpp"

namespace proxypool::net {

using NameValue = std::pair<std::string, std::string>;

struct HttpRequest {
  Method method = Method::Other;
  std::string method_text;
  std::string target;  // path and query as sent
  std::string path;    // decoded: no control, no dot segment, and '/' only where it was one
  std::vector<NameValue> query;  // decoded, in order
  std::vector<NameValue> fields;
  std::string body;
  Endpoint peer;

  // The first of that name, in any case; empty when there is none.
  [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
  // The first parameter of that name, exactly.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const noexcept;
};

struct HttpResponse {
  int status = 200;
  std::vector<NameValue> fields = {};  // without Content-Length, Connection, Date: the server's own
  std::string body = {};
};
[[nodiscard]] HttpResponse json_response(int status, std::string body);
[[nodiscard]] HttpResponse text_response(int status, std::string body);
[[nodiscard]] HttpResponse problem_response(const Problem& problem);

// "%41b" → "Ab"; nothing when a '%' is not followed by two hexadecimal digits. '+' becomes a blank
// when asked.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank);

// Fills target, path and query; false when they are no honest path (see HttpRequest::path).
[[nodiscard]] bool take_target(std::string_view path_and_query, HttpRequest& out);

// Mon, 30 Nov 2026 03:07:25 GMT.
[[nodiscard]] std::string http_date(WallTime time);

// Status line, fields and empty line. An invalid field of `response` is left out and counted as a
// bug: no answer can be split by what a handler puts into a value.
struct AnswerFraming {
  bool close = false;
  bool http_1_0 = false;
};
[[nodiscard]] std::string compose_head(const HttpResponse& response, AnswerFraming framing,
                                       WallTime now);
// The status allows a body.
[[nodiscard]] constexpr bool has_body(int status) noexcept {
  return status >= 200 && status != 204 && status != 304;
}

}  // namespace proxypool::net
