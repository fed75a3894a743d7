#include "bench/bench_support.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local std::uint64_t allocated = 0;
}  // namespace

// Not inline: GCC would see malloc() meet the operator delete that it knows, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocated;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocated;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace proxypool::bench {

std::uint64_t allocations() noexcept {
  return allocated;
}

double ns_per_tick() {
  static const double ratio = [] {
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    const auto from = ticks();
    while (Clock::now() - begun < std::chrono::milliseconds(50)) {
    }
    const std::chrono::duration<double, std::nano> passed = Clock::now() - begun;
    return passed.count() / static_cast<double>(ticks() - from);
  }();
  return ratio;
}

}  // namespace proxypool::bench
