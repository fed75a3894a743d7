// The descriptors that net hands around are runtime's.
//
// Thread rule: one thread at a time; a plain value.
#pragma once

#include "runtime/unique_fd.hpp"

namespace proxypool::net {

using runtime::UniqueFd;

}  // namespace proxypool::net
