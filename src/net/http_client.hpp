// A blocking HTTP client for vendor APIs: one request, one connection, one deadline over all of it.
//
// The idea: name look-up, connect, TLS, sending and reading each get what is left of the deadline,
// and each has its own fault, because an operator who reads "timeout" needs to know of what.
//
// Thread rule: any thread; run it on a blocking pool.
// Limits:      HttpCall; a head of 64 KiB; kLongest when the deadline is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_message.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::net {

// What went wrong; None after an answer, whatever its status is.
enum class HttpFault : std::uint8_t {
  None,
  BadRequest,  // ours: URL, method, field
  Dns,
  Connect,
  Tls,
  Timeout,
  TooLarge,
  Truncated,
  Protocol,
  Redirect,  // to another host, or too many
};
[[nodiscard]] std::string_view to_string(HttpFault fault) noexcept;

struct HttpCall {
  std::string method = "GET";
  std::string url = {};
  // Host, Content-Length, Connection and Accept-Encoding are the client's own.
  std::vector<NameValue> fields = {};
  std::string body = {};
  std::size_t body_bytes_max = limits::kVendorBodyBytesMax;     // as received
  std::size_t decoded_bytes_max = limits::kVendorBodyBytesMax;  // after gzip or deflate
  int redirects_max = 3;
};

struct HttpAnswer {
  int status = 0;
  std::vector<NameValue> fields = {};
  std::string body = {};  // decoded

  // The first of that name, in any case; empty when there is none.
  [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
};

// As look_up() in name_lookup.hpp.
using LookUp =
    std::function<Result<std::vector<Endpoint>>(const std::string&, std::uint16_t, Deadline)>;

struct HttpClientOptions {
  std::string ca_file = {};  // PEM; empty: the system's authorities
  std::string user_agent = "proxypool";
  LookUp look_up = {};  // empty: the system's resolver
};

class HttpClient {
 public:
  static constexpr nanoseconds kLongest = std::chrono::minutes{5};

  // An error when the authorities cannot be loaded.
  [[nodiscard]] static Result<HttpClient> create(const HttpClientOptions& options = {});
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // Certificates and names are always verified, TLS is at least 1.2. The message of an error names
  // host and port, never path, query or body. `fault`, when given, receives the cause.
  [[nodiscard]] Result<HttpAnswer> request(const HttpCall& call, Deadline deadline,
                                           HttpFault* fault = nullptr) const;

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace proxypool::net
