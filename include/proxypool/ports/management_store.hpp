// ManagementStore: what must survive every restart: operator switches, routing cursors, audit,
// and one spend aggregate per upstream. No proxy address, credential, ownership or extraction.
//
// Adapters: file (embedded, crash-safe), PostgreSQL. Both pass
// tests/contract/management_store_contract.hpp.
//
// Thread rule: any thread. Reads answer from memory and never wait for a writer (AD-4); writes are
//              durable before they answer.
// Errors:      Unavailable (disk full, database away): nothing was changed. Conflict: the guard
//              did not hold. Corrupt: a damaged file was found; see health().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/client/usage.hpp"

namespace proxypool::ports {

struct UpstreamState {
  UpstreamId upstream;
  bool enabled = true;            // the operator's switch, beside the configuration's
  std::uint64_t spent_total = 0;  // durable copy of the ledger (C11)
  std::uint64_t revision = 0;     // 0: never written
};

struct RoutingState {
  RoutingId routing;
  bool enabled = true;
  std::optional<UpstreamId> current;  // sequential cursor
  std::uint64_t revision = 0;
};

struct AuditEntry {
  std::uint64_t sequence = 0;  // given by the store
  WallTime at;
  std::string actor;
  std::string action;   // "upstream.disable"
  std::string subject;  // "acme"
  std::string detail;   // before and after, redacted JSON
  std::string result;   // "done", "refused: …", "intent"
};

struct ConfigRevision {
  std::uint64_t revision = 0;
  std::string fingerprint;  // HMAC-SHA-256, hexadecimal
  WallTime activated_at;
};

struct StoreHealth {
  bool writable = true;
  std::string warning;  // empty: all is well
};

struct UsageAdded {
  bool fresh = false;                // it was not counted before
  std::vector<domain::Usage> today;  // of each client of the batch, in its order
};

class ManagementStore {
 public:
  virtual ~ManagementStore() = default;

  virtual Result<UpstreamState> upstream_state(const UpstreamId& upstream, Deadline deadline) = 0;
  // Effect and audit in one transaction (AD-1). `state.revision` must be the stored one, else
  // Conflict. Answers the new state.
  virtual Result<UpstreamState> put_upstream_state(const UpstreamState& state,
                                                   const std::optional<AuditEntry>& audit,
                                                   Deadline deadline) = 0;
  virtual Result<RoutingState> routing_state(const RoutingId& routing, Deadline deadline) = 0;
  virtual Result<RoutingState> put_routing_state(const RoutingState& state,
                                                 const std::optional<AuditEntry>& audit,
                                                 Deadline deadline) = 0;

  virtual Result<std::optional<ConfigRevision>> config_revision(Deadline deadline) = 0;
  // The same fingerprint keeps its revision, another gets the next one.
  virtual Result<ConfigRevision> activate_config(const std::string& fingerprint, WallTime at,
                                                 Deadline deadline) = 0;

  virtual Status append_audit(const AuditEntry& entry, Deadline deadline) = 0;
  // Newest first, entries with sequence < before (0: from the newest); at most 1,000.
  virtual Result<std::vector<AuditEntry>> audit(std::uint64_t before, std::uint32_t limit,
                                                Deadline deadline) = 0;

  // Counts a batch of usage on the day of `at`, unless a batch of this instance with its number or
  // a greater one was counted before; durable when it answers. An instance that was not heard of
  // for kUsageDaysKept days is forgotten.
  virtual Result<UsageAdded> add_usage(const InstanceId& instance, const domain::UsageBatch& batch,
                                       WallTime at, Deadline deadline) = 0;
  // The days on which it moved anything, newest first; at most kUsageDaysKept.
  virtual Result<std::vector<domain::DayUsage>> usage(const ClientName& client,
                                                      Deadline deadline) = 0;
  // Everybody who moved anything on this day.
  virtual Result<std::vector<domain::ClientUsage>> usage_on(domain::Day day, Deadline deadline) = 0;

  [[nodiscard]] virtual StoreHealth health() const = 0;
};

}  // namespace proxypool::ports
