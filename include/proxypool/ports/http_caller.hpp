// HttpCaller: one HTTP call to a vendor, whole answer at once.
//
// Thread rule: any thread. Blocks until done or until the deadline.
// Limits:      the body limit holds before and after inflating.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxypool/base/limits.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/upstream/classification.hpp"

namespace proxypool::ports {

struct HttpCall {
  std::string method = "GET";
  SecretString url;  // may hold a key in its path or query
  std::vector<std::pair<std::string, SecretString>> headers;
  std::size_t body_bytes_max = limits::kVendorBodyBytesMax;
};

struct HttpReply {
  std::optional<domain::FetchReason> failed;  // no answer: why; the rest is empty
  std::string detail;                         // one sentence; never path, query or body
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;  // inflated
};

class HttpCaller {
 public:
  virtual ~HttpCaller() = default;
  virtual HttpReply call(const HttpCall& call, Deadline deadline) = 0;
};

}  // namespace proxypool::ports
