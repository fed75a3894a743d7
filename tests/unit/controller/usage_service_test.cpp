// Who has moved enough for today (GW-14).
#include "controller/usage.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

class UsageServiceTest : public ::testing::Test {
 protected:
  UsageServiceTest() {
    auto config = std::make_shared<config::Config>();
    for (const auto& [name, quota] :
         {std::pair{"ann", 1000U}, std::pair{"bob", 2000U}, std::pair{"eve", 0U}}) {
      config::ClientConfig client;
      client.name = ClientName(name);
      client.limits.bytes_per_day = quota;
      config->clients.push_back(std::move(client));
    }
    config_ = config;
    restart();
  }
  void restart() {
    service_ = std::make_unique<UsageService>(config_, stores_.management(), stores_.clock());
  }
  UsageService::Verdicts moved(const char* client, std::uint64_t up, std::uint64_t down = 0) {
    return service_->take(InstanceId("i"), {++number_, {{ClientName(client), {up, down, 1}}}},
                          Deadline{});
  }
  UsageService::Verdicts nothing() { return service_->take(InstanceId("i"), {}, Deadline{}); }
  ports::ClientUsageReading reading(const char* client) {
    return service_->reading(ClientName(client), Deadline{})->value();
  }
  static std::vector<ClientName> names(std::initializer_list<const char*> all) {
    std::vector<ClientName> out;
    for (const char* name : all) out.emplace_back(name);
    return out;
  }

  Stores stores_;
  std::shared_ptr<const config::Config> config_;
  std::unique_ptr<UsageService> service_;
  std::uint64_t number_ = 0;
};

TEST_F(UsageServiceTest, BothWaysCountAndTheByteThatReachesTheQuotaIsTheLast) {
  EXPECT_TRUE(moved("ann", 500, 499).over.empty());
  EXPECT_EQ(moved("ann", 0, 1).over, names({"ann"}));
  EXPECT_EQ(moved("bob", 1999).over, names({"ann"}));
  EXPECT_EQ(moved("bob", 1).over, names({"ann", "bob"}));
  EXPECT_EQ(moved("eve", std::uint64_t{1} << 50U).over, names({"ann", "bob"})) << "no quota";
  EXPECT_EQ(service_->over_quota(), 2U);
  const auto ann = reading("ann");
  EXPECT_EQ(ann.today, (domain::Usage{500, 500, 2}));
  EXPECT_EQ(ann.bytes_per_day, 1000U);
  EXPECT_FALSE(service_->reading(ClientName("nobody"), Deadline{})->has_value());
}

TEST_F(UsageServiceTest, AQuotaIsOfADayOfUtc) {
  const WallTime start = stores_.clock().wall_now();
  const milliseconds left = domain::left_of_day(start);
  EXPECT_EQ(moved("ann", 1000).over, names({"ann"}));
  EXPECT_EQ(nothing().resets_in, left);
  stores_.advance(left - milliseconds(1));
  EXPECT_EQ(nothing().over, names({"ann"}));
  EXPECT_EQ(nothing().resets_in, milliseconds(1));
  stores_.advance(milliseconds(1));
  EXPECT_TRUE(nothing().over.empty());
  EXPECT_EQ(nothing().resets_in, std::chrono::hours(24));
  EXPECT_EQ(reading("ann").today, domain::Usage{});
  EXPECT_EQ(moved("ann", 7).kept, number_);
  const auto days = reading("ann").days;
  ASSERT_EQ(days.size(), 2U);
  EXPECT_EQ(days[0].usage.bytes(), 7U);
  EXPECT_EQ(days[1], (domain::DayUsage{domain::day_of(start), {1000, 0, 1}}));
}

