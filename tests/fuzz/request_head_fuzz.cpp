// Any bytes as a request head: the outcome does not depend on the pieces, and what would be sent on
// is a request that a strict reader understands in the same way.
#include <string>

#include "http_fuzz_support.hpp"
#include "net/http/rewrite.hpp"

namespace {

using namespace proxypool::net;
using proxypool::net::fuzz::must;

void compare(const RequestParser& a, const RequestParser& b, ParseState state) {
  if (state == ParseState::Refused) {
    must(a.refusal().status == b.refusal().status && a.refusal().reason == b.refusal().reason);
  }
  if (state != ParseState::Done) return;
  must(a.head().size() == b.head().size() && a.head().target() == b.head().target());
  must(a.head().framing() == b.head().framing());
  must(a.head().fields().size() == b.head().fields().size());
  must(a.head().keep_alive() == b.head().keep_alive());
}

void check_forwarded(const RequestHead& head, unsigned steer) {
  const RequestRewrite how{.to_proxy = (steer & 1U) != 0,
                           .proxy_authorization = (steer & 2U) != 0 ? "Basic eA==" : "",
                           .via = (steer & 4U) != 0 ? "1.1 gw" : "",
                           .upgrade = head.upgrades_to_websocket() && (steer & 8U) != 0};
  std::string out(head.size() + 2 * head.authority().size() + kRewriteExtraBytes, '\0');
  const std::size_t size = write_request(head, how, out);
  must(size != 0);
  out.resize(size);
  if (head.authority().empty()) return;  // HTTP/1.0 without a host: the gateway refuses it
  RequestParser next;
  const ParseState state = next.parse(out);
  if (state == ParseState::Refused) {
    // The lines added may pass a limit that the request itself just kept; nothing else may happen.
    must(next.refusal().status == 431 || next.refusal().status == 414);
    return;
  }
  must(state == ParseState::Done && next.head().size() == size);
  must(next.head().method() == head.method() && next.head().framing() == head.framing());
  must(next.head().content_length() == head.content_length());
  must(next.head().authority() == head.authority());
  must(next.head().find(FieldId::KeepAlive) == nullptr);
  must(next.head().find(FieldId::ProxyConnection) == nullptr);
  must((next.head().find(FieldId::ProxyAuthorization) != nullptr) == ((steer & 2U) != 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  RequestParser whole;
  const std::string copy(input.bytes);
  const ParseState state = whole.parse(copy);
  RequestParser pieces;
  ParseState pieces_state = ParseState::NeedMore;
  std::string moved;
  fuzz::in_pieces(input.bytes, input.steer, [&](std::size_t end) {
    moved = std::string(input.bytes.substr(0, end));
    pieces_state = pieces.parse(moved);
    return pieces_state == ParseState::NeedMore;
  });
  must(pieces_state == state);
  compare(whole, pieces, state);
  if (state == ParseState::Done) check_forwarded(whole.head(), input.steer);
  return 0;
}
