#include "controller/report_fence.hpp"

#include <cstdint>
#include <string>

namespace proxypool::controller {
namespace {

void append(std::string& out, std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift);
}

// The canonical bytes of a report: every field once, little endian, in the order of the type.
std::string canonical(const ports::RuntimeReport& report) {
  std::string bytes;
  bytes.reserve(64 + report.counts.size() * 25);
  append(bytes, report.sequence);
  append(bytes, report.version.generation);
  append(bytes, report.version.counter);
  append(bytes, report.epoch.value());
  bytes += report.final_report ? '\1' : '\0';
  bytes += report.draining ? '\1' : '\0';
  for (const ports::ProxyCount& count : report.counts) {
    append(bytes, count.id.value());
    append(bytes, count.lease_epoch.value());
    append(bytes, (std::uint64_t{count.active} << 32U) | count.reserved);
    bytes += count.draining ? '\1' : '\0';
  }
  append(bytes, report.usage.number);
  for (const domain::ClientUsage& row : report.usage.clients) {
    append(bytes, row.client.str().size());
    bytes += row.client.str();
    append(bytes, row.usage.bytes_up);
    append(bytes, row.usage.bytes_down);
    append(bytes, row.usage.requests);
  }
  return bytes;
}

std::string canonical(const ports::OutcomeBatch& batch) {
  std::string bytes;
  append(bytes, batch.sequence);
  append(bytes, batch.version.generation);
  append(bytes, batch.version.counter);
  for (const RoutingId& routing : batch.routings) {
    append(bytes, routing.str().size());
    bytes += routing.str();
  }
  for (const ports::Outcome& outcome : batch.outcomes) {
    append(bytes, outcome.what.proxy.value());
    append(bytes, outcome.lease_epoch.value());
    append(bytes, outcome.routing);
    append(bytes, outcome.request_id);
    append(bytes, static_cast<std::uint64_t>(outcome.age.count()));
    append(bytes, static_cast<std::uint64_t>(outcome.what.latency.count()));
    append(bytes, outcome.what.status);
    bytes += static_cast<char>(outcome.what.kind);
    bytes += static_cast<char>(outcome.what.failure.phase);
    bytes += static_cast<char>(outcome.what.failure.kind);
    bytes += outcome.what.first_byte ? '\1' : '\0';
  }
  return bytes;
}

}  // namespace

domain::ContentDigest digest_of(const ports::OutcomeBatch& batch, const ports::Crypto& crypto) {
  return crypto.sha256(canonical(batch));
}

ports::ReportFence fence_of(const ports::RuntimeReport& report, const ports::Crypto& crypto) {
  ports::ReportFence fence;
  fence.sequence = report.sequence;
  fence.digest = crypto.sha256(canonical(report));
  fence.version = report.version;
  fence.epoch = report.epoch;
  fence.draining = report.draining;
  for (const ports::ProxyCount& count : report.counts) {
    fence.active += count.active;
    fence.reserved += count.reserved;
  }
  return fence;
}

}  // namespace proxypool::controller
