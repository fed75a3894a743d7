#include "proxypool/base/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace proxypool {
namespace {

Error failure(std::string message = "no") {
  return {ErrorCode::NotFound, Origin::Store, std::move(message), true};
}
Result<int> half(int n) {
  if (n % 2 != 0) return failure("odd");
  return n / 2;
}
Result<int> quarter(int n) {
  PP_TRY(const int once, half(n));
  PP_TRY(const int twice, half(once));
  return twice;
}

TEST(ResultTest, HoldsAValueOrAnError) {
  const Result<int> good = 7;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 7);
  EXPECT_EQ(good.value_or(1), 7);
  const Result<int> bad = failure();
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::NotFound);
  EXPECT_EQ(bad.error().origin, Origin::Store);
  EXPECT_TRUE(bad.error().retryable);
  EXPECT_EQ(bad.value_or(1), 1);
}

TEST(ResultTest, TryReturnsTheFirstError) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_EQ(quarter(5).error().message, "odd");
}

TEST(ResultTest, CarriesWhatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto use = [&]() -> Result<int> {
    PP_TRY(const std::unique_ptr<int> owned, make());
    return *owned;
  };
  EXPECT_EQ(use().value(), 5);
}

TEST(ResultTest, ChainsWhileThereIsAValue) {
  EXPECT_EQ(Result<int>(8).and_then(half).and_then(half).value(), 2);
  EXPECT_EQ(Result<int>(6).and_then(half).and_then(half).error().message, "odd");
  const auto text = [](int n) { return std::to_string(n); };
  EXPECT_EQ(Result<int>(8).transform(text).value(), "8");
  EXPECT_EQ(Result<int>(failure("first")).transform(text).error().message, "first");
}

TEST(ResultTest, AStatusHasNoValueToSpeakOf) {
  EXPECT_TRUE(ok());
  EXPECT_FALSE(Status(failure()));
}

TEST(ResultTest, EveryCodeHasAName) {
  EXPECT_EQ(to_string(ErrorCode::InvalidArgument), "invalid_argument");
  EXPECT_EQ(to_string(ErrorCode::DeadlineExceeded), "deadline_exceeded");
  EXPECT_EQ(to_string(ErrorCode::Internal), "internal");
}

TEST(ResultDeathTest, TheWrongHalfIsNeverHandedOut) {
  const Result<int> good = 7;
  const Result<int> bad = failure();
  EXPECT_DEATH((void)*bad, "has_value");
  EXPECT_DEATH((void)good.error(), "has_value");
}

}  // namespace
}  // namespace proxypool
