// Waiting in a test for something that another process or thread will bring about.
//
// Not synchronisation by sleeping: the condition decides, the limit only ends a failing test.
#pragma once

#include <chrono>
#include <thread>
#include <utility>

namespace proxypool::support {

inline constexpr std::chrono::seconds kPatience{20};  // sanitizers on two busy cores are slow

// Asks `condition` until it holds or the limit has passed; answers whether it held.
template <class Condition>
bool eventually(Condition&& condition, std::chrono::milliseconds limit = kPatience) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace proxypool::support
