// What a session tells to operators: readiness, warnings, metrics.
//
// Thread rule: any thread.
#pragma once

#include <string>
#include <vector>

#include "gateway/snapshot/session.hpp"
#include "proxypool/ports/metrics.hpp"

namespace proxypool::gateway {

// Why the gateway cannot serve; empty while its view is valid (GW-50, GW-51).
[[nodiscard]] std::vector<std::string> not_ready(const Session& session, const Clock& clock);
// What goes wrong while it still serves.
[[nodiscard]] std::vector<std::string> warnings(const Session& session);

void register_metrics(const Session& session, ViewSink& views, const Clock& clock,
                      ports::Metrics& metrics);

}  // namespace proxypool::gateway
