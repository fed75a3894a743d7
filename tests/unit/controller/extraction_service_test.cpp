#include "controller/extraction.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/pool_decorator.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using contract::kSafetyMargin;
using contract::kTtl;
using contract::proxy_ids;
using domain::ExtractionOutcome;
using domain::Fulfillment;
using domain::ProxyState;

class ExtractionServiceTest : public contract::PoolSteps<Stores> {
 protected:
  ExtractionServiceTest() {
    config_.upstreams.resize(2);
    config_.upstreams[0].id = UpstreamId("a");
    config_.upstreams[1].id = UpstreamId("b");
    begin();
  }
  void begin() {
    service_ = std::make_unique<ExtractionService>(std::make_shared<const config::Config>(config_),
                                                   fixture_.pool(), fixture_.clock());
  }
  // What a caller says; the rest is the service's to fill in.
  static domain::ExtractionCommand wanted(std::uint32_t count,
                                          Fulfillment fulfillment = Fulfillment::Partial) {
    domain::ExtractionCommand command;
    command.count = count;
    command.fulfillment = fulfillment;
    command.client = ClientName("c");
    return command;
  }
  Result<domain::ExtractionResult> take(const domain::ExtractionCommand& command) {
    return service_->extract(command, Deadline{});
  }
  std::size_t given(const domain::ExtractionCommand& command) {
    const auto result = take(command);
    EXPECT_TRUE(result);
    return result ? result->proxies.size() : 0;
  }
  ErrorCode refusal(const domain::ExtractionCommand& command) {
    const auto result = take(command);
    EXPECT_FALSE(result);
    return result ? ErrorCode::Internal : result.error().code;
  }
  std::size_t shortage(const std::string& upstream) {
    return service_->shortage(UpstreamId(upstream));
  }
  config::ClientConfig& client() {
    config_.clients.resize(1);
    config_.clients[0].name = ClientName("c");
    return config_.clients[0];
  }

  config::Config config_;
  std::unique_ptr<ExtractionService> service_;
};

// CT-60: final: what was handed out serves nobody else, and is given to nobody again.
TEST_F(ExtractionServiceTest, PartialGivesWhatThereIsForGood) {
  supply("a", proxy_ids(1, 3));
  const auto result = take(wanted(5));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, ExtractionOutcome::Done);
  ASSERT_EQ(result->proxies.size(), 3U);
  EXPECT_EQ(result->proxies[0].credential.username, "user");
  EXPECT_FALSE(result->proxies[0].credential.password.empty());
  for (const ProxyId id : proxy_ids(1, 3)) EXPECT_EQ(state(id), ProxyState::Extracted);
  EXPECT_EQ(given(wanted(1)), 0U);
}

TEST_F(ExtractionServiceTest, AllOrNothingTakesNothingWhenItCannotGiveAll) {
  supply("a", proxy_ids(1, 3));
  const auto result = take(wanted(5, Fulfillment::AllOrNothing));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, ExtractionOutcome::Insufficient);
  EXPECT_EQ(result->available, 3U);
  EXPECT_TRUE(result->proxies.empty());
  for (const ProxyId id : proxy_ids(1, 3)) EXPECT_EQ(state(id), ProxyState::Available);
  EXPECT_EQ(given(wanted(3, Fulfillment::AllOrNothing)), 3U);
}

TEST_F(ExtractionServiceTest, FiltersNarrowWhatIsGiven) {
  ports::AdmitBatch german = contract::batch("a", proxy_ids(1, 2));
  for (auto& entry : german.admissions) {
    entry.candidate.attributes = {"DE", "be", "berlin", "telco"};
  }
  german.admissions[0].candidate.tags["tier"] = "gold";
  admit(german);
  supply("b", proxy_ids(11, 15));
  const auto count = [&](auto&& narrow) {
    auto command = wanted(100);
    narrow(command.filters);
    return service_->preview(command, Deadline{})->available;
  };
  EXPECT_EQ(count([](auto&) {}), 7U);
  EXPECT_EQ(count([](auto& f) { f.countries = {"DE"}; }), 2U);
  EXPECT_EQ(count([](auto& f) { f.countries = {"FR", "DE"}; }), 2U);
  EXPECT_EQ(count([](auto& f) { f.regions = {"be"}; }), 2U);
  EXPECT_EQ(count([](auto& f) { f.cities = {"hamburg"}; }), 0U);
  EXPECT_EQ(count([](auto& f) { f.carriers = {"telco"}; }), 2U);
  EXPECT_EQ(count([](auto& f) { f.upstreams = {UpstreamId("b")}; }), 5U);
  EXPECT_EQ(count([](auto& f) { f.protocols = {domain::Scheme::Https}; }), 0U);
  EXPECT_EQ(count([](auto& f) { f.tags["tier"] = "gold"; }), 1U);
  EXPECT_EQ(count([](auto& f) {
              f.countries = {"DE"};
              f.upstreams = {UpstreamId("b")};
            }),
            0U);
  EXPECT_EQ(count([](auto& f) { f.min_remaining_ttl = kTtl + seconds(1); }), 0U);
  advance(seconds(10));
  EXPECT_EQ(count([](auto& f) { f.max_health_check_age = seconds(5); }), 0U);
  EXPECT_EQ(count([](auto& f) { f.max_health_check_age = seconds(10); }), 7U);
  // A preview takes nothing.
  EXPECT_EQ(inventory("a").in_state(ProxyState::Available), 2U);
  EXPECT_EQ(service_->counters().calls, 0U);
}

