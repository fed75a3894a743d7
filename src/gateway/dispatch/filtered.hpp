// Candidates of a routing under a client's filter, made once a view and found without work. (GW-30)
//
// Making a list costs a look at each kind of proxy (proxies alike in country, region, city, carrier
// and tags are one kind) and a copy of those that will do: microseconds, a millisecond at 100,000.
// So lists are kept twice: in the view, under a lock, for every thread, and in each thread, without
// one, for the requests that follow. They die with the view, on the publisher's thread.
//
// Thread rule: FilteredRouting: immutable. FilterCache: one thread at a time. FilterLists: any.
// Limits:      kListsMax lists and kBytesMax bytes in each place; the one that was not asked for
//              the longest time makes room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/hash.hpp"
#include "proxypool/domain/balance/candidates.hpp"
#include "proxypool/domain/routing/proxy_filter.hpp"

namespace proxypool::gateway {

// What a request asks of its proxies. Views: good for as long as the request.
struct Wanted {
  const domain::ProxyFilter* filter = nullptr;
  std::string_view key;        // of the filter; empty: any proxy will do
  std::uint64_t affinity = 0;  // requests with the same one want the same proxy; 0: any
};

struct FilteredRouting {
  // Of one upstream of the routing, in the routing's order.
  struct Part {
    std::vector<std::uint32_t> available;  // slots of AVAILABLE proxies
    std::vector<std::uint64_t> mask;       // slots of all of them
    std::size_t suspects = 0;
    [[nodiscard]] domain::Candidates candidates() const noexcept { return {available, mask}; }
  };
  std::vector<Part> parts;

  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t sum = sizeof *this;
    for (const Part& part : parts) {
      sum += sizeof part + part.available.size() * sizeof(std::uint32_t) +
             part.mask.size() * sizeof(std::uint64_t);
    }
    return sum;
  }
};
using FilteredPointer = std::shared_ptr<const FilteredRouting>;

namespace filtered_detail {

// Lists by routing and filter, the last used first.
class Lru {
 public:
  static constexpr std::size_t kListsMax = 1'024;
  static constexpr std::size_t kBytesMax = std::size_t{32} << 20U;

  // Null when it is not here. Allocates nothing.
  [[nodiscard]] const FilteredRouting* find(std::uint32_t routing, std::string_view key) {
    const auto found = by_key_.find({routing, key});
    if (found == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->list.get();
  }
  [[nodiscard]] FilteredPointer share(std::uint32_t routing, std::string_view key) {
    return find(routing, key) == nullptr ? nullptr : entries_.front().list;
  }
  // REQUIRES: it is not here.
  void put(std::uint32_t routing, std::string_view key, FilteredPointer list) {
    bytes_ += list->bytes();
    entries_.push_front({routing, std::string(key), std::move(list)});
    by_key_.emplace(Key{routing, entries_.front().key}, entries_.begin());
    while (entries_.size() > kListsMax || (bytes_ > kBytesMax && entries_.size() > 1)) {
      const Entry& last = entries_.back();
      bytes_ -= last.list->bytes();
      by_key_.erase({last.routing, last.key});
      entries_.pop_back();
    }
  }
  void clear() noexcept {
    by_key_.clear();
    entries_.clear();
    bytes_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::uint32_t routing;
    std::string key;
    FilteredPointer list;
  };
  struct Key {
    std::uint32_t routing;
    std::string_view key;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<std::string_view>{}(key.key) ^ mix64(key.routing);
    }
  };
  std::list<Entry> entries_;
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> by_key_;  // keys: entries_
  std::size_t bytes_ = 0;
};

}  // namespace filtered_detail

// A view's lists.
class FilterLists {
 public:
  // The list, made by make() → FilteredRouting if nobody has asked for it yet.
  template <class Make>
  [[nodiscard]] FilteredPointer find(std::uint32_t routing, std::string_view key,
                                     Make&& make) const {
    if (auto known = lists_.with([&](auto& lists) { return lists.share(routing, key); })) {
      return known;
    }
    // Outside the lock: others need not wait for it. Two threads may make the same list.
    auto made = std::make_shared<const FilteredRouting>(make());
    return lists_.with([&](auto& lists) {
      if (auto known = lists.share(routing, key)) return known;
      lists.put(routing, key, made);
      return made;
    });
  }

 private:
  mutable Guarded<filtered_detail::Lru> lists_;
};

// A thread's lists of one view.
class FilterCache {
 public:
  // The list in the view `stamp`; fetch() → FilteredPointer only when it is not known here.
  template <class Fetch>
  [[nodiscard]] const FilteredRouting& find(std::uint64_t stamp, std::uint32_t routing,
                                            std::string_view key, Fetch&& fetch) {
    if (stamp != stamp_) {
      lists_.clear();
      stamp_ = stamp;
    }
    if (const FilteredRouting* known = lists_.find(routing, key)) return *known;
    ++misses_;
    FilteredPointer list = fetch();
    const FilteredRouting& out = *list;
    lists_.put(routing, key, std::move(list));
    return out;
  }
  [[nodiscard]] std::uint64_t misses() const noexcept { return misses_; }
  [[nodiscard]] std::size_t size() const noexcept { return lists_.size(); }

 private:
  std::uint64_t stamp_ = 0;
  std::uint64_t misses_ = 0;
  filtered_detail::Lru lists_;
};

}  // namespace proxypool::gateway
