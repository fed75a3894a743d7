// The embedded ActivityPool: one table behind one lock.
//
// Every port method is one critical section, so each is atomic; the only step outside the lock is
// the sync of a hand-out, during which its proxies are set aside. See memory_stores.hpp.
//
// Thread rule: any thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/memory/handout_log.hpp"
#include "adapters/memory/lease_note.hpp"
#include "adapters/memory/memory_stores.hpp"
#include "adapters/memory/pool_table.hpp"
#include "adapters/memory/store_clock.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/random.hpp"

namespace proxypool::memory {

ports::LeasedProxy leased(const Row& row);

class MemoryPool final : public ports::ActivityPool {
 public:
  MemoryPool(PoolOptions options, LeaseNote note, ports::DurableLog* handouts, const Clock& clock,
             ports::Crypto& crypto);
  // Takes back what was handed out before. Called once, before anything else.
  Status load_handouts();

  Result<ports::Generation> generation(Deadline) override;
  Result<std::uint64_t> change_counter(Deadline) override;
  Result<ports::AdmitResult> admit(const ports::AdmitBatch& batch, Deadline) override;
  Result<domain::Inventory> inventory(const UpstreamId& upstream, Deadline) override;
  Result<std::uint32_t> configure(const UpstreamId& upstream, const ports::UpstreamRules& rules,
                                  Deadline) override;
  Result<std::uint32_t> apply(const std::vector<ProxyId>& ids, domain::ProxyEvent event,
                              Deadline) override;
  Result<ports::SweepResult> sweep(std::uint32_t count_max, Deadline) override;
  Result<std::vector<ports::DueCheck>> take_due_checks(const ports::CheckDemand& demand,
                                                       Deadline) override;
  Result<std::vector<ports::HealthRow>> read_health(const std::vector<ProxyId>& ids,
                                                    Deadline) override;
  Result<std::vector<bool>> write_health(const std::vector<ports::HealthWrite>& writes,
                                         Deadline) override;
  Result<std::vector<ports::LeasedProxy>> ownable(const UpstreamId& upstream, Deadline) override;
  Result<std::vector<ProxyId>> assign(const ports::LeaseHolder& holder,
                                      const std::vector<ProxyId>& ids, Epoch epoch,
                                      milliseconds lease, Deadline) override;
  Result<std::uint32_t> adopt(const ports::LeaseHolder& holder, const ports::Holdings& holdings,
                              Epoch epoch, milliseconds lease, Deadline) override;
  Result<std::uint32_t> open_claims(const ports::LeaseHolder& holder, Deadline) override;
  Result<std::uint32_t> renew(const ports::LeaseHolder& holder, milliseconds lease,
                              Deadline) override;
  Result<std::uint32_t> revoke(const std::vector<ProxyId>& ids, Deadline) override;
  Result<std::vector<ProxyId>> apply_runtime(const ports::LeaseHolder& holder,
                                             const std::vector<ports::RuntimeCount>& counts,
                                             std::uint64_t acknowledged_change, bool final_report,
                                             Deadline) override;
  Result<std::vector<ports::HeldProxy>> held_by(const ports::LeaseHolder& holder,
                                                Deadline) override;
  Result<domain::ExtractionResult> extract(const domain::ExtractionCommand& command,
                                           Deadline) override;
  Result<domain::ExtractionResult> preview(const domain::ExtractionCommand& command,
                                           Deadline) override;
  Result<std::vector<ports::ProxyRow>> list(const ports::ProxyQuery& query, Deadline) override;

