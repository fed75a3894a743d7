// How many connections each source has, for the limit of connections per source. (GW-12)
//
// One subscriber's IPv6 network counts as one source. Counted when a connection comes and when it
// goes, never for a request.
//
// Thread rule: any thread.
// Limits:      one entry for each source that has a connection.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/ip.hpp"

namespace proxypool::gateway {

inline IpAddress network_of(const IpAddress& source) noexcept {
  if (source.is_v4()) return source;
  IpAddress::Bytes bytes = source.bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return IpAddress::v6(bytes);
}

class Sources {
 public:
  // `most` from one source; 0: not counted.
  explicit Sources(std::uint32_t most) : most_(most) {}

  // One more connection; false: the source has as many as it may.
  [[nodiscard]] bool enter(const IpAddress& source) {
    if (most_ == 0) return true;
    const IpAddress network = network_of(source);
    return shard(network).with([&](Counts& counts) {
      std::uint32_t& count = counts[network];
      if (count >= most_) return false;
      ++count;
      return true;
    });
  }
  // REQUIRES: entered.
  void leave(const IpAddress& source) {
    if (most_ == 0) return;
    const IpAddress network = network_of(source);
    shard(network).with([&](Counts& counts) {
      const auto found = counts.find(network);
      if (found != counts.end() && --found->second == 0) counts.erase(found);
    });
  }

 private:
  using Counts = std::unordered_map<IpAddress, std::uint32_t>;
  Guarded<Counts>& shard(const IpAddress& network) noexcept {
    return shards_[std::hash<IpAddress>{}(network) % shards_.size()];
  }

  const std::uint32_t most_;
  std::array<Guarded<Counts>, 16> shards_;
};

}  // namespace proxypool::gateway
