// Sockets from which bytes come in bulk: the kernel tells of them when a MiB is there, and not of
// every piece (SO_RCVLOWAT). A thread that wakes for each piece takes it at once, which wakes its
// reader and its writer as often, and all three do little at a time: eight tunnels at full speed
// cost 0.164 s a GB so, 0.135 with this, and HAProxy 0.127 (tests/bench/compare.sh, GW-43).
//
// A flow that stands still for a tick is told of every byte again, so that its last ones wait for
// two ticks at most, and so does one that brings less than a MiB in a tick.
//
// Thread rule: the loop's thread.
// Limits:      kMax flows; others are told of every byte as before.
#pragma once

#include <cstddef>
#include <vector>

#include "net/timer.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::gateway {

// What a socket's owner keeps for the flows; nobody else looks into it.
class BulkFlow {
 private:
  friend class BulkFlows;
  bool listed_ : 1 = false;
  bool stirred_ : 1 = false;  // since the last tick
};

class BulkFlows final : private net::Timer {
 public:
  static constexpr std::size_t kMax = 256;
  static constexpr int kBytes = 1 << 20;
  static constexpr nanoseconds kTick = milliseconds(1);

  explicit BulkFlows(net::TimerQueue& timers) : net::Timer(timers) { flows_.reserve(kMax); }

  // Bytes came in bulk from this socket.
  void moved(BulkFlow& flow, int socket) noexcept;
  // Other bytes came: it is told of every byte.
  void leave(BulkFlow& flow) noexcept;
  // It is about to be closed.
  void forget(BulkFlow& flow) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return flows_.size(); }

 private:
  struct Place {
    BulkFlow* flow;
    int socket;
  };

  void on_timer() override;
  // Takes it out of the list; answers its socket, or -1.
  int take_out(BulkFlow& flow) noexcept;

  std::vector<Place> flows_;
};

}  // namespace proxypool::gateway
