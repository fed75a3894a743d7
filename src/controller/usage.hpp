// UsageService: what clients moved, and who has moved enough for today. (GW-14)
//
// It takes the batches that ride on workers' runtime reports, keeps them, and answers with those
// who have used up clients[].limits.bytesPerDay: all of them, in every answer, so that an answer
// that is lost is made good by the next one. A day is one of UTC by this controller's clock; what
// arrives late counts on the day on which it arrives.
//
// A store that does not answer leaves a batch unconfirmed and the verdicts as they were: the worker
// sends it again. Names that are no clients of the configuration are not counted.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "config/config.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/client/usage.hpp"
#include "proxypool/ports/inbound.hpp"
#include "proxypool/ports/management_store.hpp"

namespace proxypool::controller {

struct UsageCounters {
  std::uint64_t bytes_up = 0;  // of batches that were kept, since the start of the process
  std::uint64_t bytes_down = 0;
  std::uint64_t unknown = 0;   // entries for names that are no clients
  std::uint64_t failures = 0;  // batches that could not be kept; sent again
};

class UsageService {
 public:
  UsageService(std::shared_ptr<const config::Config> config, ports::ManagementStore& store,
               const Clock& clock);

  // Another configuration counts from now on. REQUIRES: not null.
  void configure(const std::shared_ptr<const config::Config>& config);

  struct Verdicts {
    std::uint64_t kept = 0;  // the batch's number once it is kept, else 0
    std::vector<ClientName> over;
    milliseconds resets_in{0};
  };
  Verdicts take(const InstanceId& instance, const domain::UsageBatch& batch, Deadline deadline);

  // Nothing: there is no such client.
  Result<std::optional<ports::ClientUsageReading>> reading(const ClientName& client,
                                                           Deadline deadline) const;
  [[nodiscard]] UsageCounters counters() const;
  // Clients that have used up their day.
  [[nodiscard]] std::size_t over_quota() const;

 private:
  using Quotas = std::unordered_map<ClientName, std::uint64_t>;  // of every client; 0: none
  struct State {
    std::shared_ptr<const Quotas> quotas;  // never null
    std::optional<domain::Day> day;        // nothing: the store was not asked yet
    std::set<ClientName> over;             // of that day
    UsageCounters counters;
  };

  [[nodiscard]] std::shared_ptr<const Quotas> quotas() const;
  [[nodiscard]] domain::UsageBatch known_of(const domain::UsageBatch& batch);
  bool keep(const InstanceId& instance, const domain::UsageBatch& batch, WallTime at,
            Deadline deadline);
  void begin_day(domain::Day day, Deadline deadline);
  ports::ManagementStore& store_;
  const Clock& clock_;
  Guarded<State> state_;
};

}  // namespace proxypool::controller
