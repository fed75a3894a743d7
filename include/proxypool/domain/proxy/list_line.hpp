// One line of a proxy list: parsed into a candidate, and written back.
//
//   scheme://user:pass@host:port                               percent-decoded once
//   host:port   host:port:user:pass   user:pass@host:port      taken as they are
//
// Three fields without an @ are an error, since nothing says which is missing, and so is an IPv6
// address without brackets. The user name ends at the first colon (RFC 7617) and the host begins
// after the last @, so that passwords may hold either.
//
// Thread rule: pure functions.
// Limits: user name and password of at most 1024 bytes each; over: InvalidArgument.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/host.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

inline constexpr std::size_t kCredentialBytesMax = 1024;

namespace detail {

// Messages name the mistake and never quote the line: any part of it may be a password.
inline Error bad_line(std::string_view what) {
  return Error{ErrorCode::InvalidArgument, Origin::Provider, std::string(what)};
}

inline std::optional<unsigned> hex_digit(char c) noexcept {
  c = lower(c);
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  return std::nullopt;
}

inline std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const auto high = hex_digit(text[i + 1]);
    const auto low = hex_digit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

inline std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool unreserved = (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
                            c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

inline bool has_control(std::string_view text) noexcept {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return true;
  }
  return false;
}

inline Result<Endpoint> parse_endpoint(Scheme scheme, std::string_view host,
                                       std::string_view port) {
  auto canonical = canonical_host(host);
  if (!canonical) return bad_line("the host is neither an address nor a valid name");
  const auto number = parse_port(port);
  if (!number) return bad_line("the port is not a number from 1 to 65535");
  return Endpoint{scheme, *std::move(canonical), *number};
}

// "host:port" with IPv6 in brackets.
inline Result<Endpoint> parse_host_port(Scheme scheme, std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_line("the port is missing");
  const auto host = text.substr(0, colon);
  if (!host.empty() && host.front() != '[' && host.find(':') != std::string_view::npos) {
    return bad_line("more than one colon: an IPv6 address must stand in brackets");
  }
  return parse_endpoint(scheme, host, text.substr(colon + 1));
}

inline Result<Credential> make_credential(std::string username, std::string password) {
  Credential credential{std::move(username), SecretString(std::move(password))};
  const auto secret = credential.password.reveal();
  if (credential.username.empty() && !secret.empty()) {
    return bad_line("there is a password but no user name");
  }
  if (credential.username.find(':') != std::string::npos) {
    return bad_line("a user name cannot hold a colon");
  }
  if (has_control(credential.username) || has_control(secret)) {
    return bad_line("the credential holds a control character");
  }
  if (credential.username.size() > kCredentialBytesMax || secret.size() > kCredentialBytesMax) {
    return bad_line("the credential is longer than 1024 bytes");
  }
  return credential;
}

// "user:pass" or "user".
inline Result<Credential> parse_userinfo(std::string_view text, bool percent_encoded) {
  const auto colon = text.find(':');
  const auto user = text.substr(0, colon);
  const auto pass = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (!percent_encoded) return make_credential(std::string(user), std::string(pass));
  auto username = percent_decode(user);
  auto password = percent_decode(pass);
  if (!username || !password) return bad_line("a % in the credential starts no escape");
  return make_credential(*std::move(username), *std::move(password));
}

inline Result<Candidate> join(Result<Endpoint> endpoint, Result<Credential> credential) {
  if (!endpoint) return std::move(endpoint).error();
  if (!credential) return std::move(credential).error();
  Candidate candidate;
  candidate.endpoint = *std::move(endpoint);
  candidate.credential = *std::move(credential);
  return candidate;
}

// "user:pass@host:port" without a scheme, or in a URL.
inline Result<Candidate> parse_authority(Scheme scheme, std::string_view text,
                                         bool percent_encoded) {
  const auto at = text.rfind('@');
  if (at == std::string_view::npos) return join(parse_host_port(scheme, text), Credential{});
  return join(parse_host_port(scheme, text.substr(at + 1)),
              parse_userinfo(text.substr(0, at), percent_encoded));
}

inline Result<Candidate> parse_url(std::string_view scheme_text, std::string_view rest) {
  const std::string name = lower(scheme_text);
  Scheme scheme = Scheme::Http;
  if (name == "https") {
    scheme = Scheme::Https;
  } else if (name.substr(0, 5) == "socks") {
    return bad_line("SOCKS proxies are not supported: the scheme must be http or https");
  } else if (name != "http") {
    return bad_line("unknown scheme: it must be http or https");
  }
  if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != std::string_view::npos) {
    return bad_line(
        "a path, query or fragment after host:port; write / ? # in a credential as %XX");
  }
  return parse_authority(scheme, rest, /*percent_encoded=*/true);
}

