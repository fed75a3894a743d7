// Pipes that carry bytes from one socket to another without bringing them into this process: what
// splice(2) needs for bulk tunnels (GW-43).
//
// A direction of a tunnel holds a pipe only while bytes are in it; an idle tunnel holds none.
//
// Thread rule: the loop's thread; a pipe goes back to the pool that it came from.
// Limits:      kMax pipes at once and kSpareMax empty ones kept, two descriptors each. Beyond, and
//              when the kernel gives no more, take() gives none and the bytes are copied instead.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/unique_fd.hpp"

namespace proxypool::gateway {

class PipePool;

class Pipe {
 public:
  // Bytes in it.
  [[nodiscard]] std::size_t held() const noexcept { return held_; }
  // Moves what the socket has into the pipe, and what the pipe has into the socket, as much as goes
  // at once. As recv() and send(): 0 is the end, -1 with errno. SIGPIPE must be ignored.
  [[nodiscard]] ssize_t fill_from(int socket) noexcept;
  [[nodiscard]] ssize_t drain_to(int socket) noexcept;

 private:
  friend class PipePool;
  friend struct ReturnPipe;
  explicit Pipe(PipePool& pool) noexcept : pool_(pool) {}

  PipePool& pool_;
  net::UniqueFd out_;
  net::UniqueFd in_;
  std::size_t held_ = 0;
};

// Gives a pipe back; one with bytes in it is closed, and they are gone.
struct ReturnPipe {
  void operator()(Pipe* pipe) const noexcept;
};
using PipePointer = std::unique_ptr<Pipe, ReturnPipe>;

class PipePool {
 public:
  // Pipes of the kernel's default of 64 KiB cost twice as many calls a byte.
  static constexpr std::size_t kPipeBytes = std::size_t{256} << 10U;
  static constexpr std::size_t kBytesMin = std::size_t{64} << 10U;
  static constexpr std::size_t kMax = 128;
  static constexpr std::size_t kSpareMax = 16;

  PipePool() { spare_.reserve(kSpareMax); }
  PipePool(const PipePool&) = delete;
  PipePool& operator=(const PipePool&) = delete;
  ~PipePool();

  // An empty pipe, or null.
  [[nodiscard]] PipePointer take() noexcept;
  // Pipes that are lent out.
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

 private:
  friend struct ReturnPipe;
  [[nodiscard]] std::unique_ptr<Pipe> make() noexcept;
  void give(std::unique_ptr<Pipe> pipe) noexcept;

  std::vector<std::unique_ptr<Pipe>> spare_;
  std::size_t in_use_ = 0;
};

}  // namespace proxypool::gateway
