// The head that goes on: what this hop owns is taken out, what the next hop needs is put in, and
// all else keeps its order, its case and its repetitions (GW-5).
//
// The idea: the kept lines are copied as runs of raw bytes, straight from the receive buffer into
// the caller's send buffer.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http/head.hpp"

namespace proxypool::net {

struct RequestRewrite {
  // Towards another proxy: absolute-form (http, whatever the client wrote), and CONNECT in
  // authority-form. Otherwise origin-form.
  bool to_proxy = true;
  // The whole value, for example "Basic dTpw"; empty: no such line.
  std::string_view proxy_authorization = {};
  // A line of its own, for example "1.1 gateway"; empty: none.
  std::string_view via = {};
  // Further names that stay here (sticky header, X-Forwarded-For of a trusted peer).
  std::span<const std::string_view> strip = {};
  // Asks the next hop for the WebSocket that the client asked for.
  bool upgrade = false;
};

struct ResponseRewrite {
  std::string_view via = {};
  std::span<const std::string_view> strip = {};
  // The client's connection ends behind this answer.
  bool close = false;
  // The client speaks HTTP/1.0: no Transfer-Encoding (the body is de-chunked), and it is told when
  // the connection goes on.
  bool http_1_0 = false;
};

// Writes the head to `out` and answers its size; 0 when `out` is too small, with nothing promised
// about its contents. kRewriteExtraBytes + head.size() + the sizes of the texts above are enough.
inline constexpr std::size_t kRewriteExtraBytes = 256;
[[nodiscard]] std::size_t write_request(const RequestHead& head, const RequestRewrite& how,
                                        std::span<char> out) noexcept;
[[nodiscard]] std::size_t write_response(const ResponseHead& head, const ResponseRewrite& how,
                                         std::span<char> out) noexcept;

}  // namespace proxypool::net
