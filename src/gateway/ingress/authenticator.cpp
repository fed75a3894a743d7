#include "gateway/ingress/authenticator.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "gateway/ingress/answer.hpp"
#include "gateway/ingress/sources.hpp"
#include "proxypool/domain/client/api_key.hpp"

namespace proxypool::gateway {
namespace {

using Way = Settings::Auth;
using Verdict = Principal::Verdict;

// What is asked about a client; no name holds either of them.
constexpr char kPassword = ':';
constexpr char kKey = '\0';

std::string_view text_of(const SipTag& tag) noexcept {
  return {reinterpret_cast<const char*>(tag.data()), tag.size()};
}

Principal refused(Verdict verdict) {
  Principal out;
  out.verdict = verdict;
  return out;
}

}  // namespace

Authenticator::Authenticator(Verifier& verifier, Verifier::Asker& asker, Ways ways)
    : verifier_(verifier),
      asker_(asker),
      ways_(std::move(ways)),
      by_source_(static_cast<std::size_t>(std::find(ways_.begin(), ways_.end(), Way::IpWhitelist) -
                                          ways_.begin())),
      shown_counts_(
          std::any_of(ways_.begin(), ways_.end(), [](Way way) { return way != Way::IpWhitelist; })),
      entries_(std::make_unique<Entry[]>(kEntries)),
      sources_(std::make_unique<Source[]>(kSources)) {}

Principal Authenticator::accepted(const Client& client) {
  Principal out;
  out.verdict = Verdict::Accepted;
  out.client = client.index;
  out.tag = client.tag;
  return out;
}

Principal Authenticator::check(const Callers& callers, std::string_view value,
                               const IpAddress& source, TimePoint now) {
  if (ways_.empty()) return refused(Verdict::Accepted);  // as nobody
  const Client* local = nullptr;
  if (by_source_ != ways_.size()) local = callers.clients.find_source(source);
  if (local != nullptr && by_source_ == 0) return accepted(*local);
  if (!shown_counts_) return refused(Verdict::Stranger);
  Principal shown = by_value(callers, value, source, now);
  if (local == nullptr) return shown;
  const bool counts = shown.verdict == Verdict::Accepted || shown.verdict == Verdict::Pending;
  if (counts && shown.way < by_source_) return shown;
  return accepted(*local);
}

// What is shown -----------------------------------------------------------------------------------

Authenticator::Entry& Authenticator::place_of(const SipTag& seen) noexcept {
  std::uint32_t place = 0;
  std::memcpy(&place, seen.data(), sizeof place);
  return entries_[place % kEntries];
}

bool Authenticator::holds(const Entry& entry, const SipTag& seen, std::uint64_t view) {
  return entry.view == view &&
         SecretString::equal_in_constant_time(text_of(entry.seen), text_of(seen));
}

Principal Authenticator::by_value(const Callers& callers, std::string_view value,
                                  const IpAddress& source, TimePoint now) {
  if (value.empty()) return {};
  const SipTag seen = verifier_.tag_of(value);
  const Entry& entry = place_of(seen);
  if (!holds(entry, seen, callers.view)) return look_up(callers, value, source, now, seen);
  Principal known;
  known.verdict = entry.accepted ? Verdict::Accepted : Verdict::Rejected;
  known.client = entry.client;
  known.tag = entry.tag;
  known.asked = entry.asked;
  known.way = entry.way;
  return known;
}

Principal Authenticator::look_up(const Callers& callers, std::string_view value,
                                 const IpAddress& source, TimePoint now, const SipTag& seen) {
  const auto shown = domain::parse_authorization(value);
  if (!shown) return refused(Verdict::Rejected);
  const Question question{callers, *shown, source, now, !may_try(source, now)};
  Principal out = refused(Verdict::Rejected);
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    if (ways_[i] == Way::IpWhitelist) continue;
    Principal tried = ways_[i] == Way::UsernamePassword ? by_password(question)
                                                        : by_key(question, ways_[i] == Way::ApiKey);
    tried.way = static_cast<std::uint8_t>(i);
    if (tried.verdict == Verdict::Pending) return tried;
    if (tried.verdict != Verdict::Rejected) out = std::move(tried);
    if (out.verdict == Verdict::Accepted) break;
  }
  // The rest may be known better the next time.
  if (out.verdict == Verdict::Accepted || out.verdict == Verdict::Rejected) {
    place_of(seen) = {seen,    callers.view, out.tag, out.client, out.verdict == Verdict::Accepted,
                      out.way, out.asked};
  }
  return out;
}

