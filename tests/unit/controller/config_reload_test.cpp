// Another configuration for a running controller (CT-1), and what each kind of change does (CT-2):
// a whole controller on the embedded stores, in virtual time.
#include "controller/config_reload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/recording_events.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using ports::ConfigOutcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What the vendors were asked, by upstream; each call brings ten more.
struct Vendors {
  struct Vendor {
    int made = 0;  // adapters
    int calls = 0;
    std::string address;
    bool fails = false;
  };
  std::map<std::string, Vendor> all;
  int next = 0;
};

class VendorApi final : public ports::ProviderApi {
 public:
  VendorApi(Vendors& vendors, Vendors::Vendor& vendor) : vendors_(vendors), vendor_(vendor) {}
  ports::FetchAnswer fetch(const ports::FetchRequest&, Deadline) override {
    ports::FetchAnswer answer;
    ++vendor_.calls;
    if (vendor_.fails) {
      answer.error = domain::FetchReason::Auth;
      return answer;
    }
    for (int i = 0; i < 10; ++i) {
      domain::Candidate candidate;
      const int number = vendors_.next++;
      candidate.endpoint = {domain::Scheme::Http, "198.51.100." + std::to_string(number % 250),
                            static_cast<std::uint16_t>(8'000 + number / 250)};
      answer.candidates.push_back(std::move(candidate));
    }
    answer.records = 10;
    return answer;
  }
  [[nodiscard]] bool authoritative() const noexcept override { return false; }
  [[nodiscard]] std::uint64_t source_version() override { return 0; }

 private:
  Vendors& vendors_;
  Vendors::Vendor& vendor_;
};

std::string upstream(const std::string& id, const std::string& more = "",
                     const std::string& host = "vendor.example") {
  return "  - {id: " + id + ", provider: {type: http, request: {url: 'https://" + host +
         "/', query: {key: '{{ secret.key }}'}}, secrets: {key: {env: KEY}}}" + more + "}\n";
}

class ConfigReloadTest : public contract::PoolSteps<Stores> {
 protected:
  ConfigReloadTest() {
    text_ = document(upstream("one") + upstream("two"));
    auto loaded = load();
    EXPECT_TRUE(loaded.config) << loaded.format_errors();
    const SecretString key(std::string(32, 'i'));
    ControllerDeps deps{fixture_.pool(),
                        fixture_.registry(),
                        fixture_.coordination(),
                        fixture_.management(),
                        fixture_.crypto(),
                        fixture_.clock(),
                        events_,
                        [this](const config::UpstreamConfig& upstream) {
                          auto& vendor = vendors_.all[upstream.id.str()];
                          ++vendor.made;
                          vendor.address = upstream.provider.request.url.render(0).reveal();
                          return std::make_unique<VendorApi>(vendors_, vendor);
                        },
                        [this]() -> Random& { return random_; }};
    controller_ = *Controller::make(std::make_shared<const config::Config>(*loaded.config),
                                    {InstanceId("instance"), "", key}, std::move(deps));
    reload_ = std::make_unique<ConfigReload>(
        "pool.yaml",
        ReloadDeps{*controller_, fixture_.management(), fixture_.crypto(), fixture_.clock(),
                   events_, key, [this](LoadFor) { return load(); },
                   [this](const config::Config&, const config::Diff&) { ++applied_; }});
    controller_->on_steps([this] { ++new_steps_; });
    run(seconds(2));
    pass_new();
    run(seconds(1));
  }
  static std::string document(
      const std::string& upstreams,
      const std::string& rest = "routings:\n  - {id: all, upstreams: [{id: one}]}\n") {
    return "upstreams:\n" + upstreams + rest;
  }
  config::LoadResult load() {
    config::LoadOptions options;
    options.env = [this](const std::string&) { return std::optional(secret_); };
    return config::load_text(text_, "pool.yaml", options);
  }
  void run(milliseconds duration) {
    for (milliseconds past{0}; past < duration; past += milliseconds(100)) {
      for (const NamedStep& named : controller_->steps()) named.step(fixture_.clock().now());
      advance(milliseconds(100));
      sweep();
    }
  }
  ports::ConfigAnswer take(const std::string& text) {
    text_ = text;
    auto answer = reload_->reload_config("somebody");
    run(seconds(2));
    return answer;
  }
  std::vector<std::string> ids_of_upstreams() {
    std::vector<std::string> ids;
    for (const auto& reading : controller_->upstreams(Deadline{})) ids.push_back(reading.id.str());
    return ids;
  }
  ports::UpstreamReading reading(const std::string& id) {
    return controller_->upstream(UpstreamId(id));
  }
  std::size_t logged(ports::Event event) { return events_.count(event); }

  std::string text_;
  std::string secret_ = "first-secret";
  Vendors vendors_;
  test::RecordingEvents events_;
  SplitMix64 random_{1};
  int applied_ = 0;
  int new_steps_ = 0;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<ConfigReload> reload_;
};

TEST_F(ConfigReloadTest, ItBeginsWithARevisionAndAFingerprint) {
  const auto reading = reload_->config();
  EXPECT_EQ(reading.revision, 1U);
  EXPECT_EQ(reading.fingerprint.size(), 64U);
  EXPECT_THAT(reading.text, HasSubstr("id: one"));
  EXPECT_THAT(reading.text, testing::Not(HasSubstr(secret_)));
  EXPECT_NE(reload_->counters().hash, 0U);
}

TEST_F(ConfigReloadTest, TheSameFileChangesNothing) {
  const auto answer = take(text_ + "# a comment\n");
  EXPECT_EQ(answer.outcome, ConfigOutcome::Unchanged);
  EXPECT_EQ(answer.revision, 1U);
  EXPECT_EQ(applied_, 0);
  EXPECT_EQ(logged(ports::Event::ConfigReloaded), 0U);
}

TEST_F(ConfigReloadTest, AnotherOneIsTakenOverAndTold) {
  const auto before = reload_->config().fingerprint;
  const auto answer = take(document(upstream("one") + upstream("three")));
  EXPECT_EQ(answer.outcome, ConfigOutcome::Applied);
  EXPECT_EQ(answer.revision, 2U);
  EXPECT_NE(answer.fingerprint, before);
  EXPECT_THAT(answer.sections, ElementsAre("upstreams"));
  EXPECT_THAT(answer.upstreams.added, ElementsAre("three"));
  EXPECT_THAT(answer.upstreams.removed, ElementsAre("two"));
  EXPECT_EQ(applied_, 1);
  EXPECT_EQ(new_steps_, 1);
  EXPECT_THAT(events_.lines(), testing::Contains(HasSubstr("changed=upstreams +three -two")));
  const auto audit = *fixture_.management().audit(0, 1, Deadline{});
  EXPECT_EQ(audit.at(0).actor, "somebody");
  EXPECT_EQ(audit.at(0).action, "config.reload");
  EXPECT_EQ(audit.at(0).result, "done");
  // The revision outlives the process, and comes back with the configuration.
  fixture_.restart();
  EXPECT_EQ((*fixture_.management().config_revision(Deadline{}))->revision, 2U);
}

// CT-1: every error at once, in the answer, the log and the metrics; what counted goes on.
TEST_F(ConfigReloadTest, FiveErrorsAreToldAtOnceAndTheOldOneGoesOn) {
  const auto old = controller_->active();
  const auto answer =
      take("upstreams:\n" + upstream("one", ", pool: {minimum: none}") +
           "routings:\n  - {id: all, upstreams: [{id: nobody}], strategy: best}\nwhatever: 1\n"
           "clients: [{name: x}, {name: x}]\n");
  EXPECT_EQ(answer.outcome, ConfigOutcome::Rejected);
  EXPECT_EQ(answer.errors.size(), 5U);
  EXPECT_THAT(answer.errors.at(0).message, HasSubstr("pool.yaml:"));
  EXPECT_EQ(answer.revision, 1U);
  EXPECT_EQ(controller_->active(), old);
  EXPECT_EQ(logged(ports::Event::ConfigRejected), 5U);
  EXPECT_EQ(reload_->counters().errors, 5U);
  EXPECT_EQ(reload_->counters().attempts[static_cast<std::size_t>(ConfigOutcome::Rejected)], 1U);
  EXPECT_THAT(controller_->status(Deadline{}).warnings, testing::Not(IsEmpty()));
  EXPECT_THAT(reload_->warnings(), ElementsAre(HasSubstr("5 errors")));
  EXPECT_EQ(reload_->config().rejected.size(), 5U);
  EXPECT_EQ(fixture_.management().audit(0, 1, Deadline{})->at(0).result, "refused: 5 errors");

  take(document(upstream("one")));
  EXPECT_EQ(reload_->counters().errors, 0U);
  EXPECT_THAT(reload_->warnings(), IsEmpty());
}

TEST_F(ConfigReloadTest, WhatOnlyTheControllerFindsOutIsAnErrorToo) {
  const std::string key = "0123456789abcdef0123456789abcdef";
  secret_ = key;  // of both clients
  const auto answer = take(document(upstream("one")) +
                           "gateway: {auth: {mode: apiKey}}\n"
                           "clients:\n  - {name: x, credentials: {gateway: {env: A}}}\n"
                           "  - {name: y, credentials: {gateway: {env: B}}}\n");
  ASSERT_EQ(answer.outcome, ConfigOutcome::Rejected);
  ASSERT_EQ(answer.errors.size(), 1U) << answer.errors.at(0).message;
  EXPECT_THAT(answer.errors.at(0).message, HasSubstr("the same API key"));
  EXPECT_THAT(answer.errors.at(0).message, testing::Not(HasSubstr(key)));
}

TEST_F(ConfigReloadTest, ATrialSaysTheSameAndChangesNothing) {
  text_ = document(upstream("one"));
  const auto good = reload_->validate_config();
  EXPECT_EQ(good.outcome, ConfigOutcome::Valid);
  EXPECT_THAT(good.upstreams.removed, ElementsAre("two"));
  text_ = "upstreams: 7\n";
  EXPECT_EQ(reload_->validate_config().outcome, ConfigOutcome::Rejected);
  run(seconds(1));
  EXPECT_EQ(applied_, 0);
  EXPECT_THAT(ids_of_upstreams(), ElementsAre("one", "two"));
  EXPECT_EQ(reload_->counters().errors, 0U);
}

TEST_F(ConfigReloadTest, KeysThatWaitForARestartAreNamed) {
  const auto answer = take(text_ +
                           "distribution: {listen: 127.0.0.1:9999}\n"
                           "gateway: {bench: 5s, retry: {maxAttempts: 4}}\n");
  EXPECT_EQ(answer.outcome, ConfigOutcome::Applied);
  ASSERT_EQ(answer.restart.size(), 2U);
  EXPECT_EQ(answer.restart[0].key, "gateway.bench");
  EXPECT_EQ(answer.restart[0].program, "gateways");
  EXPECT_EQ(answer.restart[1].key, "distribution.listen");
  EXPECT_EQ(answer.restart[1].program, "controller");
  EXPECT_EQ(logged(ports::Event::ConfigWarning), 2U);
  // The controller's own keys wait until it is restarted, whatever is reloaded meanwhile.
  take(text_ + "check: {basic: {interval: 20s}}\n");
  EXPECT_EQ(reload_->counters().restart_waiting, 1U);
  EXPECT_THAT(reload_->warnings(), ElementsAre(HasSubstr("distribution.listen")));
}

// Effects ----------------------------------------------------------------------------------------

// Seed 000 §14: no fetch, no new work, and what is there drains.
TEST_F(ConfigReloadTest, ARemovedUpstreamIsNotFetchedAndDrains) {
  const int calls = vendors_.all["two"].calls;
  take(document(upstream("one")));
  EXPECT_EQ(reading("two").inventory.in_state(domain::ProxyState::Draining), 10U);
  EXPECT_THAT(ids_of_upstreams(), ElementsAre("one", "two"));  // until its proxies are gone
  EXPECT_FALSE(reading("two").enabled);
  run(std::chrono::minutes(6));  // no life is longer
  EXPECT_EQ(reading("two").inventory.managed, 0U);
  EXPECT_EQ(vendors_.all["two"].calls, calls);
  take(document(upstream("one", ", tags: {x: y}")));
  EXPECT_THAT(ids_of_upstreams(), ElementsAre("one"));
}

TEST_F(ConfigReloadTest, ADisabledUpstreamIsNotFetchedAndDrains) {
  const int calls = vendors_.all["two"].calls;
  take(document(upstream("one") + upstream("two", ", enabled: false")));
  EXPECT_EQ(reading("two").inventory.in_state(domain::ProxyState::Draining), 10U);
  run(seconds(20));
  EXPECT_EQ(vendors_.all["two"].calls, calls);
  // Enabled again before their end: they are looked at and come back.
  take(document(upstream("one") + upstream("two")));
  EXPECT_EQ(reading("two").inventory.in_state(domain::ProxyState::Checking), 10U);
}

TEST_F(ConfigReloadTest, ANewUpstreamIsFetched) {
  take(document(upstream("one") + upstream("two") + upstream("three")));
  EXPECT_EQ(vendors_.all["three"].calls, 1);
  EXPECT_EQ(reading("three").inventory.managed, 10U);
}

// A smaller maxSize kills nothing; the pool is not refilled until it is smaller by itself.
TEST_F(ConfigReloadTest, ASmallerMaxSizeTakesNothingAway) {
  take(document(upstream("one", ", pool: {maxSize: 4, target: 40}") + upstream("two")));
  EXPECT_EQ(reading("one").inventory.in_state(domain::ProxyState::Available), 10U);
  EXPECT_EQ(reading("one").size_max, 4U);
  const int calls = vendors_.all["one"].calls;
  run(seconds(280));  // still more than it may have
  EXPECT_EQ(vendors_.all["one"].calls, calls);
}

// Another address or secret makes another adapter, and only that does.
TEST_F(ConfigReloadTest, AnotherAddressOrSecretMakesAnotherAdapter) {
  EXPECT_EQ(vendors_.all["one"].made, 1);
  take(document(upstream("one", "", "other.example") + upstream("two", ", tags: {a: b}")));
  EXPECT_EQ(vendors_.all["one"].made, 2);
  EXPECT_THAT(vendors_.all["one"].address, HasSubstr("other.example"));
  EXPECT_EQ(vendors_.all["two"].made, 1);
  secret_ = "second-secret";  // of both
  const auto answer = take(text_);
  EXPECT_THAT(answer.upstreams.changed, ElementsAre("one", "two"));
  EXPECT_EQ(vendors_.all["one"].made, 3);
  EXPECT_EQ(vendors_.all["two"].made, 2);
}

TEST_F(ConfigReloadTest, AVendorThatRefusedTheOldSecretIsAskedWithTheNewOneAtOnce) {
  vendors_.all["one"].fails = true;
  take(document(upstream("one", ", pool: {minimum: 200, target: 200}") + upstream("two")));
  EXPECT_GT(reading("one").errors_in_a_row, 0U);
  EXPECT_EQ(reading("one").empty_in_a_row, 0U);
  vendors_.all["one"].fails = false;
  secret_ = "second-secret";
  take(text_);
  EXPECT_EQ(reading("one").errors_in_a_row, 0U);
  EXPECT_EQ(reading("one").inventory.managed, 20U);
}

TEST_F(ConfigReloadTest, ARoutingChangeIsInTheNextSnapshot) {
  take(document(upstream("one") + upstream("two"),
                "routings:\n  - {id: new, match: {ports: [443]}, upstreams: [{id: two}]}\n"
                "  - {id: all, upstreams: [{id: one}, {id: two}]}\n"));
  const auto routings = controller_->routings(Deadline{});
  ASSERT_EQ(routings.size(), 2U);
  EXPECT_EQ(routings[0].id, RoutingId("new"));
  EXPECT_EQ(routings[1].upstreams.size(), 2U);
}

// A client whose secret stays keeps its hash: gateways need not verify its callers anew.
TEST_F(ConfigReloadTest, AClientsHashChangesWithItsSecretAlone) {
  const std::string client =
      "clients: [{name: c, credentials: {gateway: {env: C}}, groups: [g]}]\n"
      "gateway: {auth: {mode: usernamePassword}}\n";
  take(document(upstream("one")) + client);
  const auto first = controller_->active()->clients.at(0).gateway_secret;
  take(document(upstream("one", ", tags: {a: b}")) + client);
  EXPECT_EQ(controller_->active()->clients.at(0).gateway_secret, first);
  secret_ = "second-secret";
  take(text_);
  EXPECT_NE(controller_->active()->clients.at(0).gateway_secret, first);
}

TEST_F(ConfigReloadTest, AnotherQuotaCountsAtOnce) {
  const auto client = [](const std::string& bytes) {
    return document(upstream("one")) + "clients: [{name: c, limits: {bytesPerDay: " + bytes +
           "}}]\n";
  };
  take(client("1KiB"));
  domain::UsageBatch batch{1, {{ClientName("c"), {}}}};
  batch.clients[0].usage.bytes_up = 2'000;
  ASSERT_TRUE(fixture_.management().add_usage(InstanceId("w"), batch, fixture_.clock().wall_now(),
                                              Deadline{}));
  const auto exceeded = [&] {
    const auto usage = controller_->client_usage(ClientName("c"), Deadline{});
    return domain::used_up((*usage)->today, (*usage)->bytes_per_day);
  };
  EXPECT_TRUE(exceeded());
  take(client("1MiB"));
  EXPECT_FALSE(exceeded());
  take(document(upstream("one")));
  EXPECT_FALSE(*controller_->client_usage(ClientName("c"), Deadline{}));
}

}  // namespace
}  // namespace proxypool::controller
