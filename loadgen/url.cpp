#include "loadgen/url.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::loadgen {
namespace {

Error bad_url(std::string message) {
  return Error{ErrorCode::InvalidArgument, Origin::Client, std::move(message)};
}

int hex_digit(char c) {
  const char d = lower(c);
  if (d >= '0' && d <= '9') return d - '0';
  if (d >= 'a' && d <= 'f') return d - 'a' + 10;
  return -1;
}

}  // namespace

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                        hex_digit(text[i + 2]) >= 0;
    if (!escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    i += 2;
  }
  return out;
}

std::optional<Authority> parse_authority(std::string_view text, std::uint16_t default_port) {
  Authority out{{}, default_port};
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    out.host = text.substr(1, end - 1);
    const auto rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return std::nullopt;
    has_port = !rest.empty();
    port = has_port ? rest.substr(1) : rest;
  } else {
    const auto colon = text.rfind(':');
    out.host = text.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = text.substr(colon + 1);
    if (out.host.find(':') != std::string::npos) return std::nullopt;
  }
  if (has_port) {
    const auto number = parse_number<std::uint16_t>(port);
    if (!number) return std::nullopt;
    out.port = *number;
  }
  if (out.host.empty() || out.port == 0) return std::nullopt;
  return out;
}

std::string to_text(const Authority& authority) {
  const bool v6 = authority.host.find(':') != std::string::npos;
  return (v6 ? "[" + authority.host + "]" : authority.host) + ":" + std::to_string(authority.port);
}

Result<Url> parse_url(std::string_view text) {
  const auto separator = text.find("://");
  if (separator == std::string_view::npos) return bad_url("a URL begins with http:// or https://");
  Url url;
  url.scheme = lower(text.substr(0, separator));
  if (url.scheme != "http" && url.scheme != "https") {
    return bad_url("the scheme '" + url.scheme + "' is not supported; use http or https");
  }
  text.remove_prefix(separator + 3);
  text = text.substr(0, text.find('#'));
  const auto path = text.find_first_of("/?");
  auto authority = text.substr(0, path);
  url.target = path == std::string_view::npos ? "/" : text.substr(path);
  if (url.target.front() == '?') url.target.insert(0, 1, '/');
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    const auto account = authority.substr(0, at);
    const auto colon = account.find(':');
    url.user = percent_decode(account.substr(0, colon));
    if (colon != std::string_view::npos) url.password = percent_decode(account.substr(colon + 1));
    authority.remove_prefix(at + 1);
  }
  const auto parsed = parse_authority(authority, url.scheme == "https" ? 443 : 80);
  if (!parsed) return bad_url("'" + std::string(authority) + "' is not host:port");
  url.authority = *parsed;
  return url;
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

std::optional<std::string> query_value(std::string_view target, std::string_view name) {
  const auto mark = target.find('?');
  if (mark == std::string_view::npos) return std::nullopt;
  for (const auto pair : split(target.substr(mark + 1), '&')) {
    const auto equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    if (equals == std::string_view::npos) return std::string{};
    return percent_decode(pair.substr(equals + 1));
  }
  return std::nullopt;
}

}  // namespace proxypool::loadgen
