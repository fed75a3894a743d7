#include "net/http_message.hpp"

#include <algorithm>
#include <array>

#include "net/http/characters.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::net {
namespace {

int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

bool has_control(std::string_view text) noexcept {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; });
}

// One segment at a time, so that a decoded '/' cannot make a new one.
bool take_path(std::string_view raw, std::string& out) {
  for (const std::string_view segment : split(raw.substr(1), '/')) {
    const auto decoded = percent_decode(segment, false);
    if (!decoded || has_control(*decoded) || *decoded == "." || *decoded == ".." ||
        decoded->find_first_of("/\\") != std::string::npos) {
      return false;
    }
    out += '/';
    out += *decoded;
  }
  return true;
}

bool take_query(std::string_view raw, std::vector<NameValue>& out) {
  if (raw.empty()) return true;
  for (const std::string_view part : split(raw, '&')) {
    if (part.empty()) continue;
    const auto equals = part.find('=');
    const auto name = percent_decode(part.substr(0, equals), true);
    const auto value = equals == std::string_view::npos
                           ? std::optional<std::string>(std::string())
                           : percent_decode(part.substr(equals + 1), true);
    if (!name || !value) return false;
    out.emplace_back(*name, *value);
  }
  return true;
}

HttpResponse typed_response(int status, std::string_view type, std::string body) {
  return {status, {{"Content-Type", std::string(type)}}, std::move(body)};
}

bool is_field(const NameValue& field) noexcept {
  const char* const begin = field.second.data();
  const char* const end = begin + field.second.size();
  return is_token(field.first) && find_value_end(begin, end) == end;
}

}  // namespace

std::string_view HttpRequest::field(std::string_view name) const noexcept {
  for (const auto& [known, value] : fields) {
    if (equal_ignoring_case(known, name)) return value;
  }
  return {};
}

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const noexcept {
  for (const auto& [known, value] : query) {
    if (known == name) return value;
  }
  return std::nullopt;
}

HttpResponse json_response(int status, std::string body) {
  return typed_response(status, "application/json", std::move(body));
}
HttpResponse text_response(int status, std::string body) {
  return typed_response(status, "text/plain; charset=utf-8", std::move(body));
}
HttpResponse problem_response(const Problem& problem) {
  return typed_response(problem.status, kProblemType, to_json(problem));
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

bool take_target(std::string_view path_and_query, HttpRequest& out) {
  out.target = path_and_query;
  const auto question = path_and_query.find('?');
  const auto raw = path_and_query.substr(0, question);
  if (question != std::string_view::npos &&
      !take_query(path_and_query.substr(question + 1), out.query)) {
    return false;
  }
  if (raw.empty() || raw == "*") {
    out.path = raw.empty() ? "/" : "*";
    return true;
  }
  return raw.front() == '/' && take_path(raw, out.path);
}

std::string http_date(WallTime time) {
  constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                     "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  // "2026-11-30T03:07:25.123Z" has every number that is needed, with its zeros.
  const std::string iso = format_time(time);
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  std::string out(kDays[std::chrono::weekday(day).c_encoding()]);
  out += ", " + iso.substr(8, 2) + " ";
  out += kMonths[static_cast<unsigned>(date.month()) - 1];
  return out + " " + iso.substr(0, 4) + " " + iso.substr(11, 8) + " GMT";
}

std::string compose_head(const HttpResponse& response, AnswerFraming framing, WallTime now) {
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
  out += status_text(response.status);
  out += "\r\nDate: " + http_date(now) + "\r\n";
  for (const NameValue& field : response.fields) {
    if (PP_BUG_IF(!is_field(field))) continue;
    out += field.first + ": " + field.second + "\r\n";
  }
  if (has_body(response.status)) {
    out += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  }
  if (framing.close) {
    out += "Connection: close\r\n";
  } else if (framing.http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
  return out + "\r\n";
}

}  // namespace proxypool::net
