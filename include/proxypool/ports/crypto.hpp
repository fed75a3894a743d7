// Cryptography as the project needs it, and no more: digests, chance, passwords, sealed values.
//
// Keys and secrets come in as views; what was decrypted comes out as a SecretString. Comparing is
// SecretString::equal_in_constant_time everywhere.
//
// Thread rule: any thread may call any method. Nothing here waits for I/O, but hash_password and a
// verification of a password take about 70 ms and 32 MiB: run them on a bounded pool only (GW-10).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/stored_hash.hpp"

namespace proxypool::ports {

using Digest = std::array<std::uint8_t, 32>;

inline std::string_view as_view(const Digest& digest) noexcept {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

class Crypto {
 public:
  virtual ~Crypto() = default;

  [[nodiscard]] virtual Digest sha256(std::string_view data) const = 0;
  // Fast (0.2 µs) as long as a thread keeps using the same key.
  [[nodiscard]] virtual Digest hmac_sha256(std::string_view key, std::string_view data) const = 0;
  // Unpredictable bytes, fit for keys. A system without entropy ends the program.
  [[nodiscard]] virtual std::string random_bytes(std::size_t count) const = 0;

  // A new salted scrypt hash; StoredHash::str() is what gets written down.
  [[nodiscard]] virtual Result<StoredHash> hash_password(std::string_view password,
                                                         ScryptCost cost) const = 0;
  // Whether `secret` is the one that was hashed. Fails with Exhausted when memory does not suffice.
  [[nodiscard]] virtual Result<bool> verify(std::string_view secret,
                                            const StoredHash& stored) const = 0;

  // AES-256-GCM under a fresh random nonce: nonce ‖ ciphertext ‖ tag. `associated` is bound to the
  // result without being stored in it. REQUIRES: key.size() == kSealKeyBytes.
  static constexpr std::size_t kSealKeyBytes = 32;
  static constexpr std::size_t kSealOverheadBytes = 12 + 16;
  [[nodiscard]] virtual std::string seal(std::string_view key, std::string_view associated,
                                         std::string_view plain) const = 0;
  // Corrupt when the key, the associated data or a single bit differs.
  [[nodiscard]] virtual Result<SecretString> open(std::string_view key, std::string_view associated,
                                                  std::string_view sealed) const = 0;

  // The stored form of an API key.
  [[nodiscard]] StoredHash hash_api_key(std::string_view key) const {
    StoredHash stored;
    stored.kind = StoredHash::Kind::Sha256;
    stored.hash = as_view(sha256(key));
    return stored;
  }
};

}  // namespace proxypool::ports
