#include "loadgen/journal.hpp"

#include <gtest/gtest.h>

namespace proxypool::loadgen {
namespace {

TEST(JournalTest, ATokenStandsInAHeaderInTheQueryOrInThePath) {
  Fields none;
  Fields header;
  header.add("x-token", "from-header");
  EXPECT_EQ(token_of("/t/path", header), "from-header");
  EXPECT_EQ(token_of("http://h/t/path?token=query", none), "query");
  EXPECT_EQ(token_of("http://h/t/path/more", none), "path");
  EXPECT_EQ(token_of("/other", none), std::nullopt);
  EXPECT_EQ(token_of("/t/bad%20token", none), std::nullopt);
  EXPECT_EQ(token_of("/t/" + std::string(129, 'a'), none), std::nullopt);
}

TEST(JournalTest, TheOldestTokenIsForgottenAtTheMaximum) {
  Journal journal;
  for (std::size_t i = 0; i <= Journal::kTokensMax; ++i) {
    journal.remember("t" + std::to_string(i), Sighting{});
  }
  EXPECT_EQ(journal.find("t0"), nullptr);
  EXPECT_NE(journal.find("t1"), nullptr);
}

TEST(JournalTest, SightingsOfOneTokenAreBoundedAndTheRestIsCounted) {
  Journal journal;
  for (std::size_t i = 0; i < Journal::kRecordsPerToken + 3; ++i) journal.remember("t", Sighting{});
  ASSERT_NE(journal.find("t"), nullptr);
  EXPECT_EQ(journal.find("t")->sightings.size(), Journal::kRecordsPerToken);
  EXPECT_EQ(journal.find("t")->forgotten, 3U);
}

}  // namespace
}  // namespace proxypool::loadgen
