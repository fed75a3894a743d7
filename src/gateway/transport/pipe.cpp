#include "gateway/transport/pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <new>
#include <utility>

#include "proxypool/base/assert.hpp"

namespace proxypool::gateway {
namespace {

constexpr unsigned kHow = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

}  // namespace

ssize_t Pipe::fill_from(int socket) noexcept {
  const ssize_t moved =
      ::splice(socket, nullptr, in_.get(), nullptr, PipePool::kPipeBytes - held_, kHow);
  if (moved > 0) held_ += static_cast<std::size_t>(moved);
  return moved;
}

ssize_t Pipe::drain_to(int socket) noexcept {
  const ssize_t moved = ::splice(out_.get(), nullptr, socket, nullptr, held_, kHow);
  if (moved > 0) held_ -= static_cast<std::size_t>(moved);
  return moved;
}

void ReturnPipe::operator()(Pipe* pipe) const noexcept {
  pipe->pool_.give(std::unique_ptr<Pipe>(pipe));
}

PipePool::~PipePool() {
  PP_ASSERT(in_use_ == 0);
}

PipePointer PipePool::take() noexcept {
  if (in_use_ == kMax) return nullptr;
  std::unique_ptr<Pipe> pipe;
  if (spare_.empty()) {
    pipe = make();
    if (pipe == nullptr) return nullptr;
  } else {
    pipe = std::move(spare_.back());
    spare_.pop_back();
  }
  ++in_use_;
  return PipePointer(pipe.release());
}

std::unique_ptr<Pipe> PipePool::make() noexcept {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return nullptr;
  std::unique_ptr<Pipe> pipe(new (std::nothrow) Pipe(*this));
  net::UniqueFd out(ends[0]);
  net::UniqueFd in(ends[1]);
  if (pipe == nullptr) return nullptr;
  int size = ::fcntl(in.get(), F_SETPIPE_SZ, static_cast<int>(kPipeBytes));
  if (size < 0) size = ::fcntl(in.get(), F_GETPIPE_SZ);
  // A user who has many pipes gets tiny ones: copying is cheaper.
  if (size < static_cast<int>(kBytesMin)) return nullptr;
  pipe->out_ = std::move(out);
  pipe->in_ = std::move(in);
  return pipe;
}

void PipePool::give(std::unique_ptr<Pipe> pipe) noexcept {
  --in_use_;
  if (pipe->held() == 0 && spare_.size() < kSpareMax) spare_.push_back(std::move(pipe));
}

}  // namespace proxypool::gateway
