// DurableLog: an append-only list of byte strings that survives kill -9.
//
// What is appended is on the disk when append() answers; callers that append at the same time
// share one sync. A record that was cut by a crash was never answered, and is dropped at the start.
//
// Adapter: file.
//
// Thread rule: any thread.
// Errors:      Unavailable (disk full, read-only): the record is not there; the log stays usable
//              once there is room again. Corrupt: a record in the middle is damaged.
// Limits:      1 MiB a record.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/result.hpp"

namespace proxypool::ports {

class DurableLog {
 public:
  virtual ~DurableLog() = default;
  // Every record, oldest first. Called once, before the first append.
  virtual Status replay(const std::function<void(std::string_view record)>& take) = 0;
  virtual Status append(std::string_view record) = 0;
  // Replaces everything by these records, in one atomic step.
  virtual Status rewrite(const std::vector<std::string>& records) = 0;
  // Bytes in the file; the owner rewrites when much of it is dead.
  [[nodiscard]] virtual std::size_t size_bytes() const = 0;
};

}  // namespace proxypool::ports
