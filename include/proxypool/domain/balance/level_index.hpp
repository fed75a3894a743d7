// Bitmaps that find a member with the lowest level in a handful of loads, at any size.
//
// Each level has a bitmap over the members, with two summaries: a bit of `middle` says that a word
// of 64 members has somebody, a bit of `top` that a word of `middle` has. One more summary says
// which levels have anybody. A search goes down these four steps from a random place.
//
// All changes are single atomic operations. A word that goes empty is swept from its summary, and
// whoever sweeps looks again and puts the bit back if the word was filled meanwhile. So a member
// that is set is always found once all writers are done; a summary bit may be left over nothing
// (two sweeps that meet), and the search that runs into it sweeps it. While others move members a
// search can miss one: it answers with what it saw, and its caller decides whether to look again.
//
// Thread rule: set, clear, search, contains: any thread, without a lock. open_level, grow: one
//              thread at a time (the owner), before any thread sets a member there.
// Limits:      256 levels, 262,144 members. An open level costs 0.6 KiB and one bit a member.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/domain/balance/segmented.hpp"

namespace proxypool::domain {

class LevelIndex {
 public:
  static constexpr unsigned kLevels = 256;
  static constexpr unsigned kMembersLog = 18;

  // The owner's -----------------------------------------------------------------------------------

  // Room for members below `members` in every open level.
  void grow(std::uint32_t members) {
    members_ = members;
    for (auto& level : owned_) {
      if (level) level->words.grow((members + 63) / 64);
    }
    size_.store(members, std::memory_order_release);
  }
  // Lets members be set at `level`. Nothing happens if it is open already.
  void open_level(unsigned level) {
    if (owned_[level]) return;
    owned_[level] = std::make_unique<Level>();
    owned_[level]->words.grow((members_ + 63) / 64);
    levels_[level].store(owned_[level].get(), std::memory_order_release);
  }

  // Any thread's ----------------------------------------------------------------------------------

  void set(unsigned level, std::uint32_t member) noexcept {
    Level& at = *levels_[level].load(std::memory_order_acquire);
    at.words[member / 64].fetch_or(bit(member % 64));
    mark_word(at, level, member / 64);
  }
  void clear(unsigned level, std::uint32_t member) noexcept {
    Level& at = *levels_[level].load(std::memory_order_acquire);
    const std::uint64_t gone = bit(member % 64);
    if (at.words[member / 64].fetch_and(~gone) == gone) sweep_word(at, level, member / 64);
  }
  [[nodiscard]] bool contains(unsigned level, std::uint32_t member) const noexcept {
    const Level* at = levels_[level].load(std::memory_order_acquire);
    return at != nullptr && (at->words[member / 64].load() & bit(member % 64)) != 0;
  }

