#include "e2e/error_contract.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <utility>

#include "proxypool/base/text.hpp"
#include "support/eventually.hpp"

namespace proxypool::e2e {
namespace {

// spec/gateway.md, "Error contract"; the reason phrases are those of RFC 9110 and RFC 6585.
struct Wire {
  Refusal refusal;
  int status;
  std::string_view reason;
  std::string_view code;
  std::string_view error;        // empty: no Proxy-Status
  std::string_view retry_after;  // empty: none
};

constexpr std::array<Wire, domain::kRefusals> kWire{{
    {Refusal::BadRequest, 400, "Bad Request", "bad_request", "http_request_error", ""},
    {Refusal::AuthRequired, 407, "Proxy Authentication Required", "auth_required", "", ""},
    {Refusal::AuthRejected, 407, "Proxy Authentication Required", "auth_rejected", "", ""},
    {Refusal::BadParameter, 407, "Proxy Authentication Required", "bad_parameter", "", ""},
    {Refusal::SourceDenied, 403, "Forbidden", "source_denied", "http_request_denied", ""},
    {Refusal::TargetForbidden, 403, "Forbidden", "target_forbidden", "destination_ip_prohibited",
     ""},
    {Refusal::NoRouting, 403, "Forbidden", "no_routing", "http_request_denied", ""},
    {Refusal::RequestLineTooLarge, 414, "URI Too Long", "too_large", "http_request_error", ""},
    {Refusal::HeadersTooLarge, 431, "Request Header Fields Too Large", "too_large",
     "http_request_error", ""},
    {Refusal::BodyTooLarge, 413, "Content Too Large", "too_large", "http_request_error", ""},
    {Refusal::RequestTimeout, 408, "Request Timeout", "request_timeout", "http_request_error", ""},
    {Refusal::ClientLimited, 429, "Too Many Requests", "client_limited", "http_request_denied",
     "1"},
    {Refusal::QuotaExceeded, 429, "Too Many Requests", "quota_exceeded", "http_request_denied",
     "any"},
    {Refusal::Overloaded, 503, "Service Unavailable", "overloaded", "proxy_internal_response", "1"},
    {Refusal::NotReady, 503, "Service Unavailable", "not_ready", "proxy_internal_response", "5"},
    {Refusal::Draining, 503, "Service Unavailable", "draining", "proxy_internal_response", "1"},
    {Refusal::NoCandidate, 503, "Service Unavailable", "no_candidate", "destination_unavailable",
     "5"},
    {Refusal::WaitTimeout, 503, "Service Unavailable", "wait_timeout", "destination_unavailable",
     "1"},
    {Refusal::SessionLost, 503, "Service Unavailable", "session_lost", "destination_unavailable",
     "1"},
    {Refusal::ProxyConnectFailed, 502, "Bad Gateway", "proxy_connect_failed", "connection_refused",
     ""},
    {Refusal::ProxyRefused, 502, "Bad Gateway", "proxy_refused", "connection_refused", ""},
    {Refusal::ProxyAuthRejected, 502, "Bad Gateway", "proxy_auth_rejected", "connection_refused",
     ""},
    {Refusal::ProxyProtocolError, 502, "Bad Gateway", "proxy_protocol_error", "http_protocol_error",
     ""},
    {Refusal::DnsFailed, 502, "Bad Gateway", "dns_failed", "dns_error", ""},
    {Refusal::TargetConnectFailed, 502, "Bad Gateway", "target_connect_failed",
     "connection_refused", ""},
    {Refusal::TargetProtocolError, 502, "Bad Gateway", "target_protocol_error",
     "http_protocol_error", ""},
    {Refusal::ResolveTimeout, 504, "Gateway Timeout", "resolve_timeout", "dns_timeout", ""},
    {Refusal::ConnectTimeout, 504, "Gateway Timeout", "connect_timeout", "connection_timeout", ""},
    {Refusal::TlsTimeout, 504, "Gateway Timeout", "tls_timeout", "connection_timeout", ""},
    {Refusal::ProxyConnectTimeout, 504, "Gateway Timeout", "proxy_connect_timeout",
     "connection_timeout", ""},
    {Refusal::FirstByteTimeout, 504, "Gateway Timeout", "first_byte_timeout",
     "http_response_timeout", ""},
    {Refusal::IdleTimeout, 504, "Gateway Timeout", "idle_timeout", "connection_read_timeout", ""},
    {Refusal::TotalTimeout, 504, "Gateway Timeout", "total_timeout", "http_response_timeout", ""},
}};

const Wire& wire_of(Refusal refusal) {
  const Wire& row = kWire.at(static_cast<std::size_t>(refusal));
  PP_ASSERT(row.refusal == refusal);
  return row;
}

// The only field of that name; empty when it is absent, "twice" when it is there twice.
std::string field_of(std::string_view head, std::string_view name) {
  std::string out;
  for (const auto line : split(head, '\n')) {
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    if (!equal_ignoring_case(line.substr(0, colon), name)) continue;
    if (!out.empty()) return "twice";
    out = trim(line.substr(colon + 2));
  }
  return out;
}

void expect_body(const Wire& wire, const std::string& text) {
  const auto body = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(body.is_object()) << text;
  EXPECT_EQ(body.at("type"), "urn:proxypool:error:" + std::string(wire.code));
  EXPECT_EQ(body.at("status"), wire.status);
  EXPECT_EQ(body.at("code"), wire.code);
  EXPECT_FALSE(body.at("title").get<std::string>().empty());
  EXPECT_FALSE(body.at("detail").get<std::string>().empty());
  const auto id = body.at("requestId").get<std::string>();
  EXPECT_TRUE(std::regex_match(id, std::regex("[0-9a-f]{16}"))) << id;
  static std::set<std::string> seen;
  EXPECT_TRUE(seen.insert(id).second) << "not its own: " << id;
}

// What was held counts no more for what comes next.
void let_go(Stage& stage) {
  if (stage.held.empty()) return;
  stage.held.clear();
  EXPECT_TRUE(support::eventually([&] {
    return stage.cluster.gateway_metric("proxypool_gateway_active_tunnels") == 0 &&
           stage.cluster.gateway_metric("proxypool_gateway_active_requests") == 0;
  }));
}

// Either the answer says that the connection ends and it does, or the next request is served on it.
void expect_end(const Case& expected, std::string_view head, Peer& peer, Stage& stage) {
  EXPECT_EQ(field_of(head, "Connection"), expected.closes ? "close" : "");
  if (expected.closes) {
    EXPECT_NE(peer.end_error(), -1) << "bytes behind the answer";
    return;
  }
  let_go(stage);
  const bool nobody = stage.served.empty();
  peer.send(get(nobody ? "x.example" : stage.served, stage.credentials));
  const std::string next = peer.answer();
  EXPECT_TRUE(next.starts_with(nobody ? "HTTP/1.1 503 " : "HTTP/1.1 200 ")) << next;
}

Case asking(std::string name, Refusal refusal, bool connect, std::string request, bool closes,
            std::string_view error) {
  return {
      std::move(name), refusal,
      connect,         [request = std::move(request)](Stage& stage) { return ask(stage, request); },
      closes,          error};
}

bool in_vain(Refusal refusal) {
  return domain::contract(refusal).closes;
}

}  // namespace

// Asking ----------------------------------------------------------------------------------------

std::string get(std::string_view host, std::string_view fields) {
  const std::string name(host);
  return "GET http://" + name + "/ HTTP/1.1\r\nHost: " + name + "\r\n" + std::string(fields) +
         "\r\n";
}

std::string connect_to(std::string_view host, std::string_view fields) {
  const std::string name = std::string(host) + ":443";
  return "CONNECT " + name + " HTTP/1.1\r\nHost: " + name + "\r\n" + std::string(fields) + "\r\n";
}

Peer ask(Stage& stage, std::string_view request) {
  Peer peer = Peer::dial(stage.cluster.gateway_port());
  peer.send(request);
  return peer;
}

void hold_tunnel(Stage& stage, std::string_view host, std::string_view fields) {
  stage.held.push_back(ask(stage, connect_to(host, fields)));
  const std::string answer = stage.held.back().until("\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
}

Case plain(Refusal refusal, std::string host, std::string_view error) {
  Case out{"GET http://" + host, refusal, false, {}, in_vain(refusal), error};
  out.provoke = [host = std::move(host)](Stage& stage) {
    return ask(stage, get(host, stage.credentials));
  };
  return out;
}

Case tunnel(Refusal refusal, std::string host, std::string_view error) {
  Case out{"CONNECT " + host, refusal, true, {}, true, error};
  out.provoke = [host = std::move(host)](Stage& stage) {
    return ask(stage, connect_to(host, stage.credentials));
  };
  return out;
}

Case raw(std::string name, Refusal refusal, std::string request, bool closes) {
  return asking(std::move(name), refusal, false, std::move(request), closes, {});
}

Case raw_connect(std::string name, Refusal refusal, std::string request, bool closes) {
  return asking(std::move(name), refusal, true, std::move(request), closes, {});
}

// Judging ---------------------------------------------------------------------------------------

void expect_answer(const Case& expected, Peer& peer, Stage& stage) {
  const Wire& wire = wire_of(expected.refusal);
  const std::string answer = peer.answer();
  const auto split_at = answer.find("\r\n\r\n");
  ASSERT_NE(split_at, std::string::npos) << "no answer: " << answer << stage.cluster.logs();
  const std::string head = answer.substr(0, split_at);
  const std::string code(wire.code);
  const std::string phrase = expected.connect ? " (" + code + ")" : "";
  EXPECT_EQ(head.substr(0, head.find("\r\n")),
            "HTTP/1.1 " + std::to_string(wire.status) + " " + std::string(wire.reason) + phrase);
  EXPECT_EQ(field_of(head, "Content-Type"), "application/problem+json");
  const std::string error(expected.error.empty() ? wire.error : expected.error);
  EXPECT_EQ(field_of(head, "Proxy-Status"),
            error.empty() ? "" : "proxypool; error=" + error + "; details=\"" + code + "\"");
  const auto retry_after = field_of(head, "Retry-After");
  if (wire.retry_after == "any") {
    EXPECT_TRUE(parse_number<unsigned>(retry_after).value_or(0) > 0) << retry_after;
  } else {
    EXPECT_EQ(retry_after, wire.retry_after);
  }
  EXPECT_EQ(field_of(head, "Proxy-Authenticate").empty(), wire.status != 407) << head;
  expect_body(wire, answer.substr(split_at + 4));
  EXPECT_EQ(answer.find("127.0.0.1"), std::string::npos) << "a proxy's address: " << answer;
  expect_end(expected, head, peer, stage);
}

void expect_each(const std::vector<Case>& cases, Stage& stage) {
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.name + " → " + std::string(wire_of(expected.refusal).code));
    Peer peer = expected.provoke(stage);
    expect_answer(expected, peer, stage);
    let_go(stage);
  }
}

