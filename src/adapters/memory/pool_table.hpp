// PoolTable: the rows of the embedded pool with every index that an operation needs.
//
// A row is changed only inside change(), which takes it out of all indices before and puts it back
// after, so that no index can be forgotten. Nothing here decides anything; it finds.
//
// Thread rule: one thread at a time (the owner holds the pool's lock).
// Limits:      none of its own; pool.maxSize bounds each upstream.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxypool/domain/activitypool/lease.hpp"
#include "proxypool/domain/proxy/due.hpp"
#include "proxypool/ports/activity_pool.hpp"

namespace proxypool::memory {

// How many rows an upstream has in each state, and who holds the managed ones.
struct RowCounts {
  std::uint32_t by_state[domain::kProxyStates] = {};
  std::uint32_t owned = 0;
  std::uint32_t unowned = 0;
  std::uint32_t revoking = 0;
  std::uint32_t handing_out = 0;  // AVAILABLE ones that are being extracted
};

struct Row {
  domain::Proxy proxy;
  domain::Credential credential;
  domain::HealthRecord health;
  domain::Failure last_failure;
  std::uint64_t revision = 1;  // grows by every change of the row
  ports::LeaseHolder holder;   // of an owned or revoking row
  Epoch lease_epoch;
  StoreTime lease_until;
  std::uint64_t owned_change = 0;    // the change counter when it became owned
  std::uint64_t revoked_change = 0;  // the change counter when it became revoking
  std::optional<domain::DrainCause> drain_cause;
  std::optional<StoreTime> unhealthy_since;
  std::vector<domain::Orphans> orphans;  // of owners that were lost; none is over (see settle)
  bool handing_out = false;              // being extracted: in no hand-out index
  std::uint32_t tie = 0;                 // random; decides between equal lives
  std::uint32_t active = 0;              // as last reported
  std::uint32_t reserved = 0;
  std::optional<StoreTime> counted_at;  // when the owner's counts were last reported
};

// Nobody has it, and nothing that an earlier owner left behind runs on it.
inline bool idle(const Row& row) noexcept {
  return row.proxy.ownership == domain::Ownership::Unowned && row.orphans.empty();
}

inline bool left_by(const ports::LeaseHolder& holder, const domain::Orphans& orphans) noexcept {
  return orphans.worker == holder.worker && orphans.instance == holder.instance;
}

// The slots that orphans take: those of others than the holder, whose process counts its own.
std::uint32_t orphaned_slots(const Row& row, const ports::LeaseHolder& holder = {}) noexcept;
// The slots that a holder may use.
inline std::uint32_t slots_for(const ports::LeaseHolder& holder, const Row& row) noexcept {
  return row.proxy.max_concurrency - orphaned_slots(row, holder);
}

// Proxies with the same answers to every indexed extraction filter.
struct ClassKey {
  UpstreamId upstream;
  domain::Scheme scheme = domain::Scheme::Http;
  std::string country;
  std::string region;
  std::string carrier;
  friend auto operator<=>(const ClassKey&, const ClassKey&) = default;
};

// Longest remaining life first, ties random.
struct LifeKey {
  StoreTime ends;  // StoreTime::max() without an expiry
  std::uint32_t tie = 0;
  ProxyId id;
  friend bool operator<(const LifeKey& a, const LifeKey& b) noexcept {
    return std::tie(b.ends, a.tie, a.id) < std::tie(a.ends, b.tie, b.id);
  }
};

// Whose check comes first (CT-30).
enum class CheckClass : std::uint8_t { New, Suspect, Routine };

class PoolTable {
 public:
  using ById = std::map<ProxyId, Row>;
  using ByLife = std::set<LifeKey>;
  using ByCheck = std::set<std::pair<StoreTime, ProxyId>>;

  // Of the rows that no snapshot shows and no other table counts: everything is derived from rows.
  [[nodiscard]] Row* find(ProxyId id);
  [[nodiscard]] const Row* find(ProxyId id) const;
  Row& insert(Row row);
  void erase(ProxyId id);

  // Runs f(row) between taking the row out of the indices and putting it back; counts a revision.
  template <class F>
  void change(Row& row, F&& f) {
    unindex(row);
    std::forward<F>(f)(row);
    ++row.revision;
    index(row);
  }

  [[nodiscard]] const ById& rows() const noexcept { return rows_; }
  [[nodiscard]] const std::set<ProxyId>& of_upstream(const UpstreamId& upstream) const;
  [[nodiscard]] const std::set<ProxyId>& of_holder(const ports::LeaseHolder& holder) const;
  [[nodiscard]] std::vector<ports::LeaseHolder> holders() const;
  // Idle AVAILABLE rows, by class and life: what may be extracted.
  [[nodiscard]] const std::map<ClassKey, ByLife>& extractable() const noexcept {
    return extractable_;
  }
  [[nodiscard]] const ByCheck& checks(CheckClass c) const noexcept {
    return checks_[static_cast<std::size_t>(c)];
  }
  // Rows by the moment at which time makes an event due.
  [[nodiscard]] const ByCheck& due() const noexcept { return due_; }
  // Rows whose event is due as soon as somebody looks: idle draining and expired ones.
  [[nodiscard]] const std::set<ProxyId>& ripe() const noexcept { return ripe_; }
  // Rows with orphans of this instance.
  [[nodiscard]] std::vector<ProxyId> orphaned_by(const ports::LeaseHolder& holder) const;
  // No lease of the holder ends before it.
  [[nodiscard]] StoreTime earliest_end(const ports::LeaseHolder& holder) const;
  void set_earliest_end(const ports::LeaseHolder& holder, StoreTime end);
  [[nodiscard]] RowCounts counts(const UpstreamId& upstream) const;

  void set_rules(const UpstreamId& upstream, const ports::UpstreamRules& rules);
  [[nodiscard]] ports::UpstreamRules rules(const UpstreamId& upstream) const;
  [[nodiscard]] domain::LifeFacts facts(const Row& row) const;

 private:
  void index(const Row& row);
  void unindex(const Row& row);
  void index_class(const Row& row, bool add);
  void count(const Row& row, bool add);

  ById rows_;
  std::map<UpstreamId, std::set<ProxyId>> upstreams_;
  struct Held {
    std::set<ProxyId> ids;
    StoreTime earliest_end = StoreTime::max();  // at most; a renewal of all moves it
  };
  std::map<std::tuple<WorkerId, InstanceId, SessionId>, Held> holders_;
  std::map<ClassKey, ByLife> extractable_;
  ByCheck checks_[3];
  ByCheck due_;
  std::set<ProxyId> ripe_;
  std::map<std::pair<WorkerId, InstanceId>, std::set<ProxyId>> orphaned_;
  std::map<UpstreamId, RowCounts> counts_;
  std::map<UpstreamId, ports::UpstreamRules> rules_;
  // What each row is indexed under; kept so that taking out needs no second derivation.
  std::unordered_map<ProxyId, StoreTime> due_at_;
  std::unordered_map<ProxyId, std::pair<CheckClass, StoreTime>> check_at_;
};

}  // namespace proxypool::memory