 private:
  using ReplayKey = std::pair<std::string, std::string>;  // client, idempotency key
  // Kept for as long as the claimed lease, its tunnels and the margin may last, whether or not the
  // generation is still young: until then nobody else may get the proxy.
  struct Claim {
    ports::LeaseHolder holder;
    Epoch epoch;
    StoreTime lease_until;
  };
  struct State {
    PoolTable table;
    LeaseNote leases;
    std::uint64_t change = 1;
    std::uint64_t last_task = 0;
    // Of proxies that supply has not brought yet.
    std::map<ProxyId, Claim> claims;
    std::multimap<ProxyId, domain::Orphans> left;
    std::map<ReplayKey, Handout> replays;
    std::map<ReplayKey, std::string> in_progress;  // → request digest
    std::uint32_t appending = 0;                   // hand-outs between selection and finish
    explicit State(LeaseNote note) : leases(std::move(note)) {}
  };

  // Moves a row over one edge of the table; false when there is none. A row that leaves the usable
  // states while it is owned becomes revoking.
  bool move(State& state, Row& row, domain::ProxyEvent event, StoreTime now);
  // `running`: the slots that its owner may still use, if it went without saying that it uses none.
  void free_lease(State& state, Row& row, std::optional<std::uint32_t> running = std::nullopt);
  void own(State& state, Row& row, const ports::LeaseHolder& holder, Epoch epoch, StoreTime until);
  void visible_change(State& state) { ++state.change; }
  [[nodiscard]] bool young(const State& state, StoreTime now) const;
  [[nodiscard]] StoreTime exclusive_from(const State& state) const;
  // Runs every event that is due for the row; counts what it did. The row may be gone afterwards.
  void settle(State& state, ProxyId id, StoreTime now, ports::SweepResult& result);
  // Moves a proxy and does what is due then; whether its state changed or it is gone.
  bool move_and_settle(State& state, ProxyId id, domain::ProxyEvent event, StoreTime now);
  [[nodiscard]] StoreTime next_due(const State& state, StoreTime now) const;
  [[nodiscard]] static std::uint32_t count_open_claims(const State& state,
                                                       const ports::LeaseHolder& holder);
  [[nodiscard]] static bool holds_more(const State& state, const ports::LeaseHolder& holder);
  void claim(State& state, const ports::LeaseHolder& holder, const std::vector<ProxyId>& ids,
             Epoch epoch, StoreTime until);
  void leave_running(State& state, const ports::LeaseHolder& holder,
                     const std::vector<domain::RunningOn>& running, StoreTime until);
  void take_claims_along(State& state, const ports::LeaseHolder& holder,
                         const std::vector<ProxyId>& ids);
  [[nodiscard]] domain::Orphans orphans_of(const ports::LeaseHolder& holder, std::uint32_t slots,
                                           StoreTime lease_until) const;
  using OrphansTest = std::function<bool(const domain::Orphans&)>;
  void forget_orphans(State& state, Row& row, const OrphansTest& over);
  void forget_orphans_of(State& state, const ports::LeaseHolder& holder);
  void free_ended_leases(State& state, StoreTime now, std::uint32_t count_max,
                         ports::SweepResult& result);
  void admit_one(State& state, const ports::AdmitBatch& batch, const ports::Admission& admission,
                 StoreTime now, ports::AdmitResult& result);
  void remove_missing(State& state, const ports::AdmitBatch& batch, StoreTime now,
                      ports::AdmitResult& result);

  struct Selection {
    std::vector<ProxyId> ids;
    bool scan_limited = false;
  };
  [[nodiscard]] Selection select(const State& state, const domain::ExtractionCommand& command,
                                 StoreTime now) const;
  std::optional<domain::ExtractionResult> replayed(State& state,
                                                   const domain::ExtractionCommand& command,
                                                   StoreTime now);
  void finish(State& state, const Handout& handout, bool durable, StoreTime now);
  [[nodiscard]] std::vector<Handout> living_handouts(const State& state, StoreTime now) const;

  const PoolOptions options_;
  StoreClock clock_;
  const std::uint64_t generation_;
  HandoutLog handouts_;
  Guarded<SplitMix64> random_;
  Guarded<State> state_;
};

}  // namespace proxypool::memory
