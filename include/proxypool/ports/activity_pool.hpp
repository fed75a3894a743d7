// ActivityPool: the store of the short-lived proxies; their life cycle, ownership, hand-out.
//
// Each method is one atomic operation of the store. All times are the store's own (StoreTime); the
// caller never passes a clock. Decisions are the domain's: the store applies what the pure rules
// of domain/ say, and refuses what its guards (revision, session, epoch) no longer allow.
//
// Adapters: memory (embedded), Redis. Both pass tests/contract/activity_pool_contract.hpp.
//
// Thread rule: any thread. Methods block until done or until the deadline.
// Errors:      Unavailable (store away), DeadlineExceeded, Corrupt; retryable is set.
// Limits:      batches of at most 100,000 entries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/activitypool/inventory.hpp"
#include "proxypool/domain/activitypool/lease.hpp"
#include "proxypool/domain/extraction/extraction.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/domain/health/reducer.hpp"
#include "proxypool/domain/proxy/proxy.hpp"
#include "proxypool/domain/proxy/state.hpp"
#include "proxypool/domain/proxy/ttl.hpp"

namespace proxypool::ports {

using domain::Credential;
using domain::HealthRecord;
using domain::Proxy;

// Which life of the store this is (ruling C18). A change means: all state may be lost.
struct Generation {
  std::uint64_t id = 0;
  StoreTime started_at;
  StoreTime now;
  // Before it nothing is extracted and nothing is assigned but what workers report to hold.
  StoreTime exclusive_from;
};

// A candidate that the controller identified.
struct Admission {
  ProxyId id;
  domain::CredentialVersion credential_version;
  domain::Candidate candidate;
};

struct AdmitBatch {
  UpstreamId upstream;
  domain::TtlPolicy ttl;          // lives are settled in the store's time (CT-22)
  std::uint32_t managed_max = 0;  // pool.maxSize: what exceeds it is not admitted
  std::uint32_t concurrency_max = 1;
  domain::Tags tags;           // of the upstream; a candidate's own tags win
  bool authoritative = false;  // a list (C19): own entries that are missing count as removed
  std::vector<Admission> admissions;
};

struct AdmitResult {
  std::uint32_t admitted = 0;
  std::uint32_t renewed = 0;     // known to the same upstream: expiry taken over or renewed (C19)
  std::uint32_t duplicates = 0;  // known, whoever owns it; renewed ones included
  std::uint32_t expired = 0;     // already past their margin
  std::uint32_t over_size = 0;
  std::uint32_t collisions = 0;  // another proxy has the same id: refused, and a bug counted
  std::uint32_t removed = 0;     // authoritative lists only
};

// What the store must know of an upstream to move its proxies by the clock.
struct UpstreamRules {
  bool enabled = true;
  milliseconds unhealthy_retention{600'000};  // then REMOVED (C5)
  friend bool operator==(const UpstreamRules&, const UpstreamRules&) = default;
};

// Who holds a lease: a worker's session (rulings C9, C12, C17). The instance tells a reconnect (the
// new session takes its leases over) from a restart (the old session's leases must end first).
struct LeaseHolder {
  WorkerId worker;
  InstanceId instance;
  SessionId session;
  friend bool operator==(const LeaseHolder&, const LeaseHolder&) = default;
};

// A proxy with its lease, as planning and Admin see it.
struct LeasedProxy {
  Proxy proxy;
  LeaseHolder holder;  // empty names: unowned
  Epoch lease_epoch;
  StoreTime lease_until;
  std::uint32_t orphaned_slots = 0;  // that lost owners may still use, until:
  std::optional<StoreTime> orphaned_until = std::nullopt;
};

// What the reducer needs of a proxy, with the guard for writing it back.
struct HealthRow {
  ProxyId id;
  UpstreamId upstream;
  domain::ProxyState state = domain::ProxyState::Fetched;
  HealthRecord record;
  std::uint64_t revision = 0;
  WorkerId owner{};  // empty: nobody holds it
  Epoch lease_epoch{};
};

struct HealthWrite {
  ProxyId id;
  std::uint64_t revision = 0;  // as read; a mismatch refuses this write alone
  HealthRecord record;
  std::vector<domain::ProxyEvent> events;  // of the reduction, in order
  domain::Failure failure;                 // of this check; shown in Admin
};

// A check that is due. Taking it opens a task in the proxy's record, for `CheckDemand::lease`, and
// makes a FETCHED proxy CHECKING.
struct DueCheck {
  std::uint64_t task_id = 0;
  Proxy proxy;
  Credential credential;
};

struct CheckDemand {
  std::uint32_t count_max = 0;
  milliseconds lease{30'000};
  bool routine = true;  // false under back-log: only new and suspect proxies
};

// What one worker holds, as its snapshot needs it.
struct HeldProxy {
  Proxy proxy;  // max_concurrency: less the slots of orphans, see sweep()
  Credential credential;
  Epoch lease_epoch;
  StoreTime lease_until;
};

// What a process says it has when it registers.
struct Holdings {
  std::vector<ProxyId> held;  // of a view that is valid
  std::vector<domain::RunningOn> running;
};

struct RuntimeCount {
  ProxyId id;
  Epoch lease_epoch;  // as the worker was told; another epoch: the count is ignored
  std::uint32_t active = 0;
  std::uint32_t reserved = 0;
  bool draining = false;
};

struct ProxyQuery {
  std::vector<UpstreamId> upstreams;       // empty: all
  std::vector<domain::ProxyState> states;  // empty: all but Removed
  std::optional<ProxyId> after;            // cursor: ids greater than this
  std::uint32_t limit = 100;               // 1 … 1,000
};

struct ProxyRow {
  LeasedProxy leased;
  domain::Failure last_failure;
  std::uint32_t active = 0;  // as last reported by the owner
  std::uint32_t reserved = 0;
};

// What sweep() moved because time passed.
struct SweepResult {
  std::uint32_t drained = 0;  // margin reached
  std::uint32_t expired = 0;
  std::uint32_t removed = 0;
  std::uint32_t freed = 0;  // leases that ended: unowned again
  StoreTime next_due;       // nothing will be due before it
};

class ActivityPool {
 public:
  virtual ~ActivityPool() = default;

