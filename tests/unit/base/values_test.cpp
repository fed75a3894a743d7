// Ids, secrets, stored hashes, time, randomness, assertions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/stored_hash.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool {
namespace {

TEST(IdTest, KindsOfIdsDoNotMix) {
  static_assert(!std::is_convertible_v<UpstreamId, RoutingId>);
  static_assert(!std::is_convertible_v<std::string, UpstreamId>);
  static_assert(!std::is_convertible_v<std::uint64_t, ProxyId>);
  static_assert(!std::is_convertible_v<ProxyId, Epoch>);
  std::unordered_set<UpstreamId> names{UpstreamId("a"), UpstreamId("b"), UpstreamId("a")};
  EXPECT_EQ(names.size(), 2U);
  EXPECT_LT(ProxyId(1), ProxyId(2));
}

TEST(IdTest, AProxyIsShownAsSixteenDigits) {
  EXPECT_EQ(to_string(ProxyId(0)), "0000000000000000");
  EXPECT_EQ(to_string(ProxyId(0x0123456789abcdef)), "0123456789abcdef");
  EXPECT_EQ(to_hex(UINT64_MAX), "ffffffffffffffff");
}

template <class T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};

// Rulings C1: secrets are unprintable by type.
TEST(SecretTest, CannotBePrintedOrConverted) {
  static_assert(Printable<std::string>);
  static_assert(!Printable<SecretString>);
  static_assert(!std::is_convertible_v<SecretString, std::string>);
  static_assert(!std::is_convertible_v<SecretString, std::string_view>);
  EXPECT_EQ(SecretString("pass").reveal(), "pass");
}

TEST(SecretTest, ComparesByContent) {
  EXPECT_EQ(SecretString("a"), SecretString("a"));
  EXPECT_FALSE(SecretString("a") == SecretString("b"));
  EXPECT_FALSE(SecretString("a") == SecretString("aa"));
  EXPECT_TRUE(SecretString::equal_in_constant_time("", ""));
  EXPECT_FALSE(SecretString::equal_in_constant_time(std::string_view("a\0", 2), "a"));
}

// Looks at the bytes of a dead or moved-from object in storage of its own. Short texts live inside
// the object, long ones on the heap, where only the sanitizers could look.
template <class Use>
bool leaves_traces(Use use) {
  alignas(SecretString) std::array<unsigned char, sizeof(SecretString)> storage{};
  auto* const secret = ::new (storage.data()) SecretString(std::string("hunter2hunter2"));
  use(secret);
  const std::string_view bytes(reinterpret_cast<const char*>(storage.data()), storage.size());
  return bytes.find("unter2") != std::string_view::npos;
}

TEST(SecretTest, LeavesNothingBehind) {
  EXPECT_TRUE(leaves_traces([](SecretString*) {}));  // the look is able to see it
  EXPECT_FALSE(leaves_traces([](SecretString* secret) { std::destroy_at(secret); }));
  EXPECT_FALSE(leaves_traces([](SecretString* secret) {
    const SecretString moved(std::move(*secret));
    EXPECT_EQ(moved.reveal(), "hunter2hunter2");
  }));
  EXPECT_FALSE(leaves_traces([](SecretString* secret) {
    SecretString other;
    other = std::move(*secret);
    EXPECT_EQ(other.reveal(), "hunter2hunter2");
  }));
  EXPECT_FALSE(leaves_traces([](SecretString* secret) { *secret = SecretString("x"); }));
  EXPECT_FALSE(leaves_traces([](SecretString* secret) {
    const SecretString other("x");
    *secret = other;
  }));
}

TEST(SecretTest, AssigningItToItselfKeepsIt) {
  SecretString secret("pass");
  SecretString& same = secret;
  secret = same;
  EXPECT_EQ(secret.reveal(), "pass");
  secret = std::move(same);
  EXPECT_EQ(secret.reveal(), "pass");
}

const std::string kSalt = "c2FsdHNhbHQ";                                  // "saltsalt"
const std::string kHash = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";  // 0 to 31

TEST(StoredHashTest, ReadsBackWhatItWrote) {
  for (const auto& text : {"$scrypt$ln=15,r=8,p=1$" + kSalt + "$" + kHash, "$sha256$" + kHash,
                           "$scrypt$ln=1,r=1,p=16$$" + kHash}) {
    const auto stored = StoredHash::parse(text);
    ASSERT_TRUE(stored) << text;
    EXPECT_EQ(stored->str(), text);
  }
  const auto stored = StoredHash::parse("$scrypt$ln=15,r=8,p=1$" + kSalt + "$" + kHash);
  EXPECT_EQ(stored->cost, (ScryptCost{15, 8, 1}));
  EXPECT_EQ(stored->salt, "saltsalt");
  EXPECT_EQ(stored->hash.size(), 32U);
}

