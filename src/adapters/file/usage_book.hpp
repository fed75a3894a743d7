// What clients moved, by day, as records of a log: each batch is one record, so that keeping it
// costs one sync, whatever the number of clients.
//
// The log is rewritten as totals when most of it is history. Days that are over for long, and
// instances that were not heard of for as long, go with it.
//
// Thread rule: any thread; readers never wait for the disk.
// Limits:      kUsageDaysKept days; kInstancesMax instances, the one not heard of for longest makes
//              room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/domain/client/usage.hpp"
#include "proxypool/ports/durable_log.hpp"
#include "proxypool/ports/management_store.hpp"

namespace proxypool::file {

class UsageBook {
 public:
  static constexpr std::size_t kInstancesMax = 10'000;
  static constexpr std::size_t kRewriteBytesMin = std::size_t{1} << 20U;

  // Reads the log. Null: nothing is kept over a restart.
  static Result<std::unique_ptr<UsageBook>> open(ports::DurableLog* log);

  Result<ports::UsageAdded> add(const InstanceId& instance, const domain::UsageBatch& batch,
                                domain::Day day);
  [[nodiscard]] std::vector<domain::DayUsage> of(const ClientName& client) const;
  [[nodiscard]] std::vector<domain::ClientUsage> on(domain::Day day) const;

 private:
  struct Fence {
    std::uint64_t number = 0;
    domain::Day day;
  };
  struct State {
    std::map<std::string, std::deque<domain::DayUsage>> clients;  // the newest day first
    std::map<std::string, Fence> instances;
    domain::Day today;  // of the last batch
  };

  explicit UsageBook(ports::DurableLog* log) : log_(log) {}
  static void count(State& state, const std::string& client, const domain::DayUsage& usage);
  static void fence(State& state, const std::string& instance, const Fence& fence);
  static void forget(State& state, domain::Day today);
  static domain::Usage usage_of(const State& state, const std::string& client, domain::Day day);
  static std::vector<std::string> totals(const State& state);
  static bool replay(State& state, std::string_view record);
  Status rewrite_if_due();

  ports::DurableLog* const log_;
  std::size_t rewrite_at_ = kRewriteBytesMin;  // of the writer
  Guarded<State> state_;
  Guarded<Unit> writer_;
};

}  // namespace proxypool::file