  virtual Result<Generation> generation(Deadline deadline) = 0;
  // Grows whenever anything that a snapshot could show has changed.
  virtual Result<std::uint64_t> change_counter(Deadline deadline) = 0;

  // Supply ------------------------------------------------------------------------------------
  // Takes new proxies in, finds duplicates over all upstreams (CT-21), renews what C19 lets renew.
  virtual Result<AdmitResult> admit(const AdmitBatch& batch, Deadline deadline) = 0;
  // What the upstream has, and how many slots are free (CT-23). An owner's counts are known for
  // `kReportTtl` after its report, and from its first report under the lease on.
  static constexpr milliseconds kReportTtl{10'000};
  virtual Result<domain::Inventory> inventory(const UpstreamId& upstream, Deadline deadline) = 0;

  // Life cycle --------------------------------------------------------------------------------
  // Sets an upstream's rules; a change of `enabled` moves its proxies at once. Answers how many.
  virtual Result<std::uint32_t> configure(const UpstreamId& upstream, const UpstreamRules& rules,
                                          Deadline deadline) = 0;
  // An operator's drain, remove or reset; each proxy moves only where the table allows. Answers how
  // many moved.
  virtual Result<std::uint32_t> apply(const std::vector<ProxyId>& ids, domain::ProxyEvent event,
                                      Deadline deadline) = 0;
  // Does what is due by the clock (C4, C5, C16): margins, expiries, retention, ended leases. A
  // lease that ended without a word leaves orphans for `orphanGrace`: what its owner last reported
  // takes slots from the next owner, and the proxy is not extracted (domain::Orphans).
  virtual Result<SweepResult> sweep(std::uint32_t count_max, Deadline deadline) = 0;

  // Health ------------------------------------------------------------------------------------
  virtual Result<std::vector<DueCheck>> take_due_checks(const CheckDemand& demand,
                                                        Deadline deadline) = 0;
  virtual Result<std::vector<HealthRow>> read_health(const std::vector<ProxyId>& ids,
                                                     Deadline deadline) = 0;
  // Answers, write by write, whether the revision still stood.
  virtual Result<std::vector<bool>> write_health(const std::vector<HealthWrite>& writes,
                                                 Deadline deadline) = 0;

  // Ownership ---------------------------------------------------------------------------------
  // The AVAILABLE and SUSPECT proxies of one upstream, whoever holds them: what a plan divides.
  virtual Result<std::vector<LeasedProxy>> ownable(const UpstreamId& upstream,
                                                   Deadline deadline) = 0;
  // Gives unowned proxies with a free slot to a worker; answers those that it got. Refused ones
  // stay as they are.
  virtual Result<std::vector<ProxyId>> assign(const LeaseHolder& holder,
                                              const std::vector<ProxyId>& ids, Epoch epoch,
                                              milliseconds lease, Deadline deadline) = 0;
  // A worker registered and says what it has. Leases of the same instance move to the new session.
  // In a young generation what it holds are claims: unowned proxies, now or when supply brings
  // them, become the holder's (C18); and what it works on besides has orphans, now or then (C16).
  // Earlier claims of the same instance are kept, whatever the age of the generation, if they are
  // named again; those of another instance stay its own (C17). Once every instance that may hold
  // leases from before has been adopted, it is no longer young. Answers how many claims are still
  // open.
  virtual Result<std::uint32_t> adopt(const LeaseHolder& holder, const Holdings& holdings,
                                      Epoch epoch, milliseconds lease, Deadline deadline) = 0;
  // How many of the holder's claims are open: not brought by supply yet, or not through their
  // first check. Zero: a full snapshot would not shrink what the worker serves.
  virtual Result<std::uint32_t> open_claims(const LeaseHolder& holder, Deadline deadline) = 0;
  // Renews the leases of everything the session owns, revoking ones excepted.
  virtual Result<std::uint32_t> renew(const LeaseHolder& holder, milliseconds lease,
                                      Deadline deadline) = 0;
  // Owned → revoking: no new work; freed by apply_runtime or when the lease ends. An owned proxy
  // that leaves AVAILABLE and SUSPECT becomes revoking by itself.
  virtual Result<std::uint32_t> revoke(const std::vector<ProxyId>& ids, Deadline deadline) = 0;
  // A full report of a session: stores the counts, and frees revoking proxies that are at zero and
  // became revoking before `acknowledged_change` (the change counter at which the snapshot that the
  // worker serves was built). A proxy that it does not name is at zero if that snapshot could name
  // it, and unknown otherwise. A final report frees everything of the session; what it still counts
  // becomes orphans. Answers what was freed.
  virtual Result<std::vector<ProxyId>> apply_runtime(const LeaseHolder& holder,
                                                     const std::vector<RuntimeCount>& counts,
                                                     std::uint64_t acknowledged_change,
                                                     bool final_report, Deadline deadline) = 0;
  // Everything that the session holds, revoking ones included (proxy.ownership tells), by id.
  virtual Result<std::vector<HeldProxy>> held_by(const LeaseHolder& holder, Deadline deadline) = 0;

  // Extraction --------------------------------------------------------------------------------
  // One atomic step: selects, marks EXTRACTED, keeps the idempotent result (CT-60, EX-1, EX-2).
  virtual Result<domain::ExtractionResult> extract(const domain::ExtractionCommand& command,
                                                   Deadline deadline) = 0;
  // What the same command would get, without taking: only `available` is filled.
  virtual Result<domain::ExtractionResult> preview(const domain::ExtractionCommand& command,
                                                   Deadline deadline) = 0;

  // Reading -----------------------------------------------------------------------------------
  // Ordered by id; at most `limit` rows.
  virtual Result<std::vector<ProxyRow>> list(const ProxyQuery& query, Deadline deadline) = 0;
};

}  // namespace proxypool::ports