inline bool is_scheme(std::string_view text) noexcept {
  if (text.empty() || lower(text.front()) < 'a' || lower(text.front()) > 'z') return false;
  for (const char c : text) {
    const bool allowed = (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
                         c == '+' || c == '-' || c == '.';
    if (!allowed) return false;
  }
  return true;
}

// "host:port" or "host:port:user:pass", the password being the rest of the line.
inline Result<Candidate> parse_fields(Scheme scheme, std::string_view text) {
  std::string_view host;
  std::string_view rest = text;
  if (!text.empty() && text.front() == '[') {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return bad_line("a bracket is not closed");
    host = text.substr(0, end + 1);
    rest = text.substr(end + 1);
    if (rest.empty() || rest.front() != ':') return bad_line("the port is missing");
    rest.remove_prefix(1);
  } else {
    const auto last = text.rfind(':');
    if (last == std::string_view::npos) return bad_line("the port is missing");
    const auto before = text.substr(0, last);
    if (IpAddress::parse(text) ||
        (before.find(':') != std::string_view::npos && IpAddress::parse(before))) {
      return bad_line("an IPv6 address must stand in brackets");
    }
    host = text.substr(0, text.find(':'));
    rest = text.substr(host.size() + 1);
  }
  const auto port = rest.substr(0, rest.find(':'));
  if (port.size() == rest.size()) return join(parse_endpoint(scheme, host, port), Credential{});
  const auto userinfo = rest.substr(port.size() + 1);
  if (userinfo.find(':') == std::string_view::npos) {
    return bad_line("three fields: write host:port, host:port:user:pass or user:pass@host:port");
  }
  return join(parse_endpoint(scheme, host, port),
              parse_userinfo(userinfo, /*percent_encoded=*/false));
}

}  // namespace detail

// From fields that are apart already, as vendor answers have them; nothing is decoded.
inline Result<Candidate> make_candidate(Scheme scheme, std::string_view host, std::string_view port,
                                        std::string username, std::string password) {
  return detail::join(detail::parse_endpoint(scheme, host, port),
                      detail::make_credential(std::move(username), std::move(password)));
}

// Whether a line of a list holds a record at all: neither blank nor a comment (#).
constexpr bool is_list_record(std::string_view line) noexcept {
  line = trim(line);
  return !line.empty() && line.front() != '#';
}

// `scheme` is that of the spellings that name none. REQUIRES: scheme is Http or Https.
inline Result<Candidate> parse_list_line(std::string_view line, Scheme scheme = Scheme::Http) {
  const auto text = trim(line);
  if (text.empty()) return detail::bad_line("the line is empty");
  const auto mark = text.find("://");
  if (mark != std::string_view::npos && detail::is_scheme(text.substr(0, mark))) {
    return detail::parse_url(text.substr(0, mark), text.substr(mark + 3));
  }
  if (text.find('@') == std::string_view::npos) return detail::parse_fields(scheme, text);
  // A password may hold an @ in host:port:user:pass as well: the reading whose host and port hold
  // is taken, user:pass@host:port first.
  auto candidate = detail::parse_authority(scheme, text, /*percent_encoded=*/false);
  if (candidate) return candidate;
  auto fields = detail::parse_fields(scheme, text);
  return fields ? std::move(fields) : std::move(candidate);
}

// "scheme://host:port": fit for logs and lists.
inline std::string format_url(const Endpoint& endpoint) {
  return std::string(to_string(endpoint.scheme)) + "://" + bracketed(endpoint.host) + ":" +
         std::to_string(endpoint.port);
}

// "scheme://user:pass@host:port"; parse_list_line gives back the exact bytes.
inline SecretString format_url(const Endpoint& endpoint, const Credential& credential) {
  std::string url(to_string(endpoint.scheme));
  url += "://";
  if (!credential.username.empty()) {
    url += detail::percent_encode(credential.username) + ":" +
           detail::percent_encode(credential.password.reveal()) + "@";
  }
  url += bracketed(endpoint.host) + ":" + std::to_string(endpoint.port);
  return SecretString(std::move(url));
}

// "host:port:user:pass", or "host:port" without a credential.
inline SecretString format_fields(const Endpoint& endpoint, const Credential& credential) {
  std::string text = bracketed(endpoint.host) + ":" + std::to_string(endpoint.port);
  if (!credential.username.empty()) {
    text += ":" + credential.username + ":";
    text += credential.password.reveal();
  }
  return SecretString(std::move(text));
}

}  // namespace proxypool::domain