  // Offers the members of the levels [first, end), lowest level first, from a random place in each:
  // visit(level, member) → true ends the search. Members outside `mask` (one bit a member) are not
  // offered. Returns whether a visit said true.
  template <class Visit>
  bool search(unsigned first, unsigned end, std::span<const std::uint64_t> mask, Random& random,
              Visit&& visit) noexcept {
    const std::uint32_t size = size_.load(std::memory_order_acquire);
    if (size == 0) return false;
    for (unsigned group = first / 64; group * 64 < end; ++group) {
      std::uint64_t levels = occupied_[group].load() & between(first, end, group * 64);
      for (; levels != 0; levels &= levels - 1) {
        const unsigned level = group * 64 + static_cast<unsigned>(std::countr_zero(levels));
        const auto start = static_cast<std::uint32_t>(random.below(size));
        if (search_level(level, start, mask, visit)) return true;
      }
    }
    return false;
  }
  // Calls f(member) for the members of one level; true ends it.
  template <class F>
  void for_each(unsigned level, F&& f) noexcept {
    const Level* at = levels_[level].load(std::memory_order_acquire);
    if (at == nullptr) return;
    each_from(at->top.load(), 0, [&](std::uint32_t k) {
      return each_from(at->middle[k].load(), 0, [&](std::uint32_t j) {
        const std::uint32_t word = k * 64 + j;
        return each_from(at->words[word].load(), 0,
                         [&](std::uint32_t i) { return f(word * 64 + i); });
      });
    });
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  struct Level {
    alignas(64) Word top{0};
    std::array<Word, 64> middle{};
    Segmented<Word, 4, kMembersLog - 6> words;
  };

  static constexpr std::uint64_t bit(std::uint32_t i) noexcept { return std::uint64_t{1} << i; }
  // The bits of the levels [first, end) in the summary word that begins at level `base`.
  static constexpr std::uint64_t between(unsigned first, unsigned end, unsigned base) noexcept {
    const std::uint64_t from =
        first > base ? ~std::uint64_t{0} << (first - base) : ~std::uint64_t{0};
    return end - base >= 64 ? from : from & (bit(end - base) - 1);
  }
  // Calls f(i) for each set bit, from `start` on and round; true ends it.
  template <class F>
  static bool each_from(std::uint64_t bits, std::uint32_t start, F&& f) noexcept {
    bits = std::rotr(bits, static_cast<int>(start));
    for (; bits != 0; bits &= bits - 1) {
      if (f((static_cast<std::uint32_t>(std::countr_zero(bits)) + start) & 63U)) return true;
    }
    return false;
  }

  template <class Visit>
  bool search_level(unsigned level, std::uint32_t start, std::span<const std::uint64_t> mask,
                    Visit&& visit) noexcept {
    Level& at = *levels_[level].load(std::memory_order_acquire);
    const std::uint64_t top = at.top.load();
    if (top == 0) sweep_level(at, level);
    return each_from(top, start >> 12U, [&](std::uint32_t k) {
      const std::uint64_t middle = at.middle[k].load();
      if (middle == 0) sweep_middle(at, level, k);
      return each_from(middle, start >> 6U & 63U, [&](std::uint32_t j) {
        const std::uint32_t word = k * 64 + j;
        const std::uint64_t members = at.words[word].load();
        if (members == 0) sweep_word(at, level, word);
        const std::uint64_t wanted = word < mask.size() ? members & mask[word] : 0;
        return each_from(wanted, start & 63U,
                         [&](std::uint32_t i) { return visit(level, word * 64 + i); });
      });
    });
  }

  // A word has a member: says so upwards wherever it is not said. Every writer looks, not just the
  // first one, so that nobody's member hides behind a first one that was interrupted.
  void mark_word(Level& at, unsigned level, std::uint32_t word) noexcept {
    mark(at.middle[word / 64], bit(word % 64));
    mark_middle(at, level, word / 64);
  }
  void mark_middle(Level& at, unsigned level, std::uint32_t k) noexcept {
    mark(at.top, bit(k));
    mark(occupied_[level / 64], bit(level % 64));
  }
  static void mark(Word& word, std::uint64_t wanted) noexcept {
    if ((word.load() & wanted) == 0) word.fetch_or(wanted);
  }
  // A word was seen empty: takes its summary bit away, then looks again.
  void sweep_word(Level& at, unsigned level, std::uint32_t word) noexcept {
    const std::uint64_t gone = bit(word % 64);
    const std::uint64_t before = at.middle[word / 64].fetch_and(~gone);
    if (at.words[word].load() != 0) {
      mark_word(at, level, word);
    } else if (before == gone) {
      sweep_middle(at, level, word / 64);
    }
  }
  void sweep_middle(Level& at, unsigned level, std::uint32_t k) noexcept {
    const std::uint64_t before = at.top.fetch_and(~bit(k));
    if (at.middle[k].load() != 0) {
      mark_middle(at, level, k);
    } else if (before == bit(k)) {
      sweep_level(at, level);
    }
  }
  void sweep_level(Level& at, unsigned level) noexcept {
    occupied_[level / 64].fetch_and(~bit(level % 64));
    if (at.top.load() != 0) occupied_[level / 64].fetch_or(bit(level % 64));
  }

  alignas(64) std::array<Word, kLevels / 64> occupied_{};
  std::array<std::atomic<Level*>, kLevels> levels_{};
  std::atomic<std::uint32_t> size_{0};
  std::array<std::unique_ptr<Level>, kLevels> owned_;  // the owner's
  std::uint32_t members_ = 0;                          // the owner's
};

}  // namespace proxypool::domain
