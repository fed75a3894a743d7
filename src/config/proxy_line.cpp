#include "config/proxy_line.hpp"

#include <string>
#include <utility>

#include "proxypool/base/text.hpp"
#include "proxypool/domain/proxy/list_line.hpp"

namespace proxypool::config {
namespace {

using domain::Candidate;
using domain::Scheme;

constexpr std::size_t kLineBytesMax = 4096;

Error bad(std::string message) {
  return {ErrorCode::InvalidArgument, Origin::Provider, std::move(message)};
}

// "host:port" and "user:pass", which stood apart in the text.
Result<Candidate> join(std::string_view endpoint, std::string_view credential) {
  const auto port_at = endpoint.rfind(':');
  const auto pass_at = credential.find(':');
  if (port_at == std::string_view::npos) return bad("the port is missing");
  if (pass_at == std::string_view::npos) return bad("the password is missing");
  return domain::make_candidate(
      Scheme::Http, endpoint.substr(0, port_at), endpoint.substr(port_at + 1),
      std::string(credential.substr(0, pass_at)), std::string(credential.substr(pass_at + 1)));
}

// user:pass:host:port; the endpoint is what follows the last colon but one.
Result<Candidate> parse_user_pass_host_port(std::string_view text) {
  const auto port_at = text.rfind(':');
  if (port_at == std::string_view::npos || port_at == 0) return bad("the port is missing");
  const bool bracket = text[port_at - 1] == ']';
  const auto mark = text.rfind(bracket ? '[' : ':', port_at - 1);
  if (mark == std::string_view::npos || mark == 0) return bad("the credential is missing");
  const auto endpoint_at = bracket ? mark : mark + 1;
  return join(text.substr(endpoint_at), text.substr(0, endpoint_at - 1));
}

Result<Candidate> parse_host_port_at_user_pass(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos) return bad("the credential is missing");
  return join(text.substr(0, at), text.substr(at + 1));
}

// A form of a list line, and nothing but that form.
Result<Candidate> parse_line(std::string_view text, bool credential_wanted) {
  if (text.find("://") != std::string_view::npos) return bad("a URL where host:port was expected");
  PP_TRY(Candidate out, domain::parse_list_line(text));
  if (out.credential.username.empty() == credential_wanted) {
    return bad(credential_wanted ? "the user name and the password are missing"
                                 : "something follows the port");
  }
  return out;
}

Result<Candidate> parse_form(std::string_view text, ProxyForm form) {
  switch (form) {
    case ProxyForm::Line:
    case ProxyForm::Url:
      return domain::parse_list_line(text);
    case ProxyForm::HostPort:
      return parse_line(text, false);
    case ProxyForm::HostPortUserPass:
      return parse_line(text, true);
    case ProxyForm::UserPassHostPort:
      return parse_user_pass_host_port(text);
    case ProxyForm::HostPortAtUserPass:
      return parse_host_port_at_user_pass(text);
  }
  return bad("unknown form");
}

}  // namespace

Status check_scheme(Scheme scheme) {
  if (scheme == Scheme::Http || scheme == Scheme::Https) return ok();
  return bad("scheme " + std::string(to_string(scheme)) +
             " is not supported in this version (supported: http, https)");
}

Result<Candidate> parse_proxy(std::string_view text, ProxyForm form) {
  text = trim(text);
  if (text.size() > kLineBytesMax) return bad("the proxy is longer than 4096 bytes");
  PP_TRY(Candidate out, parse_form(text, form));
  PP_TRY([[maybe_unused]] Unit speaks, check_scheme(out.endpoint.scheme));
  return out;
}

}  // namespace proxypool::config
