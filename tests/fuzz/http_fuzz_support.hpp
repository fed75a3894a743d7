// What the fuzz targets of the HTTP codec share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace proxypool::net::fuzz {

// A property that every input must have.
inline void must(bool property) {
  if (!property) std::abort();
}

// The first byte steers, the rest is the message.
struct Input {
  unsigned steer = 0;
  std::string_view bytes;

  Input(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return;
    steer = data[0];
    bytes = {reinterpret_cast<const char*>(data) + 1, size - 1};
  }
};

// Calls piece(end) with growing ends up to the size of the bytes; the steps depend on `steer`.
template <class F>
void in_pieces(std::string_view bytes, unsigned steer, F&& piece) {
  const std::size_t step = 1 + steer % 37;
  for (std::size_t end = step; end < bytes.size(); end += step) {
    if (!piece(end)) return;
  }
  piece(bytes.size());
}

}  // namespace proxypool::net::fuzz
