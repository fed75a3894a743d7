#include "config/proxy_line.hpp"

#include <optional>
#include <string>
#include <utility>

#include "proxypool/base/ip.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::config {
namespace {

using domain::Candidate;
using domain::Scheme;

constexpr std::size_t kLineBytesMax = 2048;
constexpr std::size_t kNameBytesMax = 253;
constexpr std::size_t kLabelBytesMax = 63;

Error bad(std::string message) {
  return {ErrorCode::InvalidArgument, Origin::Provider, std::move(message)};
}

constexpr bool digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

bool is_label(std::string_view label) noexcept {
  if (label.empty() || label.size() > kLabelBytesMax) return false;
  if (label.front() == '-' || label.back() == '-') return false;
  for (const char c : label) {
    if (!digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_') return false;
  }
  return true;
}

// A last label of digits, or 0x and more, would be read as an IPv4 address by many resolvers.
bool looks_like_ipv4(std::string_view name) noexcept {
  const auto last = name.substr(name.rfind('.') + 1);
  return last.starts_with("0x") || last.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<std::string> canonical_host(std::string_view text) {
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) return bad("the host has an opening bracket only");
    const auto address = IpAddress::parse(text.substr(1, text.size() - 2));
    if (!address || address->is_v4()) return bad("the brackets hold no IPv6 address");
    return address->str();
  }
  if (text.ends_with('.')) text.remove_suffix(1);
  const std::string name = lower(text);
  if (name.empty()) return bad("the host is missing");
  if (const auto address = IpAddress::parse(name)) {
    return address->is_v4() ? Result<std::string>(address->str())
                            : bad("an IPv6 address needs brackets");
  }
  if (looks_like_ipv4(name)) return bad("the host is no IPv4 address in four decimal parts");
  if (name.size() > kNameBytesMax) return bad("the host is longer than 253 bytes");
  for (const auto label : split(name, '.')) {
    if (!is_label(label)) return bad("the host is neither an address nor a name in ASCII form");
  }
  return name;
}

Result<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  if (!port || *port == 0 || text.size() > 5) return bad("the port is no number from 1 to 65535");
  return *port;
}

// "host:port" at the front of `text`; what follows the port, with its colon, stays in `text`.
Result<domain::Endpoint> take_endpoint(std::string_view& text) {
  const auto host_end = text.starts_with('[') ? text.find("]:") : text.find(':');
  if (host_end == std::string_view::npos) return bad("the port is missing");
  const auto host_size = host_end + (text.starts_with('[') ? 1 : 0);
  domain::Endpoint endpoint;
  PP_TRY(endpoint.host, canonical_host(text.substr(0, host_size)));
  text.remove_prefix(host_size + 1);
  const auto port_size = text.find(':');
  PP_TRY(endpoint.port, parse_port(text.substr(0, port_size)));
  text.remove_prefix(port_size == std::string_view::npos ? text.size() : port_size);
  return endpoint;
}

Result<domain::Endpoint> whole_endpoint(std::string_view text) {
  PP_TRY(domain::Endpoint endpoint, take_endpoint(text));
  if (!text.empty()) return bad("something follows the port");
  return endpoint;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
    if (error != std::errc{} || end != text.data() + i + 3) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

// "user:pass"; the password is everything after the first colon and may be absent.
Result<domain::Credential> parse_credential(std::string_view text, bool percent_encoded) {
  const auto colon = text.find(':');
  std::optional<std::string> user(text.substr(0, colon));
  std::optional<std::string> password(colon == std::string_view::npos ? std::string_view()
                                                                      : text.substr(colon + 1));
  if (percent_encoded) {
    user = percent_decode(*user);
    password = percent_decode(*password);
    if (!user || !password) return bad("the credential has a wrong percent-encoding");
  }
  if (user->empty() && password->empty()) return bad("the credential is empty");
  if (user->find(':') != std::string::npos) return bad("the user name holds a colon");
  for (const auto* part : {&*user, &*password}) {
    for (const char c : *part) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        return bad("the credential holds a control character");
      }
    }
  }
  return domain::Credential{*std::move(user), SecretString(*std::move(password))};
}

