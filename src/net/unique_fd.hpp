// A file descriptor that is closed exactly once, under net's own name.
#pragma once

#include "runtime/unique_fd.hpp"

namespace proxypool::net {

using runtime::UniqueFd;

}  // namespace proxypool::net
