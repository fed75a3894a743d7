// HttpCaller: one HTTP call to a vendor, whole answer at once.
//
// Thread rule: any thread. Blocks until done or until the deadline.
// Errors:      Unavailable (name, connection), DeadlineExceeded, Exhausted (answer over the limit),
//              Corrupt (not HTTP, truncated, bad compression); messages never quote URL or body.
// Limits:      the body limit holds before and after inflating.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "proxypool/base/limits.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::ports {

struct HttpCall {
  std::string method = "GET";
  SecretString url;  // may hold a key in its path or query
  std::vector<std::pair<std::string, SecretString>> headers;
  std::size_t body_bytes_max = limits::kVendorBodyBytesMax;
};

struct HttpReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;                                           // inflated
};

class HttpCaller {
 public:
  virtual ~HttpCaller() = default;
  virtual Result<HttpReply> call(const HttpCall& call, Deadline deadline) = 0;
};

}  // namespace proxypool::ports
