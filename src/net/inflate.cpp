#include "net/inflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

namespace proxypool::net {
namespace {

constexpr int kZlibOrGzip = 15 + 32;
constexpr int kRaw = -15;

InflateResult inflate_as(int format, std::string_view in, std::size_t bytes_max, std::string& out) {
  z_stream stream{};
  if (::inflateInit2(&stream, format) != Z_OK) return InflateResult::Corrupt;
  std::array<char, 16384> piece;
  InflateResult result = InflateResult::Truncated;
  std::size_t left = in.size();
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
  for (;;) {
    if (stream.avail_in == 0) {
      stream.avail_in =
          static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
      left -= stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int code = ::inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
    if (out.size() > bytes_max) {
      result = InflateResult::TooLarge;
      break;
    }
    if (code == Z_STREAM_END) {
      result = InflateResult::Done;
      if (stream.avail_in == 0 && left == 0) break;
      result = InflateResult::Corrupt;  // unless another member follows
      if (format == kRaw || ::inflateReset(&stream) != Z_OK) break;
      continue;
    }
    if (code == Z_BUF_ERROR && stream.avail_in == 0 && left == 0) {
      result = InflateResult::Truncated;
      break;
    }
    if (code != Z_OK) {
      result = InflateResult::Corrupt;
      break;
    }
  }
  ::inflateEnd(&stream);
  return result;
}

}  // namespace

InflateResult inflate(std::string_view in, std::size_t bytes_max, std::string& out) {
  out.clear();
  const InflateResult result = inflate_as(kZlibOrGzip, in, bytes_max, out);
  if (result != InflateResult::Corrupt || !out.empty()) return result;
  out.clear();
  return inflate_as(kRaw, in, bytes_max, out);
}

}  // namespace proxypool::net
