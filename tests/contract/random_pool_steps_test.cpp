// Random operations on the pool, with its promises checked from outside after each: a proxy has one
// owner at most, is never extracted while it is owned or for the second time, moves only along the
// table of states, and none is lost in the counts.
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "contract/memory_pool_fixture.hpp"

namespace proxypool::contract {
namespace {

// Where a proxy may be after one operation: any number of edges away.
bool reachable(ProxyState from, ProxyState to) {
  std::set<ProxyState> seen{from};
  for (std::size_t before = 0; before != seen.size();) {
    before = seen.size();
    for (const domain::Edge& edge : domain::kLifeCycle) {
      if (seen.contains(edge.from)) seen.insert(edge.to);
    }
  }
  return seen.contains(to);
}

class RandomPoolSteps : public PoolSteps<MemoryPoolFixture> {
 protected:
  static constexpr std::uint64_t kIds = 24;

  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  ProxyId any_id() { return ProxyId(1 + below(kIds)); }
  std::vector<ProxyId> some_ids() {
    std::vector<ProxyId> ids;
    for (std::uint64_t n = 1 + below(6); n > 0; --n) ids.push_back(any_id());
    return ids;
  }
  std::string any_upstream() { return below(2) ? "a" : "b"; }
  const ports::LeaseHolder& any_holder() { return holders_[below(holders_.size())]; }

