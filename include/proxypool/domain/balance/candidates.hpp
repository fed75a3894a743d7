// What one choice may choose from, as a snapshot sees the members of an upstream.
//
// The counters in Members outlive snapshots; which members a request may have does not. So the
// choice is between the members that its own view names, whatever an older or newer view says.
//
// Thread rule: immutable; spans into the view.
#pragma once

#include <cstdint>
#include <span>

namespace proxypool::domain {

struct Candidates {
  std::span<const std::uint32_t> available;  // AVAILABLE members, each once
  std::span<const std::uint64_t> mask;       // one bit a position: AVAILABLE and SUSPECT members
};

}  // namespace proxypool::domain
