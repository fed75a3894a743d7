#include "gateway/transport/race.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/transport/dial_error.hpp"
#include "proxypool/base/assert.hpp"

namespace proxypool::gateway {

// The race may be over, and this object gone, when the user returns.
void Race::Runner::on_upstream(std::uint32_t events) {
  answered = answered || (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0;
  race.user_.on_upstream(0);
}

Race::Race(UpstreamPool& pool, const UpstreamKey& key, UpstreamUser& user, const Dial& dial,
           std::vector<IpAddress> addresses, std::uint16_t port, TimePoint ends_at)
    : pool_(pool),
      key_(key),
      user_(user),
      dial_(dial),
      order_(std::move(addresses)),
      port_(port),
      ends_at_(ends_at) {}

Race::~Race() {
  for (Runner& runner : runners_) {
    if (runner.wire != nullptr) pool_.discard(*runner.wire, true);
  }
}

Race::State Race::step(TimePoint now) {
  for (Runner& runner : runners_) {
    if (runner.wire == nullptr || !std::exchange(runner.answered, false)) continue;
    const int error = net::take_socket_error(runner.wire->fd());
    if (error == 0) {
      winner_ = &runner;
      return State::Won;
    }
    pool_.discard(*std::exchange(runner.wire, nullptr));
    failed(error);
  }
  while (const auto address = order_.next(now)) {
    if (start(*address)) return State::Won;
  }
  return order_.lost() ? State::Lost : State::Runs;
}

TimePoint Race::due() const noexcept {
  return std::min(order_.due(), ends_at_);
}

// Whether it has won already.
bool Race::start(const IpAddress& address) {
  net::Connecting connecting = dial_({address, port_});
  if (!connecting.fd) {
    failed(connecting.error);
    return false;
  }
  Runner& runner = runners_.emplace_back(*this, address);
  runner.wire = pool_.make(key_, runner);
  runner.wire->open(std::move(connecting.fd), false);
  if (!runner.wire->watch(true)) {
    const int error = errno;
    pool_.discard(*std::exchange(runner.wire, nullptr));
    failed(error);
    return false;
  }
  if (connecting.error != 0) return false;
  winner_ = &runner;
  return true;
}

void Race::failed(int error) noexcept {
  order_.failed();
  if (error_ == 0 || !ours(error)) error_ = error;
}

Upstream& Race::take(UpstreamUser& user) noexcept {
  PP_ASSERT(winner_ != nullptr);
  Upstream& wire = *std::exchange(winner_->wire, nullptr);
  pool_.pass_on(wire, user);
  return wire;
}

}  // namespace proxypool::gateway
