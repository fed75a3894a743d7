// Ruling R3 and CT-40: the sequential cursor, its fence and the end of its list.
#include "proxypool/domain/routing/sequential.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace proxypool::domain {
namespace {

// "aBc": upstreams a, b and c, with b disabled.
std::vector<SequentialStop> stops(const std::string& text) {
  std::vector<SequentialStop> out;
  for (const char c : text) {
    const bool enabled = c >= 'a';
    out.push_back({UpstreamId(std::string(1, enabled ? c : static_cast<char>(c + 32))), enabled});
  }
  return out;
}
std::optional<UpstreamId> at(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return UpstreamId(name);
}

struct Case {
  std::string stops;
  std::string cursor;
  std::string observed;
  Exhaustion exhaustion;
  CursorStep step;
  std::string to;
};

TEST(SequentialCursor, AdvancesByTheTable) {
  const std::vector<Case> cases{
      {"abc", "a", "a", Exhaustion::Stop, CursorStep::Switched, "b"},
      {"aBc", "a", "a", Exhaustion::Stop, CursorStep::Switched, "c"},
      {"abc", "c", "c", Exhaustion::Stop, CursorStep::Stopped, ""},
      {"abC", "b", "b", Exhaustion::Stop, CursorStep::Stopped, ""},
      {"abc", "c", "c", Exhaustion::Loop, CursorStep::Switched, "a"},
      {"Abc", "c", "c", Exhaustion::Loop, CursorStep::Switched, "b"},
      {"ABc", "c", "c", Exhaustion::Loop, CursorStep::Stay, ""},
      {"abc", "c", "c", Exhaustion::StayLast, CursorStep::Stay, ""},
      {"abc", "b", "a", Exhaustion::Loop, CursorStep::Lost, ""},
      {"abc", "", "a", Exhaustion::Stop, CursorStep::Switched, "b"},
      {"abc", "", "b", Exhaustion::Stop, CursorStep::Lost, ""},
      {"aBc", "b", "c", Exhaustion::Stop, CursorStep::Stopped, ""},
      {"ABC", "a", "a", Exhaustion::Loop, CursorStep::Lost, ""},
      {"", "", "a", Exhaustion::Loop, CursorStep::Lost, ""},
  };
  for (const auto& c : cases) {
    const auto got =
        decide_advance(stops(c.stops), at(c.cursor), UpstreamId(c.observed), c.exhaustion);
    EXPECT_EQ(got.step, c.step) << c.stops << " at " << c.cursor << " saw " << c.observed;
    EXPECT_EQ(got.to, at(c.to)) << c.stops << " at " << c.cursor << " saw " << c.observed;
  }
}

TEST(SequentialCursor, ManyReportsOfOneEmptyUpstreamAdvanceItOnce) {
  const auto list = stops("abc");
  std::optional<UpstreamId> cursor = at("a");
  int switched = 0;
  for (int report = 0; report < 10; ++report) {
    const auto decision = decide_advance(list, cursor, UpstreamId("a"), Exhaustion::Loop);
    if (decision.step == CursorStep::Switched) {
      cursor = decision.to;
      ++switched;
    }
  }
  EXPECT_EQ(switched, 1);
  EXPECT_EQ(cursor, at("b"));
}

TEST(SequentialCursor, SkipsADisabledCurrentUpstream) {
  EXPECT_EQ(current_upstream(stops("aBc"), at("b"), Exhaustion::Stop), at("c"));
  EXPECT_EQ(current_upstream(stops("abC"), at("c"), Exhaustion::Stop), std::nullopt);
  EXPECT_EQ(current_upstream(stops("abC"), at("c"), Exhaustion::Loop), at("a"));
  EXPECT_EQ(current_upstream(stops("abC"), at("c"), Exhaustion::StayLast), at("b"));
  EXPECT_EQ(current_upstream(stops("Abc"), std::nullopt, Exhaustion::Stop), at("b"));
  EXPECT_EQ(current_upstream(stops("abc"), at("gone"), Exhaustion::Stop), at("a"));
  EXPECT_EQ(current_upstream(stops("AB"), at("a"), Exhaustion::Loop), std::nullopt);
}

TEST(SequentialCursor, AnOperatorsSwitchObeysTheSameFence) {
  const auto list = stops("abC");
  const auto decide = [&](const char* observed, const char* to) {
    return decide_switch(list, at("b"), UpstreamId(observed), UpstreamId(to), Exhaustion::Stop);
  };
  EXPECT_EQ(decide("b", "a").step, CursorStep::Switched);
  EXPECT_EQ(decide("b", "a").to, at("a"));
  EXPECT_EQ(decide("a", "a").step, CursorStep::Lost);
  EXPECT_EQ(decide("b", "c").step, CursorStep::Refused);
  EXPECT_EQ(decide("b", "nowhere").step, CursorStep::Refused);
  EXPECT_EQ(decide("b", "b").step, CursorStep::Stay);
}

}  // namespace
}  // namespace proxypool::domain
