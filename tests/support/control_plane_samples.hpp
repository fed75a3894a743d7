// Values of the control plane for tests: one of each message with every field set, and snapshots
// of any size.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "proxypool/base/random.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::test {

inline constexpr StoreTime kSampleTime{milliseconds(1'790'000'000'000)};

inline domain::SnapshotDigest sample_digest() {
  domain::SnapshotDigest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<std::uint8_t>(i * 7 + 1);
  return digest;
}

inline domain::SnapshotRouting sample_routing(std::string id) {
  domain::SnapshotRouting routing;
  routing.id = RoutingId(std::move(id));
  routing.enabled = false;
  routing.match.hosts = {"example.com", "*.example.org"};
  routing.match.host_regex = {"img[0-9]+\\.example\\.net"};
  routing.match.ports = {80, 443, 65535};
  routing.match.kinds = {domain::RequestKind::Http, domain::RequestKind::Connect};
  routing.match.methods = {"GET"};
  routing.match.path_prefixes = {"/api/"};
  routing.match.clients = {"team-a"};
  routing.match.tags = {{"country", "de"}, {"tier", "1"}};
  routing.strategy = domain::Strategy::Sequential;
  routing.balancer = domain::Balancer::TwoRandomChoices;
  routing.upstreams = {{UpstreamId("one"), 3}, {UpstreamId("two"), 1}};
  routing.current = UpstreamId("two");
  routing.on_unavailable = domain::OnUnavailable::Wait;
  routing.wait_timeout = milliseconds(1500);
  routing.waiters_max = 64;
  routing.attempts_max = 3;
  routing.in_flight_max = 200;
  return routing;
}

// Every field of every entry, every kind of host, and times before and after `store_now`.
inline domain::WorkerSnapshot sample_snapshot() {
  domain::WorkerSnapshot snapshot;
  snapshot.version = {0x1234'5678'9abc'def0, 42};
  snapshot.epoch = Epoch(7);
  snapshot.intentional_loss = true;
  snapshot.upstreams = {{UpstreamId("one"), true}, {UpstreamId("two"), false}};
  snapshot.routings = {sample_routing("first"), sample_routing("second")};
  snapshot.clients = {{ClientName("team-a"),
                       {"crawlers", "eu"},
                       "$sha256$abc",
                       100,
                       200,
                       50,
                       {*Cidr::parse("192.0.2.0/24"), *Cidr::parse("2001:db8::/32")}}};
  snapshot.policy.use_suspect = domain::UseSuspect::Never;
  snapshot.policy.unsafe_before_send = true;
  snapshot.policy.deny_cidrs = {*Cidr::parse("10.0.0.0/8"), *Cidr::parse("fd00::/8")};
  snapshot.policy.allow_cidrs = {*Cidr::parse("10.1.2.3")};
  snapshot.policy.deny_hosts = {"*.internal"};
  snapshot.policy.allow_ports = {443};
  snapshot.policy.username_parameters = false;
  snapshot.policy.session_header = "X-Sticky";
  snapshot.policy.session_idle = seconds(90);
  snapshot.policy.resolve_before_proxy = true;
  snapshot.credentials = {{"user-1", SecretString("first secret"), domain::CredentialVersion("v1")},
                          {"", SecretString(), domain::CredentialVersion("v2")}};
  const std::vector<std::string> hosts = {"192.0.2.1", "2001:db8::7", "proxy.example.net",
                                          "255.255.255.255"};
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    domain::SnapshotProxy proxy;
    proxy.id = ProxyId(0xffff'0000'0000'0000 + i);
    proxy.upstream = UpstreamId(i % 2 == 0 ? "one" : "two");
    proxy.endpoint = {static_cast<domain::Scheme>(i % 3), hosts[i],
                      static_cast<std::uint16_t>(1 + i * 21'000)};
    proxy.credential = static_cast<std::uint32_t>(i % 3);
    proxy.max_concurrency = static_cast<std::uint32_t>(1 + i);
    proxy.suspect = i == 1;
    proxy.lease_epoch = Epoch(5 + i);
    if (i != 2) proxy.usable_until = kSampleTime + milliseconds(50'000) * (static_cast<int>(i) - 1);
    // One millisecond before store_now: minus one relative to it, where "no end" must not appear.
    if (i != 0)
      proxy.expires_at = i == 1 ? kSampleTime - milliseconds(1) : kSampleTime + seconds(9);
    proxy.attributes = {"DE", i == 0 ? "" : "bavaria", "berlin", "carrier"};
    proxy.tags = {{"rack", "r" + std::to_string(i)}, {"tier", "1"}};
    snapshot.proxies.push_back(std::move(proxy));
  }
  return snapshot;
}

inline ports::FullPush sample_full_push() {
  ports::FullPush push;
  push.snapshot = std::make_shared<domain::WorkerSnapshot>(sample_snapshot());
  push.digest = sample_digest();
  push.store_now = kSampleTime;
  push.valid_for = milliseconds(60'000);
  push.report_sequence = 17;
  return push;
}

inline ports::ExtendPush sample_extend_push() {
  return {{9, 43}, Epoch(8), kSampleTime, milliseconds(55'000), 18, {ProxyId(1), ProxyId(2)}};
}

// `count` proxies with `credentials` distinct credentials, as vendors give them: lives of up to an
// hour, five upstreams, a country and a city each. The same for the same arguments.
inline std::shared_ptr<const domain::WorkerSnapshot> large_snapshot(std::size_t count,
                                                                    std::size_t credentials) {
  SplitMix64 random(count * 31 + credentials);
  auto snapshot = std::make_shared<domain::WorkerSnapshot>();
  snapshot->version = {random.next(), 1};
  snapshot->epoch = Epoch(250'000);
  for (int i = 0; i < 5; ++i) {
    snapshot->upstreams.push_back({UpstreamId("vendor-" + std::to_string(i)), true});
  }
  snapshot->routings = {sample_routing("default")};
  for (std::size_t i = 0; i < credentials; ++i) {
    snapshot->credentials.push_back({"customer-" + to_hex(random.next()),
                                     SecretString(to_hex(random.next())),
                                     domain::CredentialVersion(to_hex(random.next()) + "012345")});
  }
  snapshot->proxies.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    domain::SnapshotProxy proxy;
    proxy.id = ProxyId(random.next());
    proxy.upstream = snapshot->upstreams[random.below(5)].id;
    const auto address = static_cast<std::uint32_t>(random.next() >> 32U);
    proxy.endpoint = {domain::Scheme::Http, IpAddress::v4(address).str(),
                      static_cast<std::uint16_t>(1024 + random.below(64'000))};
    proxy.credential =
        static_cast<std::uint32_t>(1 + (credentials < count ? random.below(credentials) : i));
    proxy.max_concurrency = 10;
    proxy.lease_epoch = Epoch(200'000 + random.below(50'000));
    const auto life = milliseconds(random.below(3'600'000));
    proxy.expires_at = kSampleTime + life;
    proxy.usable_until = *proxy.expires_at - seconds(10);
    proxy.attributes.country = std::string(1, static_cast<char>('A' + random.below(26))) + "X";
    proxy.attributes.city = "city-" + std::to_string(random.below(2'000));
    snapshot->proxies.push_back(std::move(proxy));
  }
  return snapshot;
}

}  // namespace proxypool::test
