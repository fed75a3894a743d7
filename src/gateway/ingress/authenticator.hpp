// Who is asking? Proxy-Authorization and the address it comes from, checked per request (GW-10).
//
// The ways to prove who one is are tried in their order, and the first that accepts counts.
//
// Warm: a keyed digest of the field's value finds the verdict in a table of this thread (0.06 µs),
// and with it what the user name asks for (GW-13). A new user name of a client whose secret is
// known, say with a new session, costs a second digest, its reading, and still no lock. An address
// is looked up each time (0.1 µs; tests/bench/auth_bench.cpp).
// Cold: a password goes to the Verifier, and the connection waits. An API key is as good as chance,
// so its SHA-256 is looked up at once.
// Wrong secrets cost their source a token; who has none left is not verified any more, only looked
// up among what has been right before.
//
// Thread rule: the loop's thread.
// Limits:      kEntries verdicts and kSources sources; a newer one takes an older one's place. An
//              API key in a user name is looked for in kKeyTries places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/dispatch/client_table.hpp"
#include "gateway/ingress/asked.hpp"
#include "gateway/ingress/verifier.hpp"
#include "gateway/settings.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/siphash.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/client/authorization.hpp"
#include "proxypool/domain/routing/matcher.hpp"

namespace proxypool::gateway {

struct Principal {
  enum class Verdict : std::uint8_t {
    Accepted,
    Missing,
    Rejected,
    Pending,
    Limited,
    Full,
    Stranger,  // its address is no client's, and nothing else would prove it
  };
  Verdict verdict = Verdict::Missing;
  std::uint32_t client = domain::RouteRequest::kNoClient;
  std::uint64_t tag = 0;                 // 0: nobody
  CredentialKey key{};                   // Pending: what is being verified
  std::shared_ptr<const Asked> asked{};  // Accepted: null for nothing
  std::uint8_t way = 0;                  // Accepted, Pending: which one of the ways
};

class Authenticator {
 public:
  static constexpr std::size_t kEntries = 4096;
  static constexpr std::size_t kSources = 1024;
  static constexpr std::uint32_t kTokens = 20;            // wrong secrets in a row
  static constexpr nanoseconds kTokenEvery = seconds(2);  // and how fast they are forgiven
  static constexpr int kKeyTries = 16;

  using Ways = std::vector<Settings::Auth>;

  // Without a way everybody is accepted, as nobody in particular.
  Authenticator(Verifier& verifier, Verifier::Asker& asker, Ways ways);

  // The callers that a view knows.
  struct Callers {
    const ClientTable& clients;
    std::uint64_t view = 0;  // its number
    bool parameters = true;  // user names may go on with parameters
  };
  // `value`: of Proxy-Authorization.
  [[nodiscard]] Principal check(const Callers& callers, std::string_view value,
                                const IpAddress& source, TimePoint now);
  // A verification that this source caused ended badly.
  void charge(const IpAddress& source, TimePoint now) noexcept;

 private:
  using Client = ClientTable::Entry;
  struct Entry {
    SipTag seen{};           // of what was shown or asked
    std::uint64_t view = 0;  // 0: empty
    std::uint64_t tag = 0;
    std::uint32_t client = 0;
    bool accepted = false;
    std::uint8_t way = 0;
    std::shared_ptr<const Asked> asked;
  };
  struct Source {
    IpAddress address;
    TimePoint full_at{};  // when all tokens are back
  };
  // One question, as the ways see it.
  struct Question {
    const Callers& callers;
    const domain::Presented& shown;
    const IpAddress& source;
    TimePoint now;
    bool limited;  // its source has no tries left
  };

  // The place of a tag, whether it is there or not; and whether it is.
  [[nodiscard]] Entry& place_of(const SipTag& seen) noexcept;
  static bool holds(const Entry& entry, const SipTag& seen, std::uint64_t view);
  [[nodiscard]] Principal by_value(const Callers& callers, std::string_view value,
                                   const IpAddress& source, TimePoint now);
  [[nodiscard]] Principal look_up(const Callers& callers, std::string_view value,
                                  const IpAddress& source, TimePoint now, const SipTag& seen);
  [[nodiscard]] Principal by_password(const Question& question);
  [[nodiscard]] Principal by_key(const Question& question, bool as_user);
  [[nodiscard]] const Client* key_in(const Callers& callers, std::string_view user,
                                     std::string_view& rest) const;
  // What is known of a password, or becomes known.
  [[nodiscard]] Verifier::Start judge(const CredentialKey& key, std::string_view password,
                                      const Client& client, bool limited, std::uint64_t view);
  // The digest of what is asked about a client. The stored hash is part of it: a new secret makes
  // the old verdict worthless. What a user name asks for is not: one password is verified once.
  [[nodiscard]] CredentialKey question_of(const Client& client, char kind, std::string_view secret);
  [[nodiscard]] static Principal accepted(const Client& client);
  [[nodiscard]] Source& slot(const IpAddress& source) noexcept;
  [[nodiscard]] bool may_try(const IpAddress& source, TimePoint now) noexcept;

  Verifier& verifier_;
  Verifier::Asker& asker_;
  const Ways ways_;
  const std::size_t by_source_;        // the place of IpWhitelist among the ways, or behind them
  const bool shown_counts_;            // some way wants credentials
  std::unique_ptr<Entry[]> entries_;   // NOLINT: sized once
  std::unique_ptr<Source[]> sources_;  // NOLINT: sized once
};

// What a 407 says of the ways: a Proxy-Authenticate line for each scheme, in their order, each with
// the line end before it.
[[nodiscard]] std::string challenges(const Authenticator::Ways& ways);

}  // namespace proxypool::gateway
