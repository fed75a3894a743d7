// ProviderApi: one call to a vendor, over whatever the adapter speaks.
//
// The adapter turns the vendor's answer into candidates; what they mean (success, empty, duplicate
// only, error) is the domain's: domain/upstream/classification.hpp.
//
// Thread rule: any thread, one call at a time per object. Blocks until done or until the deadline.
// Limits:      16 MiB and 100,000 records an answer (CT-14); more is an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/proxy/proxy.hpp"
#include "proxypool/domain/upstream/classification.hpp"

namespace proxypool::ports {

struct FetchRequest {
  std::uint32_t wanted = 0;  // a hint; vendors may give more or fewer
  WallTime now;              // for time specifications that are relative to the answer
};

// A vendor's answer, read. No body, address or credential is kept outside `candidates` (CT-12).
struct FetchAnswer {
  std::optional<domain::FetchReason> error;  // nothing was read; the rest is empty
  std::string detail;                        // one redacted sentence for the log
  std::optional<milliseconds> retry_after;   // the vendor's own wait
  std::uint32_t records = 0;
  std::uint32_t invalid = 0;          // records that were no proxy, refused_private included
  std::uint32_t refused_private = 0;  // addresses that this upstream may not supply
  std::vector<domain::Candidate> candidates;
};

class ProviderApi {
 public:
  virtual ~ProviderApi() = default;
  virtual FetchAnswer fetch(const FetchRequest& request, Deadline deadline) = 0;
  // Lists (static, file): the answer is the whole truth about this upstream (C19).
  [[nodiscard]] virtual bool authoritative() const noexcept = 0;
  // Grows when a watched source changed and a fetch is worth while; 0 for ever otherwise.
  [[nodiscard]] virtual std::uint64_t source_version() = 0;
};

}  // namespace proxypool::ports
