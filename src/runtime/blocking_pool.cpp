#include "runtime/blocking_pool.hpp"

#include "proxypool/base/assert.hpp"
#include "runtime/system.hpp"

namespace proxypool::runtime {

BlockingPool::BlockingPool(const std::string& name, std::size_t threads, std::size_t queue_max)
    : jobs_(queue_max) {
  PP_ASSERT(threads > 0);
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      name_this_thread(name);
      while (auto job = jobs_.pop()) (*job)->run();
    });
  }
}

void BlockingPool::stop() {
  jobs_.close();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace proxypool::runtime
