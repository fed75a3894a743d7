// Assertions: what must hold, and what must not happen but can be survived.
//
// PP_ASSERT stops the program in every build; it states a fact about our own code and is never used
// on input. PP_BUG_IF counts a wrong state that a live request can survive, and goes on; tests
// fail when bugs_counted() moved.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace proxypool {

[[noreturn]] inline void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

namespace detail {
inline std::atomic<std::uint64_t> bug_count{0};
}

// How many PP_BUG_IF conditions were met since the start; exported as proxypool_bugs_total.
inline std::uint64_t bugs_counted() noexcept {
  return detail::bug_count.load(std::memory_order_relaxed);
}

inline bool count_bug(bool happened) noexcept {
  if (happened) detail::bug_count.fetch_add(1, std::memory_order_relaxed);
  return happened;
}

}  // namespace proxypool

#define PP_ASSERT(condition)                           \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::proxypool::assertion_failed(#condition, __FILE__, __LINE__))

// Yields whether the condition was met: `if (PP_BUG_IF(released_)) return;`
#define PP_BUG_IF(condition) (::proxypool::count_bug(static_cast<bool>(condition)))
