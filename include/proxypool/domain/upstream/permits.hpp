// The permits of one upstream: request interval, calls in flight, and the ledger of maxTotal.
//
// A call needs a permit, which reserves what it is expected to bring. Settling replaces the
// reservation by what really came; whatever is uncertain (a failed or lost call, a permit that ran
// out) is booked as expected, and a late true settlement still corrects it. Settling twice changes
// nothing. The book knows no leader: the coordination store fences the callers (CT-11).
//
// Thread rule: one thread at a time (owner: the coordination store).
// Invariant:   total() + reserved() never shrinks but by a settlement or a reset.
// Limits: the last 1024 permits are remembered; a settlement of an older one is Unknown. A call
//         whose expectation would exceed maxTotal gets no permit; one that brings more than it was
//         expected to is booked in full and may exceed it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "proxypool/base/time.hpp"

namespace proxypool::domain {

struct PermitLimits {
  milliseconds request_interval{0};
  std::uint32_t in_flight_max = 1;
  std::optional<std::uint64_t> total_max;  // proxies since the operator's last reset (C11)
  milliseconds permit_ttl{120'000};        // longer than any call may take
};

enum class PermitRefusal : std::uint8_t { None, Interval, InFlight, Total };

struct PermitAnswer {
  PermitRefusal refusal = PermitRefusal::None;
  std::uint64_t permit = 0;               // 0: refused
  std::optional<StoreTime> ask_again_at;  // Interval and InFlight: not before
};

enum class SettleVerdict : std::uint8_t { Settled, Repeated, Unknown };

class PermitBook {
 public:
  static constexpr std::size_t kRemembered = 1024;

  // Reserves `expected` proxies for one call.
  PermitAnswer acquire(const PermitLimits& limits, std::uint64_t expected, StoreTime now) {
    expire(now);
    PermitAnswer answer;
    if (limits.total_max && total_ + reserved_ + expected > *limits.total_max) {
      answer.refusal = PermitRefusal::Total;
    } else if (in_flight_ >= limits.in_flight_max) {
      answer.refusal = PermitRefusal::InFlight;
      answer.ask_again_at = first_expiry();
    } else if (last_start_ && now < *last_start_ + limits.request_interval) {
      answer.refusal = PermitRefusal::Interval;
      answer.ask_again_at = *last_start_ + limits.request_interval;
    } else {
      answer.permit = ++last_permit_;
      permits_.push_back({answer.permit, expected, now + limits.permit_ttl, State::Open});
      reserved_ += expected;
      ++in_flight_;
      last_start_ = now;
      forget_old();
    }
    return answer;
  }

  // `delivered` is the number of valid proxies; none: the call's effect is uncertain.
  SettleVerdict settle(std::uint64_t permit, std::optional<std::uint64_t> delivered) {
    const auto found = std::find_if(permits_.begin(), permits_.end(),
                                    [&](const Permit& p) { return p.id == permit; });
    if (found == permits_.end()) return SettleVerdict::Unknown;
    if (found->state == State::Settled) return SettleVerdict::Repeated;
    if (found->state == State::Open) {
      close(*found);
    } else if (!delivered) {
      return SettleVerdict::Repeated;  // booked conservatively already
    }
    if (delivered) {
      total_ = total_ - std::min(total_, found->amount) + *delivered;
      found->state = State::Settled;
    }
    return SettleVerdict::Settled;
  }

  // Books permits that ran out as if everything expected had come.
  void expire(StoreTime now) {
    for (Permit& permit : permits_) {
      if (permit.state == State::Open && now >= permit.until) close(permit);
    }
  }

  // The durable number after a lost store: the larger one counts (C11).
  void raise_total(std::uint64_t total) noexcept { total_ = std::max(total_, total); }

  // The operator's :reset. What is in flight counts towards the new total.
  void reset_total() noexcept {
    total_ = 0;
    for (Permit& permit : permits_) {
      if (permit.state == State::Booked) permit.state = State::Settled;  // of the old count
    }
  }

  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved_; }
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }
  // What may still be reserved; none: no limit.
  [[nodiscard]] std::optional<std::uint64_t> total_left(const PermitLimits& limits) const noexcept {
    if (!limits.total_max) return std::nullopt;
    return *limits.total_max - std::min(*limits.total_max, total_ + reserved_);
  }

 private:
  enum class State : std::uint8_t { Open, Booked, Settled };
  struct Permit {
    std::uint64_t id;
    std::uint64_t amount;  // expected
    StoreTime until;
    State state;
  };

  void close(Permit& permit) {
    permit.state = State::Booked;
    reserved_ -= permit.amount;
    total_ += permit.amount;
    --in_flight_;
  }
  [[nodiscard]] std::optional<StoreTime> first_expiry() const {
    std::optional<StoreTime> first;
    for (const Permit& permit : permits_) {
      if (permit.state == State::Open && (!first || permit.until < *first)) first = permit.until;
    }
    return first;
  }
  void forget_old() {
    while (permits_.size() > kRemembered && permits_.front().state != State::Open) {
      permits_.pop_front();
    }
  }

  std::deque<Permit> permits_;
  std::uint64_t last_permit_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint32_t in_flight_ = 0;
  std::optional<StoreTime> last_start_;
};

}  // namespace proxypool::domain
