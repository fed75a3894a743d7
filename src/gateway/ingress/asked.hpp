// What a client asked for in its user name, read once for each spelling and shared by requests.
//
// Thread rule: immutable once made; the tags point into the parameters, so it is never copied.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/dispatch/filtered.hpp"
#include "proxypool/domain/client/user_name.hpp"
#include "proxypool/domain/routing/matcher.hpp"

namespace proxypool::gateway {

struct Asked {
  explicit Asked(domain::UserParameters read)
      : parameters(std::move(read)), filter_key(parameters.filter.key()) {
    for (const auto& [key, value] : parameters.filter.tags) tags.push_back({key, value});
  }
  explicit Asked(std::string why) : fault(std::move(why)) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked() = default;

  // Null for a bare name.
  static std::shared_ptr<const Asked> read(std::string_view rest) {
    if (rest.empty()) return nullptr;
    auto parameters = domain::parse_user_parameters(rest);
    if (!parameters) return std::make_shared<const Asked>(parameters.error().message);
    return std::make_shared<const Asked>(*std::move(parameters));
  }
  [[nodiscard]] Wanted wanted() const noexcept { return {&parameters.filter, filter_key}; }

  domain::UserParameters parameters;
  std::string filter_key;
  std::vector<domain::RequestTag> tags;
  std::string fault;  // a sentence; empty: there is none
};

}  // namespace proxypool::gateway
