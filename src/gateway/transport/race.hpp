// Dialling the addresses of a target until one of them answers: the sockets behind
// domain::AddressRace.
//
// The idea: like everywhere here an event only sets a flag, and tells the user; step() looks at all
// the flags. The addresses were judged by the caller, and nothing but these is dialled: a name that
// changes its meaning meanwhile changes nothing (GW-20).
//
// Thread rule: the loop's thread.
// Invariant:   whoever has not won is closed when the race is destroyed.
// Limits:      a socket for each address: Resolver::kAddressesMax.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "gateway/transport/upstream.hpp"
#include "net/socket.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/traffic/address_race.hpp"

namespace proxypool::gateway {

class Race {
 public:
  // Begins a connection; tests bring their own.
  using Dial = std::function<net::Connecting(const net::Endpoint&)>;
  enum class State : std::uint8_t { Runs, Won, Lost };

  // `user` is told of events until the race is over; `dial` outlives it.
  Race(UpstreamPool& pool, const UpstreamKey& key, UpstreamUser& user, const Dial& dial,
       std::vector<IpAddress> addresses, std::uint16_t port, TimePoint ends_at);
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;
  ~Race();

  // Looks who has answered, and dials whoever's turn it is.
  [[nodiscard]] State step(TimePoint now);
  // When to look again if no event comes.
  [[nodiscard]] TimePoint due() const noexcept;
  [[nodiscard]] TimePoint ends_at() const noexcept { return ends_at_; }

  // The connection that won, which is `user`'s now, and where it leads. REQUIRES: Won.
  [[nodiscard]] Upstream& take(UpstreamUser& user) noexcept;
  [[nodiscard]] const IpAddress& address() const noexcept { return winner_->address; }
  // Why the last one failed, one of this machine's own errors only if there was no other.
  // REQUIRES: Lost.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  struct Runner final : UpstreamUser {
    Runner(Race& r, const IpAddress& a) : race(r), address(a) {}
    void on_upstream(std::uint32_t events) override;

    Race& race;
    IpAddress address;
    Upstream* wire = nullptr;  // null: out of the race
    bool answered = false;
  };

  [[nodiscard]] bool start(const IpAddress& address);
  void failed(int error) noexcept;

  UpstreamPool& pool_;
  const UpstreamKey key_;
  UpstreamUser& user_;
  const Dial& dial_;
  domain::AddressRace order_;
  const std::uint16_t port_;
  const TimePoint ends_at_;
  std::deque<Runner> runners_;
  Runner* winner_ = nullptr;
  int error_ = 0;
};

}  // namespace proxypool::gateway
