// SupplyService: keeps one upstream's pool filled (CT-11, CT-12, CT-21).
//
// One step looks at the pool, decides by water marks, takes a permit, calls the vendor, and admits
// what came. Whatever goes wrong on the way is an error with a reason and a wait; only an answer
// without a proxy counts as empty. A list (static, file) is read when it changes, needs no permit,
// and what it no longer names is removed (C19).
//
// Another configuration counts from the next step on. Who is retired, because the configuration no
// longer names the upstream, fetches nothing and looks on until its proxies are gone.
//
// Thread rule: step() one thread at a time; it blocks for as long as a vendor may take. The rest
//              any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "config/config.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/upstream/backoff.hpp"
#include "proxypool/domain/upstream/classification.hpp"
#include "proxypool/domain/upstream/refill.hpp"
#include "proxypool/ports/activity_pool.hpp"
#include "proxypool/ports/coordination.hpp"
#include "proxypool/ports/crypto.hpp"
#include "proxypool/ports/inbound.hpp"
#include "proxypool/ports/management_store.hpp"
#include "proxypool/ports/provider_api.hpp"

namespace proxypool::controller {

struct SupplyDeps {
  ports::ActivityPool& pool;
  ports::Coordination& coordination;
  ports::ManagementStore& management;
  ports::Crypto& crypto;
  const Clock& clock;
  std::function<Random&()> random;  // of the calling thread
  // Called after each fetch, on the stepping thread.
  std::function<void(const UpstreamId&, const domain::FetchOutcome&, const std::string& detail)>
      on_fetch;
  // Called on the stepping thread when the vendor has nothing left: every fetch.emptyThreshold
  // empty answers in a row. Again with the next step while it answers an error. (CT-40)
  std::function<Status(const UpstreamId&, Deadline)> on_depleted = [](const UpstreamId&, Deadline) {
    return ok();
  };
};

class SupplyService {
 public:
  SupplyService(const config::UpstreamConfig& upstream, InstanceId instance,
                SecretString identity_key, std::unique_ptr<ports::ProviderApi> provider,
                SupplyDeps deps);

  TimePoint step(TimePoint now);
  // What wakes the step before its time.
  void on_work(std::function<void()> wake);
  // `provider`: null when the source of the proxies is the same as before; else what was known of
  // the one before, its errors and its emptiness, is forgotten. REQUIRES: the same id.
  void configure(const config::UpstreamConfig& upstream,
                 std::unique_ptr<ports::ProviderApi> provider);
  void retire();
  // Retired, and nothing of it is left.
  [[nodiscard]] bool gone() const;

  [[nodiscard]] ports::UpstreamReading reading() const;
  [[nodiscard]] const UpstreamId& upstream() const noexcept { return id_; }

 private:
  struct Orders {
    std::optional<config::UpstreamConfig> config;  // none: as it is
    std::unique_ptr<ports::ProviderApi> provider;  // null: as it is
    bool retired = false;
    bool given = false;
    std::function<void()> wake;
  };
  void take_orders();
  void show_settings();
  void order(const std::function<void(Orders&)>& write);
  TimePoint step_retired(TimePoint now);
  // Passes a depletion on that was seen and not yet taken.
  void tell_depleted();
  // Each answers when to come back.
  TimePoint step_list(TimePoint now);
  TimePoint step_vendor(TimePoint now);
  domain::RefillDecision decide(const domain::Inventory& inventory,
                                const ports::FetchLedger& ledger);
  // REQUIRES: term_.
  [[nodiscard]] ports::PermitRequest permit_request() const;
  TimePoint after_refusal(const ports::PermitAnswer& answer, TimePoint now);
  Status become_leader(Deadline deadline);
  Status load_switches(Deadline deadline);
  // Calls the provider, admits what came, classifies. `answer_of` the vendor never leaves here.
  domain::FetchOutcome fetch(std::uint32_t wanted);
  Result<ports::AdmitResult> admit(std::vector<domain::Candidate> candidates,
                                   std::uint32_t& repeated);
  void settle(const ports::Permit& permit, const domain::FetchOutcome& outcome);
  void count(const domain::FetchOutcome& outcome);
  [[nodiscard]] Deadline budget() const;
  [[nodiscard]] domain::TtlPolicy ttl() const;

  const UpstreamId id_;
  const InstanceId instance_;
  const SecretString identity_key_;
  const std::string leader_name_;
  SupplyDeps deps_;
  Guarded<Orders> orders_;
  // Of the stepping thread.
  config::UpstreamConfig config_;
  std::unique_ptr<ports::ProviderApi> provider_;
  bool retired_ = false;
  bool new_source_ = false;  // what is known of an earlier one is to be forgotten
  bool depleted_ = false;
  std::optional<ports::LeaderTerm> term_;
  TimePoint lead_again_;
  domain::Backoff backoff_;
  bool filling_ = false;
  bool enabled_ = true;
  std::uint64_t source_seen_ = 0;
  bool listed_ = false;
  TimePoint list_again_;
  std::string detail_;
  Guarded<ports::UpstreamReading> reading_;
};

}  // namespace proxypool::controller
