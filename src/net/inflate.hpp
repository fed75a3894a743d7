// Undoes Content-Encoding gzip and deflate with a limit on what comes out.
//
// Thread rule: pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace proxypool::net {

enum class InflateResult : std::uint8_t { Done, TooLarge, Truncated, Corrupt };

// gzip (also of several members), zlib, and the raw deflate that some servers call deflate.
[[nodiscard]] InflateResult inflate(std::string_view in, std::size_t bytes_max, std::string& out);

}  // namespace proxypool::net
