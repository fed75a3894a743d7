#include "net/problem.hpp"

#include <cstddef>
#include <cstdint>

namespace proxypool::net {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) noexcept {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// The size of the UTF-8 sequence at text[at] (Unicode 15, table 3-7); 0 when it is none.
std::size_t utf8_sequence(std::string_view text, std::size_t at) noexcept {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return 1;
  std::size_t size = 2;
  unsigned low = 0x80;
  unsigned high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    size = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    size = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    size = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  } else {
    return 0;
  }
  const unsigned second = byte_at(text, at + 1);
  if (second < low || second > high) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte_at(text, at + i) & 0xc0U) != 0x80) return 0;
  }
  return size;
}

void append_ascii(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (byte < 0x20 || byte == 0x7f) {
    out += "\\u00";
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  } else {
    out += c;
  }
}

void append_member(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (out.back() != '{') out += ',';
  append_json_string(out, name);
  out += ':';
  append_json_string(out, value);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = utf8_sequence(text, at);
    if (size == 1) {
      append_ascii(out, text[at]);
    } else if (size == 0) {
      out += "\xef\xbf\xbd";
    } else {
      out += text.substr(at, size);
    }
    at += size == 0 ? 1 : size;
  }
  out += '"';
}

std::string to_json(const Problem& problem) {
  std::string out = "{";
  append_member(out, "type",
                problem.code.empty() ? "about:blank" : "urn:proxypool:problem:" + problem.code);
  append_member(
      out, "title",
      problem.title.empty() ? status_text(problem.status) : std::string_view(problem.title));
  out += ",\"status\":" + std::to_string(problem.status);
  append_member(out, "code", problem.code);
  append_member(out, "detail", problem.detail);
  append_member(out, "requestId", problem.request_id);
  if (!problem.errors.empty()) {
    out += ",\"errors\":[";
    for (const ProblemEntry& entry : problem.errors) {
      if (out.back() != '[') out += ',';
      out += "{\"path\":";
      append_json_string(out, entry.path);
      out += ",\"message\":";
      append_json_string(out, entry.message);
      out += '}';
    }
    out += ']';
  }
  return out + "}";
}

std::string_view status_text(int status) noexcept {
  struct Entry {
    std::int16_t status;
    std::string_view text;
  };
  static constexpr Entry kTexts[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {407, "Proxy Authentication Required"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {426, "Upgrade Required"},
      {428, "Precondition Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {508, "Loop Detected"},
  };
  for (const Entry& entry : kTexts) {
    if (entry.status == status) return entry.text;
  }
  return {};
}

}  // namespace proxypool::net
