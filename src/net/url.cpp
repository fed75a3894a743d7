#include "net/url.hpp"

#include "net/http/authority.hpp"
#include "net/http/characters.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::net {
namespace {

Error bad_url(std::string_view why) {
  return {ErrorCode::InvalidArgument, Origin::Provider, "invalid URL: " + std::string(why)};
}

}  // namespace

bool Url::same_origin(const Url& other) const noexcept {
  return tls == other.tls && port == other.port && equal_ignoring_case(host, other.host);
}

Result<Url> parse_url(std::string_view text) {
  text = text.substr(0, text.find('#'));
  Url out;
  const auto mark = text.find("://");
  if (mark == std::string_view::npos) return bad_url("it must begin with http:// or https://");
  const auto scheme = text.substr(0, mark);
  out.tls = equal_ignoring_case(scheme, "https");
  if (!out.tls && !equal_ignoring_case(scheme, "http")) {
    return bad_url("the scheme must be http or https");
  }
  const auto rest = text.substr(mark + 3);
  AuthorityFault fault{};
  std::size_t size = 0;
  const auto authority = parse_leading_authority(rest, size, fault);
  if (fault == AuthorityFault::UserInformation) {
    return bad_url("credentials do not belong into it");
  }
  if (!authority) return bad_url(fault == AuthorityFault::Port ? "bad port" : "bad host");
  out.host = authority->host;
  out.authority = authority->text;
  out.port = out.tls ? 443 : 80;
  if (authority->has_port) out.port = authority->port;
  const auto target = rest.substr(size);
  if (target.empty() || target.front() != '/') out.target = "/";
  out.target += target;
  const char* const end = out.target.data() + out.target.size();
  if (find_target_end(out.target.data(), end) != end) {
    return bad_url("a blank or another byte that must be percent-encoded");
  }
  return out;
}

Result<Url> resolve(const Url& base, std::string_view location) {
  const std::string origin = (base.tls ? "https://" : "http://") + base.authority;
  const std::string_view path = std::string_view(base.target).substr(0, base.target.find('?'));
  const auto head = location.substr(0, location.find_first_of("/?#"));
  if (head.find(':') != std::string_view::npos) return parse_url(location);
  if (location.starts_with("//"))
    return parse_url((base.tls ? "https:" : "http:") + std::string(location));
  if (location.starts_with("/")) return parse_url(origin + std::string(location));
  if (location.starts_with("?")) {
    return parse_url(origin + std::string(path) + std::string(location));
  }
  const auto folder = path.substr(0, path.rfind('/') + 1);
  return parse_url(origin + std::string(folder) + std::string(location));
}

}  // namespace proxypool::net