TEST_F(UsageServiceTest, ARestartForgetsNeitherUsageNorVerdicts) {
  moved("ann", 1500);
  restart();
  EXPECT_EQ(nothing().over, names({"ann"}));
  const auto again =
      service_->take(InstanceId("i"), {number_, {{ClientName("ann"), {1500, 0, 1}}}}, Deadline{});
  EXPECT_EQ(again.kept, number_);
  EXPECT_EQ(reading("ann").today.bytes(), 1500U);
  EXPECT_EQ(service_->counters().bytes_up, 0U) << "counted by the process before";
}

TEST_F(UsageServiceTest, WhoIsNoClientIsNotCounted) {
  EXPECT_EQ(moved("stranger", 5).kept, number_);
  EXPECT_EQ(service_->counters().unknown, 1U);
  EXPECT_TRUE(stores_.management()
                  .usage_on(domain::day_of(stores_.clock().wall_now()), Deadline{})
                  ->empty());
}

// A store that keeps nothing while it is told to.
class FullStore final : public ports::ManagementStore {
 public:
  explicit FullStore(ports::ManagementStore& store) : store_(store) {}
  Result<ports::UsageAdded> add_usage(const InstanceId& instance, const domain::UsageBatch& batch,
                                      WallTime at, Deadline deadline) override {
    if (full) return Error{ErrorCode::Unavailable, Origin::Store, "disk full", true};
    return store_.add_usage(instance, batch, at, deadline);
  }
  Result<std::vector<domain::DayUsage>> usage(const ClientName& client, Deadline d) override {
    return store_.usage(client, d);
  }
  Result<std::vector<domain::ClientUsage>> usage_on(domain::Day day, Deadline d) override {
    return store_.usage_on(day, d);
  }
  Result<ports::UpstreamState> upstream_state(const UpstreamId& id, Deadline d) override {
    return store_.upstream_state(id, d);
  }
  Result<ports::UpstreamState> put_upstream_state(const ports::UpstreamState& state,
                                                  const std::optional<ports::AuditEntry>& audit,
                                                  Deadline d) override {
    return store_.put_upstream_state(state, audit, d);
  }
  Result<ports::RoutingState> routing_state(const RoutingId& id, Deadline d) override {
    return store_.routing_state(id, d);
  }
  Result<ports::RoutingState> put_routing_state(const ports::RoutingState& state,
                                                const std::optional<ports::AuditEntry>& audit,
                                                Deadline d) override {
    return store_.put_routing_state(state, audit, d);
  }
  Result<std::optional<ports::ConfigRevision>> config_revision(Deadline d) override {
    return store_.config_revision(d);
  }
  Result<ports::ConfigRevision> activate_config(const std::string& fingerprint, WallTime at,
                                                Deadline d) override {
    return store_.activate_config(fingerprint, at, d);
  }
  Status append_audit(const ports::AuditEntry& entry, Deadline d) override {
    return store_.append_audit(entry, d);
  }
  Result<std::vector<ports::AuditEntry>> audit(std::uint64_t before, std::uint32_t limit,
                                               Deadline d) override {
    return store_.audit(before, limit, d);
  }
  [[nodiscard]] ports::StoreHealth health() const override { return store_.health(); }

  bool full = false;

 private:
  ports::ManagementStore& store_;
};

TEST_F(UsageServiceTest, ABatchThatCannotBeKeptIsNotConfirmed) {
  FullStore store(stores_.management());
  UsageService service(config_, store, stores_.clock());
  const domain::UsageBatch batch{1, {{ClientName("ann"), {1000, 0, 1}}}};
  store.full = true;
  auto verdicts = service.take(InstanceId("i"), batch, Deadline{});
  EXPECT_EQ(verdicts.kept, 0U);
  EXPECT_TRUE(verdicts.over.empty());
  EXPECT_EQ(service.counters().failures, 1U);
  store.full = false;
  verdicts = service.take(InstanceId("i"), batch, Deadline{});
  EXPECT_EQ(verdicts.kept, 1U);
  EXPECT_EQ(verdicts.over.size(), 1U);
}

}  // namespace
}  // namespace proxypool::controller
