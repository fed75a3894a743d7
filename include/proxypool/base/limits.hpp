// The maxima that are part of the design, not of the configuration; what happens at each stands
// beside it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace proxypool::limits {

// HTTP heads (GW-4). Over: 414, 431 or 502.
inline constexpr std::size_t kRequestLineBytesMax = std::size_t{16} << 10U;
inline constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 10U;
inline constexpr std::size_t kHeaderFieldsMax = 100;
inline constexpr std::size_t kChunkLineBytesMax = std::size_t{4} << 10U;
inline constexpr std::size_t kChunkSizeDigitsMax = 16;

// REST request bodies. Over: 413.
inline constexpr std::size_t kRestBodyBytesMax = std::size_t{1} << 20U;

// Vendor answers (CT-14). Over: fetch error.
inline constexpr std::size_t kVendorBodyBytesMax = std::size_t{16} << 20U;
inline constexpr std::size_t kVendorRecordsMax = 100'000;

// Snapshot stream (CP-2).
inline constexpr std::size_t kSnapshotChunkBytesMax = std::size_t{256} << 10U;

// Proxies of one worker (C10). What does not fit stays unowned.
inline constexpr std::uint32_t kProxiesPerWorkerMax = 131'072;

// Concurrent requests through one proxy; the packed counters hold 16 bits of each kind.
inline constexpr std::uint32_t kProxyConcurrencyMax = 65'535;

}  // namespace proxypool::limits
