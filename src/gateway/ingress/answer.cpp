#include "gateway/ingress/answer.hpp"

#include "proxypool/base/id.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::gateway {
namespace {

using domain::Refusal;

// When a client may try again: at once would be in vain.
std::string_view retry_after_seconds(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::NotReady:
    case Refusal::NoCandidate:
      return "5";
    case Refusal::QuotaExceeded:
      return "3600";
    default:
      return "1";
  }
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte >= 0x20 && byte < 0x7f) out += c;
  }
  return out + '"';
}

std::string problem(const domain::RefusalRow& row, const Answer& answer) {
  const auto detail = answer.detail.empty() ? row.title : answer.detail;
  return "{\"type\":\"urn:proxypool:error:" + std::string(row.code) +
         "\",\"title\":" + quoted(row.title) + ",\"status\":" + std::to_string(row.status) +
         ",\"code\":" + quoted(row.code) + ",\"detail\":" + quoted(detail) + ",\"requestId\":\"" +
         to_hex(answer.request_id) + "\"}\n";
}

bool may_hold_secrets(const net::RequestHead& head, const net::Field& field) noexcept {
  const auto name = head.name(field);
  return field.hop_by_hop || equal_ignoring_case(name, "authorization") ||
         equal_ignoring_case(name, "cookie");
}

}  // namespace

domain::Refusal refusal_of(int status) noexcept {
  switch (status) {
    case 413:
      return Refusal::BodyTooLarge;
    case 414:
      return Refusal::RequestLineTooLarge;
    case 431:
      return Refusal::HeadersTooLarge;
    default:
      return Refusal::BadRequest;
  }
}

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Error";
  }
}

std::string write_answer(const Answer& answer) {
  const domain::RefusalRow& row = contract(answer.refusal);
  const std::string body = problem(row, answer);
  std::string out = "HTTP/1.1 " + std::to_string(row.status) + ' ';
  out += reason_phrase(row.status);
  // Most CONNECT clients show nothing but this line.
  if (answer.method == net::Method::Connect) out += " (" + std::string(row.code) + ")";
  out += "\r\nContent-Type: application/problem+json\r\nContent-Length: ";
  out += std::to_string(body.size());
  const auto error = proxy_status(answer.refusal, answer.kind);
  if (!error.empty()) {
    out += "\r\nProxy-Status: proxypool; error=" + std::string(error);
    if (answer.direct) out += "; next-hop=direct";
    out += "; details=\"" + std::string(row.code) + '"';
  }
  if (row.status == 407) out += answer.challenges;
  if (row.retry_after) {
    out += "\r\nRetry-After: ";
    out += answer.retry_after_s > 0 ? std::to_string(answer.retry_after_s)
                                    : std::string(retry_after_seconds(answer.refusal));
  }
  if (answer.close) out += "\r\nConnection: close";
  out += "\r\n\r\n";
  if (answer.method != net::Method::Head) out += body;
  return out;
}

std::string write_last_hop(const net::RequestHead& head, bool close) {
  std::string body;
  if (head.method() == net::Method::Trace) {
    body.append(head.base(), head.fields_at());
    for (const net::Field& field : head.fields()) {
      if (may_hold_secrets(head, field)) continue;
      body.append(head.name(field)).append(": ").append(head.value(field)).append("\r\n");
    }
    body += "\r\n";
  }
  std::string out = "HTTP/1.1 200 OK\r\n";
  out += body.empty() ? "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE, CONNECT\r\n"
                      : "Content-Type: message/http\r\n";
  out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  if (close) out += "Connection: close\r\n";
  return out + "\r\n" + body;
}

}  // namespace proxypool::gateway
