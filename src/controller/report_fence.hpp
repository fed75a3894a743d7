// What a runtime report is fenced by: its sequence, and a digest of all that it says, so that the
// same sequence with another content is no repetition.
//
// Thread rule: pure functions.
#pragma once

#include "proxypool/ports/control_plane.hpp"
#include "proxypool/ports/crypto.hpp"
#include "proxypool/ports/worker_registry.hpp"

namespace proxypool::controller {

[[nodiscard]] ports::ReportFence fence_of(const ports::RuntimeReport& report,
                                          const ports::Crypto& crypto);

// Of all that a batch of outcomes says.
[[nodiscard]] domain::ContentDigest digest_of(const ports::OutcomeBatch& batch,
                                              const ports::Crypto& crypto);

}  // namespace proxypool::controller
