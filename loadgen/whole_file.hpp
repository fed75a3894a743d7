// Files that are read and written as a whole.
//
// Thread rule: any thread.
#pragma once

#include <string>

#include "proxypool/base/result.hpp"

namespace proxypool::loadgen {

// Whole or not at all: whoever waits for the file to appear never sees a part of it.
Status write_whole_file(const std::string& path, const std::string& text);

// Fails above `bytes_max`.
Result<std::string> read_whole_file(const std::string& path, std::size_t bytes_max);

}  // namespace proxypool::loadgen
