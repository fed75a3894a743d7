// What the REST adapters ask of the controller: extraction for callers, readings for operators.
//
// Thread rule: any thread. Calls may wait for the stores, within the deadline; readings answer from
//              what the services last saw and never wait for a writer (AD-4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/activitypool/inventory.hpp"
#include "proxypool/domain/client/usage.hpp"
#include "proxypool/domain/extraction/extraction.hpp"
#include "proxypool/domain/upstream/classification.hpp"
#include "proxypool/domain/upstream/refill.hpp"
#include "proxypool/ports/activity_pool.hpp"
#include "proxypool/ports/worker_registry.hpp"

namespace proxypool::ports {

// Exclusive, final hand-out. Errors: InvalidArgument (the message begins with "count_too_large"
// when the count is the reason), Forbidden (an upstream that this client may not use),
// Unavailable and DeadlineExceeded (the store is away).
class Extractions {
 public:
  virtual ~Extractions() = default;
  // `command.policies` and `command.idempotency_ttl` are filled in by the service.
  virtual Result<domain::ExtractionResult> extract(domain::ExtractionCommand command,
                                                   Deadline deadline) = 0;
  virtual Result<domain::ExtractionResult> preview(domain::ExtractionCommand command,
                                                   Deadline deadline) = 0;
};

struct UpstreamReading {
  UpstreamId id;
  std::string provider;  // "static", "file", "http"
  bool enabled = true;
  bool leader = false;  // this controller fetches for it
  domain::Inventory inventory;
  std::uint32_t minimum = 0;  // slots
  std::uint32_t target = 0;   // slots
  std::uint32_t size_max = 0;
  domain::FetchCounters counters;
  domain::FetchOutcome last;
  std::string last_detail;
  std::optional<WallTime> last_fetch_at;  // none: not fetched yet
  nanoseconds fetch_time{0};              // spent in calls, since the start of the process
  bool fetching = false;                  // a call is under way
  std::uint32_t empty_in_a_row = 0;
  std::uint32_t errors_in_a_row = 0;
  milliseconds backoff_left{0};
  domain::RefillStop stop = domain::RefillStop::None;
  std::uint64_t total_max = 0;    // fetch.maxTotal; 0: no limit
  std::uint64_t total_spent = 0;  // against it
};

struct RoutingReading {
  RoutingId id;
  bool enabled = true;
  std::string strategy;
  std::string balancer;
  std::vector<UpstreamId> upstreams;
  std::optional<UpstreamId> current;  // sequential
  std::uint64_t revision = 0;         // of its management state; 0: never written
};

struct ClientUsageReading {
  ClientName client;
  domain::Day day;  // today
  domain::Usage today;
  std::uint64_t bytes_per_day = 0;     // 0: no quota
  std::vector<domain::DayUsage> days;  // newest first; those on which it moved anything
};

struct StatusReading {
  std::string cluster_id;
  InstanceId instance;
  nanoseconds uptime{0};
  std::string storage;  // "embedded"
  Generation generation;
  std::uint64_t snapshots_issued = 0;
  std::uint64_t checks_in_flight = 0;
  std::vector<std::string> warnings;
};

class Readings {
 public:
  virtual ~Readings() = default;
  virtual StatusReading status(Deadline deadline) = 0;
  virtual std::vector<UpstreamReading> upstreams(Deadline deadline) = 0;
  virtual std::vector<RoutingReading> routings(Deadline deadline) = 0;
  virtual Result<std::vector<WorkerRow>> workers(Deadline deadline) = 0;
  virtual Result<std::vector<WorkerRegistry::CheckerRow>> checkers(Deadline deadline) = 0;
  virtual Result<std::vector<ProxyRow>> proxies(const ProxyQuery& query, Deadline deadline) = 0;
  // Nothing: there is no such client.
  virtual Result<std::optional<ClientUsageReading>> client_usage(const ClientName& client,
                                                                 Deadline deadline) = 0;
  // The store's clock, for remaining lives.
  virtual Result<StoreTime> store_now(Deadline deadline) = 0;
  // What keeps the process from being ready, in words; empty: nothing.
  virtual std::vector<std::string> not_ready(Deadline deadline) = 0;
};

}  // namespace proxypool::ports
