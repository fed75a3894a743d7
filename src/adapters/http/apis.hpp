// The REST APIs as routes: Distribution (EX-1 … EX-4), Admin, health.
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
#include "proxypool/ports/operations.hpp"

namespace proxypool::http {

struct DistributionNeeds {
  ports::Extractions& extractions;
  ports::Events& events;
  const Clock& clock;
  // What counts now when a call names none.
  struct Defaults {
    nanoseconds remaining_ttl_min{0};
    nanoseconds health_check_age_max{0};  // 0: any age
  };
  std::function<Defaults()> defaults;
};
void add_distribution(Router& router, const Guard& guard, DistributionNeeds needs);

struct AdminNeeds {
  ports::Readings& readings;
  ports::RoutingOperations& routings;
  ports::ConfigOperations& config;
  const Clock& clock;
  std::string version;
};
// Who may do what; an empty guard lets everybody pass.
struct AdminGuards {
  Guard read;
  Guard write;  // operate resources
  Guard admin;  // the configuration
};
void add_admin(Router& router, const AdminGuards& guards, AdminNeeds needs);

// `/livez` and `/readyz`, open to everybody. `not_ready` answers the reasons; empty: ready.
void add_health(Router& router, std::function<std::vector<std::string>()> not_ready,
                std::function<std::vector<std::string>()> warnings);
void add_metrics(Router& router, const Guard& guard, ports::Metrics& metrics);
// A document that is served as it is.
void add_document(Router& router, std::string path, std::string content_type, std::string text);

}  // namespace proxypool::http
