// Error bodies of RFC 9457, for the gateway's error answers and the REST servers alike.
//
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace proxypool::net {

inline constexpr std::string_view kProblemType = "application/problem+json";

struct ProblemEntry {
  std::string path;  // where in the request, for example "filters.countries[0]"
  std::string message;
};

struct Problem {
  int status = 500;
  std::string code = {};    // stable, snake_case: what programs look at
  std::string detail = {};  // one sentence for a person; never a secret
  std::string request_id = {};
  std::string title = {};  // empty: the text of the status
  std::vector<ProblemEntry> errors = {};
};

// {"type":"urn:proxypool:problem:CODE","title":…,"status":…,"code":…,"detail":…,"requestId":…,
// "errors":[{"path":…,"message":…}]}; what is empty is left out.
[[nodiscard]] std::string to_json(const Problem& problem);

// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// "Not Found"; empty for an unknown status.
[[nodiscard]] std::string_view status_text(int status) noexcept;

}  // namespace proxypool::net
