// The REST APIs as routes: Distribution (EX-1 … EX-4), Admin (read-only in this release), health.
//
// Thread rule: the routes run on the server's blocking pool, many at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "adapters/http/guards.hpp"
#include "adapters/http/router.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/inbound.hpp"
#include "proxypool/ports/metrics.hpp"

namespace proxypool::http {

struct DistributionNeeds {
  ports::Extractions& extractions;
  ports::Events& events;
  const Clock& clock;
  nanoseconds remaining_ttl_min{0};     // when a call names none
  nanoseconds health_check_age_max{0};  // when a call names none; 0: any age
};
void add_distribution(Router& router, const Guard& guard, DistributionNeeds needs);

struct AdminNeeds {
  ports::Readings& readings;
  const Clock& clock;
  std::string version;
};
void add_admin(Router& router, const Guard& guard, AdminNeeds needs);

// `/livez` and `/readyz`, open to everybody. `not_ready` answers the reasons; empty: ready.
void add_health(Router& router, std::function<std::vector<std::string>()> not_ready,
                std::function<std::vector<std::string>()> warnings);
void add_metrics(Router& router, const Guard& guard, ports::Metrics& metrics);
// A document that is served as it is.
void add_document(Router& router, std::string path, std::string content_type, std::string text);

}  // namespace proxypool::http