// CT-22, EX-2: never past the margin, never what a worker owns, never what is in doubt.
TEST_F(ExtractionServiceTest, WhatIsPastItsMarginOwnedOrInDoubtIsNotGiven) {
  supply("a", proxy_ids(1, 3));
  assign(contract::holder("w"), {ProxyId(1)});
  move(ProxyId(2), {domain::ProxyEvent::MeaningfulFailure});
  advance(kTtl - kSafetyMargin - milliseconds(1));
  EXPECT_EQ(service_->preview(wanted(10), Deadline{})->available, 1U);
  advance(milliseconds(1));
  EXPECT_EQ(service_->preview(wanted(10), Deadline{})->available, 0U);
  EXPECT_EQ(given(wanted(10)), 0U);
}

// EX-2: reserveForGateway counts AVAILABLE proxies, owned and unowned.
TEST_F(ExtractionServiceTest, WhatTheGatewaysNeedIsKept) {
  config_.upstreams[0].extraction.reserve_for_gateway = 4;
  begin();
  supply("a", proxy_ids(1, 10));
  assign(contract::holder("w"), proxy_ids(1, 3));
  EXPECT_EQ(given(wanted(100)), 6U);
  EXPECT_EQ(given(wanted(100)), 0U);
  EXPECT_EQ(inventory("a").in_state(ProxyState::Available), 4U);
}

TEST_F(ExtractionServiceTest, AnUpstreamThatIsNotExtractableGivesNothing) {
  config_.upstreams[0].extraction.extractable = false;
  begin();
  supply("a", proxy_ids(1, 5));
  EXPECT_EQ(given(wanted(5)), 0U);
  supply("b", proxy_ids(11, 12));
  EXPECT_EQ(given(wanted(5)), 2U);
  EXPECT_EQ(shortage("a"), 0U);  // taking it from the gateways would serve nobody
  EXPECT_EQ(shortage("b"), 5U);
}

TEST_F(ExtractionServiceTest, AClientGetsItsOwnUpstreamsAlone) {
  client().allowed_upstreams = {UpstreamId("a")};
  begin();
  supply("a", proxy_ids(1, 2));
  supply("b", proxy_ids(11, 12));
  auto command = wanted(1);
  command.filters.upstreams = {UpstreamId("b")};
  EXPECT_EQ(refusal(command), ErrorCode::Forbidden);
  EXPECT_EQ(given(wanted(10)), 2U);
  EXPECT_EQ(inventory("b").in_state(ProxyState::Available), 2U);
}

// EX-4: count_too_large is a refusal of its own.
TEST_F(ExtractionServiceTest, OneCallTakesNoMoreThanItsClientMay) {
  config_.distribution.extraction.count_max = 20;
  client().extraction.count_max = 5;
  begin();
  EXPECT_EQ(service_->count_max(ClientName("c")), 5U);
  EXPECT_EQ(service_->count_max(ClientName("unnamed")), 20U);
  EXPECT_EQ(refusal(wanted(0)), ErrorCode::InvalidArgument);
  const auto result = take(wanted(6));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message.rfind("count_too_large: ", 0), 0U);
  EXPECT_TRUE(take(wanted(5)));
}

