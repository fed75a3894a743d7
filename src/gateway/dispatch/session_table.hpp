// Which proxy serves which session of a client. (GW-34, ruling R4)
//
// One table for the process, since connections of one session land on any thread. It is cut into
// shards with a lock each, held for a look-up or a change of a few pointers (0.1 µs); requests
// without a session never come here. A binding names a proxy by its id and its place in the
// registry, so it lives through any number of snapshots, and is good only as long as the view that
// asks has that proxy in that place.
//
// A binding begins when a proxy is chosen, so that the first requests of a session, sent at once,
// meet at one proxy. It is confirmed when that proxy has answered one of them: only then there is
// something to lose.
//
// Thread rule: any thread.
// Limits:      sessions_max, in equal parts for the shards; the session of a shard that was not
//              used for the longest time makes room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gateway/dispatch/registry.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/hash.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::gateway {

// Views: good for as long as their owner.
struct SessionKey {
  std::uint64_t client = 0;  // a tag of its name; 0: nobody
  const RoutingRuntime* routing = nullptr;
  std::string_view name;
  friend bool operator==(const SessionKey&, const SessionKey&) = default;
};

// Where a proxy is.
struct Binding {
  ProxyId proxy;
  UpstreamRuntime* upstream = nullptr;
  std::uint32_t member = 0;
  friend bool operator==(const Binding&, const Binding&) = default;
};

// `seed`: nobody outside may know it, or he could crowd one place.
struct SessionHash {
  std::uint64_t seed = 0;
  std::size_t operator()(const SessionKey& key) const noexcept {
    std::uint64_t h = seed;
    for (const char c : key.name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    return mix64(h ^ mix64(key.client ^ reinterpret_cast<std::uintptr_t>(key.routing)));
  }
};

class SessionTable {
 public:
  SessionTable(std::size_t sessions_max, std::uint64_t seed);

  struct Life {
    nanoseconds idle{0};  // since its last use
    nanoseconds age{0};   // since its beginning; 0: any
  };
  struct Found {
    Binding binding;
    bool confirmed = false;
  };
  // The binding of a session that is not over yet; this is a use.
  [[nodiscard]] std::optional<Found> find(const SessionKey& key, const Life& life, TimePoint now);
  // Binds a session that is not bound; the binding that stands then, which may be another's.
  Found bind(const SessionKey& key, const Binding& binding, TimePoint now, nanoseconds idle);
  // The proxy has served the session.
  void confirm(const SessionKey& key, ProxyId proxy);
  // Another use ends.
  void touch(const SessionKey& key, ProxyId proxy, TimePoint now);
  // Unbinds a session from this proxy, and from no other; whether it was bound and confirmed.
  bool drop(const SessionKey& key, ProxyId proxy);

  struct Numbers {
    std::uint64_t sessions = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evictions = 0;
  };
  [[nodiscard]] Numbers numbers() const;

 private:
  static constexpr std::size_t kShardsMax = 64;
  static constexpr std::size_t kShardLeast = 64;  // sessions; fewer are not worth a shard
  static constexpr int kSweep = 2;                // dead sessions that each new one clears away

  struct Entry {
    std::uint64_t client;
    const RoutingRuntime* routing;
    std::string name;
    Binding binding;
    TimePoint began;
    TimePoint used;
    nanoseconds idle;
    bool confirmed;
    [[nodiscard]] SessionKey key() const noexcept { return {client, routing, name}; }
  };
  using Entries = std::list<Entry>;  // the last used first
  struct Shard {
    Entries entries;
    std::unordered_map<SessionKey, Entries::iterator, SessionHash> by_key;  // keys: entries
    Numbers numbers;

    Entry* look_up(const SessionKey& key);
    void erase(Entries::iterator entry);
  };

  [[nodiscard]] Guarded<Shard>& shard_of(const SessionKey& key) noexcept {
    return shards_[(hash_(key) >> 40U) % shards_.size()];
  }

  SessionHash hash_;
  std::vector<Guarded<Shard>> shards_;
  std::size_t shard_max_;
};

}  // namespace proxypool::gateway
