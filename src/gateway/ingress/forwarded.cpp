#include "gateway/ingress/forwarded.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "net/http/characters.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::gateway {
namespace {

// "192.0.2.1", "192.0.2.1:5000", "2001:db8::1", "[2001:db8::1]:5000".
std::optional<IpAddress> parse_element(std::string_view text) noexcept {
  if (!text.empty() && text.front() == '[') {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    return IpAddress::parse(text.substr(1, end - 1));
  }
  const auto colon = text.find(':');
  const bool port = colon != std::string_view::npos && colon == text.rfind(':');
  return IpAddress::parse(port ? text.substr(0, colon) : text);
}

}  // namespace

bool contains(const std::vector<Cidr>& ranges, const IpAddress& address) noexcept {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Cidr& range) { return range.contains(address); });
}

IpAddress caller_of(const net::RequestHead& head, const IpAddress& peer,
                    const std::vector<Cidr>& trusted) noexcept {
  IpAddress caller = peer;
  const auto fields = head.fields();
  for (std::size_t i = fields.size(); i-- > 0;) {
    if (!equal_ignoring_case(head.name(fields[i]), "X-Forwarded-For")) continue;
    std::string_view list = head.value(fields[i]);
    while (contains(trusted, caller)) {
      const auto comma = list.rfind(',');
      const auto element = comma == std::string_view::npos ? list : list.substr(comma + 1);
      const auto address = parse_element(net::trim_blanks(element));
      if (!address) return caller;
      caller = *address;
      if (comma == std::string_view::npos) break;
      list = list.substr(0, comma);
    }
  }
  return caller;
}

}  // namespace proxypool::gateway
