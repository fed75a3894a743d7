#include "gateway/ingress/authenticator.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "gateway/ingress/sources.hpp"
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

}  // namespace

Authenticator::Authenticator(Verifier& verifier, Verifier::Asker& asker)
    : verifier_(verifier),
      asker_(asker),
      entries_(std::make_unique<Entry[]>(kEntries)),
      sources_(std::make_unique<Source[]>(kSources)) {}

Authenticator::Entry& Authenticator::place_of(const ports::Digest& digest) noexcept {
  std::uint32_t place = 0;
  std::memcpy(&place, digest.data(), sizeof place);
  return entries_[place % kEntries];
}

bool Authenticator::holds(const Entry& entry, const ports::Digest& digest, std::uint64_t view) {
  return entry.view == view &&
         SecretString::equal_in_constant_time(ports::as_view(entry.digest), ports::as_view(digest));
}

Principal Authenticator::check(const Callers& callers, std::string_view value,
                               const IpAddress& source, TimePoint now) {
  if (value.empty()) return {};
  const ports::Digest digest = verifier_.key_of(value).digest;
  const Entry& entry = place_of(digest);
  if (!holds(entry, digest, callers.view)) return look_up(callers, value, source, now, digest);
  Principal known;
  known.verdict = entry.accepted ? Principal::Verdict::Accepted : Principal::Verdict::Rejected;
  known.client = entry.client;
  known.tag = entry.tag;
  known.asked = entry.asked;
  return known;
}

Principal Authenticator::look_up(const Callers& callers, std::string_view value,
                                 const IpAddress& source, TimePoint now,
                                 const ports::Digest& digest) {
  Principal out;
  out.verdict = Principal::Verdict::Rejected;
  const auto credentials = decode_basic(value);
  if (!credentials) return out;
  const std::string_view pair = credentials->reveal();
  const auto colon = pair.find(':');
  std::string_view rest;
  const ClientTable::Entry* client =
      callers.clients.find_in(pair.substr(0, colon), callers.parameters, rest);
  if (client == nullptr) return out;
  const std::string_view password = pair.substr(colon + 1);
  // The stored hash is part of the question: a new password makes the old verdict worthless. What
  // the user name asks for is not: one password is verified once.
  std::string question;
  question.reserve(client->name.size() + password.size() + client->secret_text.size() + 2);
  question += client->name;  // in one place: no copy of a password stays behind a growth
  question += ':';
  question += password;
  question += '\0';
  question += client->secret_text;
  const SecretString kept(std::move(question));
  out.key = verifier_.key_of(kept.reveal());
  const bool limited = !may_try(source, now);
  switch (judge(out.key, password, *client, limited, callers.view)) {
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
      out.asked = Asked::read(rest);
      break;
    case Verifier::Start::Rejected:
      break;
  }
  place_of(digest) = {
      digest,   callers.view, out.tag, out.client, out.verdict == Principal::Verdict::Accepted,
      out.asked};
  return out;
}

Verifier::Start Authenticator::judge(const CredentialKey& key, std::string_view password,
                                     const ClientTable::Entry& client, bool limited,
                                     std::uint64_t view) {
  Entry& known = place_of(key.digest);
  if (holds(known, key.digest, view)) {
    return known.accepted ? Verifier::Start::Accepted : Verifier::Start::Rejected;
  }
  const auto start =
      limited ? verifier_.known(key)
              : verifier_.verify(key, SecretString(std::string(password)), client.secret, asker_);
  if (start == Verifier::Start::Accepted || start == Verifier::Start::Rejected) {
    known = {key.digest, view, 0, 0, start == Verifier::Start::Accepted, nullptr};
  }
  return start;
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