TEST(StoredHashTest, RefusesEverythingElse) {
  for (const auto& text : std::vector<std::string>{
           "", "$", "password", "$scrypt$", "sha256$" + kHash, "$sha256$" + kHash + "$",
           "$sha256$AAEC", "$md5$" + kHash, "$sha256$" + kHash.substr(1),
           "$scrypt$ln=15,r=8$" + kSalt + "$" + kHash,
           "$scrypt$r=8,ln=15,p=1$" + kSalt + "$" + kHash,
           "$scrypt$ln=15,r=8,p=1,x=1$" + kSalt + "$" + kHash,
           "$scrypt$ln=-1,r=8,p=1$" + kSalt + "$" + kHash, "$scrypt$ln=15,r=8,p=1$" + kSalt,
           "$scrypt$ln=15,r=8,p=1$!$" + kHash, "$scrypt$ln=15,r=8,p=1$" + kSalt + "$AAEC"}) {
    const auto stored = StoredHash::parse(text);
    ASSERT_FALSE(stored) << text;
    EXPECT_EQ(stored.error().code, ErrorCode::InvalidArgument);
  }
}

TEST(StoredHashTest, RefusesWhatWouldCostTooMuch) {
  for (const auto* cost : {"ln=0,r=8,p=1", "ln=21,r=1,p=1", "ln=20,r=8,p=1", "ln=15,r=65,p=1",
                           "ln=15,r=8,p=17", "ln=99999999999,r=8,p=1", "ln=64,r=1,p=1"}) {
    EXPECT_FALSE(StoredHash::parse(std::string("$scrypt$") + cost + "$" + kSalt + "$" + kHash))
        << cost;
  }
}

TEST(DeadlineTest, SaturatesInsteadOfOverflowing) {
  const TimePoint now{seconds{100}};
  EXPECT_EQ(Deadline::after(now, seconds{5}).at(), TimePoint{seconds{105}});
  EXPECT_FALSE(Deadline::after(now, nanoseconds::max()).reachable());
  EXPECT_FALSE(Deadline{}.reachable());
  EXPECT_FALSE(Deadline{}.passed(TimePoint{seconds{1'000'000'000}}));
}

TEST(DeadlineTest, HasPassedAtItsMoment) {
  const Deadline deadline{TimePoint{seconds{10}}};
  EXPECT_FALSE(deadline.passed(TimePoint{seconds{9}}));
  EXPECT_TRUE(deadline.passed(TimePoint{seconds{10}}));
  EXPECT_EQ(deadline.left(TimePoint{seconds{4}}), seconds{6});
  EXPECT_EQ(deadline.left(TimePoint{seconds{11}}), seconds{0});
}

// The reference values of the generator for the seed 1234567.
TEST(RandomTest, SplitMix64GivesThePublishedSequence) {
  SplitMix64 random(1'234'567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

TEST(RandomTest, BelowIsEvenAndStaysBelow) {
  SplitMix64 random(3);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i) ++seen[random.below(seen.size())];
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 500);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(random.below(1), 0U);
}

TEST(RandomTest, UnitStaysBelowOne) {
  struct Largest final : Random {
    std::uint64_t next() noexcept override { return UINT64_MAX; }
  };
  Largest largest;
  EXPECT_LT(largest.unit(), 1.0);
  EXPECT_EQ(largest.below(10), 9U);
  SplitMix64 random(3);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) sum += random.unit();
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(AssertTest, ABugIsCountedAndSurvived) {
  const auto before = bugs_counted();
  EXPECT_FALSE(PP_BUG_IF(1 == 2));
  EXPECT_EQ(bugs_counted(), before);
  EXPECT_TRUE(PP_BUG_IF(1 == 1));
  EXPECT_EQ(bugs_counted(), before + 1);
}

TEST(AssertDeathTest, AFalseFactEndsTheProgramInEveryBuild) {
  PP_ASSERT(true);
  EXPECT_DEATH(PP_ASSERT(1 == 2), "values_test.cpp:[0-9]+: assertion failed: 1 == 2");
}

}  // namespace
}  // namespace proxypool
