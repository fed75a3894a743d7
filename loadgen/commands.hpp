// The sub-commands of proxy-loadgen: each reads its arguments and runs.
//
// Thread rule: the main thread.
#pragma once

#include <span>
#include <string>

namespace proxypool::loadgen {

// Exit codes: 0 clean, 1 failure while running, 2 wrong usage.
int run_command(std::span<const std::string> arguments);

}  // namespace proxypool::loadgen
