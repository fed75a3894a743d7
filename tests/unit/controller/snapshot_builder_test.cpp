#include "controller/snapshot_builder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "proxypool/domain/cluster/digest.hpp"
#include "proxypool/domain/cluster/validate.hpp"

namespace proxypool::controller {
namespace {

using domain::Ownership;
using domain::ProxyState;

constexpr StoreTime kNow{seconds{1'700'000'000}};

ports::HeldProxy held(std::uint64_t id) {
  ports::HeldProxy out;
  out.proxy.id = ProxyId(id);
  out.proxy.upstream = UpstreamId("a");
  out.proxy.endpoint = {domain::Scheme::Http, "192.0.2." + std::to_string(id), 8080};
  out.proxy.username = "user";
  out.proxy.credential_version = domain::CredentialVersion("v1");
  out.proxy.state = ProxyState::Available;
  out.proxy.ownership = Ownership::Owned;
  out.proxy.expires_at = kNow + seconds(100);
  out.proxy.usable_until = kNow + seconds(90);
  out.proxy.max_concurrency = 7;
  out.proxy.attributes.country = "DE";
  out.proxy.tags["tier"] = "gold";
  out.credential = {"user", SecretString("password")};
  out.lease_epoch = Epoch(id + 40);
  out.lease_until = kNow + seconds(60);
  return out;
}

SharedSection shared() {
  SharedSection section;
  section.revision = 3;
  section.upstreams = {{UpstreamId("a"), true}, {UpstreamId("off"), false}};
  section.routings.resize(1);
  section.routings[0].id = RoutingId("everything");
  section.routings[0].upstreams = {{UpstreamId("a"), 1}};
  section.clients.resize(1);
  section.clients[0].name = ClientName("c");
  section.clients[0].gateway_secret = "sha256:x";
  section.policy.use_suspect = domain::UseSuspect::Never;
  section.policy.allow_ports = {443};
  return section;
}

SnapshotHead head() {
  SnapshotHead out;
  out.version = {9, 42};
  out.epoch = Epoch(5);
  out.now = kNow;
  return out;
}

domain::SnapshotDigest digest(const domain::WorkerSnapshot& snapshot) {
  const auto crypto = crypto::make_openssl_crypto();
  return domain::digest_of(snapshot, [&](std::string_view bytes) { return crypto->sha256(bytes); });
}

// CT-2: an upstream that the configuration no longer names drains, and no worker is told of it.
TEST(SnapshotBuilder, WhatTheConfigurationNoLongerNamesDoesNotTravel) {
  std::vector<ports::HeldProxy> all{held(1), held(2)};
  all[1].proxy.upstream = UpstreamId("gone");
  const auto snapshot = build_snapshot(shared(), std::move(all), head());
  ASSERT_EQ(snapshot.proxies.size(), 1U);
  EXPECT_EQ(snapshot.proxies[0].upstream, UpstreamId("a"));
}

TEST(SnapshotBuilder, ASnapshotIsTheSharedPartAndWhatTheWorkerHolds) {
  const SharedSection section = shared();
  const auto snapshot = build_snapshot(section, {held(1), held(2)}, head());
  EXPECT_EQ(snapshot.version, (domain::SnapshotVersion{9, 42}));
  EXPECT_EQ(snapshot.epoch, Epoch(5));
  EXPECT_FALSE(snapshot.intentional_loss);
  EXPECT_EQ(snapshot.upstreams, section.upstreams);
  EXPECT_EQ(snapshot.routings, section.routings);
  EXPECT_EQ(snapshot.clients, section.clients);
  EXPECT_EQ(snapshot.policy, section.policy);
  ASSERT_EQ(snapshot.proxies.size(), 2U);
  const domain::SnapshotProxy& proxy = snapshot.proxies[0];
  EXPECT_EQ(proxy.id, ProxyId(1));
  EXPECT_EQ(proxy.upstream, UpstreamId("a"));
  EXPECT_EQ(proxy.endpoint.host, "192.0.2.1");
  EXPECT_EQ(proxy.max_concurrency, 7U);
  EXPECT_FALSE(proxy.suspect);
  EXPECT_EQ(proxy.lease_epoch, Epoch(41));  // of its own lease (C12)
  EXPECT_EQ(proxy.usable_until, kNow + seconds(90));
  EXPECT_EQ(proxy.expires_at, kNow + seconds(100));
  EXPECT_EQ(proxy.attributes.country, "DE");
  EXPECT_EQ(proxy.tags.at("tier"), "gold");
  EXPECT_TRUE(domain::check_snapshot(snapshot));
  EXPECT_FALSE(domain::proxy_fault(proxy, snapshot.credentials.size()));
}

TEST(SnapshotBuilder, OnlyOwnedAndUsableProxiesTravel) {
  for (std::size_t s = 0; s < domain::kProxyStates; ++s) {
    ports::HeldProxy entry = held(1);
    entry.proxy.state = static_cast<ProxyState>(s);
    const auto snapshot = build_snapshot(shared(), {entry}, head());
    const bool serves =
        entry.proxy.state == ProxyState::Available || entry.proxy.state == ProxyState::Suspect;
    EXPECT_EQ(snapshot.proxies.size(), serves ? 1U : 0U) << domain::to_string(entry.proxy.state);
    EXPECT_EQ(snapshot.credentials.size(), serves ? 1U : 0U);
    if (!serves) continue;
    EXPECT_EQ(snapshot.proxies[0].suspect, entry.proxy.state == ProxyState::Suspect);
  }
  for (const Ownership ownership : {Ownership::Unowned, Ownership::Revoking}) {
    ports::HeldProxy entry = held(1);
    entry.proxy.ownership = ownership;
    EXPECT_TRUE(build_snapshot(shared(), {entry}, head()).proxies.empty());
  }
}

TEST(SnapshotBuilder, AProxyWhoseMarginHasComeDoesNotTravel) {
  ports::HeldProxy entry = held(1);
  entry.proxy.usable_until = kNow + milliseconds(1);
  EXPECT_EQ(build_snapshot(shared(), {entry}, head()).proxies.size(), 1U);
  entry.proxy.usable_until = kNow;
  EXPECT_TRUE(build_snapshot(shared(), {entry}, head()).proxies.empty());
  entry.proxy.usable_until.reset();  // of a list
  EXPECT_EQ(build_snapshot(shared(), {entry}, head()).proxies.size(), 1U);
}

TEST(SnapshotBuilder, ACredentialTravelsOnceAndIsReferenced) {
  std::vector<ports::HeldProxy> all{held(1), held(2), held(3), held(4)};
  all[2].proxy.credential_version = domain::CredentialVersion("v2");
  all[2].credential.password = SecretString("another");
  all[3].credential = {};
  const auto snapshot = build_snapshot(shared(), std::move(all), head());
  ASSERT_EQ(snapshot.credentials.size(), 2U);
  EXPECT_EQ(snapshot.credentials[0].password.reveal(), "password");
  EXPECT_EQ(snapshot.credentials[1].password.reveal(), "another");
  EXPECT_EQ(snapshot.credentials[1].version, domain::CredentialVersion("v2"));
  EXPECT_EQ(snapshot.proxies[0].credential, 1U);
  EXPECT_EQ(snapshot.proxies[1].credential, 1U);
  EXPECT_EQ(snapshot.proxies[2].credential, 2U);
  EXPECT_EQ(snapshot.proxies[3].credential, 0U);  // it wants none
}

// CP-3: the digest is of the content: neither the order of what is held nor the number matters.
TEST(SnapshotBuilder, TheDigestIsOfTheContentAlone) {
  SnapshotHead later = head();
  later.version.counter = 43;
  const auto first = digest(build_snapshot(shared(), {held(1), held(2)}, head()));
  EXPECT_EQ(digest(build_snapshot(shared(), {held(2), held(1)}, later)), first);

  EXPECT_NE(digest(build_snapshot(shared(), {held(1)}, head())), first);
  SharedSection other = shared();
  other.policy.allow_ports = {443, 80};
  EXPECT_NE(digest(build_snapshot(other, {held(1), held(2)}, head())), first);
  ports::HeldProxy suspect = held(2);
  suspect.proxy.state = ProxyState::Suspect;
  EXPECT_NE(digest(build_snapshot(shared(), {held(1), suspect}, head())), first);
  ports::HeldProxy again = held(2);
  again.lease_epoch = Epoch(99);
  EXPECT_NE(digest(build_snapshot(shared(), {held(1), again}, head())), first);
}

// CP-6: a loss that is meant says so.
TEST(SnapshotBuilder, AnIntendedLossIsMarked) {
  SnapshotHead meant = head();
  meant.intentional_loss = true;
  EXPECT_TRUE(build_snapshot(shared(), {}, meant).intentional_loss);
}

}  // namespace
}  // namespace proxypool::controller
