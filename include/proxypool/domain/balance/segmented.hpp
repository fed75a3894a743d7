// An array that grows without moving its elements.
//
// Segment 0 holds the first 2^First elements, each further one as many as all before it. What was
// once reached by index stays where it is, so that serving threads go on while the owner grows it.
//
// Thread rule: grow: one thread at a time (the owner). operator[]: any thread, for an index that
//              reached it after the growth (the publishing load carries the memory).
// Limits:      2^Max elements.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "proxypool/base/assert.hpp"

namespace proxypool::domain {

template <class T, unsigned First, unsigned Max>
class Segmented {
 public:
  static constexpr std::uint32_t kMax = std::uint32_t{1} << Max;

  Segmented() = default;
  Segmented(const Segmented&) = delete;
  Segmented& operator=(const Segmented&) = delete;
  ~Segmented() {
    for (auto& segment : segments_) delete[] segment.load(std::memory_order_relaxed);
  }

  // Makes room for at least `size` elements, value-initialised. REQUIRES: size ≤ kMax.
  void grow(std::uint32_t size) {
    PP_ASSERT(size <= kMax);
    while (room_ < size) {
      const std::uint32_t more = room_ == 0 ? kFirst : room_;
      segments_[used_++].store(new T[more](), std::memory_order_release);
      room_ += more;
    }
  }
  // REQUIRES: i < a size that grow() was given.
  [[nodiscard]] T& operator[](std::uint32_t i) const noexcept {
    const auto segment = static_cast<unsigned>(std::bit_width(i >> First));
    const std::uint32_t before = segment == 0 ? 0 : kFirst << (segment - 1);
    return segments_[segment].load(std::memory_order_acquire)[i - before];
  }

 private:
  static constexpr std::uint32_t kFirst = std::uint32_t{1} << First;

  std::array<std::atomic<T*>, Max - First + 1> segments_{};
  std::uint32_t room_ = 0;  // the owner's
  unsigned used_ = 0;       // the owner's
};

}  // namespace proxypool::domain