Principal Authenticator::by_password(const Question& question) {
  const auto& [callers, shown, source, now, limited] = question;
  if (shown.scheme != domain::AuthScheme::Basic) return refused(Verdict::Rejected);
  std::string_view rest;
  const Client* client = callers.clients.find_in(shown.username.reveal(), callers.parameters, rest);
  if (client == nullptr) return refused(Verdict::Rejected);
  const std::string_view password = shown.secret.reveal();
  Principal out = accepted(*client);
  out.key = question_of(*client, kPassword, password);
  switch (judge(out.key, password, *client, limited, callers.view)) {
    case Verifier::Start::Accepted:
      out.asked = Asked::read(rest);
      return out;
    case Verifier::Start::Pending:
      out.verdict = Verdict::Pending;
      return out;
    case Verifier::Start::Full:
      return refused(limited ? Verdict::Limited : Verdict::Full);
    case Verifier::Start::Rejected:
      break;
  }
  return refused(Verdict::Rejected);
}

Principal Authenticator::by_key(const Question& question, bool as_user) {
  const auto& [callers, shown, source, now, limited] = question;
  const bool bearer = shown.scheme == domain::AuthScheme::Bearer;
  if (!bearer && !as_user) return refused(Verdict::Rejected);
  const std::string_view text = bearer ? shown.secret.reveal() : shown.username.reveal();
  std::string_view rest;
  const Client* const client = bearer ? key_in({callers.clients, callers.view, false}, text, rest)
                                      : key_in(callers, text, rest);
  if (client == nullptr) {
    // A wrong password is paid for where it is verified.
    if (!domain::may_be_api_key(text) || callers.clients.find_in(text, true, rest) != nullptr) {
      return refused(Verdict::Rejected);
    }
    if (limited) return refused(Verdict::Limited);
    charge(source, now);
    return refused(Verdict::Rejected);
  }
  const CredentialKey key = question_of(*client, kKey, {});
  if (limited && verifier_.known(key) != Verifier::Start::Accepted) {
    return refused(Verdict::Limited);
  }
  if (!limited) verifier_.remember(key);
  Principal out = accepted(*client);
  out.asked = Asked::read(rest);
  return out;
}

// A key ends where the user name does, or at a hyphen; it may hold hyphens itself.
const Authenticator::Client* Authenticator::key_in(const Callers& callers, std::string_view user,
                                                   std::string_view& rest) const {
  std::size_t end = user.size();
  if (callers.parameters) end = std::min(end, user.find('-', domain::kApiKeyBytesMin));
  for (int tries = 0; tries < kKeyTries; ++tries) {
    const std::string_view key = user.substr(0, end);
    if (!domain::may_be_api_key(key)) return nullptr;
    const Client* const found = callers.clients.find_key(ports::as_view(verifier_.sha256_of(key)));
    if (found != nullptr) {
      rest = user.substr(end);
      return found;
    }
    if (end == user.size()) return nullptr;
    end = std::min(user.size(), user.find('-', end + 1));
  }
  return nullptr;
}

CredentialKey Authenticator::question_of(const Client& client, char kind, std::string_view secret) {
  std::string question;
  question.reserve(client.name.size() + secret.size() + client.secret_text.size() + 2);
  question += client.name;  // in one place: no copy of a password stays behind a growth
  question += kind;
  question += secret;
  question += '\0';
  question += client.secret_text;
  const SecretString kept(std::move(question));
  return verifier_.key_of(kept.reveal());
}

Verifier::Start Authenticator::judge(const CredentialKey& key, std::string_view password,
                                     const Client& client, bool limited, std::uint64_t view) {
  const SipTag seen = verifier_.tag_of(ports::as_view(key.digest));
  Entry& known = place_of(seen);
  if (holds(known, seen, view)) {
    return known.accepted ? Verifier::Start::Accepted : Verifier::Start::Rejected;
  }
  const auto start =
      limited ? verifier_.known(key)
              : verifier_.verify(key, SecretString(std::string(password)), *client.secret, asker_);
  if (start == Verifier::Start::Accepted || start == Verifier::Start::Rejected) {
    known = {seen, view, 0, 0, start == Verifier::Start::Accepted, 0, nullptr};
  }
  return start;
}

// Tries ------------------------------------------------------------------------------------------

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

std::string challenges(const Authenticator::Ways& ways) {
  std::string out;
  const auto add = [&](std::string_view line) {
    if (out.find(line) == std::string::npos) out += line;
  };
  for (const Way way : ways) {
    if (way == Way::UsernamePassword || way == Way::ApiKey) add(kBasicChallenge);
    if (way == Way::Bearer || way == Way::ApiKey) add(kBearerChallenge);
  }
  return out;
}

}  // namespace proxypool::gateway
