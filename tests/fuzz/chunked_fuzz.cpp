// Any bytes as a chunked body: payload and outcome do not depend on the pieces, and what was passed
// on is the beginning of what came, and decodes to the same payload.
#include <algorithm>
#include <string>

#include "http_fuzz_support.hpp"
#include "net/http/chunked.hpp"

namespace {

using namespace proxypool::net;
using proxypool::net::fuzz::must;

struct Outcome {
  ParseState state = ParseState::NeedMore;
  std::string payload;
  std::size_t passed = 0;
};

Outcome decode(std::string_view bytes, ChunkedDecoder& decoder, std::size_t step) {
  Outcome out;
  for (std::size_t end = std::min(step, bytes.size());; end = std::min(end + step, bytes.size())) {
    for (;;) {
      const std::string held(bytes.substr(out.passed, end - out.passed));
      const auto piece = decoder.next(held);
      must(piece.consumed <= held.size());
      out.state = piece.state;
      out.passed += piece.consumed;
      out.payload += piece.payload;
      if (piece.state != ParseState::NeedMore) return out;
      if (piece.consumed == 0) break;
    }
    if (end == bytes.size()) return out;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  ChunkedDecoder first;
  const Outcome whole = decode(input.bytes, first, input.bytes.size() + 1);
  ChunkedDecoder second;
  const Outcome pieces = decode(input.bytes, second, 1 + input.steer % 37);
  must(whole.state == pieces.state && whole.payload == pieces.payload);
  must(whole.passed == pieces.passed);
  if (whole.state == ParseState::Refused) must(first.refusal().reason == second.refusal().reason);
  ChunkedDecoder relay;
  const auto relayed = relay.relay(input.bytes);
  must(relayed.state == whole.state && relayed.consumed == whole.passed);
  ChunkedDecoder reader;
  const Outcome read = decode(input.bytes.substr(0, whole.passed), reader, 4096);
  must(read.state != ParseState::Refused && read.payload == whole.payload);
  must((read.state == ParseState::Done) == (whole.state == ParseState::Done));
  return 0;
}
