// The table of GW-20 against the policy alone: as written, and as what a name means.
#include "support/target_samples.hpp"

#include <gtest/gtest.h>

#include <array>

#include "proxypool/domain/traffic/target_policy.hpp"

namespace proxypool::domain {
namespace {

using testing::address_of;
using testing::kForbiddenTargets;
using testing::kPublicTargets;
using V = TargetVerdict;

TEST(TargetSamples, EveryClassIsThereGW20) {
  std::array<int, testing::kTargetClasses> count{};
  for (const auto& sample : kForbiddenTargets) ++count[static_cast<std::size_t>(sample.of)];
  for (const int n : count) EXPECT_GE(n, 3);
  EXPECT_GE(std::size(kForbiddenTargets), 60U);
  EXPECT_GE(std::size(kPublicTargets), 20U);
}

TEST(TargetSamples, AreForbiddenAsWrittenAndAsWhatANameMeansGW20) {
  const TargetPolicy policy;
  for (const auto& sample : kForbiddenTargets) {
    const auto verdict = policy.check_host(sample.host, 443);
    const auto address = address_of(sample.host);
    if (sample.of == testing::TargetClass::LocalName) {
      EXPECT_EQ(verdict, V::LocalName) << sample.host;
    } else if (sample.of == testing::TargetClass::OddSpelling) {
      EXPECT_EQ(verdict, V::NumericHost) << sample.host;
    } else {
      EXPECT_EQ(verdict, V::DeniedAddress) << sample.host;
      ASSERT_TRUE(address) << sample.host;
      EXPECT_EQ(policy.check_address(*address), V::DeniedAddress) << sample.host;
    }
  }
  for (const auto host : kPublicTargets) {
    EXPECT_EQ(policy.check_host(host, 443), V::Allowed) << host;
    EXPECT_EQ(policy.check_address(*address_of(host)), V::Allowed) << host;
  }
}

// Local-use translation (RFC 8215) may put the IPv4 address where it likes.
TEST(TargetSamples, WhatANetworkTranslatesForItselfIsForbiddenGW20) {
  const TargetPolicy policy;
  for (const auto* host : {"[64:ff9b:1::8.8.8.8]", "[64:ff9b:1:a00:0:100::]", "[64:ff9b:1::]"}) {
    EXPECT_EQ(policy.check_host(host, 443), V::DeniedAddress) << host;
  }
  EXPECT_EQ(policy.check_host("[64:ff9b:2::8.8.8.8]", 443), V::Allowed);
}

}  // namespace
}  // namespace proxypool::domain