Result<Candidate> parse_url(std::string_view text) {
  Candidate out;
  if (const auto end = text.find("://"); end != std::string_view::npos) {
    const std::string scheme = lower(text.substr(0, end));
    if (scheme != "http") {
      const bool known = scheme == "https" || scheme == "socks4" || scheme == "socks4a" ||
                         scheme == "socks5" || scheme == "socks5h";
      return bad(known ? "scheme " + scheme + " is not supported in this version (supported: http)"
                       : "unknown scheme (supported: http)");
    }
    text.remove_prefix(end + 3);
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  if (const auto at = text.rfind('@'); at != std::string_view::npos) {
    PP_TRY(out.credential, parse_credential(text.substr(0, at), true));
    text.remove_prefix(at + 1);
  }
  PP_TRY(out.endpoint, whole_endpoint(text));
  return out;
}

Result<Candidate> parse_host_port_user_pass(std::string_view text) {
  Candidate out;
  PP_TRY(out.endpoint, take_endpoint(text));
  if (text.empty()) return bad("the user name and the password are missing");
  PP_TRY(out.credential, parse_credential(text.substr(1), false));
  return out;
}

// The endpoint is what follows the last two colons; in front of it stands "user:pass:".
Result<Candidate> parse_user_pass_host_port(std::string_view text) {
  const auto port_at = text.rfind(':');
  if (port_at == std::string_view::npos || port_at == 0) return bad("the port is missing");
  const bool bracket = text[port_at - 1] == ']';
  const auto host_at = text.rfind(bracket ? '[' : ':', port_at - 1);
  if (host_at == std::string_view::npos || host_at == 0) return bad("the credential is missing");
  const auto endpoint_at = bracket ? host_at : host_at + 1;
  Candidate out;
  PP_TRY(out.endpoint, whole_endpoint(text.substr(endpoint_at)));
  PP_TRY(out.credential, parse_credential(text.substr(0, endpoint_at - 1), false));
  return out;
}

Result<Candidate> parse_host_port_at_user_pass(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos) return bad("the credential is missing");
  Candidate out;
  PP_TRY(out.endpoint, whole_endpoint(text.substr(0, at)));
  PP_TRY(out.credential, parse_credential(text.substr(at + 1), false));
  return out;
}

Result<Candidate> parse_host_port(std::string_view text) {
  Candidate out;
  PP_TRY(out.endpoint, whole_endpoint(text));
  return out;
}

// A password in host:port:user:pass may hold an '@', so an endpoint in front decides.
ProxyForm recognise(std::string_view text) {
  if (text.find("://") != std::string_view::npos) return ProxyForm::Url;
  std::string_view rest = text;
  if (take_endpoint(rest).has_value()) {
    return rest.empty() ? ProxyForm::HostPort : ProxyForm::HostPortUserPass;
  }
  return text.find('@') != std::string_view::npos ? ProxyForm::Url : ProxyForm::HostPort;
}

}  // namespace

Result<Candidate> parse_proxy(std::string_view text, ProxyForm form) {
  text = trim(text);
  if (text.empty()) return bad("the proxy is empty");
  if (text.size() > kLineBytesMax) return bad("the proxy is longer than 2048 bytes");
  switch (form == ProxyForm::Any ? recognise(text) : form) {
    case ProxyForm::Any:
    case ProxyForm::HostPort:
      return parse_host_port(text);
    case ProxyForm::HostPortUserPass:
      return parse_host_port_user_pass(text);
    case ProxyForm::Url:
      return parse_url(text);
    case ProxyForm::UserPassHostPort:
      return parse_user_pass_host_port(text);
    case ProxyForm::HostPortAtUserPass:
      return parse_host_port_at_user_pass(text);
  }
  return bad("unknown form");
}

}  // namespace proxypool::config
