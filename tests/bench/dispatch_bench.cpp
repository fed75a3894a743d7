// What dispatch costs: route, choose a proxy, reserve; and the choice alone. (GW-33, quality.md)
//
// Each operation is timed by itself (rdtscp, the pair of which reads 20 ns on the machine of the
// figures), with about two requests in flight a proxy. p50, p99 and p999 are nanoseconds, timer
// included; `release` is the p99 of giving a place back; `max_load` is the largest number of
// requests on one proxy at the end. cold: 4 MiB of other memory are walked before each operation,
// as a busy gateway's other work would. Names: what/balancer/proxies/cold/threads.
//
// Fails when an operation allocates.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "gateway/dispatch/dispatcher.hpp"
#include "proxypool/domain/balance/reserve.hpp"

namespace {
thread_local std::uint64_t allocations = 0;
std::atomic<std::uint64_t> operations_that_allocated{0};
}  // namespace

// Not inline: GCC would see malloc() meet the operator delete that it knows, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
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

namespace proxypool::gateway {
namespace {

using domain::Balancer;
using domain::Members;

constexpr TimePoint kNow{std::chrono::seconds(1'000)};
constexpr std::uint32_t kLimit = 200;
constexpr std::uint32_t kHeldPerProxy = 2;

std::uint64_t ticks() {
#if defined(__x86_64__)
  unsigned processor = 0;
  return __rdtscp(&processor);
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
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

class Histogram {
 public:
  void add(std::uint64_t ticks) {
    const auto ns = static_cast<std::size_t>(static_cast<double>(ticks) * ns_per_tick());
    ++counts_[std::min(ns, counts_.size() - 1)];
    ++total_;
  }
  [[nodiscard]] double quantile(double q) const {
    const auto wanted = static_cast<std::uint64_t>(q * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t ns = 0; ns < counts_.size(); ++ns) {
      seen += counts_[ns];
      if (seen > wanted) return static_cast<double>(ns);
    }
    return static_cast<double>(counts_.size());
  }

 private:
  std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(1U << 16U);
  std::uint64_t total_ = 0;
};

// A worker with one upstream of `proxies` and a hundred routings, the last of which takes all.
struct Worker {
  Worker(std::uint32_t proxies, Balancer balancer) {
    auto snapshot = std::make_shared<domain::WorkerSnapshot>();
    snapshot->upstreams.push_back({UpstreamId("up"), true});
    for (int i = 0; i < 100; ++i) {
      domain::SnapshotRouting& routing = snapshot->routings.emplace_back();
      routing.id = RoutingId("r" + std::to_string(i));
      if (i < 99) routing.match.hosts = {"*.site" + std::to_string(i) + ".example"};
      routing.balancer = balancer;
      routing.upstreams = {{UpstreamId("up"), 1}};
    }
    for (std::uint32_t i = 0; i < proxies; ++i) {
      domain::SnapshotProxy& proxy = snapshot->proxies.emplace_back();
      proxy.id = ProxyId(i * 0x9E3779B97F4A7C15U + 1);
      proxy.upstream = UpstreamId("up");
      proxy.endpoint = {domain::Scheme::Http, IpAddress::v4(0x0A000000U + i).str(), 8'080};
      proxy.max_concurrency = kLimit;
      proxy.usable_until = StoreTime(std::chrono::hours(1));
    }
    ViewBuilder builder(registry, snapshot, {StoreTime{}, kNow});
    if (!builder.begin()) std::abort();
    while (builder.step(1'000)) {
    }
    view = builder.finish();
    registry.extend(kNever);
    registry.adopt(*view);
  }
  [[nodiscard]] std::uint32_t load_max() const {
    std::uint32_t most = 0;
    for (const auto& count : registry.counts()) most = std::max(most, count.reserved);
    return most;
  }

  ProxyRegistry registry;
  std::shared_ptr<const View> view;
};

// One worker of each kind, made when first needed and kept.
Worker& worker(std::uint32_t proxies, Balancer balancer) {
  static std::mutex mutex;
  static std::map<std::pair<std::uint32_t, Balancer>, std::unique_ptr<Worker>> workers;
  const std::lock_guard lock(mutex);
  auto& made = workers[{proxies, balancer}];
  if (!made) made = std::make_unique<Worker>(proxies, balancer);
  return *made;
}

// Walks memory that has nothing to do with dispatch.
class OtherWork {
 public:
  void do_some(Random& random) {
    const std::size_t base = random.below(15) << 22U;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < (std::size_t{4} << 20U); i += 64) sum += memory_[base + i];
    benchmark::DoNotOptimize(sum);
  }

 private:
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(std::size_t{64} << 20U, 1);
};

// The loop of both benchmarks: takes one by take() and gives back the oldest of those held.
template <class Held, class Take, class Give>
void measure(benchmark::State& state, std::uint32_t proxies, Random& random, Take&& take,
             Give&& give) {
  const bool cold = state.range(1) != 0;
  std::unique_ptr<OtherWork> other = cold ? std::make_unique<OtherWork>() : nullptr;
  Histogram taking;
  Histogram giving;
  std::vector<Held> held(kHeldPerProxy * proxies / static_cast<std::uint32_t>(state.threads()));
  for (auto& one : held) one = take();
  for (std::size_t i = held.size(); i > 1; --i) std::swap(held[i - 1], held[random.below(i)]);
  std::size_t at = 0;
  const auto before = allocations;
  for (auto _ : state) {
    if (other) other->do_some(random);
    const auto a = ticks();
    Held one = take();
    const auto b = ticks();
    give(held[at]);
    const auto c = ticks();
    held[at] = std::move(one);
    if (++at == held.size()) at = 0;
    taking.add(b - a);
    giving.add(c - b);
  }
  if (allocations != before) operations_that_allocated.fetch_add(allocations - before);
  const auto average = benchmark::Counter::kAvgThreads;
  state.counters["p50"] = benchmark::Counter(taking.quantile(.5), average);
  state.counters["p99"] = benchmark::Counter(taking.quantile(.99), average);
  state.counters["p999"] = benchmark::Counter(taking.quantile(.999), average);
  state.counters["release"] = benchmark::Counter(giving.quantile(.99), average);
  for (auto& one : held) give(one);
}

// Route, choose, reserve, make the allocation; give it back with a verdict.
void acquire(benchmark::State& state, Balancer balancer) {
  Worker& w = worker(static_cast<std::uint32_t>(state.range(0)), balancer);
  const auto thread = static_cast<unsigned>(state.thread_index());
  Dispatcher dispatcher(w.registry, thread);
  SplitMix64 random(thread + 1);
  const domain::RouteRequest request{domain::RequestKind::Connect,
                                     "www.somewhere.example",
                                     443,
                                     {},
                                     {},
                                     domain::RouteRequest::kNoClient,
                                     {}};
  const auto take = [&] {
    return dispatcher.acquire(*w.view, request, {}, kNow, random).allocation;
  };
  const auto give = [&](Allocation& one) { one.release({}, kNow); };
  measure<Allocation>(state, static_cast<std::uint32_t>(state.range(0)), random, take, give);
}

// The choice with its reservation, without routing and without an allocation.
void choose(benchmark::State& state, Balancer balancer) {
  Worker& w = worker(static_cast<std::uint32_t>(state.range(0)), balancer);
  const auto& upstream = *w.view->routing(0).upstreams[0];
  Members& members = upstream.runtime->members;
  SplitMix64 random(static_cast<std::uint64_t>(state.thread_index()) + 1);
  const auto anybody = [](std::uint32_t) { return true; };
  const auto take = [&] {
    return domain::reserve_by(balancer, domain::Tier::Available, members, upstream.candidates(),
                              kNow, random, anybody);
  };
  const auto give = [&](std::uint32_t member) {
    members.release(member, false, domain::Verdict::Good, kNow, std::chrono::seconds(2));
  };
  measure<std::uint32_t>(state, static_cast<std::uint32_t>(state.range(0)), random, take, give);
}

// How long a serving thread would wait if it did this itself: nothing, it is done aside; the figure
// is the processor time of applying a snapshot of this size.
void apply_snapshot(benchmark::State& state) {
  for (auto _ : state) {
    const Worker w(static_cast<std::uint32_t>(state.range(0)), Balancer::LeastConn);
    benchmark::DoNotOptimize(w.view.get());
  }
}

void register_all() {
  for (const auto balancer :
       {Balancer::LeastConn, Balancer::RoundRobin, Balancer::Random, Balancer::TwoRandomChoices}) {
    const std::string name(domain::spell(balancer));
    for (const auto& [what, function] :
         {std::pair{"acquire/", &acquire}, std::pair{"choose/", &choose}}) {
      auto* warm = benchmark::RegisterBenchmark((what + name).c_str(), function, balancer);
      warm->Args({100, 0})->Args({10'000, 0})->Args({100'000, 0})->Threads(1)->Threads(2);
      auto* cold = benchmark::RegisterBenchmark((what + name).c_str(), function, balancer);
      cold->Args({100'000, 1})->Iterations(2'000);
      warm->UseRealTime();
      cold->UseRealTime();
    }
  }
  benchmark::RegisterBenchmark("apply_snapshot", &apply_snapshot)
      ->Arg(100)
      ->Arg(10'000)
      ->Arg(100'000)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace proxypool::gateway

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  proxypool::gateway::register_all();
  benchmark::RunSpecifiedBenchmarks();
  if (operations_that_allocated != 0) {
    std::fprintf(stderr, "dispatch allocated %llu times\n",
                 static_cast<unsigned long long>(operations_that_allocated.load()));
    return 1;
  }
  return 0;
}
