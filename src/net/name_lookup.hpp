// Name look-up with a deadline, for blocking callers.
//
// getaddrinfo() cannot be told to hurry: it runs on a thread of its own, which is left behind when
// the deadline passes and ends when the system's resolver gives up.
//
// Thread rule: any thread.
// Limits:      kLookupsMax at a time in the process; over: an error at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/socket.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::net {

inline constexpr int kLookupsMax = 128;

// Addresses in the resolver's order, at least one. A literal needs no look-up. DeadlineExceeded
// when the deadline passed, NotFound when the name has no address, Unavailable when nobody could
// tell.
[[nodiscard]] Result<std::vector<Endpoint>> look_up(const std::string& host, std::uint16_t port,
                                                    Deadline deadline);

}  // namespace proxypool::net
