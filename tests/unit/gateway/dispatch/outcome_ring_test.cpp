#include "gateway/dispatch/outcome_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace proxypool::gateway {
namespace {

OutcomeRecord record_of(std::uint64_t proxy) {
  OutcomeRecord record;
  record.what.proxy = ProxyId(proxy);
  return record;
}

TEST(OutcomeRing, DropsAndCountsWhatFindsNoRoomAndNeverWaits) {
  OutcomeRing ring;
  for (std::uint64_t i = 0; i < OutcomeRing::kRoom + 3; ++i) ring.put(record_of(i));
  EXPECT_EQ(ring.dropped(), 3U);
  std::vector<std::uint64_t> got;
  const auto keep = [&](const OutcomeRecord& record) { got.push_back(record.what.proxy.value()); };
  EXPECT_EQ(ring.take(2, keep), 2U);
  ring.put(record_of(9999));
  EXPECT_EQ(ring.take(10'000, keep), OutcomeRing::kRoom - 1);
  EXPECT_EQ(got.front(), 0U);
  EXPECT_EQ(got[OutcomeRing::kRoom - 1], OutcomeRing::kRoom - 1);
  EXPECT_EQ(got.back(), 9999U);
  EXPECT_EQ(ring.take(1, keep), 0U);
}

TEST(OutcomeRing, CarriesEverythingFromOneThreadToAnother) {
  constexpr std::uint64_t kAll = 200'000;
  OutcomeRings rings;
  OutcomeRing& ring = rings.ring(0);
  std::atomic<bool> done{false};
  std::thread producer([&] {
    for (std::uint64_t i = 1; i <= kAll; ++i) ring.put(record_of(i));
    done = true;
  });
  std::uint64_t taken = 0;
  std::uint64_t last = 0;
  bool in_order = true;
  const auto look = [&](const OutcomeRecord& record) {
    in_order = in_order && record.what.proxy.value() > last;
    last = record.what.proxy.value();
    ++taken;
  };
  while (!done) rings.take(100, look);
  producer.join();
  rings.take(kAll, look);
  EXPECT_TRUE(in_order);
  EXPECT_EQ(taken + rings.dropped(), kAll);
}

TEST(OutcomeSampler, WantsEveryFailureAndASuccessNowAndThen) {
  const auto sampler = std::make_unique<OutcomeSampler>();
  domain::TrafficOutcome good;
  good.proxy = ProxyId(7);
  good.status = 200;
  domain::TrafficOutcome bad = good;
  bad.status = 0;
  bad.failure = {domain::Phase::Dial, domain::FailureKind::Refused};
  domain::TrafficOutcome neutral = good;
  neutral.status = 503;
  TimePoint now = TimePoint{} + seconds(100);
  EXPECT_TRUE(sampler->wants(good, now));
  EXPECT_FALSE(sampler->wants(good, now));
  EXPECT_FALSE(sampler->wants(neutral, now));
  now += OutcomeSampler::kToldEvery;
  EXPECT_TRUE(sampler->wants(good, now));
  EXPECT_TRUE(sampler->wants(bad, now));
  EXPECT_TRUE(sampler->wants(bad, now));
  EXPECT_TRUE(sampler->wants(good, now)) << "that it works again is news";
  EXPECT_FALSE(sampler->wants(good, now));
}

}  // namespace
}  // namespace proxypool::gateway
