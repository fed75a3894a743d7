// A small blocking HTTP client for tests: raw bytes in, a parsed answer out, every wait limited.
//
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "loadgen/http1.hpp"
#include "support/eventually.hpp"

namespace proxypool::support {

struct Reply {
  unsigned status = 0;  // 0: no answer could be read
  std::string reason;
  loadgen::Fields fields;
  std::string body;       // without its framing
  bool complete = false;  // false: the connection ended, or time passed, inside head or body
  std::string failure;    // why it is not complete

  // The value of a header; empty when it is absent.
  [[nodiscard]] std::string header(std::string_view name) const {
    return std::string(fields.find(name).value_or(""));
  }
};

class HttpClient {
 public:
  // Connects to 127.0.0.1; connected() tells whether that worked.
  explicit HttpClient(std::uint16_t port, std::chrono::milliseconds limit = kPatience);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  HttpClient(HttpClient&& other) noexcept;
  HttpClient& operator=(HttpClient&&) = delete;
  ~HttpClient();

  [[nodiscard]] bool connected() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Whether everything was taken.
  bool send(std::string_view bytes);
  // One answer to a request with that method; 1xx answers are passed over.
  Reply receive(std::string_view method = "GET");
  Reply exchange(std::string_view request);
  // Raw bytes, for tunnels: exactly that many, or fewer at the end of the connection.
  std::string receive_bytes(std::size_t count);
  // Up to and with `text`; what came when it does not.
  std::string receive_until(std::string_view text);
  // Everything up to the end of the connection.
  std::string receive_rest();
  // Whether the peer has ended or reset the connection within the limit; drops what comes before.
  bool ended();
  void end_output();
  void close();
  // Ends with a TCP reset.
  void reset();

 private:
  bool fill();

  int fd_ = -1;
  std::chrono::milliseconds limit_;
  std::string buffer_;
  std::string failure_;
};

// One request on a connection of its own.
Reply http_exchange(std::uint16_t port, std::string_view request,
                    std::chrono::milliseconds limit = kPatience);
Reply http_get(std::uint16_t port, std::string_view target,
               std::chrono::milliseconds limit = kPatience);
Reply http_post(std::uint16_t port, std::string_view target, std::string_view body = {},
                std::string_view content_type = "application/json");

// A port that was free a moment ago, for programs that cannot take port 0. Prefer port 0.
std::uint16_t free_port();

}  // namespace proxypool::support