// The vendor ------------------------------------------------------------------------------------

std::string_view vendor_answer(std::string_view host) {
  const auto what = host.substr(0, host.find('.'));
  if (what == "rejects") {
    return "HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=\"vendor\"\r\n"
           "Content-Length: 0\r\n\r\n";
  }
  if (what == "refuses") return "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n";
  if (what == "fails") return "HTTP/1.1 503 Later\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n";
  if (what == "asks") {
    return "HTTP/1.1 401 Who are you\r\nWWW-Authenticate: Basic realm=\"origin\"\r\n"
           "Content-Length: 0\r\n\r\n";
  }
  return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
}

namespace {

void wait_for_end(const Peer& peer) {
  pollfd waiting{peer.fd(), POLLRDHUP, 0};
  ::poll(&waiting, 1, 10'000);
}

// Whether the connection goes on.
bool act(std::string_view what, bool connect, Peer& peer) {
  if (what == "garbage") return peer.send("SSH-2.0-proxy\r\n\r\n"), false;
  if (what == "half") return peer.send("HTTP/1.1 200 OK\r\nX-Half: "), false;
  if (what == "resets") return peer.reset(), false;
  if (what == "closes") return false;
  if (what == "silent") return (void)peer.all(), false;
  if (what == "stuck") return wait_for_end(peer), false;
  const auto answer = vendor_answer(what);
  if (!connect || !answer.starts_with("HTTP/1.1 200 ")) return peer.send(answer);
  peer.send("HTTP/1.1 200 OK\r\n\r\n");
  (void)peer.all();
  return false;
}

}  // namespace

void play_vendor(Peer& peer, int) {
  for (;;) {
    const std::string head = peer.until("\r\n\r\n");
    if (head.empty()) return;
    std::string_view target = head;
    const bool connect = target.starts_with("CONNECT ");
    target.remove_prefix(target.find(' ') + 1);
    if (target.starts_with("http://")) target.remove_prefix(7);
    if (!act(target.substr(0, target.find('.')), connect, peer)) return;
  }
}

}  // namespace proxypool::e2e
