// Happy eyeballs in virtual time (GW-21).
#include "proxypool/domain/traffic/address_race.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace proxypool::domain {
namespace {

constexpr TimePoint kStart{seconds(1'000)};

std::vector<IpAddress> addresses(const std::vector<std::string>& texts) {
  std::vector<IpAddress> out;
  for (const auto& text : texts) out.push_back(*IpAddress::parse(text));
  return out;
}

std::vector<std::string> in_turn(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const auto& address : families_in_turn(addresses(texts))) out.push_back(address.str());
  return out;
}

// Every address that is due, as text.
std::string due(AddressRace& race, TimePoint now) {
  std::string out;
  while (const auto address = race.next(now)) out += (out.empty() ? "" : " ") + address->str();
  return out;
}

TEST(AddressRace, LetsFamiliesTakeTurnsInTheResolversOrderGW21) {
  using List = std::vector<std::string>;
  EXPECT_EQ(in_turn({"::1", "::2", "::3", "1.1.1.1", "2.2.2.2"}),
            (List{"::1", "1.1.1.1", "::2", "2.2.2.2", "::3"}));
  EXPECT_EQ(in_turn({"1.1.1.1", "::1", "::2"}), (List{"1.1.1.1", "::1", "::2"}));
  EXPECT_EQ(in_turn({"1.1.1.1", "2.2.2.2"}), (List{"1.1.1.1", "2.2.2.2"}));
  EXPECT_EQ(in_turn({"1.1.1.1"}), (List{"1.1.1.1"}));
  EXPECT_EQ(in_turn({}), List{});
}

TEST(AddressRace, GivesTheNextOneItsTurnAfterAQuarterOfASecondGW21) {
  AddressRace race(addresses({"::1", "::2", "1.1.1.1"}));
  EXPECT_EQ(due(race, kStart), "::1");
  EXPECT_EQ(race.due(), kStart + milliseconds(250));
  EXPECT_EQ(due(race, kStart + milliseconds(249)), "");
  EXPECT_EQ(due(race, kStart + milliseconds(250)), "1.1.1.1");
  // Late: one at a time all the same, and the pause begins anew.
  EXPECT_EQ(due(race, kStart + seconds(2)), "::2");
  EXPECT_EQ(race.due(), kNever);
  EXPECT_EQ(due(race, kStart + seconds(3)), "");
  EXPECT_FALSE(race.lost());
}

TEST(AddressRace, DoesNotWaitForAnAddressThatHasFailedGW21) {
  AddressRace race(addresses({"::1", "1.1.1.1", "::2"}));
  EXPECT_EQ(due(race, kStart), "::1");
  race.failed();
  EXPECT_LE(race.due(), kStart);
  EXPECT_EQ(due(race, kStart + milliseconds(1)), "1.1.1.1");
  EXPECT_EQ(race.due(), kStart + milliseconds(251));
  race.failed();
  EXPECT_EQ(due(race, kStart + milliseconds(2)), "::2");
  EXPECT_FALSE(race.lost());
  race.failed();
  EXPECT_TRUE(race.lost());
}

TEST(AddressRace, IsLostOnlyWhenNobodyRunsAndNobodyIsLeftGW21) {
  AddressRace race(addresses({"::1", "1.1.1.1"}));
  EXPECT_FALSE(race.lost());
  EXPECT_EQ(due(race, kStart), "::1");
  race.failed();
  EXPECT_FALSE(race.lost()) << "one is left";
  EXPECT_EQ(due(race, kStart), "1.1.1.1");
  EXPECT_FALSE(race.lost()) << "one runs";
  race.failed();
  EXPECT_TRUE(race.lost());
  EXPECT_TRUE(AddressRace({}).lost());
}

}  // namespace
}  // namespace proxypool::domain
