// What one choice may choose from, as a snapshot sees the members of an upstream.
//
// The counters in Members outlive snapshots; which members a request may have does not. So the
// choice is between the members that its own view names, whatever an older or newer view says.
//
// Of many members, nearly all AVAILABLE, one is drawn by its position and a bit of the mask: that
// has 12 KiB at 100,000 members, where the list has 400, which would drive the members' words out
// of the core's cache.
//
// Thread rule: immutable; spans into the view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "proxypool/base/random.hpp"

namespace proxypool::domain {

struct Candidates {
  std::span<const std::uint32_t> available;  // AVAILABLE members, each once
  std::span<const std::uint64_t> mask;       // one bit a position: AVAILABLE and SUSPECT members

  [[nodiscard]] bool has(std::uint32_t member) const noexcept {
    return (mask[member / 64] >> (member % 64) & 1U) != 0;
  }
  // Any AVAILABLE member, and one time in eight at most a SUSPECT one, which takes no place as
  // AVAILABLE.
  // REQUIRES: available is not empty.
  [[nodiscard]] std::uint32_t draw(Random& random) const noexcept {
    for (int i = 0; i < kDraws && dense(); ++i) {
      const auto member = static_cast<std::uint32_t>(random.below(mask.size() * 64));
      if (has(member)) return member;
    }
    return available[random.below(available.size())];
  }
  // Two of them, different if there are two. REQUIRES: available is not empty.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> draw_two(Random& random) const noexcept {
    for (int i = 0; i < kDraws && dense(); ++i) {
      const auto [first, second] = two_below(mask.size() * 64, random.next());
      if (has(first) && has(second)) return {first, second};
    }
    if (available.size() == 1) return {available[0], available[0]};
    const auto [first, second] = two_below(available.size(), random.next());
    return {available[first], available[second]};
  }

 private:
  static constexpr int kDraws = 16;
  static constexpr std::size_t kMany = 1'024;

  [[nodiscard]] bool dense() const noexcept {
    return available.size() >= kMany && available.size() >= mask.size() * 56;
  }
  // Two different numbers out of one draw; each as likely (the bias is below 2^-13 at 262,144).
  static std::pair<std::uint32_t, std::uint32_t> two_below(std::uint64_t size,
                                                           std::uint64_t draw) noexcept {
    const std::uint64_t first = ((draw >> 32U) * size) >> 32U;
    std::uint64_t second = ((draw & 0xffffffffU) * (size - 1)) >> 32U;
    second += second >= first ? 1 : 0;
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(second)};
  }
};

}  // namespace proxypool::domain
