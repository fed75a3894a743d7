// The steps that tests of an ActivityPool are made of: bring proxies, let them pass their check,
// own them, look at one.
//
// A fixture offers
//   ports::ActivityPool& pool();
//   void advance(milliseconds);   the store's clock goes on
//   void restart();               the store loses its state and keeps what it made durable
// and uses the lease times of this file.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxypool/domain/health/reducer.hpp"
#include "proxypool/ports/activity_pool.hpp"

namespace proxypool::contract {

using domain::Ownership;
using domain::ProxyEvent;
using domain::ProxyState;

inline constexpr milliseconds kMargin{2'000};
inline constexpr milliseconds kGrace{30'000};
inline constexpr milliseconds kLease{60'000};
inline constexpr milliseconds kTtl{600'000};
inline constexpr milliseconds kSafetyMargin{30'000};

inline std::vector<ProxyId> proxy_ids(std::uint64_t first, std::uint64_t last) {
  std::vector<ProxyId> ids;
  for (std::uint64_t id = first; id <= last; ++id) ids.emplace_back(id);
  return ids;
}

inline ports::Admission admission(ProxyId id) {
  ports::Admission entry;
  entry.id = id;
  entry.credential_version = domain::CredentialVersion("v1");
  entry.candidate.endpoint = {domain::Scheme::Http, "host-" + std::to_string(id.value()), 8080};
  entry.candidate.credential = {"user", SecretString("pass-" + std::to_string(id.value()))};
  return entry;
}

inline ports::AdmitBatch batch(const std::string& upstream, const std::vector<ProxyId>& ids) {
  ports::AdmitBatch batch;
  batch.upstream = UpstreamId(upstream);
  batch.ttl.default_ttl = kTtl;
  batch.ttl.safety_margin = kSafetyMargin;
  batch.managed_max = 10'000;
  batch.concurrency_max = 10;
  for (const ProxyId id : ids) batch.admissions.push_back(admission(id));
  return batch;
}

inline ports::LeaseHolder holder(const std::string& worker, const std::string& instance = "i1",
                                 const std::string& session = "s1") {
  return {WorkerId(worker), InstanceId(instance), SessionId(session)};
}

template <class Fixture>
class PoolSteps : public ::testing::Test {
 protected:
  ports::ActivityPool& pool() { return fixture_.pool(); }
  void advance(milliseconds duration) { fixture_.advance(duration); }
  StoreTime now() { return pool().generation(Deadline{})->now; }
  std::uint64_t change() { return *pool().change_counter(Deadline{}); }

  ports::AdmitResult admit(const ports::AdmitBatch& brought) {
    const auto result = pool().admit(brought, Deadline{});
    EXPECT_TRUE(result);
    return result ? *result : ports::AdmitResult{};
  }
  // New proxies of one upstream that have passed their first check.
  void supply(const std::string& upstream, const std::vector<ProxyId>& ids) {
    admit(batch(upstream, ids));
    pass_new();
  }
  // Every check of a new or suspect proxy that is due passes.
  void pass_new() {
    for (const ports::DueCheck& check : take(10'000, false)) EXPECT_TRUE(answer(check, true));
  }
  bool answer(const ports::DueCheck& check, bool passed) {
    const auto rows = pool().read_health({check.proxy.id}, Deadline{});
    if (!rows || rows->empty()) return false;
    domain::Observation seen;
    seen.task_id = check.task_id;
    seen.proxy = check.proxy.id;
    seen.passed = passed;
    const auto& row = rows->front();
    const auto reduction = domain::reduce(row.state, row.record, seen, {}, now());
    ports::HealthWrite write{row.id, row.revision, reduction.record, {}, {}};
    for (std::size_t i = 0; i < reduction.event_count; ++i) {
      write.events.push_back(reduction.events[i]);
    }
    return pool().write_health({write}, Deadline{})->front();
  }
  // Moves one proxy by hand, as a reducer would.
  void move(ProxyId id, const std::vector<ProxyEvent>& events) {
    const auto rows = pool().read_health({id}, Deadline{});
    ASSERT_TRUE(rows && rows->size() == 1);
    const auto& row = rows->front();
    ASSERT_TRUE(
        pool().write_health({{id, row.revision, row.record, events, {}}}, Deadline{})->front());
  }
  std::optional<ports::ProxyRow> find(ProxyId id) {
    ports::ProxyQuery query;
    query.after = ProxyId(id.value() - 1);
    query.limit = 1;
    for (std::size_t s = 0; s < domain::kProxyStates; ++s) {
      query.states.push_back(static_cast<ProxyState>(s));
    }
    const auto rows = pool().list(query, Deadline{});
    if (!rows || rows->empty() || rows->front().leased.proxy.id != id) return std::nullopt;
    return rows->front();
  }
  // REQUIRES: the proxy is there.
  domain::Proxy proxy(ProxyId id) {
    const auto row = find(id);
    EXPECT_TRUE(row) << id.value();
    return row ? row->leased.proxy : domain::Proxy{};
  }
  // Removed also when nothing is left of it.
  ProxyState state(ProxyId id) {
    const auto row = find(id);
    return row ? row->leased.proxy.state : ProxyState::Removed;
  }
  Ownership ownership(ProxyId id) { return proxy(id).ownership; }
  domain::Inventory inventory(const std::string& upstream) {
    return *pool().inventory(UpstreamId(upstream), Deadline{});
  }
  std::uint32_t apply(const std::vector<ProxyId>& ids, ProxyEvent event) {
    return *pool().apply(ids, event, Deadline{});
  }
  std::uint32_t configure(const std::string& upstream, const ports::UpstreamRules& rules) {
    return *pool().configure(UpstreamId(upstream), rules, Deadline{});
  }
  std::vector<ports::DueCheck> take(std::uint32_t count_max, bool routine,
                                    milliseconds lease = kLease) {
    return *pool().take_due_checks({count_max, lease, routine}, Deadline{});
  }
  std::uint32_t renew(const ports::LeaseHolder& by) {
    return *pool().renew(by, kLease, Deadline{});
  }
  std::uint32_t revoke(const std::vector<ProxyId>& ids) { return *pool().revoke(ids, Deadline{}); }
  ports::SweepResult sweep() { return *pool().sweep(10'000, Deadline{}); }

  std::vector<ProxyId> assign(const ports::LeaseHolder& to, const std::vector<ProxyId>& ids,
                              std::uint64_t epoch = 1) {
    return *pool().assign(to, ids, Epoch(epoch), kLease, Deadline{});
  }
  std::uint32_t adopt(const ports::LeaseHolder& by, const std::vector<ProxyId>& ids) {
    return adopt_all(by, {ids, {}});
  }
  std::uint32_t adopt_all(const ports::LeaseHolder& by, const ports::Holdings& holdings) {
    return *pool().adopt(by, holdings, Epoch(1), kLease, Deadline{});
  }
  // A full report: what is not named carries nothing.
  std::vector<ProxyId> report(const ports::LeaseHolder& by,
                              const std::vector<ports::RuntimeCount>& counts,
                              std::uint64_t acknowledged, bool final_report = false) {
    return *pool().apply_runtime(by, counts, acknowledged, final_report, Deadline{});
  }

  static domain::ExtractionCommand command(std::uint32_t count, const std::string& upstream = "a") {
    domain::ExtractionCommand wanted;
    wanted.count = count;
    wanted.client = ClientName("client");
    wanted.policies.push_back({UpstreamId(upstream), true, 0});
    return wanted;
  }
  domain::ExtractionResult extract(const domain::ExtractionCommand& wanted) {
    const auto result = pool().extract(wanted, Deadline{});
    EXPECT_TRUE(result);
    return result ? *result : domain::ExtractionResult{};
  }

  Fixture fixture_;
};

}  // namespace proxypool::contract
