// The digest of a snapshot: do both ends hold the same picture? (CP-3)
//
// Each entry is encoded canonically and hashed on its own; the digest is the sum of the hashes
// modulo 2^256. So the order of entries does not matter, and an entry that comes or goes is added
// or taken away without looking at the rest: a delta is verified in the size of the change. It
// tells mistakes and damage, not forgery; the channel is authenticated.
//
// The encoding, version 1. An entry is the byte 1 (the version), a byte for its section, and its
// fields in the order in which snapshot.hpp has them:
//   integers, enumerations, booleans   8 bytes, most significant first
//   times                              milliseconds since 1970, as integers
//   text and bytes                     their length as an integer, then the bytes
//   a list                             its length as an integer, then its elements
//   tags                               as a list of key and value, ordered by key
//   an optional                        0, or 1 and the value
//   an address range                   as text
// A routing's entry begins with its place in the order, since the first match wins. A proxy's
// credential is encoded as user name and version, not as the number, which says nothing by itself.
// The header (version, epoch, intentional_loss) is not part of the digest: it travels beside it.
//
// Thread rule: one thread at a time; plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "proxypool/domain/cluster/snapshot.hpp"

namespace proxypool::domain {

// Builds one entry's encoding.
class CanonicalWriter {
 public:
  enum class Section : std::uint8_t {
    Upstream = 1,
    Routing = 2,
    Client = 3,
    Policy = 4,
    Credential = 5,
    Proxy = 6,
  };

