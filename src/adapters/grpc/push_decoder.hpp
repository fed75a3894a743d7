// Puts the events of a snapshot stream together to pushes.
//
// A snapshot is built aside and given out only by its commit, after every announced entry has
// arrived; a newer begin throws away what was being built. Announced counts are checked against
// the limits first and bound the memory from then on.
//
// Thread rule: one thread at a time. After an error the stream is to be ended.
// Limits:      limits::kProxiesPerWorkerMax proxies and credentials, kSectionEntriesMax entries in
//              each other section, kSnapshotBytesMax encoded in all; over: InvalidArgument.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "adapters/grpc/wire.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::rpc {

inline constexpr std::size_t kSectionEntriesMax = 65'536;
inline constexpr std::size_t kSnapshotBytesMax = std::size_t{64} << 20U;

class PushDecoder {
 public:
  PushDecoder();
  PushDecoder(PushDecoder&&) noexcept;
  PushDecoder& operator=(PushDecoder&&) noexcept;
  ~PushDecoder();

  // Takes the event's contents out of it. Answers a push when this event completes one.
  Result<std::optional<ports::Push>> feed(v1::SnapshotEvent& event);

 private:
  class Building;
  std::unique_ptr<Building> building_;
};

}  // namespace proxypool::rpc
