// CP-3: the order-independent digest. CP-4, CP-6: what a worker refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "proxypool/base/random.hpp"
#include "proxypool/domain/cluster/digest.hpp"
#include "proxypool/domain/cluster/validate.hpp"

namespace proxypool::domain {
namespace {

using std::chrono::seconds;

// Stands for SHA-256: spreads every byte over all 32.
struct Spread {
  SnapshotDigest operator()(std::string_view bytes) const {
    SnapshotDigest out{};
    for (std::size_t i = 0; i < 4; ++i) {
      std::uint64_t state = i;
      for (const char c : bytes) {
        state = SplitMix64(state ^ static_cast<unsigned char>(c)).next();
      }
      for (std::size_t k = 0; k < 8; ++k) {
        out[8 * i + k] = static_cast<std::uint8_t>(state >> (8 * k));
      }
    }
    return out;
  }
};

SnapshotProxy proxy(std::uint64_t id) {
  SnapshotProxy p;
  p.id = ProxyId(id);
  p.upstream = UpstreamId("up");
  p.endpoint = {Scheme::Http, "192.0.2.1", static_cast<std::uint16_t>(1'000 + id)};
  p.credential = 1;
  p.lease_epoch = Epoch(3);
  p.usable_until = StoreTime(seconds(50));
  p.tags = {{"k", "v"}};
  return p;
}

WorkerSnapshot snapshot() {
  WorkerSnapshot s;
  s.upstreams = {{UpstreamId("up"), true}, {UpstreamId("other"), false}};
  SnapshotRouting r;
  r.id = RoutingId("first");
  r.match.hosts = {"a.example"};
  r.upstreams = {{UpstreamId("up"), 1}};
  s.routings.push_back(r);
  r.id = RoutingId("second");
  r.match = {};
  s.routings.push_back(r);
  SnapshotClient c;
  c.name = ClientName("alice");
  s.clients.push_back(c);
  SnapshotCredential credential;
  credential.username = "user";
  credential.password = SecretString("secret");
  credential.version = CredentialVersion("v1");
  s.credentials.push_back(credential);
  for (std::uint64_t id = 1; id <= 20; ++id) s.proxies.push_back(proxy(id));
  return s;
}

SnapshotDigest digest(const WorkerSnapshot& s) {
  return digest_of(s, Spread{});
}

TEST(Digest, IsIndependentOfTheOrderOfEntries) {
  WorkerSnapshot s = snapshot();
  const auto before = digest(s);
  SplitMix64 random(1);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = s.proxies.size(); i > 1; --i) {
      std::swap(s.proxies[i - 1], s.proxies[random.below(i)]);
    }
    std::swap(s.upstreams[0], s.upstreams[1]);
    EXPECT_EQ(digest(s), before);
  }
}

TEST(Digest, TheNumberOfACredentialDoesNotMatterButWhatItNamesDoes) {
  WorkerSnapshot s = snapshot();
  const auto before = digest(s);
  WorkerSnapshot moved = s;
  moved.credentials.insert(moved.credentials.begin(), SnapshotCredential{});
  for (auto& p : moved.proxies) p.credential = 2;
  DigestSum<Spread> without(Spread{}, digest(moved));
  without.remove(SnapshotCredential{});
  EXPECT_EQ(without.value(), before);
}

TEST(Digest, AnyFieldChangesIt) {
  using Change = std::function<void(WorkerSnapshot&)>;
  const std::vector<Change> changes{
      [](auto& s) { s.upstreams[0].enabled = false; },
      [](auto& s) { s.upstreams[1].id = UpstreamId("others"); },
      [](auto& s) { std::swap(s.routings[0], s.routings[1]); },
      [](auto& s) { s.routings[0].id = RoutingId("x"); },
      [](auto& s) { s.routings[0].enabled = false; },
      [](auto& s) { s.routings[0].match.hosts.push_back("b"); },
      [](auto& s) {
        s.routings[0].match.hosts = {"a.", "example"};
      },
      [](auto& s) { s.routings[0].match.host_regex = {"a"}; },
      [](auto& s) { s.routings[0].match.ports = {80}; },
      [](auto& s) { s.routings[0].match.kinds = {RequestKind::Http}; },
      [](auto& s) { s.routings[0].match.methods = {"GET"}; },
      [](auto& s) { s.routings[0].match.path_prefixes = {"/"}; },
      [](auto& s) { s.routings[0].match.clients = {"alice"}; },
      [](auto& s) {
        s.routings[0].match.tags = {{"a", "b"}};
      },
      [](auto& s) { s.routings[0].strategy = Strategy::First; },
      [](auto& s) { s.routings[0].balancer = Balancer::Random; },
      [](auto& s) { s.routings[0].upstreams[0].weight = 2; },
      [](auto& s) { s.routings[0].upstreams[0].id = UpstreamId("other"); },
      [](auto& s) { s.routings[0].current = UpstreamId("up"); },
      [](auto& s) { s.routings[0].on_unavailable = OnUnavailable::Wait; },
      [](auto& s) { s.routings[0].wait_timeout = milliseconds(1); },
      [](auto& s) { s.routings[0].waiters_max = 1; },
      [](auto& s) { s.routings[0].attempts_max = 3; },
      [](auto& s) { s.routings[0].in_flight_max = 3; },
      [](auto& s) { s.clients[0].name = ClientName("bob"); },
      [](auto& s) { s.clients[0].groups = {"g"}; },
      [](auto& s) { s.clients[0].gateway_secret = "h"; },
      [](auto& s) { s.clients[0].rate_per_second = 1; },
      [](auto& s) { s.clients[0].burst = 1; },
      [](auto& s) { s.clients[0].in_flight_max = 1; },
      [](auto& s) { s.policy.use_suspect = UseSuspect::Never; },
      [](auto& s) { s.policy.unsafe_before_send = true; },
      [](auto& s) { s.policy.deny_cidrs = {*Cidr::parse("192.0.2.0/24")}; },
      [](auto& s) { s.policy.allow_cidrs = {*Cidr::parse("192.0.2.0/24")}; },
      [](auto& s) { s.policy.deny_hosts = {"a"}; },
      [](auto& s) { s.policy.allow_ports = {1}; },
      [](auto& s) { s.policy.resolve_before_proxy = true; },
      [](auto& s) { s.credentials[0].username = "x"; },
      [](auto& s) { s.credentials[0].password = SecretString("x"); },
      [](auto& s) { s.credentials[0].version = CredentialVersion("v2"); },
      [](auto& s) { s.proxies[3].id = ProxyId(99); },
      [](auto& s) { s.proxies[3].upstream = UpstreamId("other"); },
      [](auto& s) { s.proxies[3].endpoint.scheme = Scheme::Https; },
      [](auto& s) { s.proxies[3].endpoint.host = "192.0.2.2"; },
      [](auto& s) { s.proxies[3].endpoint.port = 1; },
      [](auto& s) { s.proxies[3].credential = 0; },
      [](auto& s) { s.proxies[3].max_concurrency = 2; },
      [](auto& s) { s.proxies[3].suspect = true; },
      [](auto& s) { s.proxies[3].lease_epoch = Epoch(4); },
      [](auto& s) { s.proxies[3].usable_until = std::nullopt; },
      [](auto& s) { s.proxies[3].usable_until = StoreTime(milliseconds(50'001)); },
      [](auto& s) { s.proxies[3].expires_at = StoreTime(seconds(50)); },
      [](auto& s) { s.proxies[3].attributes.country = "US"; },
      [](auto& s) { s.proxies[3].attributes.region = "US"; },
      [](auto& s) { s.proxies[3].attributes.city = "US"; },
      [](auto& s) { s.proxies[3].attributes.carrier = "US"; },
      [](auto& s) {
        s.proxies[3].tags = {{"kv", ""}};
      },
      [](auto& s) { s.proxies.pop_back(); },
      [](auto& s) { s.proxies.push_back(s.proxies[0]); },
  };
  std::set<SnapshotDigest> seen{digest(snapshot())};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    WorkerSnapshot s = snapshot();
    changes[i](s);
    EXPECT_TRUE(seen.insert(digest(s)).second) << "change " << i;
  }
}

TEST(Digest, TheHeaderTravelsBesideIt) {
  WorkerSnapshot s = snapshot();
  const auto before = digest(s);
  s.version = {5, 6};
  s.epoch = Epoch(7);
  s.intentional_loss = true;
  EXPECT_EQ(digest(s), before);
}

TEST(Digest, RemovingWhatWasAddedIsTheIdentity) {
  DigestSum<Spread> sum(Spread{});
  SplitMix64 random(2);
  const SnapshotCredential credential;
  std::vector<SnapshotProxy> added;
  for (int i = 0; i < 500; ++i) {
    const auto before = sum.value();
    const auto p = proxy(random.next());
    sum.add(p, &credential);
    EXPECT_NE(sum.value(), before);
    sum.remove(p, &credential);
    ASSERT_EQ(sum.value(), before);
    sum.add(p, &credential);
    added.push_back(p);
  }
  for (const auto& p : added) sum.remove(p, &credential);
  EXPECT_EQ(sum.value(), SnapshotDigest{});
}

TEST(Digest, ADeltaGivesTheDigestOfTheWhole) {
  WorkerSnapshot s = snapshot();
  DigestSum<Spread> sum(Spread{}, digest(s));
  sum.remove(s.proxies[4], credential_of(s, s.proxies[4]));
  s.proxies[4].suspect = true;
  sum.add(s.proxies[4], credential_of(s, s.proxies[4]));
  EXPECT_EQ(sum.value(), digest(s));
}

TEST(Digest, TheEncodingIsTheWrittenOne) {
  CanonicalWriter writer;
  encode(writer, SnapshotUpstream{UpstreamId("ab"), true});
  const std::string expected("\1\1\0\0\0\0\0\0\0\2ab\0\0\0\0\0\0\0\1", 20);
  EXPECT_EQ(writer.bytes(), expected);
}

TEST(CheckSnapshot, AcceptsAGoodOneAndNamesEachFaultOfABadOne) {
  EXPECT_TRUE(check_snapshot(snapshot()));
  using Change = std::function<void(WorkerSnapshot&)>;
  const std::vector<std::pair<Change, std::string>> faults{
      {[](auto& s) { s.upstreams.push_back(s.upstreams[0]); }, "the upstream up comes twice"},
      {[](auto& s) { s.upstreams[1].id = {}; }, "an upstream without a name"},
      {[](auto& s) { s.routings[1].id = RoutingId("first"); }, "the routing first comes twice"},
      {[](auto& s) { s.routings[1].id = {}; }, "a routing without a name"},
      {[](auto& s) { s.routings[1].upstreams[0].id = UpstreamId("x"); },
       "routing second names the unknown upstream x"},
      {[](auto& s) { s.routings[1].upstreams.push_back(s.routings[1].upstreams[0]); },
       "routing second names the upstream up twice"},
      {[](auto& s) { s.routings[1].current = UpstreamId("other"); },
       "routing second stands at other, which is not in it"},
      {[](auto& s) { s.routings[0].upstreams.resize(65); },
       "routing first has more upstreams than 64"},
      {[](auto& s) { s.clients.push_back(s.clients[0]); }, "the client alice comes twice"},
      {[](auto& s) { s.clients[0].name = {}; }, "a client without a name"},
      {[](auto& s) { s.routings.resize(Matcher::kRulesMax + 1); },
       "more routings than a worker takes"},
      {[](auto& s) { s.proxies.resize(limits::kProxiesPerWorkerMax + 1); },
       "more proxies than a worker takes"},
  };
  for (const auto& [change, message] : faults) {
    WorkerSnapshot s = snapshot();
    change(s);
    const auto checked = check_snapshot(s);
    ASSERT_FALSE(checked) << message;
    EXPECT_EQ(checked.error().message, message);
  }
}

TEST(ProxyFault, NamesWhatCannotBeServed) {
  EXPECT_EQ(proxy_fault(proxy(1), 1), std::nullopt);
  const auto fault = [](auto&& change) {
    SnapshotProxy p = proxy(1);
    change(p);
    return proxy_fault(p, 1).value_or("");
  };
  EXPECT_EQ(fault([](auto& p) { p.id = {}; }), "no id");
  EXPECT_EQ(fault([](auto& p) { p.endpoint.scheme = Scheme::Socks5; }), "socks5 is not served yet");
  EXPECT_EQ(fault([](auto& p) { p.endpoint.host = ""; }), "no endpoint");
  EXPECT_EQ(fault([](auto& p) { p.endpoint.port = 0; }), "no endpoint");
  EXPECT_EQ(fault([](auto& p) { p.credential = 2; }), "unknown credential");
  EXPECT_EQ(fault([](auto& p) { p.max_concurrency = 0; }), "no concurrency");
  EXPECT_EQ(fault([](auto& p) { p.max_concurrency = 65'536; }), "concurrency above 65535");
}

TEST(LosesTooMuch, MoreThanHalfOfWhatIsStillUsableNeedsTheMark) {  // CP-6
  const TimePoint now{seconds(100)};
  WorkerSnapshot next;
  next.proxies = {proxy(1), proxy(2)};
  std::vector<HeldProxy> held{
      {ProxyId(1), kNever}, {ProxyId(2), kNever}, {ProxyId(3), kNever}, {ProxyId(4), kNever}};
  const auto loses = [&](TimePoint at) {
    return loses_too_much(held, lost_by(held, next), next, at);
  };
  EXPECT_FALSE(loses(now)) << "exactly half";
  held.push_back({ProxyId(5), now + seconds(1)});
  EXPECT_TRUE(loses(now));
  EXPECT_FALSE(loses(now + seconds(1))) << "its end explains its absence";
  next.intentional_loss = true;
  EXPECT_FALSE(loses(now));
  EXPECT_FALSE(loses_too_much({}, {}, WorkerSnapshot{}, now));
}

}  // namespace
}  // namespace proxypool::domain