  // Starts a new entry; the memory of the one before is used again.
  void begin(Section section) {
    bytes_.clear();
    bytes_ += char{1};
    bytes_ += static_cast<char>(section);
  }
  void number(std::uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes_ += static_cast<char>(value >> shift & 0xffU);
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  template <class List, class Each>
  void list(const List& values, Each&& each) {
    number(values.size());
    for (const auto& value : values) each(value);
  }
  void texts(const std::vector<std::string>& values) {
    list(values, [&](const std::string& value) { text(value); });
  }
  void tags(const Tags& values) {
    list(values, [&](const auto& tag) {
      text(tag.first);
      text(tag.second);
    });
  }
  void time(const std::optional<StoreTime>& value) {
    number(value ? 1 : 0);
    if (value) number(static_cast<std::uint64_t>(value->time_since_epoch().count()));
  }
  void ranges(const std::vector<Cidr>& values) {
    list(values, [&](const Cidr& value) { text(value.str()); });
  }
  template <class Enum>
  void choice(Enum value) {
    number(static_cast<std::uint64_t>(value));
  }
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

inline void encode(CanonicalWriter& out, const SnapshotUpstream& upstream) {
  out.begin(CanonicalWriter::Section::Upstream);
  out.text(upstream.id.str());
  out.number(upstream.enabled ? 1 : 0);
}

inline void encode(CanonicalWriter& out, const RoutingMatch& match) {
  out.texts(match.hosts);
  out.texts(match.host_regex);
  out.list(match.ports, [&](std::uint16_t port) { out.number(port); });
  out.list(match.kinds, [&](RequestKind kind) { out.choice(kind); });
  out.texts(match.methods);
  out.texts(match.path_prefixes);
  out.texts(match.clients);
  out.tags(match.tags);
}

inline void encode(CanonicalWriter& out, const SnapshotRouting& routing, std::uint64_t place) {
  out.begin(CanonicalWriter::Section::Routing);
  out.number(place);
  out.text(routing.id.str());
  out.number(routing.enabled ? 1 : 0);
  encode(out, routing.match);
  out.choice(routing.strategy);
  out.choice(routing.balancer);
  out.list(routing.upstreams, [&](const RoutingUpstream& upstream) {
    out.text(upstream.id.str());
    out.number(upstream.weight);
  });
  out.number(routing.current ? 1 : 0);
  if (routing.current) out.text(routing.current->str());
  out.choice(routing.on_unavailable);
  out.number(static_cast<std::uint64_t>(routing.wait_timeout.count()));
  out.number(routing.waiters_max);
  out.number(routing.attempts_max);
  out.number(routing.in_flight_max);
}

inline void encode(CanonicalWriter& out, const SnapshotClient& client) {
  out.begin(CanonicalWriter::Section::Client);
  out.text(client.name.str());
  out.texts(client.groups);
  out.text(client.gateway_secret);
  out.number(client.rate_per_second);
  out.number(client.burst);
  out.number(client.in_flight_max);
  out.ranges(client.sources);
}

inline void encode(CanonicalWriter& out, const SnapshotPolicy& policy) {
  out.begin(CanonicalWriter::Section::Policy);
  out.choice(policy.use_suspect);
  out.number(policy.unsafe_before_send ? 1 : 0);
  out.ranges(policy.deny_cidrs);
  out.ranges(policy.allow_cidrs);
  out.texts(policy.deny_hosts);
  out.list(policy.allow_ports, [&](std::uint16_t port) { out.number(port); });
  out.number(policy.username_parameters ? 1 : 0);
  out.text(policy.session_header);
  out.number(static_cast<std::uint64_t>(policy.session_idle.count()));
  out.number(policy.resolve_before_proxy ? 1 : 0);
}

inline void encode(CanonicalWriter& out, const SnapshotCredential& credential) {
  out.begin(CanonicalWriter::Section::Credential);
  out.text(credential.username);
  out.text(credential.password.reveal());
  out.text(credential.version.str());
}

// `credential`: the one that the proxy refers to, null for none.
inline void encode(CanonicalWriter& out, const SnapshotProxy& proxy,
                   const SnapshotCredential* credential) {
  out.begin(CanonicalWriter::Section::Proxy);
  out.number(proxy.id.value());
  out.text(proxy.upstream.str());
  out.choice(proxy.endpoint.scheme);
  out.text(proxy.endpoint.host);
  out.number(proxy.endpoint.port);
  out.number(credential != nullptr ? 1 : 0);
  if (credential != nullptr) {
    out.text(credential->username);
    out.text(credential->version.str());
  }
  out.number(proxy.max_concurrency);
  out.number(proxy.suspect ? 1 : 0);
  out.number(proxy.lease_epoch.value());
  out.time(proxy.usable_until);
  out.time(proxy.expires_at);
  out.text(proxy.attributes.country);
  out.text(proxy.attributes.region);
  out.text(proxy.attributes.city);
  out.text(proxy.attributes.carrier);
  out.tags(proxy.tags);
}

// The running sum. Sha256: a callable, string_view → array of 32 bytes.
template <class Sha256>
class DigestSum {
 public:
  explicit DigestSum(Sha256 sha256, const SnapshotDigest& start = {})
      : sha256_(std::move(sha256)), sum_(start) {}

  // An entry comes: add(upstream), add(routing, place), add(proxy, credential) and so on.
  template <class... Entry>
  void add(const Entry&... entry) {
    encode(writer_, entry...);
    sum_ = plus(sum_, sha256_(writer_.bytes()));
  }
  // An entry goes: exactly what was added.
  template <class... Entry>
  void remove(const Entry&... entry) {
    encode(writer_, entry...);
    sum_ = minus(sum_, sha256_(writer_.bytes()));
  }
  [[nodiscard]] const SnapshotDigest& value() const noexcept { return sum_; }

 private:
  // Byte 0 is the most significant one.
  static SnapshotDigest plus(const SnapshotDigest& a, const SnapshotDigest& b) noexcept {
    SnapshotDigest out;
    unsigned carry = 0;
    for (std::size_t i = out.size(); i-- > 0;) {
      carry += static_cast<unsigned>(a[i]) + b[i];
      out[i] = static_cast<std::uint8_t>(carry);
      carry >>= 8U;
    }
    return out;
  }
  static SnapshotDigest minus(const SnapshotDigest& a, const SnapshotDigest& b) noexcept {
    SnapshotDigest complement;
    for (std::size_t i = 0; i < b.size(); ++i) complement[i] = static_cast<std::uint8_t>(~b[i]);
    SnapshotDigest one{};
    one.back() = 1;
    return plus(plus(a, complement), one);
  }

  Sha256 sha256_;
  SnapshotDigest sum_;
  CanonicalWriter writer_;
};

// What a proxy refers to, null for none or for a reference that leads nowhere (validate.hpp).
inline const SnapshotCredential* credential_of(const WorkerSnapshot& snapshot,
                                               const SnapshotProxy& proxy) noexcept {
  if (proxy.credential == 0 || proxy.credential > snapshot.credentials.size()) return nullptr;
  return &snapshot.credentials[proxy.credential - 1];
}

// The digest of a whole snapshot.
template <class Sha256>
SnapshotDigest digest_of(const WorkerSnapshot& snapshot, Sha256 sha256) {
  DigestSum<Sha256> sum(std::move(sha256));
  for (const auto& upstream : snapshot.upstreams) sum.add(upstream);
  for (std::uint64_t place = 0; place < snapshot.routings.size(); ++place) {
    sum.add(snapshot.routings[place], place);
  }
  for (const auto& client : snapshot.clients) sum.add(client);
  sum.add(snapshot.policy);
  for (const auto& credential : snapshot.credentials) sum.add(credential);
  for (const auto& proxy : snapshot.proxies) sum.add(proxy, credential_of(snapshot, proxy));
  return sum.value();
}

}  // namespace proxypool::domain
