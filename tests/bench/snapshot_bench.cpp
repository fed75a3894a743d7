// What a snapshot costs, applied by the publisher: processor time aside, and the longest pause of a
// thread that serves meanwhile. (GW-52, quality.md)
//
// first: into an empty registry. same: every proxy stays. replaced: every proxy is another one.
// Their time is the processor time of the publisher's thread for a whole apply(), per snapshot.
//
// pause: two threads on two cores. One takes and gives places as fast as it can, reading the newest
// view for each; the other replaces all proxies without a break. `pause_us` is the longest time
// that one place took, of all swaps; when the system gave the processor to somebody else meanwhile
// (an involuntary switch and no voluntary one, which a lock would show), that counts as
// `preempted_us`.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "bench/bench_support.hpp"
#include "gateway/dispatch/dispatcher.hpp"
#include "gateway/snapshot/view_publisher.hpp"
#include "runtime/manual_clock.hpp"

namespace proxypool::gateway {
namespace {

using bench::snapshot_of;
using domain::Balancer;

class Published {
 public:
  void apply(std::shared_ptr<const domain::WorkerSnapshot> snapshot) {
    const Validity validity{clock_.now(), StoreTime{}, kNever, kNever};
    if (!publisher_.apply(std::move(snapshot), validity)) std::abort();
  }
  [[nodiscard]] runtime::SnapshotCell<View>& views() noexcept { return views_; }
  [[nodiscard]] ProxyRegistry& registry() noexcept { return registry_; }
  [[nodiscard]] TimePoint now() const noexcept { return clock_.now(); }

 private:
  runtime::ManualClock clock_;
  ProxyRegistry registry_;
  runtime::SnapshotCell<View> views_;
  ViewPublisher publisher_{{registry_, views_, clock_, [] {},
                            [](std::vector<ProxyId>, TimePoint) {}, [](TimePoint) {},
                            [](milliseconds) { std::this_thread::yield(); }}};
};

std::shared_ptr<domain::WorkerSnapshot> next(std::uint32_t proxies, std::uint64_t first) {
  auto snapshot = snapshot_of(proxies, Balancer::TwoRandomChoices, first);
  snapshot->intentional_loss = true;
  return snapshot;
}

void apply_first(benchmark::State& state) {
  const auto snapshot = next(static_cast<std::uint32_t>(state.range(0)), 0);
  for (auto _ : state) {
    state.PauseTiming();
    auto fresh = std::make_unique<Published>();
    state.ResumeTiming();
    fresh->apply(snapshot);
    state.PauseTiming();
    fresh.reset();
    state.ResumeTiming();
  }
}

void apply_again(benchmark::State& state, bool replaced) {
  const auto proxies = static_cast<std::uint32_t>(state.range(0));
  const auto one = next(proxies, 0);
  const auto other = next(proxies, replaced ? proxies : 0);
  Published published;
  published.apply(other);
  bool turn = false;
  for (auto _ : state) published.apply((turn = !turn) ? one : other);
}

// Tells a thread's own pauses from those that the system made.
class Pauses {
 public:
  void add(std::uint64_t ticks) {
    const double us = static_cast<double>(ticks) * bench::ns_per_tick() / 1'000;
    if (us < std::min(own_, 20.0)) return;
    const rusage before = std::exchange(use_, now());
    const bool taken_away = use_.ru_nivcsw != before.ru_nivcsw && use_.ru_nvcsw == before.ru_nvcsw;
    (taken_away ? preempted_ : own_) = std::max(taken_away ? preempted_ : own_, us);
  }
  [[nodiscard]] double own_us() const noexcept { return own_; }
  [[nodiscard]] double preempted_us() const noexcept { return preempted_; }

 private:
  static rusage now() {
    rusage use{};
    getrusage(RUSAGE_THREAD, &use);
    return use;
  }
  rusage use_ = now();
  double own_ = 0;
  double preempted_ = 0;
};

void pause(benchmark::State& state) {
  const auto proxies = static_cast<std::uint32_t>(state.range(0));
  const auto one = next(proxies, 0);
  const auto other = next(proxies, proxies);
  Published published;
  published.apply(other);
  std::atomic<bool> done{false};
  std::atomic<bool> begun{false};
  double own_us = 0;
  double preempted_us = 0;
  std::thread serving([&] {
    Pauses pauses;
    Dispatcher dispatcher(published.registry(), 0);
    SplitMix64 random(1);
    runtime::SnapshotCell<View>::Reader reader(published.views());
    std::uint64_t before = bench::ticks();
    while (!done) {
      const View* view = reader.get();
      auto got = dispatcher.acquire(*view, view->routing(99), {}, published.now(), random);
      if (got.outcome != Acquired::Ok) std::abort();
      got.allocation.release({}, published.now());
      const std::uint64_t after = bench::ticks();
      pauses.add(after - before);
      before = after;
      begun = true;
    }
    own_us = pauses.own_us();
    preempted_us = pauses.preempted_us();
  });
  while (!begun) std::this_thread::yield();
  bool turn = false;
  for (auto _ : state) published.apply((turn = !turn) ? one : other);
  done = true;
  serving.join();
  state.counters["pause_us"] = own_us;
  state.counters["preempted_us"] = preempted_us;
}

void register_all() {
  const auto sizes = [](auto* benchmark) {
    benchmark->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
  };
  sizes(benchmark::RegisterBenchmark("apply/first", &apply_first));
  sizes(benchmark::RegisterBenchmark("apply/same", &apply_again, false));
  sizes(benchmark::RegisterBenchmark("apply/replaced", &apply_again, true));
  sizes(benchmark::RegisterBenchmark("pause/replaced", &pause));
}

}  // namespace
}  // namespace proxypool::gateway

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  proxypool::gateway::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
