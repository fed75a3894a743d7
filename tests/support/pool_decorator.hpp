// An ActivityPool that hands every call on, for tests that change one of them.
//
// Thread rule: that of the pool behind it.
#pragma once

#include <string>
#include <vector>

#include "proxypool/ports/activity_pool.hpp"

namespace proxypool::test {

class PoolDecorator : public ports::ActivityPool {
 public:
  explicit PoolDecorator(ports::ActivityPool& inner) : inner_(inner) {}

  Result<ports::Generation> generation(Deadline deadline) override {
    return inner_.generation(deadline);
  }
  Result<std::uint64_t> change_counter(Deadline deadline) override {
    return inner_.change_counter(deadline);
  }
  Result<ports::AdmitResult> admit(const ports::AdmitBatch& batch, Deadline deadline) override {
    return inner_.admit(batch, deadline);
  }
  Result<domain::Inventory> inventory(const UpstreamId& upstream, Deadline deadline) override {
    return inner_.inventory(upstream, deadline);
  }
  Result<std::uint32_t> configure(const UpstreamId& upstream, const ports::UpstreamRules& rules,
                                  Deadline deadline) override {
    return inner_.configure(upstream, rules, deadline);
  }
  Result<std::uint32_t> apply(const std::vector<ProxyId>& ids, domain::ProxyEvent event,
                              Deadline deadline) override {
    return inner_.apply(ids, event, deadline);
  }
  Result<ports::SweepResult> sweep(std::uint32_t count_max, Deadline deadline) override {
    return inner_.sweep(count_max, deadline);
  }
  Result<std::vector<ports::DueCheck>> take_due_checks(const ports::CheckDemand& demand,
                                                       Deadline deadline) override {
    return inner_.take_due_checks(demand, deadline);
  }
  Result<std::vector<ports::HealthRow>> read_health(const std::vector<ProxyId>& ids,
                                                    Deadline deadline) override {
    return inner_.read_health(ids, deadline);
  }
  Result<std::vector<bool>> write_health(const std::vector<ports::HealthWrite>& writes,
                                         Deadline deadline) override {
    return inner_.write_health(writes, deadline);
  }
  Result<std::vector<ports::LeasedProxy>> ownable(const UpstreamId& upstream,
                                                  Deadline deadline) override {
    return inner_.ownable(upstream, deadline);
  }
  Result<std::vector<ProxyId>> assign(const ports::LeaseHolder& holder,
                                      const std::vector<ProxyId>& ids, Epoch epoch,
                                      milliseconds lease, Deadline deadline) override {
    return inner_.assign(holder, ids, epoch, lease, deadline);
  }
  Result<std::uint32_t> adopt(const ports::LeaseHolder& holder, const ports::Holdings& holdings,
                              Epoch epoch, milliseconds lease, Deadline deadline) override {
    return inner_.adopt(holder, holdings, epoch, lease, deadline);
  }
  Result<std::uint32_t> open_claims(const ports::LeaseHolder& holder, Deadline deadline) override {
    return inner_.open_claims(holder, deadline);
  }
  Result<std::uint32_t> renew(const ports::LeaseHolder& holder, milliseconds lease,
                              Deadline deadline) override {
    return inner_.renew(holder, lease, deadline);
  }
  Result<std::uint32_t> revoke(const std::vector<ProxyId>& ids, Deadline deadline) override {
    return inner_.revoke(ids, deadline);
  }
  Result<std::vector<ProxyId>> apply_runtime(const ports::LeaseHolder& holder,
                                             const std::vector<ports::RuntimeCount>& counts,
                                             std::uint64_t acknowledged_change, bool final_report,
                                             Deadline deadline) override {
    return inner_.apply_runtime(holder, counts, acknowledged_change, final_report, deadline);
  }
  Result<std::vector<ports::HeldProxy>> held_by(const ports::LeaseHolder& holder,
                                                Deadline deadline) override {
    return inner_.held_by(holder, deadline);
  }
  Result<domain::ExtractionResult> extract(const domain::ExtractionCommand& command,
                                           Deadline deadline) override {
    return inner_.extract(command, deadline);
  }
  Result<domain::ExtractionResult> preview(const domain::ExtractionCommand& command,
                                           Deadline deadline) override {
    return inner_.preview(command, deadline);
  }
  Result<std::vector<ports::ProxyRow>> list(const ports::ProxyQuery& query,
                                            Deadline deadline) override {
    return inner_.list(query, deadline);
  }

 private:
  ports::ActivityPool& inner_;
};

inline Error pool_is_away() {
  return {ErrorCode::Unavailable, Origin::Store, "the store is away", true};
}

}  // namespace proxypool::test
