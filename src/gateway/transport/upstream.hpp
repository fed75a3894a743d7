// Connections towards proxies and targets, and the idle ones that a thread keeps for reuse.
//
// A connection is reused only for the same proxy, the same credential, the same client and the same
// session of it (ruling R9): a vendor may bind an exit to a connection, and one client must never
// ride on another's. Without a proxy the target's host and port stand in the proxy's place. An idle
// connection on which anything happens, bytes or an end, is closed at once.
//
// Thread rule: the loop's thread.
// Limits:      the idle connections of one thread; the one that waits longest is closed for a new
//              one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "gateway/transport/slab.hpp"
#include "gateway/transport/wire.hpp"
#include "net/timer.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::gateway {

class UpstreamPool;

// Whose connection it is.
struct UpstreamKey {
  ProxyId proxy;
  std::uint64_t credential = 0;  // a tag of the credential's version
  std::uint64_t client = 0;      // a tag of the client's name; 0: nobody
  std::uint64_t session = 0;     // a tag of the session's name; 0: none
  std::uint64_t target = 0;      // a tag of the target, without a proxy; 0: there is one
  friend bool operator==(const UpstreamKey&, const UpstreamKey&) = default;

  [[nodiscard]] std::size_t hash() const noexcept {
    std::uint64_t h = proxy.value() ^ (credential * 0x9E3779B97F4A7C15U) ^
                      (client * 0xC2B2AE3D27D4EB4FU) ^ (session * 0x165667B19E3779F9U) ^ target;
    h ^= h >> 32U;
    h *= 0xD6E8FEB86659FD93U;
    return h ^ (h >> 32U);
  }
};

// Where a connection without a proxy leads. A tag is no proof: whoever takes an idle one compares.
struct Destination {
  std::string host;  // canonical
  std::uint16_t port = 0;
  IpAddress address;
};

// Who uses a connection that is not idle.
class UpstreamUser {
 public:
  virtual void on_upstream(std::uint32_t events) = 0;

 protected:
  UpstreamUser() = default;
  UpstreamUser(const UpstreamUser&) = default;
  UpstreamUser& operator=(const UpstreamUser&) = default;
  ~UpstreamUser() = default;
};

class Upstream final : public Wire {
 public:
  Upstream(Lane& lane, UpstreamPool& pool, const UpstreamKey& key) noexcept
      : Wire(lane), pool_(pool), key_(key) {}

  [[nodiscard]] const UpstreamKey& key() const noexcept { return key_; }
  // Null: it leads to a proxy, or is never kept.
  [[nodiscard]] const Destination* destination() const noexcept { return destination_.get(); }
  void leads_to(Destination to) {
    destination_ = std::make_unique<const Destination>(std::move(to));
  }

 private:
  friend class UpstreamPool;
  void on_io(std::uint32_t events) override;

  UpstreamPool& pool_;
  UpstreamKey key_;
  std::unique_ptr<const Destination> destination_;
  UpstreamUser* user_ = nullptr;  // null: idle
  TimePoint idle_until_{};
  Upstream* next_in_bucket_ = nullptr;
  Upstream* older_ = nullptr;
  Upstream* newer_ = nullptr;
};

class UpstreamPool {
 public:
  // `idle` shows other threads how many there are.
  UpstreamPool(Lane& lane, std::size_t idle_max, nanoseconds idle_time,
               std::atomic<std::uint32_t>& idle);
  UpstreamPool(const UpstreamPool&) = delete;
  UpstreamPool& operator=(const UpstreamPool&) = delete;
  ~UpstreamPool();

  // A new connection object without a socket, for `user`.
  [[nodiscard]] Upstream* make(const UpstreamKey& key, UpstreamUser& user);
  // An idle connection for `user`, the one used last; null when there is none.
  [[nodiscard]] Upstream* take(const UpstreamKey& key, UpstreamUser& user) noexcept;
  // Another user from now on.
  static void pass_on(Upstream& upstream, UpstreamUser& user) noexcept { upstream.user_ = &user; }
  // Keeps a connection that is clean: nothing read and not used, nothing unsent.
  void give(Upstream& upstream);
  // Ends a connection in use.
  void discard(Upstream& upstream, bool reset = false) noexcept;
  // Ends every idle connection.
  void clear() noexcept;

  [[nodiscard]] std::size_t idle() const noexcept { return idle_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t open() const noexcept { return slab_.in_use(); }

 private:
  friend class Upstream;
  static constexpr std::size_t kBuckets = 4096;

  void on_timer();
  void drop_idle(Upstream& upstream) noexcept;
  void unlink(Upstream& upstream) noexcept;
  void count(std::uint32_t change) noexcept {
    idle_.store(idle_.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
  }

  Lane& lane_;
  const std::size_t idle_max_;
  const nanoseconds idle_time_;
  Slab<Upstream> slab_;
  std::array<Upstream*, kBuckets> buckets_{};
  Upstream* oldest_ = nullptr;
  Upstream* newest_ = nullptr;
  std::atomic<std::uint32_t>& idle_;
  net::MemberTimer<&UpstreamPool::on_timer> timer_;
};

}  // namespace proxypool::gateway
