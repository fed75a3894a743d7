// Any bytes as the beginning of a connection with a PROXY header: the outcome does not depend on
// the pieces, nothing shorter than the header is taken for one, and no header is longer than its
// limit.
#include <algorithm>

#include "http_fuzz_support.hpp"
#include "net/proxy_header.hpp"

namespace {

using namespace proxypool::net;
using proxypool::net::fuzz::must;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  const ProxyHeader whole = parse_proxy_header(input.bytes);
  ProxyHeader pieces;
  fuzz::in_pieces(input.bytes, input.steer, [&](std::size_t end) {
    pieces = parse_proxy_header(input.bytes.substr(0, end));
    return pieces.state == ParseState::NeedMore;
  });
  must(pieces.state == whole.state && pieces.size == whole.size && pieces.source == whole.source);
  if (whole.state == ParseState::NeedMore) must(input.bytes.size() < kProxyHeaderBytesMax);
  if (whole.state != ParseState::Done) {
    must(whole.size == 0 && !whole.source);
    return 0;
  }
  must(whole.size <= std::min(input.bytes.size(), kProxyHeaderBytesMax));
  const ProxyHeader shorter = parse_proxy_header(input.bytes.substr(0, whole.size - 1));
  must(shorter.state == ParseState::NeedMore);
  const ProxyHeader exact = parse_proxy_header(input.bytes.substr(0, whole.size));
  must(exact.state == ParseState::Done && exact.source == whole.source);
  return 0;
}
