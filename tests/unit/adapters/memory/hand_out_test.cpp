// What the embedded pool does around the moment at which a hand-out becomes durable. The rest is in
// the contract suites.
#include <functional>
#include <string>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/memory/memory_stores.hpp"
#include "contract/pool_steps.hpp"
#include "runtime/manual_clock.hpp"

namespace proxypool::memory {
namespace {

using contract::batch;
using contract::proxy_ids;
using domain::ExtractionOutcome;
using domain::ProxyState;

class FakeLog final : public ports::DurableLog {
 public:
  Status replay(const std::function<void(std::string_view)>& take) override {
    for (const auto& record : records) take(record);
    return ok();
  }
  Status append(std::string_view record) override {
    if (in_append) in_append();
    if (full) return Error{ErrorCode::Unavailable, Origin::Store, "the disk is full", true};
    records.emplace_back(record);
    return ok();
  }
  Status rewrite(const std::vector<std::string>& all) override {
    records = all;
    return ok();
  }
  [[nodiscard]] std::size_t size_bytes() const override { return 0; }

  bool full = false;
  std::function<void()> in_append;
  std::vector<std::string> records;
};

class Fixture {
 public:
  Fixture() { restart(); }
  ports::ActivityPool& pool() { return *pool_; }
  void advance(milliseconds duration) { clock_.advance(duration); }
  void restart() { EXPECT_TRUE(open('k')); }
  bool open(char key) {
    PoolOptions options;
    options.seal_key = SecretString(std::string(ports::Crypto::kSealKeyBytes, key));
    auto made = make_activity_pool(options, {nullptr, &log}, clock_, *crypto_);
    if (!made) return false;
    pool_ = std::move(*made);
    return true;
  }
  FakeLog log;

 private:
  runtime::ManualClock clock_;
  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  std::unique_ptr<ports::ActivityPool> pool_;
};

class HandOut : public contract::PoolSteps<Fixture> {
 protected:
  FakeLog& log() { return fixture_.log; }
};

// EX-1: nobody learns of what is not on the disk, and nothing is lost by it.
TEST_F(HandOut, OneThatCannotBeMadeDurableLeavesEverythingAvailable) {
  supply("a", proxy_ids(1, 3));
  auto wanted = command(2);
  wanted.idempotency_key = "key";
  log().full = true;
  const auto refused = pool().extract(wanted, Deadline{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(inventory("a").in_state(ProxyState::Available), 3U);
  log().full = false;
  EXPECT_EQ(extract(wanted).outcome, ExtractionOutcome::Done);
}

TEST_F(HandOut, WhatIsBeingHandedOutIsNobodyElsesAndCountsAgainstTheReserve) {
  supply("a", proxy_ids(1, 6));
  auto wanted = command(2);
  wanted.idempotency_key = "key";
  wanted.request_digest = "body";
  wanted.policies[0].reserve_for_gateway = 3;
  log().in_append = [&] {
    log().in_append = nullptr;
    EXPECT_EQ(extract(wanted).outcome, ExtractionOutcome::InProgress);
    auto other = wanted;
    other.request_digest = "other";
    EXPECT_EQ(extract(other).outcome, ExtractionOutcome::Mismatch);
    EXPECT_EQ(assign(contract::holder("w"), proxy_ids(1, 6)).size(), 4U);
    revoke(proxy_ids(1, 6));
    report(contract::holder("w"), {}, 0, true);
    EXPECT_EQ(apply(proxy_ids(1, 6), domain::ProxyEvent::OperatorReset), 0U);
    other.idempotency_key.clear();
    EXPECT_EQ(extract(other).proxies.size(), 1U);  // six, less two on their way, less three
    advance(2 * contract::kTtl);                   // and one that ends meanwhile is not lost
    sweep();
  };
  EXPECT_EQ(extract(wanted).proxies.size(), 2U);
  sweep();
  EXPECT_EQ(inventory("a").managed, 0U);
}

// C1
TEST_F(HandOut, NoCredentialIsWrittenInTheClear) {
  supply("a", proxy_ids(1, 1));
  auto wanted = command(1);
  wanted.idempotency_key = "key";
  extract(wanted);
  ASSERT_EQ(log().records.size(), 1U);
  EXPECT_EQ(log().records[0].find("pass-1"), std::string::npos);
  EXPECT_EQ(log().records[0].find("user"), std::string::npos);
  EXPECT_FALSE(fixture_.open('x'));  // another key reads nothing, and says so
  EXPECT_TRUE(fixture_.open('k'));
}

}  // namespace
}  // namespace proxypool::memory
