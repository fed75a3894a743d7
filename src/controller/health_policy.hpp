// How the configuration checks the proxies of an upstream, as the reducer wants it.
//
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <chrono>

#include "config/config.hpp"
#include "proxypool/domain/health/policy.hpp"

namespace proxypool::controller {

inline const config::CheckConfig& check_of(const config::Config& config,
                                           const UpstreamId& upstream) {
  const auto found = std::find_if(config.upstreams.begin(), config.upstreams.end(),
                                  [&](const auto& entry) { return entry.id == upstream; });
  return found == config.upstreams.end() ? config.check : found->check;
}

inline domain::HealthPolicy policy_of(const config::CheckConfig& check) {
  domain::HealthPolicy policy;
  policy.interval = std::chrono::duration_cast<milliseconds>(check.basic.interval);
  policy.recheck_interval = std::min(policy.recheck_interval, policy.interval);
  policy.failure_threshold = check.basic.failure_threshold;
  policy.success_threshold = check.basic.success_threshold;
  return policy;
}

}  // namespace proxypool::controller
