// What a client asks for in its user name, with real clients through real processes (GW-13, R2,
// R5).
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "e2e/programs.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using support::Cluster;
using support::ClusterOptions;
using support::run;

constexpr const char* kPassword = "open sesame";

// The fixture's proxies: 0 and 4 in the US, 1 and 5 in Germany, 2 in Japan, 3 in Britain.
ClusterOptions six_places() {
  auto options = e2e::with_crawler(kPassword);
  options.proxies = 6;
  return options;
}

// curl as this user; its exit code, status line code and body.
support::Finished as(Cluster& cluster, const std::string& user, const std::string& url,
                     e2e::Arguments more = {}) {
  more.insert(more.end(),
              {"--proxy-user", user + ":" + kPassword, "-w", "%{http_code}", "-o", "body", url});
  return run(curl(cluster, std::move(more)));
}

std::set<int> served_by(Cluster& cluster, const std::string& token) {
  return cluster.fixture().records(token).at("proxies").get<std::set<int>>();
}

TEST(UserNameParameters, PickTheCountryOfTheExit) {
  Cluster cluster(six_places());
  for (int i = 0; i < 20; ++i) {  // so often that each of two equal ones has its turn
    EXPECT_EQ(as(cluster, "crawler-country-de", cluster.origin_url("/t/german")).out, "200");
    EXPECT_EQ(as(cluster, "crawler-cc-US-city-san_jose", cluster.origin_url("/t/american")).out,
              "200");
    EXPECT_EQ(as(cluster, "crawler-country-jp", cluster.origin_url("/t/tunnel"), {"-p"}).out,
              "200");
  }
  EXPECT_EQ(served_by(cluster, "german"), (std::set<int>{1, 5}));
  EXPECT_EQ(served_by(cluster, "american"), (std::set<int>{0, 4}));
  EXPECT_EQ(served_by(cluster, "tunnel"), (std::set<int>{2}));
  // The vendor's proxy learns nothing of it.
  EXPECT_EQ("Proxy-Authorization: " +
                e2e::header_of(e2e::seen_at(cluster, "german", "proxy"), "Proxy-Authorization") +
                "\r\n",
            cluster.fixture().authorization());
}

TEST(UserNameParameters, SayWhenNobodyFits) {
  Cluster cluster(six_places());
  const auto none = as(cluster, "crawler-country-fr", cluster.origin_url("/t/french"), {"-i"});
  EXPECT_EQ(none.out, "503");
  const std::string answer = support::read_file(cluster.folder() / "body");
  EXPECT_NE(answer.find("Retry-After: 5"), std::string::npos) << answer;
  EXPECT_NE(answer.find("error=destination_unavailable; details=\"no_candidate\""),
            std::string::npos)
      << answer;
  EXPECT_NE(answer.find("fits the user name"), std::string::npos) << answer;
}

TEST(UserNameParameters, AreCheckedAfterThePasswordAndNamedWhenWrong) {
  Cluster cluster(six_places());
  const auto wrong = as(cluster, "crawler-country-usa", cluster.origin_url("/t/no"), {"-i"});
  EXPECT_EQ(wrong.out, "407");
  const std::string answer = support::read_file(cluster.folder() / "body");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 407 Proxy Authentication Required\r\n")) << answer;
  EXPECT_NE(answer.find("\"code\":\"bad_parameter\""), std::string::npos) << answer;
  EXPECT_NE(answer.find("\\\"country\\\": wants two letters"), std::string::npos) << answer;
  EXPECT_NE(answer.find("Proxy-Authenticate: Basic "), std::string::npos) << answer;

  const auto tunnel =
      as(cluster, "crawler-colour-red", cluster.origin_url("/t/no"), {"-p", "--verbose"});
  EXPECT_EQ(tunnel.code, 56) << tunnel.err;
  EXPECT_NE(tunnel.err.find("407 Proxy Authentication Required (bad_parameter)"), std::string::npos)
      << tunnel.err;

  const auto guess = run(curl(
      cluster, {"--proxy-user", "crawler-colour-red:guess", "-i", cluster.origin_url("/t/no")}));
  EXPECT_NE(guess.out.find("auth_rejected"), std::string::npos) << guess.out;
  EXPECT_EQ(guess.out.find("colour"), std::string::npos) << "nothing is told to a stranger";
  EXPECT_TRUE(cluster.fixture().records("no").at("sightings").empty());
}

TEST(UserNameParameters, CanBeSwitchedOff) {
  ClusterOptions options = six_places();
  options.gateway = "auth: {mode: usernamePassword, usernameParameters: false}";
  Cluster cluster(options);
  EXPECT_EQ(as(cluster, "crawler-country-de", cluster.origin_url("/t/off")).out, "407");
  EXPECT_EQ(as(cluster, "crawler", cluster.origin_url("/t/off")).out, "200");
}

// A tag chooses the routing; the routing chooses the upstream.
TEST(UserNameParameters, ChooseARoutingByTag) {
  ClusterOptions options = six_places();
  options.routing = "match: {tags: {tier: gold}}";
  Cluster cluster(options);
  EXPECT_EQ(as(cluster, "crawler-tag.tier-gold", cluster.origin_url("/t/gold")).out, "200");
  const auto other =
      as(cluster, "crawler-tag.tier-silver", cluster.origin_url("/t/silver"), {"-i"});
  EXPECT_EQ(other.out, "403");
  EXPECT_NE(support::read_file(cluster.folder() / "body").find("no_routing"), std::string::npos);
}

}  // namespace
}  // namespace proxypool
