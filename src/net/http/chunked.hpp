// A chunked body, element by element (RFC 9112 §7.1), as strict as the heads.
//
// The idea: an element (a chunk line, a piece of data, the line end behind it, the last chunk with
// its trailers) is consumed only when it is whole and good, so what was consumed may be passed on
// as it is, and no byte of a bad element is. What was not consumed the caller keeps and shows again
// in front of the next bytes.
//
// Thread rule: one thread at a time.
// Limits:      chunk line 4 KiB, 16 digits; trailers as header sections. Over: 400, 431.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/http/fields.hpp"

namespace proxypool::net {

class ChunkedDecoder {
 public:
  struct Step {
    ParseState state = ParseState::NeedMore;
    std::size_t consumed = 0;  // bytes of the input that are behind us
    std::string_view payload;  // data, a part of the input
  };

  void reset() noexcept { *this = {}; }

  // At most one element. NeedMore with consumed == 0: more bytes are needed; with consumed > 0:
  // call again with the rest. Done: the body and its trailers have ended. Refused: see refusal().
  Step next(std::string_view bytes) noexcept;
  // As many elements as there are: the first `consumed` bytes may be relayed as they are. Its
  // payload is empty.
  Step relay(std::string_view bytes) noexcept;

  [[nodiscard]] const Refusal& refusal() const noexcept { return refusal_; }
  // Payload bytes decoded so far.
  [[nodiscard]] std::uint64_t payload_bytes() const noexcept { return payload_bytes_; }

 private:
  enum class Phase : std::uint8_t { Line, Data, DataEnd, Trailers, Done, Refused };

  Step step_line(std::string_view bytes) noexcept;
  Step step_data(std::string_view bytes) noexcept;
  Step step_data_end(std::string_view bytes) noexcept;
  Step step_trailers(std::string_view bytes) noexcept;
  Step refuse(std::uint16_t status, std::string_view reason) noexcept;

  Phase phase_ = Phase::Line;
  std::uint64_t left_ = 0;  // of the data of this chunk
  std::uint64_t payload_bytes_ = 0;
  Refusal refusal_;
  FieldLineReader trailers_;
};

}  // namespace proxypool::net