// C3: what was lacking is remembered for a minute; it raises what stays unowned.
TEST_F(ExtractionServiceTest, WhatWasLackingIsRememberedForAMinute) {
  supply("a", proxy_ids(1, 3));
  auto command = wanted(10);
  command.filters.upstreams = {UpstreamId("a")};
  EXPECT_EQ(given(command), 3U);
  EXPECT_EQ(shortage("a"), 7U);
  EXPECT_EQ(shortage("b"), 0U);  // nobody asked for it
  advance(seconds(30));
  command.count = 2;
  EXPECT_EQ(given(command), 0U);
  EXPECT_EQ(shortage("a"), 7U);  // the larger lack of both
  advance(seconds(59));
  EXPECT_EQ(shortage("a"), 7U);
  advance(seconds(1));
  EXPECT_EQ(shortage("a"), 0U);
}

TEST_F(ExtractionServiceTest, OfAllOrNothingOnlyTheRestIsLacking) {
  supply("a", proxy_ids(1, 8));
  ASSERT_TRUE(take(wanted(10, Fulfillment::AllOrNothing)));
  EXPECT_EQ(shortage("a"), 2U);
}

// C18: after a restart it is not known who holds what.
TEST_F(ExtractionServiceTest, AYoungGenerationGivesNothing) {
  supply("a", proxy_ids(1, 3));
  assign(contract::holder("w"), {ProxyId(1)});
  fixture_.restart();
  begin();
  supply("a", proxy_ids(1, 3));
  const auto result = take(wanted(1));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, ExtractionOutcome::NotYet);
  EXPECT_EQ(shortage("a"), 0U);
}

TEST_F(ExtractionServiceTest, TheCountersSayWhatWasAskedAndGiven) {
  supply("a", proxy_ids(1, 6));
  given(wanted(4));
  given(wanted(4));
  auto keyed = wanted(0);
  EXPECT_EQ(refusal(keyed), ErrorCode::InvalidArgument);  // no call reached the pool
  const ExtractionCounters counters = service_->counters();
  EXPECT_EQ(counters.calls, 2U);
  EXPECT_EQ(counters.requested, 8U);
  EXPECT_EQ(counters.returned, 6U);
  EXPECT_EQ(counters.insufficient, 1U);
}

// EX-1: the first answer again is no second hand-out.
TEST_F(ExtractionServiceTest, AReplayIsNotCountedAsGivenTwice) {
  supply("a", proxy_ids(1, 6));
  auto keyed = wanted(2);
  keyed.idempotency_key = "key";
  keyed.request_digest = "digest";
  const auto first = take(keyed);
  const auto second = take(keyed);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->outcome, ExtractionOutcome::Replayed);
  EXPECT_EQ(second->proxies[0].proxy.id, first->proxies[0].proxy.id);
  EXPECT_EQ(service_->counters().returned, 2U);
  EXPECT_EQ(service_->counters().replayed, 1U);
}

// EX-4: the caller is told, and nothing is remembered as lacking.
TEST_F(ExtractionServiceTest, AStoreThatIsAwayIsAnError) {
  struct Away : test::PoolDecorator {
    using PoolDecorator::PoolDecorator;
    Result<domain::ExtractionResult> extract(const domain::ExtractionCommand&, Deadline) override {
      return test::pool_is_away();
    }
  } pool(fixture_.pool());
  ExtractionService service(std::make_shared<const config::Config>(config_), pool,
                            fixture_.clock());
  const auto result = service.extract(wanted(1), Deadline{});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(service.counters().failed, 1U);
  EXPECT_EQ(service.counters().calls, 0U);
  EXPECT_EQ(service.shortage(UpstreamId("a")), 0U);
}

// Seed 000 §10: two extractors at once never share a proxy.
TEST_F(ExtractionServiceTest, CallersAtOnceNeverShareAProxy) {
  config_.upstreams[0].extraction.reserve_for_gateway = 20;
  begin();
  supply("a", proxy_ids(1, 300));
  std::vector<std::vector<ProxyId>> taken(4);
  std::vector<std::thread> callers;
  for (auto& mine : taken) {
    callers.emplace_back([this, &mine] {
      for (int call = 0; call < 60; ++call) {
        const auto result = service_->extract(wanted(3), Deadline{});
        if (!result) continue;
        for (const auto& entry : result->proxies) mine.push_back(entry.proxy.id);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  std::set<ProxyId> all;
  std::size_t sum = 0;
  for (const auto& mine : taken) {
    sum += mine.size();
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(sum, 280U);
  EXPECT_EQ(all.size(), sum);
  EXPECT_EQ(service_->counters().returned, 280U);
}

}  // namespace
}  // namespace proxypool::controller
