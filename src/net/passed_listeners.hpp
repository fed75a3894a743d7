// Listening sockets that whoever started this program has opened for it: an upgrade loses no
// connection, because the socket, and the queue of those who wait at it, outlive the program.
//
// The protocol is that of sd_listen_fds(3), which service managers speak: LISTEN_FDS counts the
// descriptors from 3 on, LISTEN_PID says for whom they are.
//
// Thread rule: take_passed_listeners(): once, at the start, before there are other threads.
#pragma once

#include <vector>

#include "net/unique_fd.hpp"
#include "proxypool/base/result.hpp"

namespace proxypool::net {

// Listening TCP sockets, non-blocking and close-on-exec now; none when there are none for this
// process. An error when one of them is something else. Children will not hear of them.
[[nodiscard]] Result<std::vector<UniqueFd>> take_passed_listeners();

}  // namespace proxypool::net
