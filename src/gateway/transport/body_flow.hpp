// How much of what arrived belongs to a body, and in what form it goes on.
//
// A body of known length and one that ends with the connection go on as they are. A chunked body
// is checked element by element and goes on in its own framing, or decoded in place for a reader
// that knows no chunks.
//
// Thread rule: one thread at a time.
// Limits:      bytes_max of payload (0: none); over: 413.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/http/chunked.hpp"
#include "net/http/head.hpp"

namespace proxypool::gateway {

class BodyFlow {
 public:
  enum class State : std::uint8_t { More, Done, Refused };
  struct Step {
    State state = State::More;
    std::size_t used = 0;  // bytes of the input that are behind us
    std::size_t size = 0;  // bytes, from the first one of the input on, that go on now
  };

  BodyFlow() = default;
  // REQUIRES: framing is not Tunnel.
  BodyFlow(net::Framing framing, std::uint64_t length, bool decode = false,
           std::uint64_t bytes_max = 0) noexcept
      : framing_(framing), decode_(decode), left_(length), bytes_max_(bytes_max) {
    done_ = framing == net::Framing::None || (framing == net::Framing::Length && length == 0);
  }

  // May change the bytes: decoded ones move to the front.
  Step take(char* data, std::size_t size) noexcept;

  [[nodiscard]] bool done() const noexcept { return done_; }
  // The end of the connection is the end of the body, not a break in it.
  [[nodiscard]] bool ends_with_connection() const noexcept {
    return framing_ == net::Framing::UntilClose;
  }
  // 400, 413 or 431. REQUIRES: a step said Refused.
  [[nodiscard]] int refusal_status() const noexcept { return refusal_status_; }

 private:
  Step take_chunks(char* data, std::size_t size) noexcept;
  Step refuse(Step step, int status) noexcept;

  net::Framing framing_ = net::Framing::None;
  bool decode_ = false;
  bool done_ = true;
  std::int16_t refusal_status_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t bytes_max_ = 0;
  net::ChunkedDecoder decoder_;
};

}  // namespace proxypool::gateway
