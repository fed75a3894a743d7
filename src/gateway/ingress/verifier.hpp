// Verifies passwords away from the serving threads: a scrypt check takes 70 ms and 32 MiB.
//
// At most two checks run at once, for the whole process; who asks for a check that is already
// running waits for the same one, so that a thousand connections with one password cost one check.
// What was found is remembered under a keyed digest of the credentials, never under themselves, for
// the threads that ask later.
//
// Thread rule: any thread; an Asker's callback is posted to its loop.
// Limits:      kThreads checks at once and kQueueMax waiting: then Full. kRememberedMax verdicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/event_loop.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/siphash.hpp"
#include "proxypool/base/stored_hash.hpp"
#include "proxypool/ports/crypto.hpp"
#include "runtime/blocking_pool.hpp"

namespace proxypool::gateway {

// What was shown, against which stored hash. A changed hash is another question.
struct CredentialKey {
  ports::Digest digest{};
  friend bool operator==(const CredentialKey&, const CredentialKey&) = default;
};

class Verifier {
 public:
  static constexpr std::size_t kThreads = 2;
  static constexpr std::size_t kQueueMax = 64;
  static constexpr std::size_t kRememberedMax = 4096;

  // Failed: the check itself did not work, which says nothing about the password.
  enum class Verdict : std::uint8_t { Accepted, Rejected, Failed };
  // A serving thread as the verifier sees it.
  struct Asker {
    net::EventLoop& loop;
    std::function<void(const CredentialKey&, Verdict)> on_verdict;  // on the loop
  };
  enum class Start : std::uint8_t { Accepted, Rejected, Pending, Full };

  explicit Verifier(const ports::Crypto& crypto);

  // The digest of `text` (credentials as shown, and the stored hash that they must meet), under a
  // key that lives as long as this process.
  [[nodiscard]] CredentialKey key_of(std::string_view text) const {
    return {crypto_.hmac_sha256(key_, text)};
  }
  // The same in 128 bits and a tenth of the time, for what is asked on each request.
  [[nodiscard]] SipTag tag_of(std::string_view text) const noexcept { return tags_(text); }
  [[nodiscard]] ports::Digest sha256_of(std::string_view text) const {
    return crypto_.sha256(text);
  }
  // Pending: the asker's callback will come. REQUIRES: the asker outlives stop().
  [[nodiscard]] Start verify(const CredentialKey& key, SecretString password, StoredHash stored,
                             Asker& asker);
  // The same without starting anything: Accepted, Rejected, or Full when it is not known.
  [[nodiscard]] Start known(const CredentialKey& key) const;
  // What was found right without it: an API key.
  void remember(const CredentialKey& key);
  // Finishes what runs; nothing is posted afterwards.
  void stop() { pool_.stop(); }

 private:
  struct KeyHash {
    std::size_t operator()(const CredentialKey& key) const noexcept {
      std::size_t out = 0;
      for (std::size_t i = 0; i < sizeof out; ++i) out = (out << 8U) | key.digest[i];
      return out;
    }
  };
  struct State {
    std::unordered_map<CredentialKey, std::vector<Asker*>, KeyHash> running;
    std::unordered_map<CredentialKey, bool, KeyHash> known;
  };

  static void keep(State& state, const CredentialKey& key, bool good);
  void finish(const CredentialKey& key, Verdict verdict);

  const ports::Crypto& crypto_;
  const std::string key_;
  const SipHash tags_;
  Guarded<State> state_;
  runtime::BlockingPool pool_;
};

}  // namespace proxypool::gateway
