// Any bytes as a response head: the outcome does not depend on the pieces, and what the client
// would get is an answer that ends where this one does.
#include <string>

#include "http_fuzz_support.hpp"
#include "net/http/rewrite.hpp"

namespace {

using namespace proxypool::net;
using proxypool::net::fuzz::must;

void check_forwarded(const ResponseHead& head, ResponseContext context, unsigned steer) {
  ResponseRewrite how{.via = (steer & 4U) != 0 ? "1.1 gw" : "",
                      .close = head.framing() == Framing::UntilClose || (steer & 8U) != 0};
  std::string out(head.size() + kRewriteExtraBytes, '\0');
  const std::size_t size = write_response(head, how, out);
  must(size != 0);
  out.resize(size);
  ResponseParser next;
  next.reset(context);
  const ParseState state = next.parse(out);
  if (state == ParseState::Refused) {
    must(next.refusal().reason.find("more than 100") == 0 ||
         next.refusal().reason.find("larger") != std::string_view::npos ||
         next.refusal().reason.find("over") != std::string_view::npos);
    return;
  }
  must(state == ParseState::Done && next.head().size() == size);
  must(next.head().status() == head.status() && next.head().reason() == head.reason());
  must(next.head().framing() == head.framing());
  must(next.head().find(FieldId::ProxyAuthenticate) == nullptr);
  must(next.head().find(FieldId::KeepAlive) == nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  constexpr Method kMethods[] = {Method::Get, Method::Head, Method::Connect, Method::Post};
  const ResponseContext context{.method = kMethods[input.steer & 3U],
                                .upgrade_requested = (input.steer & 16U) != 0};
  ResponseParser whole;
  whole.reset(context);
  const std::string copy(input.bytes);
  const ParseState state = whole.parse(copy);
  ResponseParser pieces;
  pieces.reset(context);
  ParseState pieces_state = ParseState::NeedMore;
  std::string moved;
  fuzz::in_pieces(input.bytes, input.steer, [&](std::size_t end) {
    moved = std::string(input.bytes.substr(0, end));
    pieces_state = pieces.parse(moved);
    return pieces_state == ParseState::NeedMore;
  });
  must(pieces_state == state);
  if (state == ParseState::Refused) must(whole.refusal().reason == pieces.refusal().reason);
  if (state == ParseState::Done) {
    must(whole.head().size() == pieces.head().size());
    must(whole.head().framing() == pieces.head().framing());
    check_forwarded(whole.head(), context, input.steer);
  }
  return 0;
}
