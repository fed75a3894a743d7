// Turns a push into the events of a snapshot stream, one at a time.
//
// Lazy: only the event being written exists in encoded form, so that a slow worker costs one chunk
// of memory and not a snapshot. An entry is first encoded as a chunk of its own, with the strings
// that it brings; sizes of chunks add up exactly, so that the piece that does not fit any more is
// kept for the next event.
//
// Thread rule: one thread at a time.
// Limits:      an event takes at most limits::kSnapshotChunkBytesMax encoded; a single entry that
//              is larger is an error that names it.
#pragma once

#include <memory>

#include "adapters/grpc/wire.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::rpc {

class PushEncoder {
 public:
  using Wire = v1::SnapshotEvent;

  explicit PushEncoder(ports::Push push);
  PushEncoder(PushEncoder&&) noexcept;
  PushEncoder& operator=(PushEncoder&&) noexcept;
  ~PushEncoder();

  // Fills the next event and answers true; false when all were given.
  Result<bool> next(v1::SnapshotEvent& event);

 private:
  class Full;
  std::unique_ptr<Full> full_;
  std::optional<ports::ExtendPush> extend_;
};

}  // namespace proxypool::rpc
