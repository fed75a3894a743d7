// Who is asking? Proxy-Authorization: Basic, checked per request (GW-10).
//
// Warm: a keyed digest of the field's value finds the verdict in a table of this thread (0.4 µs),
// and with it what the user name asks for (GW-13). A new user name of a client whose password is
// known, say with a new session, costs a second digest, its reading, and still no lock.
// Cold: the password goes to the Verifier, and the connection waits. Wrong passwords cost their
// source a token; who has none left is not verified any more, only looked up.
//
// Thread rule: the loop's thread.
// Limits:      kEntries verdicts and kSources sources; a newer one takes an older one's place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "gateway/dispatch/client_table.hpp"
#include "gateway/ingress/asked.hpp"
#include "gateway/ingress/verifier.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/routing/matcher.hpp"

namespace proxypool::gateway {

struct Principal {
  enum class Verdict : std::uint8_t { Accepted, Missing, Rejected, Pending, Limited, Full };
  Verdict verdict = Verdict::Missing;
  std::uint32_t client = domain::RouteRequest::kNoClient;
  std::uint64_t tag = 0;                 // 0: nobody
  CredentialKey key{};                   // Pending: what is being verified
  std::shared_ptr<const Asked> asked{};  // Accepted: null for nothing
};

class Authenticator {
 public:
  static constexpr std::size_t kEntries = 4096;
  static constexpr std::size_t kSources = 1024;
  static constexpr std::uint32_t kTokens = 20;            // wrong passwords in a row
  static constexpr nanoseconds kTokenEvery = seconds(2);  // and how fast they are forgiven

  Authenticator(Verifier& verifier, Verifier::Asker& asker);

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
  struct Entry {
    ports::Digest digest{};
    std::uint64_t view = 0;  // 0: empty
    std::uint64_t tag = 0;
    std::uint32_t client = 0;
    bool accepted = false;
    std::shared_ptr<const Asked> asked;
  };
  struct Source {
    IpAddress address;
    TimePoint full_at{};  // when all tokens are back
  };

  // The place of a digest, whether it is there or not; and whether it is.
  [[nodiscard]] Entry& place_of(const ports::Digest& digest) noexcept;
  static bool holds(const Entry& entry, const ports::Digest& digest, std::uint64_t view);
  [[nodiscard]] Principal look_up(const Callers& callers, std::string_view value,
                                  const IpAddress& source, TimePoint now,
                                  const ports::Digest& digest);
  // What is known of the credentials, or becomes known.
  [[nodiscard]] Verifier::Start judge(const CredentialKey& key, std::string_view password,
                                      const ClientTable::Entry& client, bool limited,
                                      std::uint64_t view);
  [[nodiscard]] Source& slot(const IpAddress& source) noexcept;
  [[nodiscard]] bool may_try(const IpAddress& source, TimePoint now) noexcept;

  Verifier& verifier_;
  Verifier::Asker& asker_;
  std::unique_ptr<Entry[]> entries_;   // NOLINT: sized once
  std::unique_ptr<Source[]> sources_;  // NOLINT: sized once
};

}  // namespace proxypool::gateway