  void supply_step() {
    auto brought = batch(any_upstream(), some_ids());
    brought.authoritative = below(4) == 0;
    if (below(3) == 0) brought.ttl.default_ttl.reset();
    admit(brought);
  }
  void health_step() {
    for (const auto& check : take(static_cast<std::uint32_t>(1 + below(8)), below(2) == 0)) {
      if (below(5) != 0) answer(check, below(4) != 0);
    }
  }
  void report_step() {
    const auto by = any_holder();
    std::vector<ports::RuntimeCount> counts;
    for (const auto& held : held_by(by)) {
      const auto active = static_cast<std::uint32_t>(below(2));
      counts.push_back({held.proxy.id, held.lease_epoch, active, 0, false});
    }
    const std::uint64_t acknowledged = change() - below(3);
    const bool final_report = below(12) == 0;
    const auto before = owners();
    for (const ProxyId id : report(by, counts, acknowledged, final_report)) {
      ASSERT_EQ(before.at(id), by);  // nobody frees what is another's
      tunnels_until_.erase({id, by.instance});
    }
    if (final_report) {
      std::erase_if(tunnels_until_,
                    [&](const auto& may) { return may.first.second == by.instance; });
    }
  }
  void adopt_step() {
    auto& by = holders_[below(holders_.size())];
    const bool restarted = below(2) == 0;
    by.session = SessionId("s" + std::to_string(++sessions_));
    if (restarted) by.instance = InstanceId("i" + std::to_string(sessions_));
    adopt(by, some_ids());
  }
  void assign_step() {
    const auto before = owners();
    const auto to = any_holder();
    for (const ProxyId id : assign(to, some_ids(), ++epoch_)) {
      ASSERT_FALSE(before.contains(id)) << id.value() << " had an owner";
      ASSERT_EQ(owners().at(id), to);
    }
  }
  void extract_step() {
    auto wanted = command(static_cast<std::uint32_t>(1 + below(4)), any_upstream());
    if (below(2)) wanted.fulfillment = domain::Fulfillment::AllOrNothing;
    wanted.policies[0].reserve_for_gateway = static_cast<std::uint32_t>(below(4));
    const auto before = owners();
    const auto available = inventory(wanted.policies[0].upstream.str());
    const auto result = extract(wanted);
    for (const auto& entry : result.proxies) {
      ASSERT_FALSE(before.contains(entry.proxy.id)) << "extracted while owned";
      for (const auto& [tunnel, until] : tunnels_until_) {
        ASSERT_FALSE(tunnel.first == entry.proxy.id && now() < until) << "a tunnel may run (C16)";
      }
      ASSERT_TRUE(extracted_.insert({entry.proxy.id, entry.proxy.created_at}).second)
          << "extracted twice";
    }
    if (!result.proxies.empty()) {
      ASSERT_GE(available.in_state(ProxyState::Available),
                result.proxies.size() + wanted.policies[0].reserve_for_gateway);
    }
  }
  void operator_step() {
    constexpr ProxyEvent kWishes[] = {ProxyEvent::OperatorDrain, ProxyEvent::OperatorRemove,
                                      ProxyEvent::OperatorReset};
    apply(some_ids(), kWishes[below(3)]);
  }
  void time_step() {
    advance(milliseconds{static_cast<int>(below(60'000))});
    if (below(3) == 0) renew(any_holder());
    static_cast<void>(pool().sweep(static_cast<std::uint32_t>(1 + below(20)), Deadline{}));
  }
  void configure_step() {
    ports::UpstreamRules rules;
    rules.enabled = below(3) != 0;
    rules.unhealthy_retention = milliseconds{30'000};
    configure(any_upstream(), rules);
  }
  void one_step() {
    switch (below(12)) {
      case 0:
      case 1:
        return supply_step();
      case 2:
      case 3:
        return health_step();
      case 4:
        return report_step();
      case 5:
        return adopt_step();
      case 6:
      case 7:
        return assign_step();
      case 8:
        return extract_step();
      case 9:
        return operator_step();
      case 10:
        return time_step();
      default:
        if (below(2)) revoke(some_ids());
        return configure_step();
    }
  }

  std::map<ProxyId, ports::LeaseHolder> owners() {
    std::map<ProxyId, ports::LeaseHolder> all;
    for (const auto& row : rows()) {
      if (!row.leased.holder.worker.empty()) all[row.leased.proxy.id] = row.leased.holder;
    }
    return all;
  }
  std::vector<ports::HeldProxy> held_by(const ports::LeaseHolder& by) {
    return *pool().held_by(by, Deadline{});
  }
  std::vector<ports::ProxyRow> rows() {
    ports::ProxyQuery query;
    query.limit = 1'000;
    for (std::size_t s = 0; s < domain::kProxyStates; ++s) {
      query.states.push_back(static_cast<ProxyState>(s));
    }
    return *pool().list(query, Deadline{});
  }

  void check() {
    std::map<std::string, std::uint64_t> managed;
    std::map<ProxyId, std::pair<ProxyState, StoreTime>> now_there;
    std::set<ProxyId> held;
    for (const auto& row : rows()) {
      const domain::Proxy& proxy = row.leased.proxy;
      now_there[proxy.id] = {proxy.state, proxy.created_at};
      managed[proxy.upstream.str()] += domain::managed(proxy.state);
      const bool unowned = proxy.ownership == Ownership::Unowned;
      ASSERT_EQ(unowned, row.leased.holder.worker.empty());
      ASSERT_FALSE(!unowned && proxy.state == ProxyState::Extracted);
      ASSERT_FALSE(proxy.ownership == Ownership::Owned && !domain::checkable(proxy.state))
          << to_string(proxy.state);
      const bool taken = extracted_.contains({proxy.id, proxy.created_at});
      ASSERT_FALSE(taken && proxy.state != ProxyState::Extracted &&
                   proxy.state != ProxyState::Expired);
      const auto before = there_.find(proxy.id);
      if (before != there_.end() && before->second.second == proxy.created_at) {
        ASSERT_TRUE(reachable(before->second.first, proxy.state));
      }
      if (!unowned) {
        held.insert(proxy.id);
        tunnels_until_[{proxy.id, row.leased.holder.instance}] =
            row.leased.lease_until + kMargin + kGrace;
      }
    }
    // Out of the pool: a new life may be extracted again.
    std::erase_if(extracted_, [&](const auto& life) { return !now_there.contains(life.first); });
    there_ = std::move(now_there);
    for (const char* upstream : {"a", "b"}) {
      const auto counted = inventory(upstream);
      ASSERT_EQ(counted.managed, managed[upstream]);
      ASSERT_EQ(counted.owned + counted.unowned + counted.revoking, counted.managed);
    }
    std::size_t by_holder = 0;
    std::set<std::string> sessions;
    for (const auto& [id, by] : owners()) {
      if (!sessions.insert(by.session.str()).second) continue;
      for (const auto& entry : held_by(by)) {
        ASSERT_TRUE(held.contains(entry.proxy.id));
        ASSERT_GT(entry.proxy.max_concurrency, 0U);
        ++by_holder;
      }
    }
    ASSERT_EQ(by_holder, held.size());  // each is in one hand
  }

  std::mt19937_64 engine_;
  std::vector<ports::LeaseHolder> holders_{holder("w1", "i1", "x1"), holder("w2", "i2", "x2"),
                                           holder("w3", "i3", "x3")};
  std::uint64_t sessions_ = 0;
  std::uint64_t epoch_ = 0;
  std::set<std::pair<ProxyId, StoreTime>> extracted_;  // with the beginning of that life
  std::map<ProxyId, std::pair<ProxyState, StoreTime>> there_;
  // How long what each process began on a proxy may last.
  std::map<std::pair<ProxyId, InstanceId>, StoreTime> tunnels_until_;
};

TEST_F(RandomPoolSteps, NoOrderOfOperationsBreaksAPromise) {
  const char* given = std::getenv("PROXYPOOL_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 20'261'130;
  SCOPED_TRACE("repeat with PROXYPOOL_SEED=" + std::to_string(seed));
  RecordProperty("seed", std::to_string(seed));
  engine_.seed(seed);
  for (int i = 0; i < 3'000; ++i) {
    one_step();
    if (!HasFatalFailure()) check();
    if (HasFatalFailure()) {
      ADD_FAILURE() << "after step " << i;
      return;
    }
  }
}

}  // namespace
}  // namespace proxypool::contract
