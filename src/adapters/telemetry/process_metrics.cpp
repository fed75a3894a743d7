#include "adapters/telemetry/process_metrics.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "proxypool/base/assert.hpp"
#include "runtime/build_info.hpp"

namespace proxypool::telemetry {
namespace {

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double pages_total = 0;
  double pages_resident = 0;
  statm >> pages_total >> pages_resident;
  return pages_resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double entries(const char* folder) {
  std::error_code error;
  const std::filesystem::directory_iterator list(folder, error);
  if (error) return 0;
  return static_cast<double>(std::distance(begin(list), end(list)));
}

rusage usage() {
  rusage out{};
  ::getrusage(RUSAGE_SELF, &out);
  return out;
}
double to_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double descriptors_max() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

void register_process_metrics(ports::Metrics& metrics, const Clock& clock) {
  const runtime::BuildInfo& build = runtime::build_info();
  metrics
      .gauge("proxypool_build_info", "What was built, by what; always 1",
             {{"version", build.version}, {"compiler", build.compiler}, {"type", build.type}})
      .set(1);
  const auto started = clock.wall_now().time_since_epoch();
  metrics.gauge("proxypool_process_start_time_seconds", "When the process started, Unix time")
      .set(std::chrono::duration<double>(started).count());
  metrics.counter_from("proxypool_bugs_total", "Wrong states of our own that were met and survived",
                       [] { return static_cast<double>(bugs_counted()); }, {});
  metrics.gauge_from("proxypool_process_resident_bytes", "Resident memory", resident_bytes, {});
  metrics.gauge_from("proxypool_process_heap_bytes", "Memory that the allocator has handed out",
                     [] { return static_cast<double>(::mallinfo2().uordblks); }, {});
  metrics.gauge_from("proxypool_process_open_descriptors", "Open file descriptors",
                     [] { return entries("/proc/self/fd") - 1; }, {});  // less the one that counts
  metrics.gauge_from("proxypool_process_descriptors_limit", "Limit of open file descriptors",
                     descriptors_max, {});
  metrics.gauge_from("proxypool_process_threads", "Threads",
                     [] { return entries("/proc/self/task"); }, {});
  constexpr std::string_view kCpu = "proxypool_process_cpu_seconds_total";
  constexpr std::string_view kCpuHelp = "Processor time used";
  metrics.counter_from(kCpu, kCpuHelp, [] { return to_seconds(usage().ru_utime); },
                       {{"mode", "user"}});
  metrics.counter_from(kCpu, kCpuHelp, [] { return to_seconds(usage().ru_stime); },
                       {{"mode", "system"}});
}

}  // namespace proxypool::telemetry
