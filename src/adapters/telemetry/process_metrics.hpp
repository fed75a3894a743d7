// What the process is and uses: build, memory, descriptors, processor time, bugs counted.
//
// Thread rule: any thread.
#pragma once

#include "proxypool/base/time.hpp"
#include "proxypool/ports/metrics.hpp"

namespace proxypool::telemetry {

void register_process_metrics(ports::Metrics& metrics, const Clock& clock);

}  // namespace proxypool::telemetry
