// Closed-loop HTTP load: so many users, each sends its next request when it has the last answer.
//
// Under overload a closed loop slows down with the system, so its percentiles look better than what
// independent callers would see.
//
// Thread rule: runs on the calling thread and `threads` more, until done or interrupted.
// Limits:      kCountedValuesMax different values of a counted header or problem code; the rest
//              counts as "other".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "loadgen/histogram.hpp"
#include "loadgen/http1.hpp"
#include "loadgen/url.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::loadgen {

inline constexpr std::size_t kCountedValuesMax = 1000;

struct LoadOptions {
  Url url;
  std::optional<Url> proxy;    // scheme http
  std::uint64_t requests = 0;  // 0: until `duration` has passed
  nanoseconds duration = seconds{10};
  unsigned concurrency = 16;
  unsigned threads = 1;
  std::string method = "GET";
  std::vector<Field> headers;
  std::string body;
  bool keep_alive = true;
  bool verify_tls = true;
  std::string ca_file;  // empty: the system's authorities
  nanoseconds timeout = seconds{30};
  std::vector<unsigned> expected;  // statuses; empty: everything below 400
  std::string count_header;        // whose values are counted; empty: none
};

// Where a request ended that did not succeed.
enum class LoadError : std::uint8_t {
  None,
  Connect,      // no connection
  ProxyStatus,  // the proxy refused CONNECT
  Tls,
  Timeout,
  Reset,      // the connection ended before the first byte of the answer
  Truncated,  // it ended inside the answer
  Protocol,   // the answer was no HTTP
  Status,     // a whole answer with an unexpected status
};
std::string_view to_string(LoadError error);

struct LoadReport {
  WallTime started{};
  nanoseconds elapsed{0};
  std::uint64_t done = 0;  // answered or failed
  std::uint64_t failed = 0;
  std::uint64_t aborted = 0;  // under way when the run was interrupted; in no other figure
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t connections = 0;
  std::uint64_t reconnects = 0;  // a kept connection had ended between two requests
  Histogram latency;             // of whole answers, connecting included
  Histogram head;                // from sending the request to the end of the answer's head
  Histogram connect;             // TCP, CONNECT and TLS
  std::map<LoadError, std::uint64_t> errors;
  std::map<unsigned, std::uint64_t> statuses;  // of all answers, those to CONNECT included
  std::map<std::string, std::uint64_t> codes;  // `code` of problem+json bodies
  std::map<std::string, std::uint64_t> header_values;

  void merge(const LoadReport& other);
};

// Fails when it cannot start: a host without an address, an unreadable file of authorities.
Result<LoadReport> run_load(const LoadOptions& options);

std::string report_text(const LoadOptions& options, const LoadReport& report);
std::string report_json(const LoadOptions& options, const LoadReport& report);

}  // namespace proxypool::loadgen
