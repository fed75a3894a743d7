// Feeds a parser the same bytes whole, byte by byte and cut at every position, from buffers that
// move, and checks that the outcome is always the same.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace proxypool::net::test {

// `run(cuts)` parses the bytes in pieces that end at the given positions and tells the outcome.
template <class Run>
std::string same_in_all_pieces(std::string_view bytes, Run&& run) {
  const std::string whole = run(std::vector<std::size_t>{bytes.size()});
  const std::size_t step = bytes.size() > 4096 ? bytes.size() / 64 : 1;
  std::vector<std::size_t> each;
  for (std::size_t at = step; at < bytes.size(); at += step) {
    each.push_back(at);
    EXPECT_EQ(run(std::vector<std::size_t>{at, bytes.size()}), whole) << "cut at " << at;
  }
  each.push_back(bytes.size());
  EXPECT_EQ(run(each), whole) << "in small pieces";
  return whole;
}

// The bytes [0, size) at an address of their own, in a block of exactly that size, so that a
// sanitizer sees each step beyond the end.
class MovedCopy {
 public:
  MovedCopy(std::string_view bytes, std::size_t size)
      : bytes_(std::make_unique<char[]>(size)), size_(size) {
    bytes.copy(bytes_.get(), size);
  }
  [[nodiscard]] std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

}  // namespace proxypool::net::test
