#include "controller/shared_section.hpp"

#include <gtest/gtest.h>

namespace proxypool::controller {
namespace {

config::Config two_upstreams() {
  config::Config config;
  config.upstreams.resize(2);
  config.upstreams[0].id = UpstreamId("a");
  config.upstreams[1].id = UpstreamId("b");
  config.routings.resize(1);
  config.routings[0].id = RoutingId("r");
  config.routings[0].strategy = domain::Strategy::Sequential;
  config.routings[0].upstreams.resize(2);
  config.routings[0].upstreams[0].id = UpstreamId("a");
  config.routings[0].upstreams[1].id = UpstreamId("b");
  config.clients.resize(1);
  config.clients[0].name = ClientName("c");
  return config;
}

TEST(SharedSection, OperatorsSwitchesCountBesideTheConfiguration) {
  const auto config = two_upstreams();
  Switches switches;
  switches.upstreams.resize(1);
  switches.upstreams[0].upstream = UpstreamId("b");
  switches.upstreams[0].enabled = false;
  const auto section = make_shared_section(config, {{ClientName("c"), "sha256:x"}}, switches);
  EXPECT_TRUE(section.upstreams.at(0).enabled);
  EXPECT_FALSE(section.upstreams.at(1).enabled);
  EXPECT_TRUE(section.routings.at(0).enabled);
  EXPECT_EQ(section.clients.at(0).gateway_secret, "sha256:x");
}

// What a routing stood at may be gone from the configuration; workers refuse such a snapshot.
TEST(SharedSection, ASequentialRoutingStandsAtAnUpstreamOfItsOwn) {
  const auto config = two_upstreams();
  EXPECT_EQ(make_shared_section(config, {}, {}).routings.at(0).current, UpstreamId("a"));
  Switches switches;
  switches.routings.resize(1);
  switches.routings[0].routing = RoutingId("r");
  switches.routings[0].current = UpstreamId("b");
  EXPECT_EQ(make_shared_section(config, {}, switches).routings.at(0).current, UpstreamId("b"));
  switches.routings[0].current = UpstreamId("gone");
  EXPECT_EQ(make_shared_section(config, {}, switches).routings.at(0).current, UpstreamId("a"));
}

// CT-40: what is disabled is passed over at once; with nobody to go to, nobody begins anew.
TEST(SharedSection, ASequentialRoutingPassesOverWhatIsDisabled) {
  auto config = two_upstreams();
  config.upstreams[0].enabled = false;
  EXPECT_EQ(make_shared_section(config, {}, {}).routings.at(0).current, UpstreamId("b"));
  config.upstreams[0].enabled = true;
  config.upstreams[1].enabled = false;
  Switches switches;
  switches.routings.resize(1);
  switches.routings[0].routing = RoutingId("r");
  switches.routings[0].current = UpstreamId("b");
  EXPECT_EQ(make_shared_section(config, {}, switches).routings.at(0).current, UpstreamId("b"));
}

TEST(SharedSection, EachPublicationHasTheNextRevision) {
  SharedSectionCell cell;
  EXPECT_FALSE(cell.current());
  cell.publish({});
  cell.publish({});
  EXPECT_EQ(cell.current()->revision, 2U);
}

}  // namespace
}  // namespace proxypool::controller
