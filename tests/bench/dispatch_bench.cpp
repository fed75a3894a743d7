// What dispatch costs: route, choose a proxy, reserve; the choice alone; and what is recorded of an
// answer. (GW-33, RS-6, quality.md)
//
// Each operation is timed by itself (rdtscp, the pair of which reads 20 ns on the machine of the
// figures), with about two requests in flight a proxy. p50, p99 and p999 are nanoseconds, timer
// included; `release` is the p99 of giving a place back. cold: 4 MiB of other memory are walked
// before each operation, as a busy gateway's other work would. Names:
// what/balancer/proxies/cold/threads.
//
// Fails when an operation allocates.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_support.hpp"
#include "gateway/dispatch/dispatcher.hpp"
#include "proxypool/domain/balance/reserve.hpp"

namespace proxypool::gateway {
namespace {

using bench::Histogram;
using bench::ticks;
using domain::Balancer;
using domain::Members;

std::atomic<std::uint64_t> operations_that_allocated{0};

constexpr TimePoint kNow{std::chrono::seconds(1'000)};
constexpr std::uint32_t kHeldPerProxy = 2;

// A worker whose proxies were all heard of: answers took 100 ms to 1.1 s.
struct Worker {
  Worker(std::uint32_t proxies, Balancer balancer) {
    ViewBuilder builder(registry, bench::snapshot_of(proxies, balancer), {StoreTime{}, kNow});
    if (!builder.begin()) std::abort();
    while (builder.step(1'000)) {
    }
    view = builder.finish();
    registry.extend(kNever);
    registry.adopt(*view);
    SplitMix64 random(5);
    for (const std::uint32_t member : upstream().available) {
      members().answered(member, kNow, milliseconds(100 + random.below(1'000)));
    }
  }
  [[nodiscard]] const View::Upstream& upstream() const { return *view->routing(0).upstreams[0]; }
  [[nodiscard]] Members& members() const { return upstream().runtime->members; }

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

void show(benchmark::State& state, const Histogram& taking) {
  const auto average = benchmark::Counter::kAvgThreads;
  state.counters["p50"] = benchmark::Counter(taking.quantile(.5), average);
  state.counters["p99"] = benchmark::Counter(taking.quantile(.99), average);
  state.counters["p999"] = benchmark::Counter(taking.quantile(.999), average);
}

// The loop of acquire and choose: takes one by take() and gives back the oldest of those held.
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
  const auto before = bench::allocations();
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
  operations_that_allocated.fetch_add(bench::allocations() - before);
  show(state, taking);
  state.counters["release"] =
      benchmark::Counter(giving.quantile(.99), benchmark::Counter::kAvgThreads);
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
  Wanted wanted;
  const auto take = [&] {
    wanted.affinity = random.next();
    const View::Routing* routing = dispatcher.route(*w.view, request);
    return dispatcher.acquire(*w.view, *routing, {}, kNow, random, wanted).allocation;
  };
  const auto give = [&](Allocation& one) { one.release({}, kNow); };
  measure<Allocation>(state, static_cast<std::uint32_t>(state.range(0)), random, take, give);
}

// The choice with its reservation, without routing and without an allocation.
void choose(benchmark::State& state, Balancer balancer) {
  Worker& w = worker(static_cast<std::uint32_t>(state.range(0)), balancer);
  Members& members = w.members();
  const domain::Candidates from = w.upstream().candidates();
  SplitMix64 random(static_cast<std::uint64_t>(state.thread_index()) + 1);
  const auto anybody = [](std::uint32_t) { return true; };
  const auto take = [&] {
    return domain::reserve_by(balancer, domain::Tier::Available, members, from, kNow, random,
                              anybody, random.next());
  };
  const auto give = [&](std::uint32_t member) {
    members.release(member, false, domain::Verdict::Good, kNow, std::chrono::seconds(2));
  };
  measure<std::uint32_t>(state, static_cast<std::uint32_t>(state.range(0)), random, take, give);
}

// What least_time learns from an answer of any proxy.
void record(benchmark::State& state) {
  const auto proxies = static_cast<std::uint32_t>(state.range(0));
  Members& members = worker(proxies, Balancer::LeastTime).members();
  SplitMix64 random(static_cast<std::uint64_t>(state.thread_index()) + 1);
  Histogram recording;
  TimePoint now = kNow;
  const auto before = bench::allocations();
  for (auto _ : state) {
    const auto member = static_cast<std::uint32_t>(random.below(proxies));
    const milliseconds took(100 + random.below(1'000));
    now += std::chrono::microseconds(20);
    const auto a = ticks();
    members.answered(member, now, took);
    recording.add(ticks() - a);
  }
  operations_that_allocated.fetch_add(bench::allocations() - before);
  show(state, recording);
}

void register_all() {
  for (const auto balancer :
       {Balancer::LeastConn, Balancer::RoundRobin, Balancer::Random, Balancer::TwoRandomChoices,
        Balancer::LeastTime, Balancer::ConsistentHash}) {
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
  auto* warm = benchmark::RegisterBenchmark("record/least_time", &record);
  warm->Arg(100)->Arg(10'000)->Arg(100'000)->Threads(1)->Threads(2)->UseRealTime();
}

}  // namespace
}  // namespace proxypool::gateway

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  proxypool::gateway::register_all();
  benchmark::RunSpecifiedBenchmarks();
  const auto allocated = proxypool::gateway::operations_that_allocated.load();
  if (allocated == 0) return 0;
  std::fprintf(stderr, "dispatch allocated %llu times\n",
               static_cast<unsigned long long>(allocated));
  return 1;
}
