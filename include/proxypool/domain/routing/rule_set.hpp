// A set of rule numbers, made for one question: which is the first rule that is in all these sets?
//
// A bitmap with a summary: one bit of the summary stands for 64 rules. The question ANDs the
// summaries first and looks into words only where all have something, so that 4,096 rules cost
// little more than 64.
//
// Thread rule: one thread while it is filled, then immutable.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace proxypool::domain {

class RuleSet {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  explicit RuleSet(std::size_t rules = 0)
      : words_((rules + 63) / 64), summary_((words_.size() + 63) / 64) {}

  // REQUIRES: rule < the number of rules given to the constructor.
  void add(std::uint32_t rule) noexcept {
    words_[rule / 64] |= bit(rule % 64);
    summary_[rule / 4096] |= bit(rule / 64 % 64);
  }
  // REQUIRES: the same number of rules.
  void unite(const RuleSet& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    for (std::size_t i = 0; i < summary_.size(); ++i) summary_[i] |= other.summary_[i];
  }
  [[nodiscard]] bool contains(std::uint32_t rule) const noexcept {
    return rule / 64 < words_.size() && (words_[rule / 64] >> (rule % 64) & 1U) != 0;
  }
  friend bool operator==(const RuleSet&, const RuleSet&) = default;

  // The smallest rule that all sets hold, or kNone. REQUIRES: at least one set; all for the same
  // number of rules.
  [[nodiscard]] static std::uint32_t first_common(std::span<const RuleSet* const> sets) noexcept {
    for (std::size_t s = 0; s < sets[0]->summary_.size(); ++s) {
      std::uint64_t candidates = ~std::uint64_t{0};
      for (const RuleSet* set : sets) candidates &= set->summary_[s];
      for (; candidates != 0; candidates &= candidates - 1) {
        const auto w = s * 64 + static_cast<std::size_t>(std::countr_zero(candidates));
        std::uint64_t common = ~std::uint64_t{0};
        for (const RuleSet* set : sets) common &= set->words_[w];
        if (common != 0) {
          return static_cast<std::uint32_t>(w * 64 +
                                            static_cast<std::size_t>(std::countr_zero(common)));
        }
      }
    }
    return kNone;
  }

 private:
  static constexpr std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << i; }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> summary_;
};

}  // namespace proxypool::domain
