// What a client asks of the proxy that serves it: country, region, city, carrier, tags. (R5)
//
// AND between fields; an empty field demands nothing, and a proxy of which a field is unknown does
// not satisfy a demand for it. Whoever writes a user name has no hyphen and rarely a space: in a
// region, city or carrier an underscore stands for a space, a hyphen or itself.
//
// Thread rule: immutable values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

struct ProxyFilter {
  Attributes attributes;  // canonical: the country in upper case, the others in lower case
  Tags tags;

  [[nodiscard]] bool empty() const noexcept { return tags.empty() && attributes == Attributes{}; }
  // Whether a proxy of this kind will do. `settled`: tags that a routing has dealt with.
  [[nodiscard]] bool admits(const Attributes& proxy, const Tags& labels,
                            std::span<const std::string> settled = {}) const {
    const bool placed = (attributes.country.empty() || attributes.country == proxy.country) &&
                        says(attributes.region, proxy.region) &&
                        says(attributes.city, proxy.city) &&
                        says(attributes.carrier, proxy.carrier);
    if (!placed) return false;
    return std::all_of(tags.begin(), tags.end(), [&](const auto& tag) {
      if (std::find(settled.begin(), settled.end(), tag.first) != settled.end()) return true;
      const auto found = labels.find(tag.first);
      return found != labels.end() && found->second == tag.second;
    });
  }
  // The same text for the same filter, and for no other one; empty for none.
  [[nodiscard]] std::string key() const {
    std::string out;
    const auto add = [&](char kind, std::string_view value) {
      if (value.empty()) return;
      out += kind;
      out += std::to_string(value.size());
      out += ':';
      out += value;
    };
    add('c', attributes.country);
    add('r', attributes.region);
    add('t', attributes.city);
    add('o', attributes.carrier);
    for (const auto& [name, value] : tags) {
      add('k', name);
      add('v', value);
    }
    return out;
  }
  friend bool operator==(const ProxyFilter&, const ProxyFilter&) = default;

 private:
  static bool says(std::string_view asked, std::string_view known) noexcept {
    if (asked.empty()) return true;
    if (asked.size() != known.size()) return false;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (asked[i] == known[i]) continue;
      if (asked[i] != '_' || (known[i] != ' ' && known[i] != '-')) return false;
    }
    return true;
  }
};

}  // namespace proxypool::domain
