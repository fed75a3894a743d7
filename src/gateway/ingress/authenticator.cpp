#include "gateway/ingress/authenticator.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "proxypool/base/text.hpp"

namespace proxypool::gateway {
namespace {

// "Basic" and base64 of "user:password" (RFC 7617); the first colon ends the name.
std::optional<SecretString> decode_basic(std::string_view value) {
  constexpr std::string_view kScheme = "basic ";
  if (value.size() <= kScheme.size() ||
      !equal_ignoring_case(value.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  auto decoded = base64_decode(trim(value.substr(kScheme.size())));
  if (!decoded || decoded->find(':') == std::string::npos) return std::nullopt;
  return SecretString(*std::move(decoded));
}

// One subscriber's IPv6 network counts as one source.
IpAddress network_of(const IpAddress& source) noexcept {
  if (source.is_v4()) return source;
  IpAddress::Bytes bytes = source.bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return IpAddress::v6(bytes);
}

}  // namespace

Authenticator::Authenticator(Verifier& verifier, Verifier::Asker& asker)
    : verifier_(verifier),
      asker_(asker),
      entries_(std::make_unique<Entry[]>(kEntries)),
      sources_(std::make_unique<Source[]>(kSources)) {}

Principal Authenticator::check(const ClientTable& clients, std::uint64_t view,
                               std::string_view value, const IpAddress& source, TimePoint now) {
  if (value.empty()) return {};
  const ports::Digest digest = verifier_.key_of(value).digest;
  std::uint32_t place = 0;
  std::memcpy(&place, digest.data(), sizeof place);
  Entry& entry = entries_[place % kEntries];
  if (entry.view == view &&
      SecretString::equal_in_constant_time(ports::as_view(entry.digest), ports::as_view(digest))) {
    Principal known;
    known.verdict = entry.accepted ? Principal::Verdict::Accepted : Principal::Verdict::Rejected;
    known.client = entry.client;
    known.tag = entry.tag;
    return known;
  }
  return look_up(clients, view, value, source, now, entry, digest);
}

Principal Authenticator::look_up(const ClientTable& clients, std::uint64_t view,
                                 std::string_view value, const IpAddress& source, TimePoint now,
                                 Entry& entry, const ports::Digest& digest) {
  Principal out;
  out.verdict = Principal::Verdict::Rejected;
  const auto credentials = decode_basic(value);
  if (!credentials) return out;
  const std::string_view pair = credentials->reveal();
  const auto colon = pair.find(':');
  const ClientTable::Entry* client = clients.find(pair.substr(0, colon));
  if (client == nullptr) return out;
  // The stored hash is part of the question: a new password makes the old verdict worthless.
  const SecretString question(std::string(pair) + '\0' + client->secret_text);
  out.key = verifier_.key_of(question.reveal());
  const bool limited = !may_try(source, now);
  const auto start =
      limited ? verifier_.known(out.key)
              : verifier_.verify(out.key, SecretString(std::string(pair.substr(colon + 1))),
                                 client->secret, asker_);
  switch (start) {
    case Verifier::Start::Pending:
      out.verdict = Principal::Verdict::Pending;
      return out;
    case Verifier::Start::Full:
      out.verdict = limited ? Principal::Verdict::Limited : Principal::Verdict::Full;
      return out;
    case Verifier::Start::Accepted:
      out.verdict = Principal::Verdict::Accepted;
      out.client = client->index;
      out.tag = client->tag;
      break;
    case Verifier::Start::Rejected:
      break;
  }
  entry = {digest, view, out.tag, out.client, out.verdict == Principal::Verdict::Accepted};
  return out;
}

Authenticator::Source& Authenticator::slot(const IpAddress& source) noexcept {
  return sources_[std::hash<IpAddress>{}(source) % kSources];
}

bool Authenticator::may_try(const IpAddress& source, TimePoint now) noexcept {
  const IpAddress network = network_of(source);
  const Source& known = slot(network);
  return known.address != network || known.full_at - now <= (kTokens - 1) * kTokenEvery;
}

void Authenticator::charge(const IpAddress& source, TimePoint now) noexcept {
  const IpAddress network = network_of(source);
  Source& known = slot(network);
  if (known.address != network) known = {network, now};
  known.full_at = std::max(known.full_at, now) + kTokenEvery;
}

}  // namespace proxypool::gateway
