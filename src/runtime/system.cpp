#include "runtime/system.hpp"

#include <pthread.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <cstdint>

#include "proxypool/base/assert.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::runtime {
namespace {

class SystemClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return boot_now(); }
  WallTime wall_now() const noexcept override { return runtime::wall_now(); }
};

std::uint64_t kernel_seed() {
  std::uint64_t seed = 0;
  PP_ASSERT(::getrandom(&seed, sizeof seed, 0) == static_cast<ssize_t>(sizeof seed));
  return seed;
}

}  // namespace

const Clock& system_clock() noexcept {
  static const SystemClock clock;
  return clock;
}

Random& thread_random() {
  thread_local SplitMix64 random(kernel_seed());
  return random;
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

void name_this_thread(const std::string& name) noexcept {
  constexpr std::size_t kNameBytesMax = 15;
  ::pthread_setname_np(::pthread_self(), name.substr(0, kNameBytesMax).c_str());
}

}  // namespace proxypool::runtime
