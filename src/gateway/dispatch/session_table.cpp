#include "gateway/dispatch/session_table.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace proxypool::gateway {

SessionTable::SessionTable(std::size_t sessions_max, std::uint64_t seed)
    : hash_{mix64(seed)},
      shards_(std::bit_floor(std::clamp(sessions_max / kShardLeast, std::size_t{1}, kShardsMax))),
      shard_max_(std::max<std::size_t>(sessions_max / shards_.size(), 1)) {
  for (auto& guarded : shards_) {
    guarded.with([&](Shard& shard) { shard.by_key = decltype(shard.by_key)(0, hash_); });
  }
}

SessionTable::Entry* SessionTable::Shard::look_up(const SessionKey& key) {
  const auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : &*found->second;
}

void SessionTable::Shard::erase(Entries::iterator entry) {
  by_key.erase(entry->key());
  entries.erase(entry);
}

std::optional<SessionTable::Found> SessionTable::find(const SessionKey& key, const Life& life,
                                                      TimePoint now) {
  return shard_of(key).with([&](Shard& shard) -> std::optional<Found> {
    const auto found = shard.by_key.find(key);
    if (found == shard.by_key.end()) {
      ++shard.numbers.misses;
      return std::nullopt;
    }
    const auto entry = found->second;
    const bool aged = life.age != nanoseconds{0} && now - entry->began >= life.age;
    if (aged || now - entry->used >= life.idle) {
      shard.erase(entry);
      ++shard.numbers.misses;
      return std::nullopt;
    }
    ++shard.numbers.hits;
    entry->used = std::max(entry->used, now);
    entry->idle = life.idle;
    shard.entries.splice(shard.entries.begin(), shard.entries, entry);
    return Found{entry->binding, entry->confirmed};
  });
}

SessionTable::Found SessionTable::bind(const SessionKey& key, const Binding& binding, TimePoint now,
                                       nanoseconds idle) {
  return shard_of(key).with([&](Shard& shard) {
    if (const Entry* known = shard.look_up(key)) return Found{known->binding, known->confirmed};
    for (int i = 0; i < kSweep && !shard.entries.empty(); ++i) {
      const Entry& last = shard.entries.back();
      if (now - last.used < last.idle) break;
      shard.erase(std::prev(shard.entries.end()));
    }
    if (shard.entries.size() >= shard_max_) {
      shard.erase(std::prev(shard.entries.end()));
      ++shard.numbers.evictions;
    }
    shard.entries.push_front(
        {key.client, key.routing, std::string(key.name), binding, now, now, idle, false});
    shard.by_key.emplace(shard.entries.front().key(), shard.entries.begin());
    return Found{binding, false};
  });
}

void SessionTable::confirm(const SessionKey& key, ProxyId proxy) {
  shard_of(key).with([&](Shard& shard) {
    Entry* known = shard.look_up(key);
    if (known != nullptr && known->binding.proxy == proxy) known->confirmed = true;
  });
}

void SessionTable::touch(const SessionKey& key, ProxyId proxy, TimePoint now) {
  shard_of(key).with([&](Shard& shard) {
    const auto found = shard.by_key.find(key);
    if (found == shard.by_key.end() || found->second->binding.proxy != proxy) return;
    found->second->used = std::max(found->second->used, now);
    shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
  });
}

bool SessionTable::drop(const SessionKey& key, ProxyId proxy) {
  return shard_of(key).with([&](Shard& shard) {
    const auto found = shard.by_key.find(key);
    if (found == shard.by_key.end() || found->second->binding.proxy != proxy) return false;
    const bool confirmed = found->second->confirmed;
    shard.erase(found->second);
    return confirmed;
  });
}

SessionTable::Numbers SessionTable::numbers() const {
  Numbers sum;
  for (const auto& guarded : shards_) {
    guarded.with([&](const Shard& shard) {
      sum.sessions += shard.entries.size();
      sum.hits += shard.numbers.hits;
      sum.misses += shard.numbers.misses;
      sum.evictions += shard.numbers.evictions;
    });
  }
  return sum;
}

}  // namespace proxypool::gateway
