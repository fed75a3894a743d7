// What is excused from a rule, and why. A line that nothing needs any more fails the tree test.
#include <vector>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {

const std::vector<Exception>& exceptions() {
  static const std::vector<Exception> list{
      {"src/adapters/file/durable_log.cpp", "ban",
       "one writer syncs for all who wait: that needs a condition over its own state"},
      {"src/net/event_loop.cpp", "ban",
       "a loop without its descriptors cannot exist; main reports it and ends"},
      {"loadgen/stream.hpp", "include",
       "coroutine types are the interface between the sources of the load generator"},
      {"loadgen/stream.cpp", "ban",
       "the one co_spawn of the load generator; an exception at its end leaves through run()"},
      {"tests/support/names.cpp", "ban",
       "stands for a system call that takes long, inside a program that has no clock to ask"},
  };
  return list;
}

}  // namespace proxypool::tidy
