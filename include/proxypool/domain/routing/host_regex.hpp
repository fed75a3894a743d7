// Host patterns of routings as the matcher sees them, and the memory of what they said.
//
// The engine is injected, because the domain knows no technology. Its answer for a host costs
// microseconds and allocates, so that each serving thread remembers the last verdicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxypool/base/result.hpp"
#include "proxypool/domain/routing/rule_set.hpp"

namespace proxypool::domain {

// One pattern and the rule that names it.
struct HostRegex {
  std::string pattern;
  std::uint32_t rule = 0;
};

// All patterns of one configuration, compiled together.
//
// Thread rule: any thread.
class HostRegexSet {
 public:
  virtual ~HostRegexSet() = default;
  // Appends the rules of which a pattern matches the whole of `host`; repeats are allowed.
  virtual void match(std::string_view host, std::vector<std::uint32_t>& rules) const = 0;
};

// Compiles the patterns, or says which one is wrong. Called with at least one pattern.
using HostRegexCompiler =
    std::function<Result<std::unique_ptr<HostRegexSet>>(std::span<const HostRegex>)>;

// For a host that was seen: the rules of which the host field accepts it.
//
// Thread rule: one thread at a time (owner: a serving thread).
// Limits:      kHostsMax hosts; the one that was not asked for the longest time makes room.
class HostVerdicts {
 public:
  static constexpr std::size_t kHostsMax = 1'024;

  // The verdict for `host` in the configuration `stamp`; make(host) → RuleSet only when it is not
  // known. A new stamp forgets everything. No allocation for a known host.
  template <class Make>
  const RuleSet& find(std::uint64_t stamp, std::string_view host, Make&& make) {
    if (stamp != stamp_) {
      by_host_.clear();
      entries_.clear();
      stamp_ = stamp;
    }
    const auto known = by_host_.find(host);
    if (known != by_host_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      return known->second->verdict;
    }
    ++misses_;
    if (entries_.size() >= kHostsMax) {
      by_host_.erase(entries_.back().host);
      entries_.pop_back();
    }
    entries_.push_front(Entry{std::string(host), make(host)});
    by_host_.emplace(entries_.front().host, entries_.begin());
    return entries_.front().verdict;
  }

  [[nodiscard]] std::uint64_t misses() const noexcept { return misses_; }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::string host;
    RuleSet verdict;
  };
  std::uint64_t stamp_ = 0;
  std::uint64_t misses_ = 0;
  std::list<Entry> entries_;  // most recently asked first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_host_;  // keys: entries_
};

}  // namespace proxypool::domain
