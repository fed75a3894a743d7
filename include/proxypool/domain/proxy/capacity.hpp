// Capacity counts the requests that one proxy carries on this worker.
//
// A request first reserves a place; the place becomes active once the upstream connection stands.
// Both counts, the limit that they obey and a note of whoever keeps the proxy live in one 64-bit
// word, so that a reader sees four numbers of one instant, and a reservation checks and changes
// them in one compare-and-set: it cannot overshoot, and it cannot slip past a proxy being closed.
//
// The steps are pure functions on the word, so that a keeper can join one with its own change of
// the note (balance/members.hpp does).
//
// Thread rule: any thread may call any method. No method blocks or allocates.
// Invariant:   reserved + active ≤ the limit in force at the moment of every reservation.
// Limits:      65,535 of each kind; a full proxy refuses. A step without its place (a second
//              finish, a commit without a reservation) is counted by PP_BUG_IF and changes nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/limits.hpp"

namespace proxypool::domain {

struct Counts {
  std::uint32_t reserved = 0;
  std::uint32_t active = 0;
  [[nodiscard]] constexpr std::uint32_t total() const noexcept { return reserved + active; }
  friend bool operator==(const Counts&, const Counts&) = default;
};

class Capacity {
 public:
  // The packed word. Shifts, not a struct of four halves: those are stored by halves and loaded as
  // a whole, which stalls the store buffer for 4 ns.
  class Word {
   public:
    constexpr Word() = default;
    constexpr explicit Word(std::uint64_t bits) noexcept : bits_(bits) {}
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr std::uint32_t reserved() const noexcept { return field(0); }
    [[nodiscard]] constexpr std::uint32_t active() const noexcept { return field(16); }
    [[nodiscard]] constexpr std::uint32_t limit() const noexcept { return field(32); }
    [[nodiscard]] constexpr std::uint32_t note() const noexcept { return field(48); }
    [[nodiscard]] constexpr std::uint32_t taken() const noexcept { return reserved() + active(); }

    // Larger limits count as the maximum.
    constexpr void set_limit(std::uint32_t limit) noexcept {
      set(32, std::min(limit, limits::kProxyConcurrencyMax));
    }
    constexpr void set_note(std::uint32_t note) noexcept { set(48, note & 0xffffU); }

    // The steps. Each says whether it was possible and leaves the word alone when it was not.
    [[nodiscard]] constexpr bool reserve() noexcept {
      return taken() < limit() && (bits_ += kOneReserved, true);
    }
    [[nodiscard]] constexpr bool commit() noexcept {
      return reserved() > 0 && (bits_ += kOneActive - kOneReserved, true);
    }
    [[nodiscard]] constexpr bool cancel() noexcept {
      return reserved() > 0 && (bits_ -= kOneReserved, true);
    }
    [[nodiscard]] constexpr bool finish() noexcept {
      return active() > 0 && (bits_ -= kOneActive, true);
    }
    friend bool operator==(const Word&, const Word&) = default;

   private:
    static constexpr std::uint64_t kOneReserved = 1;
    static constexpr std::uint64_t kOneActive = std::uint64_t{1} << 16U;

    [[nodiscard]] constexpr std::uint32_t field(unsigned shift) const noexcept {
      return static_cast<std::uint32_t>(bits_ >> shift) & 0xffffU;
    }
    constexpr void set(unsigned shift, std::uint64_t value) noexcept {
      bits_ = (bits_ & ~(std::uint64_t{0xffff} << shift)) | (value << shift);
    }
    std::uint64_t bits_ = 0;
  };

  Capacity() = default;
  Capacity(const Capacity&) = delete;
  Capacity& operator=(const Capacity&) = delete;

  // How many places there are from now on. Places beyond a smaller limit end by themselves.
  void set_limit(std::uint32_t limit) noexcept {
    (void)update([&](Word& word) { return word.set_limit(limit), true; });
  }
  // Takes one place, unless all are taken.
  [[nodiscard]] bool try_reserve() noexcept {
    return update([](Word& word) { return word.reserve(); });
  }
  // Turns a reserved place into an active one. REQUIRES: the caller holds a reserved place.
  bool commit() noexcept {
    return demand([](Word& word) { return word.commit(); });
  }
  // Gives a reserved place back. REQUIRES: the caller holds a reserved place.
  bool cancel() noexcept {
    return demand([](Word& word) { return word.cancel(); });
  }
  // Gives an active place back. REQUIRES: the caller holds an active place.
  bool finish() noexcept {
    return demand([](Word& word) { return word.finish(); });
  }

  [[nodiscard]] Counts counts() const noexcept {
    const Word word = load();
    return {word.reserved(), word.active()};
  }
  [[nodiscard]] Word load() const noexcept { return Word(bits_.load()); }

  // One compare-and-set. On failure `expected` becomes what is there.
  [[nodiscard]] bool replace(Word& expected, Word desired) noexcept {
    std::uint64_t bits = expected.bits();
    if (bits_.compare_exchange_strong(bits, desired.bits())) return true;
    expected = Word(bits);
    return false;
  }
  // Applies step(Word&) until it stands, or until the step itself says no.
  template <class Step>
  bool update(Step step) noexcept {
    Word before = load();
    for (;;) {
      Word after = before;
      if (!step(after)) return false;
      if (replace(before, after)) return true;
    }
  }

 private:
  template <class Step>
  bool demand(Step step) noexcept {
    return !PP_BUG_IF(!update(step));
  }

  std::atomic<std::uint64_t> bits_{0};
};

}  // namespace proxypool::domain
